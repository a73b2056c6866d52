"""NumPy's error state is the caller's business: nothing of ours fails by it, or changes it."""

import warnings
from itertools import cycle, product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from sklboost import (
    EarlyStopping,
    TrainingCallback,
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
    XGBSurvivalLite,
    bin_features,
    check_loss,
    from_lightgbm,
    from_xgboost,
    load_model,
)
from sklboost.objectives.registry import METRICS, OBJECTIVES
from tests.conftest import ROOT

FREE = dict(reg_lambda=0, min_child_weight=0)
TINY, HUGE = 5e-324, 1e300


@pytest.fixture(autouse=True)
def state(request):
    """Set the error state: everything is raised, or warned of, and warnings are errors."""
    with np.errstate(all=getattr(request, "param", "raise")), warnings.catch_warnings():
        warnings.simplefilter("error")
        before = np.geterr()
        yield
        assert np.geterr() == before


def make_data(n_rows=150):
    """Return features of all kinds of values, and a target and classes that depend on them."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 6))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    X[:, 3] = random.choice([TINY, -TINY, 0.0, 3e-310], n_rows)
    X[:, 4] = random.choice([-np.inf, -HUGE, 1.0, HUGE, np.inf, np.nan], n_rows)
    X[:, 5] = random.choice([1.7e308, -1.7e308, 1e-307], n_rows)
    return X, signal, np.digitize(signal, [-0.5, 0.5])


SETTINGS = {
    "plain": {},
    "free": FREE | dict(learning_rate=3.0, n_estimators=20),
    "sampling": dict(subsample=0.5, colsample_bytree=0.5, colsample_bynode=0.5),
    "by gradient": dict(subsample=0.3, sampling_method="gradient_based"),
    "dart": dict(booster="dart", rate_drop=0.5),
    "dart, weighted": dict(booster="dart", one_drop=True, sample_type="weighted"),
    "lossguide": dict(grow_policy="lossguide", max_depth=0, max_leaves=9, gamma=1e-300),
    "pre": dict(pruning="pre", gamma=0.1, keep_pruned=True),
    "full": dict(pruning="full", gamma=0.1, ccp_alpha=1e-4),
    "constraints": dict(monotone_constraints=[1, -1, 0, 0, 0, 0], path_smooth=2.0),
    "interactions": dict(interaction_constraints=[[0, 1], [2, 3]], extra_trees=True),
    "forest": dict(num_parallel_tree=3, subsample=0.5),
    "few bins": dict(max_bin=5),
    "one tree": dict(multi_strategy="multi_output_tree"),
    "stops": dict(early_stopping_rounds=3, refit=True),
    "verbose": dict(verbose=1),
    "tiny steps": dict(learning_rate=1e-300, reg_alpha=1e-300),
}


def check_all_answers(model, X, y, folder=None):
    """Ask a fitted model for everything."""
    model.predict(X), model.score(X, y), model.apply(X)
    list(model.staged_predict(X))
    if isinstance(model, XGBClassifierLite):
        assert np.isfinite(model.predict_proba(X)).all()
        model.decision_function(X), list(model.staged_predict_proba(X))
    if model.model_.linear is None:
        model.shap_values(X[:5]), model.shap_values(X[:5], X_background=X[:9])
        model.shap_interaction_values(X[:2])
        model.predict(X[:5], pred_contribs=True)
    str(model.explain_prediction(X[:1])), str(model.explain_split(0, 0))
    model.trees_to_dataframe(), model.get_score("gain"), str(model.fit_report_), model.intercept_
    assert np.isfinite(model.feature_importances_).all()
    if folder is not None:
        model.to_html(folder / "model.html", X[:20], y[:20], rows=[0, 1])


def cases():
    """Return each state, task and setting, the first two settings with every task."""
    tasks, names = ["regression", "binary", "multiclass"], list(SETTINGS)
    chosen = [*product(names[:2], tasks), *zip(names[2:], cycle(tasks), strict=False)]
    return [(state, *own) for own, state in zip(chosen, cycle(["raise", "warn"]), strict=False)]


@pytest.mark.parametrize(("state", "name", "task"), cases(), indirect=["state"])
def test_fits_and_answers(name, task, tmp_path):
    X, signal, y = make_data()
    y = {"regression": signal, "binary": y > 0, "multiclass": y}[task]
    kind = XGBRegressorLite if task == "regression" else XGBClassifierLite
    model = kind(**dict(n_estimators=6, random_state=0) | SETTINGS[name]).fit(X, y)
    check_all_answers(model, X, y, tmp_path)


def test_linear_leaves():
    X, signal, _ = make_data()
    X = np.where(np.isfinite(X), X, 0.0)
    check_all_answers(XGBRegressorLite(n_estimators=4, linear_tree=True).fit(X, signal), X, signal)


def targets_of(task):
    _, signal, y = make_data()
    kinds = {"binary": y > 0, "multiclass": y, "multilabel": np.c_[y > 0, y > 1]}
    return kinds.get(task, np.abs(signal) + 1e-3)


# of rows that do not depend on one another
TASKS = ("regression", "binary", "multiclass", "multilabel")


def estimator_of(task, **settings):
    kinds = {"regression": XGBRegressorLite, "survival": XGBSurvivalLite}
    kind = kinds.get(task, XGBClassifierLite)
    return kind(**dict(n_estimators=4, random_state=0) | FREE | settings)


@pytest.mark.parametrize(
    ("task", "name"), [(task, own.name) for task in TASKS for own in OBJECTIVES[task]]
)
def test_objectives(task, name):
    X, y = make_data()[0], targets_of(task)
    model = estimator_of(task, objective=name, early_stopping_rounds=2, learning_rate=1.0)
    for scale in (1e-28, 1e-5, 1.0, 1e5, 1e28):
        own = 1.0 / (1.0 + scale * y) if name == "reg:logistic" else scale * y
        is_number = task in ("regression", "survival")
        model.fit(X, own if is_number else y, sample_weight=scale * np.arange(len(y)))
        assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("task", TASKS)
def test_metrics(task):
    X, y = make_data()[0], targets_of(task)
    parameters = {"quantile": "@0.5", "expectile": "@0.5", "error": "@0.3"}
    for name in {own.name + parameters.get(own.name, "") for own in METRICS[task]}:
        if name in ("error@0.3", "kullback_leibler", "logloss") and task in (
            "regression",
            "multiclass",
        ):
            continue  # of shares
        for weight in (None, np.full(len(y), 1e-90), np.full(len(y), 1e90)):
            for objective in [None, "count:poisson"] if task == "regression" else [None]:
                model = estimator_of(task, eval_metric=name, objective=objective, learning_rate=0.1)
                if objective is None and any(word in name for word in ("-", "rmsle")):
                    continue  # of positive predictions
                model.fit(X, y, weight, X_val=X, y_val=y, sample_weight_val=weight)


def test_other_data():
    X, _, y = make_data()
    X = np.where(np.isfinite(X), X, 0.0)
    frame = pd.DataFrame(X, columns=list("abdefg")).assign(
        c=pd.Categorical(y), t=pd.date_range("2020", periods=len(y))
    )
    frame["i"] = np.arange(len(y)) + 2**62
    with np.errstate(all="ignore"):
        singles = np.clip(X, -1e38, 1e38).astype(np.float32)
    for data in (frame, csr_array(np.where(X > 0, X, 0.0)), singles, bin_features(X)):
        model = XGBClassifierLite(n_estimators=3, early_stopping_rounds=2, min_child_weight=0)
        model.fit(data, y, sample_weight=np.linspace(0.0, 1e-80, len(y)))
        model.predict_proba(data), model.predict(data)


def test_weights_of_classes_and_forests():
    X, _, y = make_data()
    given = dict(calibrated_prior=True, class_weight="balanced", n_estimators=3, subsample=0.5)
    XGBClassifierLite(**given).fit(X, y).predict_proba(X)
    XGBClassifierLite(**given, scale_pos_weight=1e-50).fit(X, y > 0).predict_proba(X)
    XGBRFClassifierLite(n_estimators=3).fit(X, y).predict_proba(X)


def test_continued_training():
    X, signal, _ = make_data()
    model = XGBRegressorLite(n_estimators=3, warm_start=True, early_stopping_rounds=3)
    model.fit(X, signal, base_margin=signal / 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.set_params(n_estimators=9).fit(X, signal, base_margin=signal / 2)


def test_models_travel(tmp_path):
    X, signal, y = make_data()
    models = [
        kind(n_estimators=3, max_delta_step=step).fit(X, target)
        for kind, target in ((XGBRegressorLite, signal), (XGBClassifierLite, y))
        for step in (0.0, 1e-42)  # whose leaf values are denormal in float32
    ]
    for model in models:
        for name in ("model.json", "model.ubj"):
            model.save_model(tmp_path / name)
            loaded = load_model(tmp_path / name)
            assert_array_equal(loaded.predict(X), model.predict(X))
        from_xgboost(tmp_path / "model.json").predict(X)
    from_lightgbm(ROOT / "tests" / "files" / "data" / "lightgbm_linear.txt")


def test_looks_at_the_model():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    from sklboost import displays

    X, signal, _ = make_data()
    model = XGBRegressorLite(n_estimators=3, early_stopping_rounds=2, random_state=0).fit(X, signal)
    for name in ("plot_tree", "plot_importance", "plot_learning_curve"):
        getattr(displays, name)(model)
    displays.plot_split_values(model, 0)
    pyplot.close("all")
    model.verify_monotone([1, 0, 0, 0, 0, 0])
    model.cost_complexity_pruning_path(X, signal)
    importances = model.validation_importances(X, signal, X_val=X, y_val=signal, n_repeats=2)
    str(importances)


def test_saturated_probabilities():
    X = np.arange(40.0)[:, np.newaxis]
    for y in (X[:, 0] > 20, np.repeat([0, 1, 2, 3], 10)):
        model = XGBClassifierLite(n_estimators=60, learning_rate=2000.0, **FREE).fit(X, y)
        assert np.abs(model.decision_function(X)).max() > 800
        model.predict_proba(X), list(model.staged_predict_proba(X))
        str(model.explain_prediction(X[:1], full=True))
    check_loss("binary:logistic", [0.0, 1.0], raw_score=[900.0, -900.0])


def test_users_see_their_own_state():
    seen, (X, signal, _) = [], make_data()

    def objective(y_true, y_pred):
        seen.append(np.geterr())
        return y_pred - y_true, np.ones_like(y_pred)

    def metric(y_true, y_pred):
        seen.append(np.geterr())
        return np.abs(y_true - y_pred).mean()

    class Look(TrainingCallback):
        def after_iteration(self, training, epoch, evals_log):
            seen.append(np.geterr())
            return False

    model = XGBRegressorLite(
        objective=objective,
        eval_metric=metric,
        callbacks=[Look(), EarlyStopping(3)],
        n_estimators=3,
    )
    model.fit(X, signal)
    assert len(seen) > 9
    assert all(own == np.geterr() for own in seen)


def test_the_model_is_the_same():
    X, signal, _ = make_data()
    model = XGBRegressorLite(n_estimators=5).fit(X, signal)
    with np.errstate(all="ignore"):
        other = XGBRegressorLite(n_estimators=5).fit(X, signal)
    assert_array_equal(model.predict(X), other.predict(X))
