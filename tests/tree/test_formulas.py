import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.tree.core.formulas import (
    has_excess,
    largest_excess,
    leaf_weight,
    sides_of,
    similarity,
    similarity_at,
    split_gain,
)
from sklboost.tree.options.constrained_weights import Inherited, constrained_weight, smooth
from tests.tree.growth import params

pytestmark = pytest.mark.interpreted


def objective(weight, gradient, hessian, settings):
    """Loss of a leaf with this output, from the second-order expansion and the two penalties."""
    squares = (hessian + settings.reg_lambda) * weight**2 / 2
    return gradient * weight + squares + settings.reg_alpha * np.abs(weight)


def test_penalty_and_limit_by_hand():
    settings = params(reg_lambda=1.0, reg_alpha=2.0)  # G moves from 8 to 6, H + lambda = 3
    assert leaf_weight(8.0, 2.0, settings) == -2.0
    assert similarity(8.0, 2.0, settings) == 12.0
    settings = params(reg_lambda=1.0, reg_alpha=2.0, max_delta_step=0.5)
    assert leaf_weight(8.0, 2.0, settings) == -0.5
    assert leaf_weight(-8.0, 2.0, settings) == 0.5
    assert similarity(8.0, 2.0, settings) == 6.0 - 3.0 * 0.25


@pytest.mark.parametrize("seed", range(12))
def test_leaf_weight_is_the_best_and_similarity_twice_what_it_gains(seed):
    random = np.random.default_rng(seed)
    settings = params(
        reg_lambda=random.choice([0.0, 1.5]),
        reg_alpha=random.choice([0.0, 0.7]),
        max_delta_step=random.choice([0.0, 0.3]),
    )
    gradient, hessian = random.normal(scale=2), random.uniform(0.1, 3)
    best = leaf_weight(gradient, hessian, settings)
    limit = settings.max_delta_step if np.isfinite(settings.max_delta_step) else abs(best) + 1
    others = np.linspace(-limit, limit, 2001)
    least = objective(best, gradient, hessian, settings)
    assert abs(best) <= limit
    assert least <= objective(others, gradient, hessian, settings).min() + 1e-15
    assert_allclose(similarity(gradient, hessian, settings), -2 * least, atol=1e-15)
    assert similarity(gradient, hessian, settings) >= 0.0


@pytest.mark.parametrize("weight", [-2.0, -0.3, 0.0, 0.4, 5.0])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_similarity_of_any_weight(weight, alpha):
    settings = params(reg_lambda=1.5, reg_alpha=alpha)
    removed = -2 * objective(weight, 1.2, 2.0, settings)
    assert_allclose(similarity_at(1.2, 2.0, weight, settings), removed, atol=1e-15)
    assert similarity_at(1.2, 2.0, weight, settings) <= similarity(1.2, 2.0, settings)


@pytest.mark.parametrize("part", [1e-12, -1e-12])
def test_rounding_errors_are_no_gain(part):
    assert split_gain(1.0, 1.0, 2.0 - part) == 0.0
    assert_allclose(split_gain(1.0, 1.0, 2.0 - 10 * part), 10 * part, rtol=1e-3)
    assert split_gain(0.1, 0.2, 0.3) == 0.0  # 0.1 + 0.2 > 0.3
    assert split_gain(-1.0, 1.0, part) == 0.0  # a bound can make a similarity negative
    assert_allclose(split_gain(part, abs(part), 0.0), part + abs(part))  # small, not rounding


# --- weights that nodes inherit ------------------------------------------------------------------


def test_a_weight_is_moved_towards_the_parents():
    # 6 of 6 + 2: three quarters are its own
    assert smooth(4.0, 6.0, 0.0, 2.0) == 3.0
    assert smooth(4.0, 6.0, 8.0, 2.0) == 5.0
    assert smooth(0.1, 0.3, 1e300, 0.0) == 0.1  # to the last bit


def test_weight_of_a_child():
    free, bound = Inherited(-1.0, -np.inf, np.inf, 5.0), Inherited(-1.0, -np.inf, -0.25, 5.0)
    assert constrained_weight(2.0, 5.0, free) == 0.5
    assert constrained_weight(2.0, 5.0, bound) == -0.25


# --- how large a gain can be ---------------------------------------------------------------------


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0, 7.5])
def test_the_excess_is_what_both_similarities_are_beyond_a_constant(reg_lambda):
    settings = params(reg_lambda=reg_lambda)
    gradient, hessian, left_gradient, left_hessian = 5.0, 20.0, -3.0, 4.0
    sides = sides_of(gradient, hessian, reg_lambda)
    left = similarity(left_gradient, left_hessian, settings)
    right = similarity(gradient - left_gradient, hessian - left_hessian, settings)
    excess = left + right - gradient**2 / sides.divisor
    at_once = (left_gradient, left_gradient), (left_hessian, left_hessian)
    assert_allclose(largest_excess(*at_once, sides), excess, rtol=1e-12)
    for factor, expected in ((0.999, True), (1.001, False)):
        wanted = factor * excess / sides.divisor
        assert has_excess(left_gradient, left_hessian, wanted, sides) == expected


def test_no_excess_within_ranges_is_above_the_largest():
    random = np.random.default_rng(0)
    for _ in range(200):
        hessian, reg_lambda = 20.0, random.choice([0.0, 0.5, 10.0])
        sides = sides_of(random.normal(0.0, 9.0), hessian, reg_lambda)
        lowest, highest = np.sort(random.normal(0.0, 9.0, 2))
        least, most = np.sort(random.uniform(1.0, hessian - 1.0, 2))
        largest = largest_excess((lowest, highest), (least, most), sides)
        wanted = (1.0 + 1e-9) * largest / sides.divisor
        for g in np.linspace(lowest, highest, 7):
            for h in np.linspace(least, most, 7):
                assert not has_excess(g, h, wanted, sides)
