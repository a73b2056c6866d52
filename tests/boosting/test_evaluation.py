"""The value of every metric after every round is the metric of what the model then predicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from sklboost import TrainingCallback, XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.boosting import rounds as calls
from sklboost.boosting import training
from sklboost.objectives.registry import METRICS, find_metric

NAN, INF = np.nan, np.inf


def log_loss(y, probability, sample_weight):
    labels = np.unique(y)
    return metrics.log_loss(y, probability, sample_weight=sample_weight, labels=labels)


def share_of_errors(y, probability, sample_weight):
    return metrics.zero_one_loss(y, probability.argmax(axis=1), sample_weight=sample_weight)


def auc(y, probability, sample_weight):
    return metrics.roc_auc_score(y, probability[:, 1], sample_weight=sample_weight)


BY_HAND = {
    "rmse": metrics.root_mean_squared_error,
    "mae": metrics.mean_absolute_error,
    "logloss": log_loss,
    "error": share_of_errors,
    "auc": auc,
    "mlogloss": log_loss,
    "merror": share_of_errors,
}

TASKS = {
    "regression": (XGBRegressorLite, load_diabetes, ["mae", "rmse"]),
    "binary": (XGBClassifierLite, load_breast_cancer, ["error", "auc", "logloss"]),
    "multiclass": (XGBClassifierLite, load_wine, ["merror", "mlogloss"]),
}


class Watch(TrainingCallback):
    """Sees every round, so that rounds are done one by one."""


def check_against_predictions(model, sets, weights=None, margins=None):
    """Compare `evals_result_` with the metrics of staged predictions."""
    staged = model.staged_predict_proba if is_classifier(model) else model.staged_predict
    for index, (X, y) in enumerate(sets):
        weight = weights[index] if weights else None
        margin = margins[index] if margins else None
        stages = list(staged(X, base_margin=margin))
        own = model.evals_result_[f"validation_{index}"]
        for name, values in own.items():
            expected = [BY_HAND[name](y, stage, sample_weight=weight) for stage in stages]
            assert_allclose(values, expected, rtol=1e-12, atol=1e-14, err_msg=name)
        assert len(set(values)) > 1  # of the last metric, a loss


def parts(load, dtype=np.float64, n_train=100):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order].astype(dtype), y[order]
    return (X[:n_train], y[:n_train]), (X[n_train:], y[n_train:])


@pytest.mark.parametrize(
    ("task", "dtype", "max_bin"),
    [
        ("regression", np.float64, 4),
        ("binary", np.float32, 256),
        ("multiclass", np.float64, 256),
        ("regression", np.float32, 300),
    ],
)
def test_every_round_several_sets_and_metrics(task, dtype, max_bin):
    estimator, load, names = TASKS[task]
    train, valid = parts(load, dtype)
    model = estimator(n_estimators=20, max_depth=3, max_bin=max_bin, eval_metric=names)
    model.fit(*train, eval_set=[train, valid])
    assert [list(own) for own in model.evals_result_.values()] == [names, names]
    assert {len(values) for own in model.evals_result_.values() for values in own.values()} == {20}
    check_against_predictions(model, [train, valid])


def test_sets_whose_bins_are_of_different_width():
    """256 bins are a byte each; with one for missing values they are two."""
    X = np.random.default_rng(0).normal(size=(600, 2))
    y, gaps = X[:, 0] + X[:, 1] ** 2, X.copy()
    gaps[::5, 0] = NAN
    sets = [(X, y), (gaps, y), (X[::2], y[::2])]
    model = XGBRegressorLite(n_estimators=8).fit(X, y, eval_set=sets)
    assert model.fit_report_.n_bins == 2 * 256
    check_against_predictions(model, sets)


@pytest.mark.parametrize("task", TASKS)
def test_values_that_the_training_had_not(task):
    estimator, load, _ = TASKS[task]
    (X, y), (X_val, y_val) = parts(load)
    X, X_val = X.copy(), X_val.copy()
    random = np.random.default_rng(0)
    X[:, 2] = 1.0
    X[::4, 3] = NAN
    X[::7, 4] = INF
    for value in (NAN, INF, -INF, 1e300, -1e300):
        X_val[random.random(X_val.shape) < 0.08] = value
    model = estimator(n_estimators=12, max_depth=7).fit(X, y, eval_set=[(X, y), (X_val, y_val)])
    check_against_predictions(model, [(X, y), (X_val, y_val)])


@pytest.mark.parametrize("task", TASKS)
def test_weights(task):
    estimator, load, names = TASKS[task]
    train, valid = parts(load)
    random = np.random.default_rng(0)
    weights = [random.uniform(0.1, 3.0, len(y)) for _, y in (train, valid)]
    model = estimator(n_estimators=10, max_depth=3, eval_metric=names)
    model.fit(*train, eval_set=[train, valid], sample_weight_eval_set=weights)
    check_against_predictions(model, [train, valid], weights)
    twice = estimator(n_estimators=10, max_depth=3, eval_metric=names)
    whole = np.arange(len(valid[1])) % 3
    rows = np.repeat(np.arange(len(whole)), whole)
    one = model.fit(*train, X_val=valid[0], y_val=valid[1], sample_weight_val=whole).evals_result_
    other = twice.fit(*train, X_val=valid[0][rows], y_val=valid[1][rows]).evals_result_
    for name in names:
        assert_allclose(one["validation_0"][name], other["validation_0"][name], rtol=1e-12)


@pytest.mark.parametrize("task", TASKS)
def test_base_margins(task):
    estimator, load, names = TASKS[task]
    train, valid = parts(load)
    n_outputs = 3 if task == "multiclass" else 1
    random = np.random.default_rng(0)
    margins = [random.normal(size=(len(y), n_outputs)) for _, y in (train, valid)]
    model = estimator(n_estimators=10, max_depth=3, eval_metric=names)
    model.fit(*train, base_margin=margins[0], eval_set=[train, valid], base_margin_eval_set=margins)
    check_against_predictions(model, [train, valid], margins=margins)


@pytest.mark.parametrize("max_bin", [32, 300])
def test_bins_and_raw_values_of_the_same_rows(max_bin):
    X, y = load_diabetes(return_X_y=True)
    X = X.copy()
    X[::5, 2] = NAN
    binned = bin_features(X, max_bin=max_bin)
    train, valid = slice(0, 300), slice(300, None)
    model = XGBRegressorLite(n_estimators=10, max_depth=7, max_bin=max_bin)
    model.fit(binned[train], y[train], eval_set=[(binned[valid], y[valid]), (X[valid], y[valid])])
    check_against_predictions(model, [(binned[valid], y[valid]), (X[valid], y[valid])])
    assert model.evals_result_["validation_0"] == model.evals_result_["validation_1"]


def maximum_error(y_true, y_pred):
    return np.abs(y_true - y_pred).max()


@pytest.mark.parametrize("task", TASKS)
def test_every_compiled_metric(task):
    estimator, load, _ = TASKS[task]
    train, (X_val, y_val) = parts(load)
    names = [
        f"{entry.name}@0.3" if entry.parameter and entry.parameter.default is None else entry.name
        for entry in METRICS[task]
        if not entry.greater_is_better
        # the targets are no probabilities
        and not (task == "regression" and entry.name in ("logloss", "kullback_leibler"))
    ]
    model = estimator(n_estimators=6, max_depth=3, eval_metric=names)
    own = model.fit(*train, X_val=X_val, y_val=y_val).evals_result_["validation_0"]
    for round_ in range(6):
        last = round_ + 1
        if task == "regression":
            prediction = model.predict(X_val, iteration_range=(0, last))
        else:
            prediction = model.predict_proba(X_val, iteration_range=(0, last))
            prediction = prediction[:, 1] if task == "binary" else prediction
        for name in names:
            expected = find_metric(name, task).function(y_val * 1.0, prediction, np.empty(0))
            assert_allclose(own[name][round_], expected, rtol=1e-12, err_msg=name)


def test_a_prediction_outside_the_domain_of_a_metric_says_which():
    X = np.arange(40.0)[:, np.newaxis]
    y = np.where(X[:, 0] < 20, -5.0, 5.0)
    model = XGBRegressorLite(n_estimators=30, learning_rate=1.0, eval_metric="gamma-deviance")
    with pytest.raises(ValueError, match=r"gamma-deviance of a prediction of -\S+ in row 1: "):
        model.fit(X, y, X_val=X[[30, 10, 31]], y_val=np.ones(3))


def test_functions_and_compiled_metrics_side_by_side():
    train, valid = parts(load_diabetes)
    model = XGBRegressorLite(n_estimators=18, max_depth=3)
    model.set_params(eval_metric=["rmse", maximum_error, "neg_mean_absolute_error", "mae"])
    own = model.fit(*train, eval_set=[train, valid]).evals_result_
    alone = XGBRegressorLite(n_estimators=18, max_depth=3, eval_metric=["rmse", "mae"])
    by_kernel = alone.fit(*train, eval_set=[train, valid]).evals_result_
    for index, (X, y) in enumerate([train, valid]):
        values, name = own[f"validation_{index}"], f"validation_{index}"
        stages = list(model.staged_predict(X))
        assert_allclose(values["maximum_error"], [maximum_error(y, stage) for stage in stages])
        assert values["rmse"] == by_kernel[name]["rmse"]
        assert values["mae"] == by_kernel[name]["mae"]
        assert_allclose(values["neg_mean_absolute_error"], -np.array(values["mae"]), rtol=1e-12)


# --- the same bits -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("task", "most"),
    [("regression", 1), ("binary", 2), ("multiclass", 7), ("regression", 7), ("binary", 100)],
)
def test_rounds_a_call_change_no_bit(task, most, monkeypatch):
    estimator, load, names = TASKS[task]
    train, valid = parts(load)

    def evals_result(**parameters):
        model = estimator(n_estimators=23, max_depth=3, eval_metric=names, **parameters)
        return model.fit(*train, eval_set=[train, valid]).evals_result_

    expected = evals_result()
    assert evals_result(callbacks=[Watch()]) == expected
    monkeypatch.setattr(training, "_LEAST_WATCHED_ROUNDS", 1)
    monkeypatch.setattr(calls, "_ROUNDS_PER_CALL", most)
    assert evals_result() == expected
