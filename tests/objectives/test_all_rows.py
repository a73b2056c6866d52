"""Areas under curves, of more than one label or pair of classes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import average_precision_score, roc_auc_score

from sklboost.objectives.registry import find_metric

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)


def make_labels():
    random = np.random.default_rng(0)
    y = random.integers(0, 2, (200, 3)).astype(float)
    return y, np.round(0.3 * y + random.uniform(size=y.shape), 1), random.exponential(size=200)


@pytest.mark.parametrize(
    ("name", "area"), [("auc", roc_auc_score), ("aucpr", average_precision_score)]
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
    for name, area in (("auc", roc_auc_score), ("aucpr", average_precision_score)):
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
