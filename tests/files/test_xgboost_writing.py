"""XGBoost opens what we write of our models, and predicts the same."""

import warnings

import numpy as np
import pandas as pd
import pytest
import treelite
import xgboost

from sklboost import (
    UnknownCategoryWarning,
    XGBClassifierLite,
    XGBRegressorLite,
    from_xgboost,
)
from sklboost.estimators.files.foreign_models import model_info
from sklboost.files.documents import write_json, write_ubjson
from sklboost.files.sections import NotExpressibleError
from sklboost.files.xgboost_writing import learner_document
from sklboost.objectives.loss import Loss

N_ROWS = 300
_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(N_ROWS, 4)).astype(np.float32)
X[_RNG.random(X.shape) < 0.1] = np.nan
NUMBER = np.nan_to_num(X[:, 0]) + 0.1 * _RNG.normal(size=N_ROWS)
SHARE, IS_HIGH = 1 / (1 + np.exp(-NUMBER)), (NUMBER > 0).astype(int)
CLASS = np.digitize(NUMBER, [-0.5, 0.5])
LABELS = np.column_stack([IS_HIGH, 1 - IS_HIGH, CLASS > 1])
FRAME = pd.DataFrame(X, columns=[*"abcd"]).assign(
    text=pd.Categorical(_RNG.choice(["~x", "zz", "b", "", None], N_ROWS)),
    integer=pd.Categorical(_RNG.integers(-3, 9, N_ROWS)),
)
CODES = np.column_stack([X, _RNG.integers(0, 12, N_ROWS)]).astype(np.float32)
CODES[:20, -1] = np.nan
_CODE = pd.Series(CODES[:, -1], name="code")


def document_of(model):
    """The keys that XGBoost reads."""
    fitted = model._fitted
    return learner_document(fitted.model, model_info(fitted))


def opened(model, data):
    """XGBoost's estimator of the same kind, with the model."""
    is_classifier = isinstance(model, XGBClassifierLite)
    other = (xgboost.XGBClassifier if is_classifier else xgboost.XGBRegressor)(n_jobs=1)
    other.load_model(bytearray(data))
    return other


def check_same(model, X):
    """Both forms of the file predict the same in XGBoost, whose sums are float32."""
    document = document_of(model)
    for tree in document["learner"]["gradient_booster"]["model"]["trees"]:
        left, right = tree["left_children"], tree["right_children"]
        assert (right[left >= 0] == left[left >= 0] + 1).all()  # which XGBoost relies on
    for data in (write_json(document), write_ubjson(document)):
        other = opened(model, data)
        margin = model.predict(X, output_margin=True)
        found, size = other.predict(X, output_margin=True), np.abs(margin).max()
        np.testing.assert_allclose(found, margin, rtol=2e-6, atol=1e-6 * size)
        predictions = other.predict(X)
        if isinstance(model, XGBClassifierLite):
            assert (predictions == model.predict(X)).all()
            chances = model.predict_proba(X)
            np.testing.assert_allclose(other.predict_proba(X), chances, rtol=1e-5, atol=1e-6)
        else:
            known = model.predict(X)
            size = 1e-6 * np.abs(known).max()
            np.testing.assert_allclose(predictions, known, rtol=1e-5, atol=size)
    return other


@pytest.mark.parametrize(
    ("X", "y", "parameters"),
    [
        (X, NUMBER, {}),
        (X, 1e6 * NUMBER, {"num_parallel_tree": 3, "subsample": 0.5}),
        (FRAME, NUMBER, {}),
        (FRAME, NUMBER, {"max_cat_to_onehot": 100}),
        (CODES, NUMBER + (CODES[:, -1] % 3 == 0), {"categorical_features": [4]}),
        (7 + CODES**2, NUMBER + (CODES[:, -1] % 3 == 0), {"categorical_features": [4]}),
        (X, np.column_stack([NUMBER, -3 * NUMBER]), {"num_parallel_tree": 2, "subsample": 0.5}),
        (X, np.column_stack([NUMBER, -NUMBER]), {"multi_strategy": "multi_output_tree"}),
        (X, IS_HIGH * 1e-9 + 1e-12, {"objective": "count:poisson"}),
        (X, SHARE, {"objective": "reg:tweedie", "tweedie_variance_power": 1.3}),
        (X, SHARE, {"objective": "reg:pseudohubererror", "huber_slope": 2.0}),
        (X, SHARE, {"objective": "reg:quantileerror", "quantile_alpha": 0.8}),
        (X, SHARE, {"objective": "reg:gamma"}),
        (X, SHARE, {"objective": "reg:logistic"}),
        (X, SHARE, {"objective": "reg:absoluteerror"}),
        (FRAME, IS_HIGH, {}),
        (FRAME, CLASS, {"booster": "dart", "rate_drop": 0.3}),
        (X, CLASS, {"multi_strategy": "multi_output_tree"}),
        (X, LABELS, {}),
        (X, LABELS, {"multi_strategy": "multi_output_tree"}),
        (X, IS_HIGH, {"calibrated_prior": True, "scale_pos_weight": 50}),
        (X, IS_HIGH, {"objective": "binary:hinge"}),
    ],
)
def test_every_kind_of_model(X, y, parameters):
    estimator = XGBRegressorLite if y.dtype.kind == "f" else XGBClassifierLite
    check_same(estimator(n_estimators=5, random_state=0, **parameters).fit(X, y), X)


def test_extreme_base_scores():
    """Probabilities that float32 rounds to 1 are said by the leaves of the first round."""
    y = np.zeros(N_ROWS)
    y[:2] = 1.0
    check_same(XGBClassifierLite(n_estimators=2, base_score=1 - 1e-12).fit(X, y), X)


@pytest.mark.parametrize("fitted_on", ["frame", "array", "category"])
def test_integers_are_the_same_categories_in_every_container(fitted_on, tmp_path):
    """Columns of a categorical dtype go by value, all others by the integers themselves."""
    shop, size = _RNG.choice([3, 12, 45, 7], N_ROWS), NUMBER.astype(np.float32)
    frame = pd.DataFrame({"shop": shop, "size": size})
    known = frame.astype({"shop": "category"})
    X = {"frame": frame, "array": frame.to_numpy(), "category": known}[fitted_on]
    names = {} if fitted_on == "category" else {"categorical_features": [0]}
    model = XGBRegressorLite(n_estimators=5, **names).fit(X, 5.0 * (shop == 12) + size)
    model.save_model(tmp_path / "model.json")
    theirs = xgboost.XGBRegressor()
    theirs.load_model(tmp_path / "model.json")
    others = frame.replace({"shop": {45: 5}})  # which no row of the training has
    for rows in (frame, others):
        by_dtype = rows.astype({"shop": "category"})
        reverse = by_dtype["shop"].cat.categories.tolist()[::-1]
        again = by_dtype.assign(shop=by_dtype["shop"].cat.reorder_categories(reverse))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnknownCategoryWarning)
            expected = model.predict(rows.to_numpy() if fitted_on == "array" else by_dtype)
        for container in (by_dtype, again, rows.to_numpy()):
            np.testing.assert_allclose(theirs.predict(container), expected, rtol=1e-5)
        for container in (by_dtype, again, rows):
            matrix = xgboost.DMatrix(container, enable_categorical=True)
            found = theirs.get_booster().predict(matrix)
            np.testing.assert_allclose(found, expected, rtol=1e-5)
    # where XGBoost would not match the values it says so
    for refused in (frame, frame.astype({"shop": "int32"}).astype({"shop": "category"})):
        with pytest.raises(xgboost.core.XGBoostError, match="0th feature"):
            theirs.predict(refused)


def test_categories_that_training_has_not():
    """They go the way of missing values in both."""
    y = NUMBER + (CODES[:, -1] % 3 == 0)
    for categories in ({"max_cat_to_onehot": 100}, {"max_cat_to_onehot": 1}):
        model = XGBRegressorLite(n_estimators=5, categorical_features=[4], **categories)
        model.fit(CODES, y)
        others = CODES.copy()
        others[:, -1] = _RNG.choice([13, 64, 100, 3000], N_ROWS)
        with pytest.warns(UserWarning, match="count as missing"):
            check_same(model, others)


def test_codes_of_a_foreign_model_go_back():
    """All of them go right that no split lists, and children change sides for XGBoost."""
    y = NUMBER + (CODES[:, -1] % 3 == 0)
    types = {"feature_types": ["float"] * 4 + ["c"], "enable_categorical": True}
    theirs = xgboost.XGBRegressor(n_estimators=5, n_jobs=1, **types).fit(CODES, y)
    others = CODES.copy()
    others[::2, -1] = _RNG.choice([13, 64, 100, 3000], N_ROWS // 2)
    for rows in (CODES, others):
        other = check_same(from_xgboost(theirs), rows)
        np.testing.assert_allclose(other.predict(rows), theirs.predict(rows), rtol=1e-6, atol=1e-6)


def test_every_float32_goes_the_same_way():
    """Thresholds between two float32 are rounded up: the values beside them stay apart."""
    low = np.float32(0.1)
    column = np.array([low, np.nextafter(low, np.float32(1))] * 20, dtype=np.float32)[:, np.newaxis]
    y = (column[:, 0] > low).astype(float)
    model = XGBRegressorLite(n_estimators=1, learning_rate=1, reg_lambda=0).fit(column, y)
    assert (check_same(model, column).predict(column) == y).all()


def test_best_iteration():
    model = XGBClassifierLite(n_estimators=50, early_stopping_rounds=2, random_state=0)
    other = check_same(model.fit(X, CLASS), X)
    assert other.best_iteration == model.best_iteration_


class _Own(Loss):
    def gradients(self, y, raw_score):
        return raw_score - y, np.ones_like(raw_score)


@pytest.mark.parametrize(
    ("model", "y", "reason"),
    [
        (
            XGBRegressorLite(objective=_Own(), base_score=0.0),
            NUMBER,
            "hold a loss of your own",
        ),
        (XGBRegressorLite(objective="reg:huber"), NUMBER, "objective='reg:huber'"),
        (XGBRegressorLite(objective="reg:squaredlogerror"), SHARE, "reg:squaredlogerror"),
        (XGBRegressorLite(linear_tree=True), NUMBER, "linear leaves"),
        (XGBRegressorLite(missing=-1.0), NUMBER, "missing=-1"),
        (XGBClassifierLite(), IS_HIGH + 1, "cannot hold labels 1, 2: its classes are 0, 1, 2"),
        (XGBClassifierLite(), np.ones(N_ROWS), "cannot hold a single class, 1.0"),
        (
            XGBRegressorLite(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8]),
            NUMBER,
            "several values of quantile_alpha",
        ),
    ],
)
def test_what_xgboost_has_not(model, y, reason):
    model.set_params(n_estimators=2).fit(X, y)
    with pytest.raises(NotExpressibleError, match=reason) as caught:
        model.to_xgboost()
    assert "save_model" not in str(caught.value)  # a file is no Booster


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pd.to_datetime(["2020-01-01", "2021-01-01"] * 150), "features of the kind datetime"),
        (np.array([2**60, 2**60 + 1] * 150), "features of the kind large integer"),
        (pd.Categorical(["a", "ü"] * 150), "categories such as 'ü': XGBoost 3.2 cuts text off"),
        (pd.Categorical([1.5, 2.5] * 150), "categories such as 1.5: they are text or integers"),
        (pd.Categorical([None] * N_ROWS), "without a category, all values of which"),
        # numbers, which XGBoost takes for its codes
        (_CODE - 1, "but integers from 0 to 65533"),
        (_CODE / 2, "but integers from 0 to 65533"),
        (_CODE * 10_000, "but integers from 0 to 65533"),
        (_CODE.rename("a<b"), "the feature name 'a<b'"),
    ],
)
def test_features_that_xgboost_has_not(column, reason):
    name = getattr(column, "name", None) or "a"
    frame = pd.DataFrame({name: column, "b": NUMBER})
    declared = {"categorical_features": ["code"]} if name == "code" else {}
    model = XGBRegressorLite(n_estimators=2, **declared).fit(frame, NUMBER)
    with pytest.raises(NotExpressibleError, match=reason):
        document_of(model)


def test_there_and_back():
    """XGBoost's files of our models have all that we read of its own."""
    model = XGBClassifierLite(n_estimators=5, learning_rate=0.2, reg_lambda=2.0).fit(FRAME, CLASS)
    again = from_xgboost(model.to_xgboost())
    np.testing.assert_allclose(again.predict_proba(FRAME), model.predict_proba(FRAME), rtol=1e-5)
    assert (again.learning_rate, again.reg_lambda) == (0.2, 2.0)
    assert [*again.categories_] == ["text", "integer"]
    sizes = np.abs(model.model_.nodes.gradient).max()
    np.testing.assert_allclose(
        again.model_.nodes.gradient[0], model.model_.nodes.gradient[0], atol=1e-5 * sizes
    )


def test_gains_beyond_float32_are_no_obstacle(tmp_path):
    X = np.random.default_rng(0).normal(size=(100, 2)).astype(np.float32)
    model = XGBRegressorLite(n_estimators=2).fit(X, X[:, 0] * 1e25)
    assert model.model_.nodes.gain.max() > np.finfo(np.float32).max
    model.save_model(tmp_path / "model.json")
    theirs = xgboost.XGBRegressor()
    theirs.load_model(tmp_path / "model.json")
    np.testing.assert_allclose(theirs.predict(X), model.predict(X), rtol=1e-5)


# --- treelite, which compiles trees of all libraries, reads our files by XGBoost's schema


def known_of(model, X):
    """Predictions as treelite has them: of two classes the probability of the second."""
    if not isinstance(model, XGBClassifierLite):
        return model.predict(X)
    chances = model.predict_proba(X)
    return chances[:, 1] if chances.shape[1] == 2 else chances


def check_treelite(forest, model, X):
    found, known = treelite.gtil.predict(forest, X), known_of(model, X)
    np.testing.assert_allclose(found.reshape(known.shape), known, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("model", "X", "y"),
    [
        (XGBRegressorLite(), X, NUMBER),
        (XGBRegressorLite(num_parallel_tree=3, subsample=0.5, random_state=0), X, NUMBER),
        (XGBRegressorLite(objective="count:poisson"), X, SHARE),
        (XGBRegressorLite(multi_strategy="multi_output_tree"), X, np.column_stack([NUMBER, SHARE])),
        (XGBClassifierLite(booster="dart", rate_drop=0.4, random_state=0), X, IS_HIGH),
        (XGBClassifierLite(), X, CLASS),
        (XGBClassifierLite(), X, LABELS),
    ],
)
# treelite says that it leaves our own section alone
@pytest.mark.filterwarnings("ignore:.*unknown key")
def test_treelite_reads_our_files(model, X, y, tmp_path):
    model.set_params(n_estimators=5).fit(X, y)
    for suffix, form in {"json": "json", "ubj": "ubjson"}.items():
        path = tmp_path / f"model.{suffix}"
        model.save_model(path)
        options = {"format_choice": form, "allow_unknown_field": True}
        check_treelite(treelite.frontend.load_xgboost_model(path, **options), model, X)
    check_treelite(treelite.frontend.from_xgboost(model.to_xgboost()), model, X)


@pytest.mark.filterwarnings("ignore:.*unknown key")
def test_treelite_refuses_categories(tmp_path):
    model = XGBRegressorLite(n_estimators=2, categorical_features=[4]).fit(CODES, NUMBER)
    model.save_model(tmp_path / "model.json")
    with pytest.raises(treelite.TreeliteError, match=r"does not yet support .* categorical"):
        treelite.frontend.load_xgboost_model(tmp_path / "model.json", allow_unknown_field=True)
