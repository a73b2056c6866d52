"""Each metric equals scikit-learn's function, where it has one, and hand-worked numbers."""

import math
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics as sklearn_metrics

from sklboost.metrics.registry import METRICS, find_metric

NO_WEIGHT = np.empty(0)
CLASSES = {"binary": 2, "multiclass": 4}


def zero_one_loss(y, probability, sample_weight=None, threshold=0.5):
    return sklearn_metrics.zero_one_loss(y, probability > threshold, sample_weight=sample_weight)


def multiclass_zero_one_loss(y, probability, sample_weight=None):
    return sklearn_metrics.zero_one_loss(y, probability.argmax(axis=1), sample_weight=sample_weight)


# What scikit-learn says, as f(y, prediction, sample_weight=None).
EQUALS = {
    ("regression", "rmse"): sklearn_metrics.root_mean_squared_error,
    ("regression", "rmsle"): sklearn_metrics.root_mean_squared_log_error,
    ("regression", "mae"): sklearn_metrics.mean_absolute_error,
    ("regression", "mape"): sklearn_metrics.mean_absolute_percentage_error,
    ("regression", "r2"): sklearn_metrics.r2_score,
    ("binary", "logloss"): sklearn_metrics.log_loss,
    ("binary", "error"): zero_one_loss,
    ("binary", "error@0.3"): partial(zero_one_loss, threshold=0.3),
    ("binary", "auc"): sklearn_metrics.roc_auc_score,
    ("binary", "aucpr"): sklearn_metrics.average_precision_score,
    ("binary", "brier"): sklearn_metrics.brier_score_loss,
    ("multiclass", "mlogloss"): sklearn_metrics.log_loss,
    ("multiclass", "merror"): multiclass_zero_one_loss,
    ("multiclass", "auc"): partial(
        sklearn_metrics.roc_auc_score, multi_class="ovr", average="weighted"
    ),
}


def make_data(task, random, n_rows=200):
    """Give targets and predictions that have something to do with each other, and ties."""
    if task == "regression":
        y = np.round(random.exponential(size=n_rows), 1)
        return y, np.round(y + random.exponential(size=n_rows), 1)
    n_classes = CLASSES[task]
    y = random.permutation(np.arange(n_rows) % n_classes).astype(float)
    scores = np.round(random.gamma(1.0, size=(n_rows, n_classes)), 1) + 0.05
    scores[np.arange(n_rows), y.astype(int)] += 0.5
    probability = scores / scores.sum(axis=1, keepdims=True)
    if task == "binary":
        return y, np.round(probability[:, 1], 2)
    return y, probability


def test_every_metric_has_its_equal():
    names = {(task, metric.name) for task, metrics in METRICS.items() for metric in metrics}
    assert names == set(EQUALS) - {("binary", "error@0.3")}


@pytest.mark.interpreted
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("task", "name"), EQUALS)
def test_equals_scikit_learn(task, name, weighted):
    for seed in range(5):
        random = np.random.default_rng(seed)
        y, prediction = make_data(task, random)
        weight = np.round(random.exponential(size=len(y)), 1) if weighted else NO_WEIGHT
        value = find_metric(name, task).function(y, prediction, weight)
        assert type(value) is float
        expected = EQUALS[task, name](y, prediction, sample_weight=weight if weighted else None)
        assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.interpreted
@pytest.mark.parametrize(("task", "name"), EQUALS)
def test_weight_2_is_the_row_twice_and_weight_0_none(task, name):
    random = np.random.default_rng(0)
    y, prediction = make_data(task, random)
    weight = random.integers(0, 4, len(y))
    function = find_metric(name, task).function
    repeated = np.repeat(y, weight), np.repeat(prediction, weight, axis=0)
    assert_allclose(
        function(y, prediction, weight.astype(float)), function(*repeated, NO_WEIGHT), rtol=1e-13
    )


@pytest.mark.interpreted
@pytest.mark.parametrize(("task", "name"), EQUALS)
def test_better_predictions_are_better(task, name):
    random = np.random.default_rng(0)
    y, prediction = make_data(task, random)
    metric = find_metric(name, task)
    best = np.eye(CLASSES["multiclass"])[y.astype(int)] if task == "multiclass" else y
    perfect = metric.function(y, best, NO_WEIGHT)
    assert_allclose(perfect, 1.0 if metric.greater_is_better else 0.0, atol=1e-15)
    middle = metric.function(y, (best + prediction) / 2, NO_WEIGHT)
    worse = metric.function(y, prediction, NO_WEIGHT)
    assert middle > worse if metric.greater_is_better else middle < worse


# --- by hand, and at the ends --------------------------------------------------------------------


@pytest.mark.interpreted
def test_by_hand():
    y, prediction = np.array([1.0, 2.0, 4.0]), np.array([1.0, 4.0, 3.0])

    def value(name, weight=NO_WEIGHT):
        return find_metric(name, "regression").function(y, prediction, weight)

    assert value("mae") == 1.0
    assert value("rmse") == math.sqrt(5 / 3)
    assert value("mape") == (0 + 2 / 2 + 1 / 4) / 3
    assert_allclose(value("r2"), 1 - 5 / (14 / 3))
    assert value("mae", np.array([2.0, 1.0, 1.0])) == 0.75


@pytest.mark.interpreted
def test_areas_by_hand():
    # pairs of a one and a zero: (0.5, 0.2) won, (0.5, 0.5) half, (0.9, both) won
    y, probability = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.2, 0.5, 0.5, 0.9])
    assert find_metric("auc", "binary").function(y, probability, NO_WEIGHT) == 3.5 / 4
    # from the top: precision 1 at the first half of the ones, 2/3 at the second
    assert_allclose(
        find_metric("aucpr", "binary").function(y, probability, NO_WEIGHT), (1 + 2 / 3) / 2
    )


@pytest.mark.interpreted
def test_the_top_row_may_have_no_weight():
    y, probability, weight = np.array([0.0, 1, 0]), np.array([0.2, 0.3, 0.9]), np.array([1.0, 1, 0])
    for name in ("auc", "aucpr"):
        assert find_metric(name, "binary").function(y, probability, weight) == 1.0


@pytest.mark.interpreted
def test_certain_and_wrong_costs_what_scikit_learn_says():
    y, probability = np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0])
    value = find_metric("logloss", "binary").function(y, probability, NO_WEIGHT)
    assert_allclose(value, sklearn_metrics.log_loss(y, probability))


@pytest.mark.interpreted
def test_targets_that_are_all_the_same():
    y = np.full(3, 2.0)
    r2 = find_metric("r2", "regression").function
    assert r2(y, y, NO_WEIGHT) == sklearn_metrics.r2_score(y, y) == 1.0
    assert r2(y, y + 1, NO_WEIGHT) == sklearn_metrics.r2_score(y, y + 1) == 0.0


@pytest.mark.interpreted
def test_mape_of_a_target_of_0_is_large_and_finite():
    y, prediction = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    value = find_metric("mape", "regression").function(y, prediction, NO_WEIGHT)
    assert value == sklearn_metrics.mean_absolute_percentage_error(y, prediction) == 2.0**51


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("y", "prediction", "message"),
    [([-1.0, 1.0], [1.0, 1.0], "a target of -1:"), ([1.0], [-2.5], "a prediction of -2.5:")],
)
def test_rmsle_needs_numbers_above_minus_1(y, prediction, message):
    with pytest.raises(ValueError, match=f"rmsle of {message}.*fit log1p"):
        find_metric("rmsle", "regression").function(np.array(y), np.array(prediction), NO_WEIGHT)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("task", "prediction"), [("binary", [0.1, 0.9]), ("multiclass", np.eye(2))]
)
def test_auc_needs_two_classes(task, prediction):
    auc = find_metric("auc", task).function
    y = np.array([1.0, 0.0])
    assert auc(y, np.asarray(prediction), np.ones(2)) in (0.0, 1.0)
    with pytest.raises(ValueError, match=r"auc needs .* two classes or more, and there is 1;"):
        auc(y, np.asarray(prediction), np.array([1.0, 0.0]))


@pytest.mark.interpreted
def test_aucpr_needs_ones():
    with pytest.raises(ValueError, match="aucpr needs validation rows of class 1"):
        find_metric("aucpr", "binary").function(np.zeros(2), np.array([0.1, 0.9]), NO_WEIGHT)


@pytest.mark.interpreted
def test_a_class_without_rows_has_no_share_in_auc():
    random = np.random.default_rng(0)
    y, probability = make_data("multiclass", random)
    kept = y != 2
    present = [0, 1, 3]
    areas = [sklearn_metrics.roc_auc_score(y[kept] == k, probability[kept, k]) for k in present]
    expected = np.average(areas, weights=[(y == k).sum() for k in present])
    value = find_metric("auc", "multiclass").function(y[kept], probability[kept], NO_WEIGHT)
    assert_allclose(value, expected, rtol=1e-13)
