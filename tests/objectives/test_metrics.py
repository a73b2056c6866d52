"""Each metric equals scikit-learn's function, where it has one, and hand-worked numbers."""

from functools import partial

import numpy as np
import pytest
import scipy
from numpy.testing import assert_allclose
from sklearn import metrics as sklearn_metrics
from sklearn.metrics import average_precision_score, roc_auc_score

from sklboost.objectives.registry import METRICS, find_metric

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
CLASSES = {"binary": 2, "multiclass": 4}


def zero_one_loss(y, probability, sample_weight=None, threshold=0.5):
    return sklearn_metrics.zero_one_loss(y, probability > threshold, sample_weight=sample_weight)


def multiclass_zero_one_loss(y, probability, sample_weight=None):
    return sklearn_metrics.zero_one_loss(y, probability.argmax(axis=1), sample_weight=sample_weight)


def mean_of(function):
    """Return the weighted mean of what a function of targets and predictions gives for each row."""

    def value(y, prediction, sample_weight=None):
        return float(np.average(function(y, prediction), weights=sample_weight))

    return value


def poisson_likelihood(y, mean):
    return -scipy.stats.poisson.logpmf(y, mean)


def gamma_likelihood(y, mean):
    # of shape 1, which is all that the metric counts
    return -scipy.stats.expon.logpdf(y, scale=mean)


def huber(y, prediction, delta=0.9):
    return scipy.special.huber(delta, y - prediction)


def pseudo_huber(y, prediction, delta=1.0):
    return scipy.special.pseudo_huber(delta, y - prediction)


def fair(y, prediction, c=1.0):
    ratio = np.abs(y - prediction) / c
    return c * c * (ratio - np.log1p(ratio))


def expectile(y, prediction, alpha=0.3):
    return np.where(y > prediction, alpha, 1 - alpha) * (y - prediction) ** 2


def tweedie(y, mean, power=1.5):
    return -y * mean ** (1 - power) / (1 - power) + mean ** (2 - power) / (2 - power)


def log_loss_of_labels(y, probability, sample_weight=None):
    return np.mean(
        [
            sklearn_metrics.log_loss(*rows, sample_weight=sample_weight)
            for rows in zip(y.T, probability.T, strict=True)
        ]
    )


def brier_of_classes(y, probability, sample_weight=None):
    """As brier_score_loss says of several classes since scikit-learn 1.7."""
    distances = (np.eye(probability.shape[1])[y.astype(int)] - probability) ** 2
    return np.average(distances.sum(axis=1), weights=sample_weight)


def brier_of_labels(y, probability, sample_weight=None):
    return sklearn_metrics.mean_squared_error(y, probability, sample_weight=sample_weight)


def error_of_labels(y, probability, sample_weight=None, threshold=0.5):
    return sklearn_metrics.hamming_loss(y, probability > threshold, sample_weight=sample_weight)


# What scikit-learn or scipy says, as f(y, prediction, sample_weight=None).
EQUALS = {
    ("regression", "rmse"): sklearn_metrics.root_mean_squared_error,
    ("regression", "mse"): sklearn_metrics.mean_squared_error,
    ("regression", "rmsle"): sklearn_metrics.root_mean_squared_log_error,
    ("regression", "mae"): sklearn_metrics.mean_absolute_error,
    ("regression", "mape"): sklearn_metrics.mean_absolute_percentage_error,
    ("regression", "mphe"): mean_of(pseudo_huber),
    ("regression", "mphe@2.5"): mean_of(partial(pseudo_huber, delta=2.5)),
    ("regression", "huber"): mean_of(huber),
    ("regression", "huber@0.4"): mean_of(partial(huber, delta=0.4)),
    ("regression", "fair"): mean_of(fair),
    ("regression", "fair@0.3"): mean_of(partial(fair, c=0.3)),
    ("regression", "logcosh"): mean_of(lambda y, p: np.log(np.cosh(y - p))),
    ("regression", "quantile@0.2"): partial(sklearn_metrics.mean_pinball_loss, alpha=0.2),
    ("regression", "expectile@0.3"): mean_of(expectile),
    ("regression", "poisson-deviance"): sklearn_metrics.mean_poisson_deviance,
    ("regression", "gamma-nloglik"): mean_of(gamma_likelihood),
    ("regression", "gamma-deviance"): sklearn_metrics.mean_gamma_deviance,
    ("regression", "tweedie-nloglik"): mean_of(tweedie),
    ("regression", "tweedie-nloglik@1.1"): mean_of(partial(tweedie, power=1.1)),
    ("regression", "tweedie-deviance@1.8"): partial(
        sklearn_metrics.mean_tweedie_deviance, power=1.8
    ),
    ("regression", "r2"): sklearn_metrics.r2_score,
    ("binary", "logloss"): sklearn_metrics.log_loss,
    ("binary", "error"): zero_one_loss,
    ("binary", "error@0.3"): partial(zero_one_loss, threshold=0.3),
    ("binary", "rmse"): sklearn_metrics.root_mean_squared_error,
    ("binary", "mae"): sklearn_metrics.mean_absolute_error,
    ("binary", "auc"): sklearn_metrics.roc_auc_score,
    ("binary", "average_precision_score"): sklearn_metrics.average_precision_score,
    ("binary", "brier"): sklearn_metrics.brier_score_loss,
    ("binary", "kullback_leibler"): sklearn_metrics.log_loss,
    ("multiclass", "mlogloss"): sklearn_metrics.log_loss,
    ("multiclass", "merror"): multiclass_zero_one_loss,
    ("multiclass", "auc"): partial(
        sklearn_metrics.roc_auc_score, multi_class="ovr", average="weighted"
    ),
    ("multiclass", "brier"): brier_of_classes,
    ("multilabel", "logloss"): log_loss_of_labels,
    ("multilabel", "error"): error_of_labels,
    ("multilabel", "error@0.3"): partial(error_of_labels, threshold=0.3),
    ("multilabel", "auc"): sklearn_metrics.roc_auc_score,
    ("multilabel", "average_precision_score"): sklearn_metrics.average_precision_score,
    ("multilabel", "rmse"): lambda y, p, sample_weight=None: (
        brier_of_labels(y, p, sample_weight) ** 0.5
    ),
    ("multilabel", "mae"): sklearn_metrics.mean_absolute_error,
    ("multilabel", "brier"): brier_of_labels,
    ("multilabel", "kullback_leibler"): log_loss_of_labels,
}
# Elsewhere: of counts; of more than one area.
OTHERS = {
    *(("regression", "poisson-nloglik"), ("multiclass", "auc_mu")),
    *(("regression", "logloss"), ("regression", "kullback_leibler")),
    *(("binary", "aucpr"), ("multilabel", "aucpr"), ("multiclass", "aucpr")),
}
# What a perfect prediction does not make 0.
WITH_CONSTANT = {"gamma-nloglik", "tweedie-nloglik"}


def make_data(task, random, n_rows=200):
    """Return targets and predictions that have something to do with each other, and ties."""
    if task == "regression":
        y = np.round(random.exponential(size=n_rows), 1) + 0.1
        return y, np.round(y + random.exponential(size=n_rows), 1)
    if task == "multilabel":
        labels = [make_data("binary", random, n_rows) for _ in range(3)]
        return tuple(np.column_stack(columns) for columns in zip(*labels, strict=True))
    n_classes = CLASSES[task]
    y = random.permutation(np.arange(n_rows) % n_classes).astype(float)
    scores = np.round(random.gamma(1.0, size=(n_rows, n_classes)), 1) + 0.05
    scores[np.arange(n_rows), y.astype(int)] += 0.5
    probability = scores / scores.sum(axis=1, keepdims=True)
    if task == "binary":
        return y, np.round(probability[:, 1], 2)
    return y, probability


def test_every_metric_has_its_equal():
    # those of rankings: test_rankings.py; of survival times: test_cox.py, test_concordance.py
    known = [(task, METRICS[task]) for task in METRICS if task not in ("ranking", "survival")]
    names = {(task, entry.name) for task, entries in known for entry in entries}
    tested = {(task, name.partition("@")[0]) for task, name in {*EQUALS, *OTHERS}}
    assert names == tested


@pytest.mark.parametrize(("task", "name"), EQUALS)
def test_equals_scikit_learn_or_scipy(task, name):
    for seed in range(3):
        random = np.random.default_rng(seed)
        y, prediction = make_data(task, random)
        # some weights are 0
        for weight in (None, np.round(random.exponential(size=len(y)), 1)):
            value = find_metric(name, task).function(
                y, prediction, NO_WEIGHT if weight is None else weight
            )
            assert type(value) is float
            expected = EQUALS[task, name](y, prediction, sample_weight=weight)
            assert_allclose(value, expected, rtol=1e-13)


@pytest.mark.parametrize(("task", "name"), EQUALS)
def test_better_predictions_are_better(task, name):
    random = np.random.default_rng(0)
    y, prediction = make_data(task, random)
    metric = find_metric(name, task)
    best = np.eye(CLASSES["multiclass"])[y.astype(int)] if task == "multiclass" else y
    perfect = metric.function(y, best, NO_WEIGHT)
    if name.partition("@")[0] not in WITH_CONSTANT:
        assert_allclose(perfect, 1.0 if metric.greater_is_better else 0.0, atol=1e-15)
    middle = metric.function(y, (best + prediction) / 2, NO_WEIGHT)
    worse = metric.function(y, prediction, NO_WEIGHT)
    assert middle > worse if metric.greater_is_better else middle < worse


# --- by hand, and at the ends --------------------------------------------------------------------


def test_areas_by_hand():
    # pairs of a one and a zero: (0.5, 0.2) won, (0.5, 0.5) half, (0.9, both) won
    y, probability = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.2, 0.5, 0.5, 0.9])
    assert find_metric("auc", "binary").function(y, probability, NO_WEIGHT) == 3.5 / 4
    # from the top: precision 1 at the first half of the ones, 2/3 at the second
    assert_allclose(
        find_metric("average_precision_score", "binary").function(y, probability, NO_WEIGHT),
        (1 + 2 / 3) / 2,
    )
    # after the first half, n more ones come with n zeros: the mean of (1 + n) / (1 + 2n), n to 1
    expected = (1 + (1 - np.log(3.0) / 2) / 2 + np.log(3.0) / 2) / 2
    assert_allclose(find_metric("aucpr", "binary").function(y, probability, NO_WEIGHT), expected)


def test_the_top_row_may_have_no_weight():
    y, probability, weight = np.array([0.0, 1, 0]), np.array([0.2, 0.3, 0.9]), np.array([1.0, 1, 0])
    for name in ("auc", "aucpr", "average_precision_score"):
        assert find_metric(name, "binary").function(y, probability, weight) == 1.0


def test_certain_and_wrong_costs_what_scikit_learn_says():
    y, probability = np.array([0.0, 1.0, 1.0]), np.array([1.0, 0.0, 1.0])
    value = find_metric("logloss", "binary").function(y, probability, NO_WEIGHT)
    assert_allclose(value, sklearn_metrics.log_loss(y, probability))


def test_targets_that_are_all_the_same():
    y = np.full(3, 2.0)
    r2 = find_metric("r2", "regression").function
    assert r2(y, y, NO_WEIGHT) == sklearn_metrics.r2_score(y, y) == 1.0
    assert r2(y, y + 1, NO_WEIGHT) == sklearn_metrics.r2_score(y, y + 1) == 0.0


def test_mape_of_a_target_of_0_is_large_and_finite():
    y, prediction = np.array([0.0, 1.0]), np.array([1.0, 1.0])
    value = find_metric("mape", "regression").function(y, prediction, NO_WEIGHT)
    assert value == sklearn_metrics.mean_absolute_percentage_error(y, prediction) == 2.0**51


@pytest.mark.parametrize(
    ("y", "prediction", "message"),
    [
        ([0.0, -1.0], [1.0, 1.0], "a target of -1 in row 1: it needs targets > -1; .* leave these"),
        ([1.0], [-2.5], "a prediction of -2.5 in row 0: it needs predictions > -1; .* fit log1p"),
    ],
)
def test_rmsle_needs_numbers_above_minus_1(y, prediction, message):
    with pytest.raises(ValueError, match=f"rmsle of {message}"):
        find_metric("rmsle", "regression").function(np.array(y), np.array(prediction), NO_WEIGHT)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("poisson-nloglik", 0.0),
        ("poisson-deviance", 0.0),
        ("tweedie-nloglik", 0.0),
        ("tweedie-deviance", 0.0),
        ("gamma-nloglik", 1e-300),
        ("gamma-deviance", 1e-280),
    ],
)
def test_likelihoods_have_a_domain(name, least):
    function = find_metric(name, "regression").function
    one = np.ones((3, 2))
    y = one.copy()
    y[1, 1] = least
    assert np.isfinite(function(y, one, NO_WEIGHT))
    y[1, 1] = -least
    if least == 0.0:
        y[1, 1] = -5e-324
    with pytest.raises(ValueError, match=rf"{name} of a target of -\S+ in row 1: .*leave these"):
        function(y, one, NO_WEIGHT)
    for bad in (0.0, -0.5):
        with pytest.raises(ValueError, match=f"a prediction of {bad:g} in row 2.*'count:poisson'"):
            function(one, np.where(np.arange(6).reshape(3, 2) == 5, bad, one), NO_WEIGHT)


def test_poisson_likelihood_of_counts():
    random = np.random.default_rng(0)
    mean = random.exponential(10.0, 300)
    y, weight = random.poisson(mean).astype(float), random.exponential(size=300)
    function = find_metric("poisson-nloglik", "regression").function
    expected = np.average(poisson_likelihood(y, mean), weights=weight)
    assert_allclose(function(y, mean, weight), expected, rtol=1e-13)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_a_target_may_be_a_share(task):
    y, probability = np.array([0.3, 0.9, 0.0, 1.0]), np.array([0.4, 0.8, 0.1, 0.7])
    expected = scipy.stats.entropy(np.stack([y, 1 - y]), np.stack([probability, 1 - probability]))
    divergence = find_metric("kullback_leibler", task).function(y, probability, NO_WEIGHT)
    assert_allclose(divergence, expected.mean(), rtol=1e-13)
    logloss = find_metric("cross_entropy", task).function(y, probability, NO_WEIGHT)
    entropy = scipy.special.entr(y) + scipy.special.entr(1 - y)
    assert_allclose(logloss, (expected + entropy).mean(), rtol=1e-13)
    area = find_metric("auc", "binary").function(y, probability, NO_WEIGHT)
    twice, weight = np.repeat([0.0, 1.0], 4), np.r_[1 - y, y]
    expected = sklearn_metrics.roc_auc_score(
        twice, np.tile(probability, 2), sample_weight=np.maximum(weight, 1e-300)
    )
    assert_allclose(area, expected, rtol=1e-13)


def test_log_loss_is_of_shares():
    function = find_metric("logloss", "regression").function
    inside, outside = np.array([0.0, 1.0]), np.array([0.5, 1.01])
    assert function(inside, inside, NO_WEIGHT) < 1e-15
    with pytest.raises(
        ValueError, match=r"a target of 1.01 in row 1: it needs targets from 0 to 1"
    ):
        function(outside, inside, NO_WEIGHT)
    with pytest.raises(ValueError, match=r"a prediction of 1.01 in row 1: .* 'reg:logistic'"):
        function(inside, outside, NO_WEIGHT)


@pytest.mark.parametrize("size", [1e-12, 1e-3, 1e3, 1e100])
def test_sizes_of_errors(size):
    """The formulas lose no digits of small errors, and large ones are no infinity."""
    y, prediction = np.array([size]), np.array([0.0])
    values = {
        name: find_metric(name, "regression").function(y, prediction, NO_WEIGHT)
        for name in ("mphe", "huber", "fair", "logcosh")
    }
    if size < 1:
        assert_allclose(list(values.values()), size**2 / 2, rtol=max(size, 1e-3))
    else:
        expected = [size - 1, 0.9 * (size - 0.45), size - np.log1p(size), size - np.log(2)]
        assert_allclose(list(values.values()), expected, rtol=1e-3)


@pytest.mark.parametrize(
    ("task", "prediction"), [("binary", [0.1, 0.9]), ("multiclass", np.eye(2))]
)
def test_auc_needs_two_classes(task, prediction):
    auc = find_metric("auc", task).function
    y = np.array([1.0, 0.0])
    assert auc(y, np.asarray(prediction), np.ones(2)) in (0.0, 1.0)
    with pytest.raises(ValueError, match=r"auc needs .* two classes or more, and there are none;"):
        auc(y, np.asarray(prediction), np.array([1.0, 0.0]))


def test_a_class_without_rows_has_no_share_in_auc():
    random = np.random.default_rng(0)
    y, probability = make_data("multiclass", random)
    kept = y != 2
    present = [0, 1, 3]
    areas = [sklearn_metrics.roc_auc_score(y[kept] == k, probability[kept, k]) for k in present]
    expected = np.average(areas, weights=[(y == k).sum() for k in present])
    value = find_metric("auc", "multiclass").function(y[kept], probability[kept], NO_WEIGHT)
    assert_allclose(value, expected, rtol=1e-13)


# --- areas of more than one label or pair of classes ---------------------------------------------


def make_labels():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, (200, 3)).astype(float)
    return y, np.round(0.3 * y + random.uniform(size=y.shape), 1), random.exponential(size=200)


@pytest.mark.parametrize(
    ("name", "area"),
    [("auc", roc_auc_score), ("average_precision_score", average_precision_score)],
)
def test_unknown_labels_are_left_out(name, area):
    y, probability, weight = make_labels()
    y[::3, 0], y[1::4, 2] = np.nan, np.nan
    areas = []
    for label in range(3):
        known = ~np.isnan(y[:, label])
        own = y[known, label], probability[known, label]
        areas.append(area(*own, sample_weight=weight[known]))
    value = find_metric(name, "multilabel").function(y, probability, weight)
    assert_allclose(value, np.mean(areas), rtol=1e-13)


def test_a_label_of_one_class_tells_nothing():
    y, probability, _ = make_labels()
    y[:, 1] = 0.0
    areas = {"auc": roc_auc_score, "average_precision_score": average_precision_score}
    for name, area in areas.items():
        function = find_metric(name, "multilabel").function
        expected = area(y[:, [0, 2]], probability[:, [0, 2]])
        assert_allclose(function(y, probability, NO_WEIGHT), expected, rtol=1e-13)
        words = "two classes or more" if name == "auc" else "class 1"
        with pytest.raises(ValueError, match=f"{name} needs validation rows of {words}, and there"):
            function(np.zeros_like(y), probability, NO_WEIGHT)


@pytest.mark.parametrize("weighted", [False, True])
def test_auc_mu_is_the_mean_over_pairs_of_classes(weighted):
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 200)
    probability = np.round(random.dirichlet([1, 1, 1], 200), 2) + 0.01
    weight = random.exponential(size=200) if weighted else NO_WEIGHT
    areas = []
    for one, other in ((0, 1), (0, 2), (1, 2)):
        rows = (y == one) | (y == other)
        score = np.log(probability[rows, one]) - np.log(probability[rows, other])
        own = weight[rows] if weighted else None
        areas.append(roc_auc_score(y[rows] == one, score, sample_weight=own))
    value = find_metric("auc_mu", "multiclass").function(y.astype(float), probability, weight)
    assert_allclose(value, np.mean(areas), rtol=1e-13)
    # a class without rows has no pairs
    rows = y != 2
    own = weight[rows] if weighted else NO_WEIGHT
    value = find_metric("auc_mu", "multiclass").function(y[rows] * 1.0, probability[rows], own)
    assert_allclose(value, areas[0], rtol=1e-13)
    with pytest.raises(ValueError, match="auc_mu needs validation rows of two classes or more"):
        find_metric("auc_mu", "multiclass").function(np.zeros(3), probability[:3], NO_WEIGHT)
