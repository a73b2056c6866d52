"""Cox's partial likelihood: by hand, against sums over all rows, and where numbers are extreme."""

import pickle
from itertools import product

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.objectives.losses.cox import Cox

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
TIES = ("breslow", "efron")


def encoded(time, event, entry=None, stratum=None):
    """Targets as the loss reads them."""
    time = np.asarray(time, dtype=float)
    entry = np.full(len(time), -np.inf) if entry is None else np.asarray(entry, dtype=float)
    stratum = np.zeros(len(time)) if stratum is None else np.asarray(stratum, dtype=float)
    return np.array([time, np.where(event, time, np.inf), entry, stratum])


def value_by_sums(y, score, weight, ties):
    """The loss by its formula, from all rows for every event time."""
    time, upper, entry, stratum = y
    is_event, total, risk = time == upper, 0.0, weight * np.exp(score)
    for group in np.unique(stratum):
        for at in np.unique(time[is_event & (stratum == group)]):
            is_at_risk = (stratum == group) & (entry < at) & (at <= time)
            is_tied = is_event & (time == at) & (stratum == group)
            d, event_weight = is_tied.sum(), weight[is_tied].sum()
            total -= (weight * score)[is_tied].sum()
            for term in range(d if ties == "efron" else 1):
                left = risk[is_at_risk].sum() - term / d * risk[is_tied].sum()
                total += event_weight / (d if ties == "efron" else 1) * np.log(left)
    return total / weight[is_event].sum()


def random_rows(n_rows=50, seed=0):
    random = np.random.default_rng(seed)
    time = random.integers(1, 12, n_rows)
    entry = np.where(random.random(n_rows) < 0.5, time - random.integers(1, 6, n_rows), -np.inf)
    y = encoded(time, random.random(n_rows) < 0.6, entry, random.integers(0, 3, n_rows))
    return y, random.normal(size=(1, n_rows)), random.gamma(2.0, size=n_rows)


# --- by hand -------------------------------------------------------------------------------------


def test_three_rows_by_hand():
    # hazard ratios 1, 2, 3; events at 1 and 3, the second row is censored at 2
    y = encoded([1, 2, 3], [True, False, True])
    score = np.log([[1.0, 2.0, 3.0]])
    assert_allclose(Cox().value(y, score, NO_WEIGHT), (np.log(6) + np.log(3) - np.log(3)) / 2)
    gradient, hessian = Cox().gradients(y, score)
    assert_allclose(hessian, [[1 / 6, 2 / 6, 3 / 6 + 3 / 3]], rtol=1e-6)
    assert_allclose(gradient, hessian - [[1, 0, 1]], rtol=1e-6)


def test_two_events_at_one_time_by_hand():
    y, score = encoded([1, 1, 2], [True, True, False]), np.log([[1.0, 2.0, 3.0]])
    breslow, efron = (Cox(ties).value(y, score, NO_WEIGHT) for ties in TIES)
    assert_allclose(breslow, (2 * np.log(6) - np.log(2)) / 2)
    assert_allclose(efron, (np.log(6) + np.log(6 - 3 / 2) - np.log(2)) / 2)
    gradient, _ = Cox("efron").gradients(y, score)
    assert_allclose(gradient[0, 0], 1 / 6 + 0.5 / 4.5 - 1, rtol=1e-6)
    assert_allclose(gradient[0, 2], 3 / 6 + 3 / 4.5, rtol=1e-6)


# --- the formula ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", TIES)
def test_the_value_is_the_sum(ties):
    for seed in range(3):
        y, score, weight = random_rows(seed=seed)
        expected = value_by_sums(y, score[0], weight, ties)
        assert_allclose(Cox(ties).value(y, score, weight), expected, rtol=1e-13)
        ones = value_by_sums(y, score[0], np.ones(len(weight)), ties)
        assert_allclose(Cox(ties).value(y, score, NO_WEIGHT), ones, rtol=1e-13)


@pytest.mark.parametrize("ties", TIES)
def test_gradients_are_derivatives_of_the_value(ties):
    y, score, weight = random_rows(30)
    events = weight[y[0] == y[1]].sum()
    loss = pickle.loads(pickle.dumps(Cox(ties)))
    gradient, hessian = loss.gradients(y, score, weight)
    # a constant changes nothing
    shifted, _ = loss.gradients(y, score + 1e6, weight)
    assert_allclose(shifted, gradient, rtol=1e-4, atol=1e-6)
    for row in range(30):
        up, down = score.copy(), score.copy()
        up[0, row] += 1e-5
        down[0, row] -= 1e-5
        rise = events * (loss.value(y, up, weight) - loss.value(y, down, weight)) / 2e-5
        assert_allclose(gradient[0, row], rise, rtol=1e-5, atol=1e-6)
        # gradients are float32
        far = [np.where(np.arange(30) == row, score + step, score) for step in (0.01, -0.01)]
        moved = [loss.gradients(y, scores, weight)[0][0, row] for scores in far]
        assert hessian[0, row] >= (moved[0] - moved[1]) / 0.02 - 1e-3


def test_as_xgboost_without_ties():
    random = np.random.default_rng(0)
    n_rows, X = 200, random.normal(size=(200, 3))
    time, event = 1.0 + random.permutation(n_rows), random.random(n_rows) < 0.6
    data = xgboost.DMatrix(X, np.where(event, time, -time))
    settings = dict(objective="survival:cox", base_score=1.0, eval_metric="cox-nloglik")
    log = {}
    booster = xgboost.train(
        settings, data, 5, evals=[(data, "rows")], evals_result=log, verbose_eval=False
    )
    score = booster.predict(data, output_margin=True).astype(float)[np.newaxis]
    value = Cox().value(encoded(time, event), score, NO_WEIGHT)
    assert_allclose(value, log["rows"]["cox-nloglik"][-1], rtol=1e-5)


# --- extremes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ties", TIES)
def test_extreme_scores_stay_finite(ties):
    y, score, weight = random_rows()
    for scale, given in product(
        (1e-300, 1.0, 100.0, 1e4, 1e100), (NO_WEIGHT, weight, 1e-90 * weight, 1e90 * weight)
    ):
        gradient, hessian = Cox(ties).gradients(y, scale * score, given)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
        assert (hessian >= 0.0).all()
        assert np.isfinite(Cox(ties).value(y, scale * score, given))


def test_what_is_left_when_a_large_term_has_gone():
    # the first row, e^60 times the others, enters last and is at risk at the last event only
    y = encoded([9, 5, 4, 3], [True, True, True, False], entry=[6, 0, 0, 0])
    score = np.array([[60.0, 0.0, 0.0, 0.0]])
    gradient, _ = Cox().gradients(y, score)
    assert_allclose(gradient, [[0.0, 1 + 1 / 2 - 1, 1 / 2 - 1, 0.0]], atol=1e-6)


def test_rows_that_are_never_at_risk_have_no_gradient():
    y = encoded([1, 5, 6], [False, True, False], entry=[0, 0, 5])
    gradient, hessian = Cox().gradients(y, np.zeros((1, 3)))
    assert_array_equal(gradient, [[0, 0, 0]])
    assert_allclose(hessian, [[0, 1, 0]], atol=1e-15)


def test_a_value_without_events_is_none():
    assert np.isnan(Cox().value(encoded([1, 2], [False, False]), np.zeros((1, 2)), NO_WEIGHT))
