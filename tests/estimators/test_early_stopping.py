"""Early stopping: the best round, and a model that ends with it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import metrics
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.model_selection import train_test_split

from sklboost import EarlyStopping, LearningRateScheduler, XGBClassifierLite, XGBRegressorLite
from tests.small_models import outputs

TASKS = {
    "regression": (XGBRegressorLite, load_diabetes),
    "binary": (XGBClassifierLite, load_breast_cancer),
    "multiclass": (XGBClassifierLite, load_wine),
}


def parts(load):
    X, y = load(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    return (X, y), (X_val, y_val)


def make(estimator, **parameters):
    defaults = dict(n_estimators=60, max_depth=3, learning_rate=0.5, early_stopping_rounds=4)
    return estimator(**(defaults | parameters))


def losses(model, X, y, weight=None):
    """Return the default metric after every round, from staged predictions."""
    if isinstance(model, XGBRegressorLite):
        return [
            metrics.mean_squared_error(y, stage, sample_weight=weight) ** 0.5
            for stage in model.staged_predict(X)
        ]
    return [
        metrics.log_loss(y, stage, sample_weight=weight) for stage in model.staged_predict_proba(X)
    ]


def by_hand(values, patience):
    """Return the best round and the number of rounds done."""
    best = 0
    for round_, value in enumerate(values):
        if value < values[best]:
            best = round_
        if round_ - best >= patience:
            return best, round_ + 1
    return best, len(values)


def check_same_model(one, other):
    for name in ("nodes", "tree_starts", "base_score"):
        assert getattr(one.model_, name).tobytes() == getattr(other.model_, name).tobytes()


# --- the best round ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "patience"), [("regression", 1), ("binary", 4), ("binary", 15), ("multiclass", 4)]
)
def test_the_best_round_is_that_of_staged_predictions(task, patience):
    estimator, load = TASKS[task]
    train, valid = parts(load)
    endless = make(estimator, early_stopping_rounds=None).fit(*train)
    values = losses(endless, *valid)
    best, n_done = by_hand(values, patience)
    assert n_done < 60 or task == "multiclass"
    model = make(estimator, early_stopping_rounds=patience)
    model.fit(*train, X_val=valid[0], y_val=valid[1])
    assert model.best_iteration_ == best
    assert model.best_score_ == pytest.approx(values[best], rel=1e-12)
    assert model.stop_reason_ == ("early_stopping" if n_done < 60 else "completed")
    ((name, own),) = model.evals_result_["validation_0"].items()
    assert name == {"regression": "rmse", "binary": "logloss", "multiclass": "mlogloss"}[task]
    assert_allclose(own, values[:n_done], rtol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_the_model_ends_with_the_best_round(task):
    estimator, load = TASKS[task]
    train, (X_val, y_val) = parts(load)
    model = make(estimator).fit(*train, X_val=X_val, y_val=y_val)
    n_rounds = model.best_iteration_ + 1
    assert 1 < n_rounds < 60
    shorter = make(estimator, n_estimators=n_rounds, early_stopping_rounds=None).fit(*train)
    check_same_model(model, shorter)
    assert model.n_estimators_ == n_rounds
    assert model.n_estimators == 60
    assert_array_equal(outputs(model, X_val), outputs(shorter, X_val))
    assert_array_equal(model.apply(X_val), shorter.apply(X_val))
    assert model.trees_to_dataframe().equals(shorter.trees_to_dataframe())
    assert_array_equal(model.feature_importances_, shorter.feature_importances_)
    assert len(list(model.staged_predict(X_val))) == n_rounds
    n_trees = n_rounds * model.model_.n_outputs
    assert (model.fit_report_.n_rounds, model.fit_report_.n_trees) == (n_rounds, n_trees)


@pytest.mark.parametrize("name", ["auc", "roc_auc", "r2"])
def test_metrics_of_which_more_is_better(name):
    estimator, load = TASKS["regression" if name == "r2" else "binary"]
    train, (X_val, y_val) = parts(load)
    model = make(estimator, eval_metric=name, max_depth=2)
    model.fit(*train, X_val=X_val, y_val=y_val)
    values = model.evals_result_["validation_0"][name]
    assert (model.best_iteration_, len(values)) == by_hand([-value for value in values], 4)
    assert model.best_score_ == max(values)
    assert model.best_iteration_ > 0


@pytest.mark.parametrize("task", TASKS)
def test_weights_of_the_validation_are_rows_so_often(task):
    estimator, load = TASKS[task]
    train, (X_val, y_val) = parts(load)
    weight = np.random.default_rng(2).integers(0, 4, len(y_val))
    weighted = make(estimator).fit(*train, X_val=X_val, y_val=y_val, sample_weight_val=weight)
    rows = np.repeat(np.arange(len(weight)), weight)
    repeated = make(estimator).fit(*train, X_val=X_val[rows], y_val=y_val[rows])
    assert weighted.best_iteration_ == repeated.best_iteration_
    assert weighted.best_score_ == pytest.approx(repeated.best_score_, rel=1e-12)
    expected = losses(weighted, X_val, y_val, weight)[-1]
    assert weighted.best_score_ == pytest.approx(expected, rel=1e-12)


# --- rows held out -------------------------------------------------------------------------------


@pytest.mark.parametrize(("task", "fraction"), [("regression", 0.1), ("multiclass", 0.3)])
def test_rows_are_held_out_of_the_training(task, fraction):
    estimator, load = TASKS[task]
    X, y = load(return_X_y=True)
    model = make(estimator, validation_fraction=fraction, random_state=0).fit(X, y)
    report = model.fit_report_
    assert report.n_samples + report.n_validation_samples == len(y)
    assert report.n_validation_samples == pytest.approx(fraction * len(y), abs=3)
    again = make(estimator, validation_fraction=fraction, random_state=0).fit(X, y)
    check_same_model(model, again)
    assert model.evals_result_ == again.evals_result_
    other = make(estimator, validation_fraction=fraction, random_state=1).fit(X, y)
    assert other.evals_result_ != model.evals_result_


def test_classes_keep_their_shares():
    X, y = load_breast_cancer(return_X_y=True)
    seen = []

    def metric(y_true, y_pred):
        seen.append(y_true)
        return metrics.log_loss(y_true, y_pred)

    labels = np.array(["malignant", "benign"])[y]
    make(XGBClassifierLite, eval_metric=metric, validation_fraction=0.2).fit(X, labels)
    for label, share in zip(*np.unique(seen[-1], return_counts=True), strict=True):
        assert share == np.ceil(0.2 * (labels == label).sum())


# --- refit ---------------------------------------------------------------------------------------


def rates(epoch):
    return 0.6 * 0.9**epoch


DRAWS = dict(subsample=0.7, colsample_bytree=0.7, colsample_bynode=0.7)


@pytest.mark.parametrize(
    ("task", "is_scheduled", "is_weighted", "is_given", "draws"),
    [
        ("regression", True, False, True, {}),
        ("regression", False, False, False, DRAWS),
        ("binary", True, True, False, {}),
        ("binary", False, True, True, dict(class_weight="balanced")),
        ("multiclass", False, False, True, DRAWS),
        ("multiclass", True, True, False, {}),
    ],
)
def test_refit_is_a_fit_on_all_rows(task, is_scheduled, is_weighted, is_given, draws):
    estimator, load = TASKS[task]
    (X, y), (X_val, y_val) = parts(load)
    weight = np.random.default_rng(0).uniform(0.2, 2.0, len(y)) if is_weighted else None
    scheduler = [LearningRateScheduler(rates)] if is_scheduled else None
    settings = dict(callbacks=scheduler, random_state=0) | draws
    model = make(estimator, refit=True, **settings)
    given = dict(X_val=X_val, y_val=y_val) if is_given else {}
    model.fit(X, y, sample_weight=weight, **given)
    first = make(estimator, **settings).fit(X, y, sample_weight=weight, **given)
    n_rounds = model.best_iteration_ + 1
    assert (first.best_iteration_, first.best_score_) == (model.best_iteration_, model.best_score_)
    assert first.evals_result_ == model.evals_result_
    if is_given:
        X, y = np.vstack([X, X_val]), np.r_[y, y_val]
        weight = np.r_[weight, np.ones(len(y_val))] if is_weighted else None
    alone = make(estimator, n_estimators=n_rounds, early_stopping_rounds=None, **settings)
    alone.fit(X, y, sample_weight=weight)
    check_same_model(model, alone)
    assert_array_equal(outputs(model, X), outputs(alone, X))
    assert model.fit_report_.seconds["refit"] > 0.0
    assert model.fit_report_.n_samples == len(y)
    assert model.trees_to_dataframe().equals(alone.trees_to_dataframe())


# --- in scikit-learn -----------------------------------------------------------------------------


def test_nothing_of_it_is_left_after_a_fit_without():
    train, (X_val, y_val) = parts(load_diabetes)
    model = make(XGBRegressorLite).fit(*train, X_val=X_val, y_val=y_val)
    assert model.evals_result_
    model.set_params(early_stopping_rounds=None, refit=True).fit(*train)
    assert not hasattr(model, "best_iteration_")
    assert not hasattr(model, "best_score_")
    assert model.evals_result_ == {}
    assert (model.stop_reason_, model.n_estimators_) == ("completed", 60)
    assert "refit" not in model.fit_report_.seconds
    alone = make(XGBRegressorLite, early_stopping_rounds=None).fit(*train)
    check_same_model(model, alone)
    # validation data alone stops nothing
    model.fit(*train, X_val=X_val, y_val=y_val)
    assert (model.n_estimators_, model.stop_reason_) == (60, "completed")
    assert len(model.evals_result_["validation_0"]["rmse"]) == 60
    assert not hasattr(model, "best_iteration_")
    check_same_model(model, alone)


def test_as_a_callback_it_holds_rows_out_too():
    X, y = load_diabetes(return_X_y=True)
    model = make(XGBRegressorLite, random_state=0).fit(X, y)
    by_callback = make(XGBRegressorLite, random_state=0, early_stopping_rounds=None)
    by_callback.set_params(callbacks=[EarlyStopping(4)]).fit(X, y)
    check_same_model(model, by_callback)
