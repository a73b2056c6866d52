import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.objectives.start_values import weighted_quantile
from sklboost.tree.options.selection import (
    divide_values,
    middle_of_three,
    nearest,
    select_quantile,
)

pytestmark = pytest.mark.interpreted


def selected(values, weights, alpha):
    values, weights = np.array(values, dtype=float), np.array(weights, dtype=float)
    return select_quantile(values, weights, alpha * weights.sum())


def test_selection_is_the_averaged_inverse_of_the_distribution():
    for seed in range(30):
        random = np.random.default_rng(seed)
        n = int(random.integers(1, 60))
        values = random.integers(0, random.integers(1, 40) + 1, n).astype(float)  # many are equal
        weights = random.integers(1, 4, n)
        alpha = random.choice([0.1, 0.25, 0.5, 0.75, 0.9, random.uniform(0.01, 0.99)])
        repeated = np.repeat(values, weights)
        expected = np.quantile(repeated, alpha, method="averaged_inverted_cdf")
        ones = np.ones(len(repeated))
        assert_allclose(selected(values, weights, alpha), expected)
        assert_allclose(selected(repeated, ones, alpha), expected)
        # the start value of the losses is the same quantile
        assert_allclose(weighted_quantile(values, weights.astype(float), alpha), expected)


def test_division_moves_weights_with_their_values():
    values, weights = np.array([5.0, 1, 3, 3, 9, 0]), np.array([50.0, 10, 30, 31, 90, 0])
    start, stop = divide_values(values, weights, 0, 6, 3.0)
    assert (start, stop) == (2, 4)
    assert set(values[:2]) == {0.0, 1.0}
    assert_array_equal(values[2:4], [3, 3])
    assert_array_equal(weights // 10, values)


def test_neighbours_and_middle():
    values = np.array([1.0, 4, 2, 4, 8])
    assert nearest(values, 4.0, 1.0) == 8
    assert nearest(values, 4.0, -1.0) == 2
    assert nearest(values, 8.0, 1.0) == 8
    for three in [(1, 2, 3), (3, 1, 2), (2, 3, 1), (3, 2, 1)]:
        assert middle_of_three(*map(float, three)) == 2
    assert middle_of_three(2.0, 2.0, 1.0) == 2


def test_with_equal_weights_it_is_the_nth_smallest():
    for seed in range(30):
        random = np.random.default_rng(seed)
        values = random.integers(0, 1 + seed, random.integers(1, 20)).astype(float)  # with ties
        values[values == 3] = np.inf
        for n, expected in enumerate(np.sort(values)):
            assert select_quantile(values.copy(), np.ones(len(values)), n + 0.5) == expected
