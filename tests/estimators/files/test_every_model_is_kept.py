"""Every model that can be fitted is saved with its bits, and XGBoost opens what it is said to open.

There raw scores are the same to the rounding of float32 sums.
"""

import io
import json
import re
import warnings

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer, mean_absolute_error

from sklboost import (
    EarlyStopping,
    LearningRateScheduler,
    Loss,
    ModelFileError,
    XGBClassifierLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    from_lightgbm,
    from_xgboost,
    load_model,
)
from sklboost.files.sections import NotExpressibleError
from tests.files.golden_models import (
    ALL,
    BY_XGBOOST,
    CLASS,
    IS_HIGH,
    LABELS,
    NUMBER,
    SEVERAL,
    X,
    results_of,
    rows_of,
)

_TINY = dict(n_estimators=2, max_depth=2, n_jobs=1)
_QUERIES = np.repeat(np.arange(6), 10)
_TIMES = np.where(IS_HIGH, NUMBER, -NUMBER)  # of censoring where negative


def squared_error(y, raw_score):
    return raw_score - y, np.ones_like(raw_score)


def softmax_error(y, raw_score):
    chances = np.exp(raw_score) / np.exp(raw_score).sum(axis=1, keepdims=True)
    return chances - np.eye(raw_score.shape[1])[y.astype(int)], chances * (1.0 - chances)


def median_error(y, prediction):
    return float(np.median(np.abs(y - prediction)))


class OfLogarithms(Loss):
    link = "log"

    def gradients(self, y, raw_score):
        return raw_score - np.log(y), np.ones_like(raw_score)


class Doubled(Loss):
    link = "other"

    def gradients(self, y, raw_score):
        return 2.0 * raw_score - y, np.full_like(raw_score, 2.0)

    def predictions(self, raw_score):
        return 2.0 * raw_score[0]


class TwoOutputs(Loss):
    n_outputs = 2

    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)


def regressor(y=NUMBER, **parameters):
    return lambda: XGBRegressorLite(**_TINY | parameters).fit(X, y)


def classifier(y=IS_HIGH, **parameters):
    return lambda: XGBClassifierLite(**_TINY | parameters).fit(X, y)


def watched(**parameters):
    return lambda: XGBRegressorLite(**_TINY | parameters).fit(X, NUMBER, X_val=X, y_val=NUMBER)


def of_xgboost(objective, y=IS_HIGH, **given):
    data = xgboost.DMatrix(X, y, **given)
    return from_xgboost(xgboost.train({"objective": objective, "max_depth": 2}, data, 2))


def of_failure_times():
    data = xgboost.DMatrix(X)
    data.set_float_info("label_lower_bound", NUMBER)
    data.set_float_info("label_upper_bound", np.where(IS_HIGH, NUMBER, np.inf))
    settings = {"objective": "survival:aft", "aft_loss_distribution": "extreme", "max_depth": 2}
    return from_xgboost(xgboost.train(settings, data, 2))


# What is left out of the file, and the model.
WITH_CODE = {
    "function": ("objective", regressor(objective=squared_error)),
    "function, several targets": ("objective", regressor(SEVERAL, objective=squared_error)),
    "function, two classes of text": (
        "objective",
        classifier(np.array(["no", "yes"])[IS_HIGH], objective=squared_error),
    ),
    "function, classes": ("objective", classifier(CLASS, objective=softmax_error)),
    "function, labels": ("objective", classifier(LABELS, objective=squared_error)),
    "loss with a link": ("objective", regressor(objective=OfLogarithms())),
    "loss with predictions": ("objective", regressor(objective=Doubled())),
    "loss of two outputs": ("objective", regressor(objective=TwoOutputs())),
    "early stopping": ("callbacks", watched(callbacks=[EarlyStopping(1)])),
    "schedule": ("callbacks", regressor(callbacks=[LearningRateScheduler(lambda i: 0.1)])),
    "scorer": ("eval_metric", watched(eval_metric=make_scorer(mean_absolute_error))),
    "function as a metric": ("eval_metric", watched(eval_metric=["mae", median_error])),
    "stream of random numbers": (
        "random_state",
        regressor(random_state=np.random.RandomState(0), subsample=0.5),
    ),
    "all of them": (
        "callbacks, eval_metric, objective, random_state",
        watched(
            objective=squared_error,
            callbacks=[EarlyStopping(1)],
            eval_metric=median_error,
            random_state=np.random.RandomState(0),
        ),
    ),
}
MODELS = {
    **{name: make for name, make in ALL.items() if "xgboost" not in name},
    **{name: lambda make=make: from_xgboost(make()) for name, make in BY_XGBOOST.items()},
    "labels with gaps": classifier(np.array([3, 70])[IS_HIGH]),
    "linear leaves of classes": classifier(CLASS, linear_tree=True),
    "dart of classes": classifier(CLASS, booster="dart", rate_drop=0.5),
    "dart of several targets": regressor(SEVERAL, booster="dart", rate_drop=0.5),
    "one quantile": regressor(objective="reg:quantileerror", quantile_alpha=0.3),
    "ranking by map": lambda: XGBRankerLite(objective="rank:map", **_TINY).fit(
        X, IS_HIGH, qid=_QUERIES
    ),
    "ranking by neighbours": lambda: XGBRankerLite(
        objective="rank:yeti", yeti_mode="mrr", min_child_weight=0.01, **_TINY
    ).fit(X, CLASS, qid=_QUERIES),
    "survival, extreme": lambda: XGBSurvivalLite(
        objective="survival:aft",
        aft_loss_distribution="extreme",
        aft_loss_distribution_scale=0.7,
        **_TINY,
    ).fit(X, _TIMES),
    "xgboost's ranking": lambda: of_xgboost("rank:pairwise", qid=_QUERIES),
    "xgboost's survival": lambda: of_xgboost("survival:cox", _TIMES),
    "xgboost's failure times": of_failure_times,
    "lightgbm's classes": lambda: from_lightgbm(
        lightgbm.LGBMClassifier(n_estimators=2, verbose=-1, min_child_samples=2).fit(X, CLASS)
    ),
}
# Names, and why XGBoost cannot have these models; it opens all others.
NOT_FOR_XGBOOST = {
    "one class": "single class, 1.0",
    "(xgboost )?quantiles": "several values of quantile_alpha",
    "(read )?linear leaves": "linear leaves",
    "class weights of text|labels of (?!booleans)|labels with gaps": "its classes are 0, 1, 2, ...",
    "missing value": "missing=-1.0",
    "column of (datetime|timedelta|ranks)": "features of the kind",
    "categories of (?!integers)": "categories such as",
    "names of text": "feature name",
    "expectile|.*:(expectile|huber|logcosh|fair|mape|squaredlog|focal|onevsrest)": "objective=",
    "ranking, whole lists": "objective='rank:xendcg'",
    "ranking by neighbours": "objective='rank:yeti'",
    "distribution, ": "distribution=",
}


def written(model, **given):
    file = io.BytesIO()
    model.save_model(file, raw_format="json", **given)
    return file.getvalue()


def as_float32(rows):
    """Return rows that XGBoost does not round."""
    if not isinstance(rows, pd.DataFrame):
        return rows.astype(np.float32)
    columns = [column for _, column in rows.items()]
    short = [own.astype(np.float32) if own.dtype == np.float64 else own for own in columns]
    return pd.concat(short, axis=1).set_axis(rows.columns, axis=1)


def check_in_xgboost(model, data, rows):
    booster = xgboost.Booster()
    booster.load_model(bytearray(data))
    rows = as_float32(rows)
    if isinstance(rows, pd.DataFrame):
        rows = rows.set_axis([*map(str, rows.columns)], axis=1)
    names = model._fitted.features.names
    matrix = xgboost.DMatrix(rows, enable_categorical=True)
    if names is None:
        matrix.feature_names = None
    found = booster.predict(matrix, output_margin=True, validate_features=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of base_margin
        known = model.predict(rows, output_margin=True)
    # whose raw scores are logarithms of times
    sign = -1.0 if model._fitted.loss.name == "survival:aft" else 1.0
    size = 1e-5 * max(1.0, np.abs(known).max())
    np.testing.assert_allclose(found.reshape(known.shape), sign * known, rtol=1e-5, atol=size)


@pytest.mark.parametrize("name", MODELS)
def test_every_model(name):
    model = MODELS[name]()
    data = written(model)
    loaded = load_model(data)
    if "xgboost's" in name:  # which has no functions of time
        assert (loaded.predict(X) == model.predict(X)).all()
    else:
        assert results_of(loaded, name) == results_of(model, name)
    assert repr(loaded.get_params()) == repr(model.get_params())
    reasons = [reason for of, reason in NOT_FOR_XGBOOST.items() if re.match(of, name)]
    assert model.xgboost_readable_ == loaded.xgboost_readable_ == (not reasons)
    document = json.loads(data)
    if not reasons:
        check_in_xgboost(model, data, rows_of(name))
        assert written(model, format="xgboost") == data
        return
    assert "learner" not in document
    assert reasons[0] in document["sklboost"]["not_for_xgboost"]
    for refused in (model.to_xgboost, lambda: written(model, format="xgboost")):
        with pytest.raises(NotExpressibleError, match=re.escape(reasons[0])):
            refused()


@pytest.mark.parametrize("name", WITH_CODE)
def test_what_training_alone_needs_is_left_out(name):
    left_out, make = WITH_CODE[name]
    model = make()
    with pytest.warns(UserWarning, match=f"left out of the model file: {left_out}, since") as told:
        data = written(model)
    assert len(told) == 1
    loaded = load_model(data)
    given, default = model.get_params(), type(model)().get_params()
    gone = left_out.split(", ")
    assert repr(loaded.get_params()) == repr(given | {name: default[name] for name in gone})
    for method in ("apply", "shap_values"):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    margin = model.predict(X, output_margin=True)
    np.testing.assert_array_equal(loaded.predict(X, output_margin=True), margin)
    assert loaded._fitted.output_names == model._fitted.output_names
    if name == "loss with predictions":
        assert "raw scores only (output_margin=True)" in str(told[0].message)
        for meaning in (loaded.predict, lambda X: loaded.score(X, NUMBER)):
            with pytest.raises(ValueError, match=r"objective=Doubled .*code.*output_margin=True"):
                meaning(X)
    else:
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        for row in (str(loaded.explain_prediction(X[:1])), str(model.explain_prediction(X[:1]))):
            assert "raw score" in row or "log-odds" in row
    assert written(loaded) == written(load_model(written(loaded)))  # with no further warning


@pytest.mark.parametrize(
    "name", ["function", "loss with a link", "loss with predictions", "loss of two outputs"]
)
def test_an_own_loss_that_is_given_back_continues(name):
    model = WITH_CODE[name][1]()
    own, settings = model.objective, dict(warm_start=True, n_estimators=4)
    with pytest.warns(UserWarning, match="left out"):
        part = load_model(written(model)).set_params(**settings)
    with pytest.raises(ValueError, match=f"with objective={model._trained.loss.name}, .*does not"):
        part.fit(X, NUMBER)
    part.set_params(objective=own).fit(X, NUMBER)
    whole = XGBRegressorLite(**_TINY | settings, objective=own).fit(X, NUMBER)
    np.testing.assert_array_equal(part.predict(X), whole.predict(X))


# --- continued models of other libraries


def kept(tmp_path, model, name):
    path = tmp_path / name
    model.save_model(path)
    return path


def test_fits_continue_whatever_can_be_read(tmp_path):
    """As XGBoost's and LightGBM's own argument takes paths and boosters."""
    ours = XGBRegressorLite(**_TINY).fit(X, NUMBER)
    theirs = xgboost.XGBRegressor(**_TINY).fit(X, NUMBER)
    other = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, min_child_samples=2).fit(X, NUMBER)
    forms = {
        ours: [kept(tmp_path, ours, "ours.ubj"), str(tmp_path / "ours.ubj")],
        theirs: [
            *(theirs, theirs.get_booster(), bytes(theirs.get_booster().save_raw("ubj"))),
            kept(tmp_path, theirs, "theirs.json"),
            (tmp_path / "theirs.json").open("rb"),
        ],
        other: [other, other.booster_],
    }
    for model, sources in forms.items():
        before = model.predict(X)
        for argument in ("xgb_model", "init_model"):
            for source in sources:
                more = XGBRegressorLite(**_TINY).fit(X, NUMBER, **{argument: source})
                assert more.n_estimators_ == 4
                first = more.predict(X, iteration_range=(0, 2))
                np.testing.assert_allclose(first, before, rtol=1e-5, atol=1e-6)
                if hasattr(source, "seek"):
                    source.seek(0)
    forms[theirs][-1].close()


def test_models_of_another_task_are_not_continued(tmp_path):
    ranks = of_xgboost("rank:pairwise", qid=_QUERIES)
    path = kept(tmp_path, ranks, "ranks.json")
    for source, error in (
        (path, "holds a fitted XGBRankerLite"),
        (ranks.to_xgboost(), "rank:pair"),
    ):
        with pytest.raises(TypeError, match=f"{error}.*XGBRankerLite.load_model"):
            XGBRegressorLite(**_TINY).fit(X, NUMBER, xgb_model=source)
    with pytest.raises(ModelFileError, match="of a classifier: sklboost has it for models of rank"):
        XGBClassifierLite(**_TINY).fit(X, NUMBER > 0, xgb_model=ranks.to_xgboost())
    with pytest.raises(FileNotFoundError):
        XGBRegressorLite(**_TINY).fit(X, NUMBER, xgb_model=tmp_path / "nothing.json")
    with pytest.raises(NotFittedError):
        XGBRegressorLite(**_TINY).fit(X, NUMBER, xgb_model=XGBRegressorLite())


def test_functions_of_time_need_a_training_here():
    for model in (MODELS["xgboost's survival"](), MODELS["xgboost's failure times"]()):
        with pytest.raises(ValueError, match="neither the times of events nor baseline hazards"):
            model.predict_survival_function(X)
        more = XGBSurvivalLite(
            **_TINY,
            **{name: getattr(model, name) for name in ("objective", "aft_loss_distribution")},
        ).fit(X, _TIMES, xgb_model=model)
        assert more.n_estimators_ == 4
        assert np.isfinite(more.predict_survival_function(X, return_array=True)).all()
    times = xgboost.Booster(model_file=bytearray(model.to_xgboost().save_raw()))
    known = times.predict(xgboost.DMatrix(X.astype(np.float32)))
    np.testing.assert_allclose(model.predict_time(X.astype(np.float32)), known, rtol=1e-5)
    # of the extreme value distribution, which has no symmetry
    quantiles = -np.log(1 - 0.3) * model.predict_time(X)
    np.testing.assert_allclose(model.predict_quantile(X, 0.3), quantiles)


@pytest.mark.parametrize("argument", ["xgb_model", "init_model"])
def test_what_is_no_model_is_named_by_its_argument(argument):
    with pytest.raises(TypeError, match=f"^{argument}=3: it must be a fitted XGBRegressorLite"):
        XGBRegressorLite(**_TINY).fit(X, NUMBER, **{argument: 3})
    other = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, min_child_samples=2).fit(X, NUMBER)
    text = other.booster_.model_to_string()
    ours = written(XGBRegressorLite(**_TINY).fit(X, NUMBER)).decode()
    for own, read in ((text, from_lightgbm), (ours, bytes)):
        with pytest.raises(ValueError, match=r"is the text of a model, not a path: .*encode"):
            XGBRegressorLite(**_TINY).fit(X, NUMBER, **{argument: own})
        more = XGBRegressorLite(**_TINY).fit(X, NUMBER, **{argument: read(own.encode())})
        assert more.n_estimators_ == 4
