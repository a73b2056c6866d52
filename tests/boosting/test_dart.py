import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.boosting.boosters import choose_rounds, rescaling
from sklboost.boosting.settings import Dropout

pytestmark = pytest.mark.interpreted


def dropout(**changes):
    plain = dict(rate_drop=0.0, skip_drop=0.0, one_drop=False, by_weight=False, as_forest=False)
    return Dropout(**(plain | changes))


def counts(weights, own, n=4000):
    """Count how often each round is dropped."""
    total = np.zeros(len(weights), dtype=int)
    for seed in range(n):
        total[choose_rounds(weights, own, seed)] += 1
    return total / n


def test_worked_weights_as_one_tree_of_many():
    dropped, factor, weight = rescaling(np.array([1, 4]), 0.5, dropout())
    assert_array_equal(dropped, [1, 4])
    assert (factor, weight) == (2 / 2.5, 1 / 2.5)


def test_worked_weights_as_a_forest():
    _, factor, weight = rescaling(np.array([1, 4]), 0.5, dropout(as_forest=True))
    assert factor == weight == 1 / 1.5


def test_each_round_is_dropped_with_the_rate():
    found = counts(np.array([1.0, 0.1, 0.5, 0.2]), dropout(rate_drop=0.3))
    assert_allclose(found, 0.3, atol=0.03)


def test_heavy_rounds_are_dropped_more_often():
    weights = np.array([1.0, 0.5, 0.25, 0.25])
    found = counts(weights, dropout(rate_drop=0.2, by_weight=True))
    assert_allclose(found, 0.2 * 4 * weights / 2, atol=0.03)


def test_a_whole_round_is_skipped():
    some = [len(choose_rounds(np.ones(20), dropout(rate_drop=0.5, skip_drop=0.7), seed)) > 0
            for seed in range(2000)]  # fmt: skip
    assert_allclose(np.mean(some), 0.3, atol=0.04)
    always = dropout(rate_drop=1.0, one_drop=True, skip_drop=1.0)
    assert all(len(choose_rounds(np.ones(20), always, seed)) == 0 for seed in range(50))


def test_at_least_one():
    weights = np.array([1.0, 3.0])
    own = dropout(one_drop=True)
    assert all(len(choose_rounds(weights, own, seed)) == 1 for seed in range(200))
    assert_allclose(counts(weights, own), [0.5, 0.5], atol=0.03)
    assert_allclose(counts(weights, own._replace(by_weight=True)), [0.25, 0.75], atol=0.03)
    assert len(choose_rounds(np.empty(0), own, 0)) == 0  # there is none yet


def test_draws_depend_on_the_seed_and_on_the_round():
    own = dropout(rate_drop=0.5)
    first = choose_rounds(np.ones(40), own, 1)
    assert_array_equal(first, choose_rounds(np.ones(40), own, 1))
    assert list(first) != list(choose_rounds(np.ones(40), own, 2))
    assert list(first) != list(choose_rounds(np.ones(41), own, 1))
