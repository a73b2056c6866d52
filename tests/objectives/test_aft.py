"""Accelerated failure times: against SciPy's distributions, finite differences, and far out."""

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose
from scipy import stats

from sklboost.objectives.losses.aft import DISTRIBUTIONS, AcceleratedFailureTime

pytestmark = pytest.mark.interpreted

NO_WEIGHT = np.empty(0)
SHAPES = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}


def encoded(lower, upper):
    none = np.zeros(len(lower))
    return np.array([lower, upper, none - np.inf, none], dtype=float)


def random_rows(n_rows=60, seed=0):
    """Events, and rows censored on the right, in an interval, on the left."""
    random = np.random.default_rng(seed)
    lower = 0.3 + random.exponential(2.0, size=n_rows)
    upper, kind = lower.copy(), np.arange(n_rows) % 4
    upper[kind == 1] = np.inf
    upper[kind == 2] *= 1.2 + random.random((kind == 2).sum())
    lower[kind == 3] = 0.0
    return encoded(lower, upper), random.normal(size=(1, n_rows))


@pytest.mark.parametrize("scale", [0.7, 1.0, 3.0])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_value_is_the_likelihood(distribution, scale):
    y, score = random_rows()
    lower, upper = y[:2]
    with np.errstate(divide="ignore"):
        low, high = ((np.log(bound) + score[0]) / scale for bound in (lower, upper))
    shape = SHAPES[distribution]
    density = shape.pdf(low) / (scale * np.where(lower > 0, lower, 1.0))
    likelihood = np.where(lower == upper, density, shape.sf(low) - shape.sf(high))
    found = AcceleratedFailureTime(distribution, scale).row_values(y, score)
    assert_allclose(found, -np.log(likelihood), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(("scale", "shift"), [(0.5, -6.0), (0.5, 2.0), (2.0, 0.0), (2.0, -6.0)])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_derivatives_by_finite_differences(distribution, scale, shift):
    y, score = random_rows()
    score += shift
    loss, step = AcceleratedFailureTime(distribution, scale), 1e-5
    gradient, hessian = loss.gradients(y, score)
    up, down = score + step, score - step
    values = [loss.row_values(y, moved) for moved in (up, down)]
    slope = (values[0] - values[1]) / (2 * step)
    assert_allclose(gradient[0], slope, rtol=1e-5, atol=1e-5)
    bend = (loss.gradients(y, up)[0] - loss.gradients(y, down)[0]) / (2 * step)
    assert_allclose(hessian, bend, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e-3, 1.0, 1e3, 1e300])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_extreme_scores_stay_finite(distribution, scale):
    y, score = random_rows()
    loss = AcceleratedFailureTime(distribution, scale)
    for size in (1.0, 40.0, 1e3, 1e6, 1e100):
        gradient, hessian = loss.gradients(y, size * score)
        assert np.isfinite(gradient).all()
        assert np.isfinite(hessian).all()
        assert (hessian > 0.0).all()
        assert np.isfinite(loss.row_values(y, size * score)).all()


def test_tails_are_exact():
    """Of the normal distribution 40 scales out, S is 1e-350: no float64."""
    y = encoded([1.0, 0.0], [np.inf, 1.0])
    score = np.array([[40.0, -40.0]])
    loss = AcceleratedFailureTime()
    assert_allclose(loss.row_values(y, score), -stats.norm.logsf(40.0), rtol=1e-14)
    gradient, hessian = loss.gradients(y, score)
    hazard = np.exp(stats.norm.logpdf(40.0) - stats.norm.logsf(40.0))
    assert_allclose(gradient, [[hazard, -hazard]], rtol=1e-10)
    assert_allclose(hessian, 1.0 - 1.0 / 40.0**2, rtol=1e-4)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_narrow_interval_is_an_event(distribution):
    lower = np.exp(np.linspace(-1.0, 1.0, 5))
    loss, score = AcceleratedFailureTime(distribution), np.zeros((1, 5))
    event, _ = loss.gradients(encoded(lower, lower), score)
    for width in (1e-12, 1e-8, 1e-6, 3e-5):
        narrow, _ = loss.gradients(encoded(lower, lower * (1.0 + width)), score)
        assert_allclose(narrow, event, rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_start_is_the_best_constant(distribution):
    y, _ = random_rows()
    for weight in (NO_WEIGHT, np.random.default_rng(0).gamma(1.0, size=60)):
        loss = AcceleratedFailureTime(distribution, 0.8)
        start = loss.start(y, weight)
        best, *others = (
            loss.value(y, np.full((1, 60), start[0] + moved), weight) for moved in (0, -0.01, 0.01)
        )
        assert best < min(others)


def test_cumulative_hazards():
    loss, times = AcceleratedFailureTime("extreme", 0.5), np.array([0.0, 0.5, 3.0])
    hazards = loss.cumulative_hazards(times, np.array([0.0, 1.0]))
    assert_allclose(hazards, [[0, 0.25, 9.0], [0, 0.25 * np.e**2, 9 * np.e**2]])


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_metric_is_that_of_xgboost(distribution):
    y, _ = random_rows(200)
    X = np.random.default_rng(0).normal(size=(200, 3))
    data = xgboost.DMatrix(X)
    data.set_float_info("label_lower_bound", y[0])
    data.set_float_info("label_upper_bound", y[1])
    settings = dict(
        objective="survival:aft",
        aft_loss_distribution=distribution,
        aft_loss_distribution_scale=1.5,
        eval_metric="aft-nloglik",
        max_depth=2,
    )
    log = {}
    booster = xgboost.train(
        settings, data, 5, evals=[(data, "rows")], evals_result=log, verbose_eval=False
    )
    score = -booster.predict(data, output_margin=True).astype(float)[np.newaxis]
    value = AcceleratedFailureTime(distribution, 1.5).value(y, score, NO_WEIGHT)
    assert_allclose(value, log["rows"]["aft-nloglik"][-1], rtol=1e-4)
