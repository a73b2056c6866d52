"""Losses of distributions: formulas against scipy.stats, scores against sums and integrals."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special

from sklboost.objectives.registry import DISTRIBUTIONS, find_distribution

OF_AMOUNTS = ("zero_inflated_gamma", "zero_inflated_lognormal")
NO_WEIGHT = np.empty(0)


def make(name, n_rows=60, seed=0, width=0.5):
    """Return a loss, raw scores, and targets drawn from the distributions that they stand for."""
    loss = find_distribution(name)(2.5 if "normal" in name or name in ("laplace",) else 1.0)
    raw_score = np.random.default_rng(seed).normal(0.0, width, (loss.n_outputs, n_rows))
    if name == "student_t":
        raw_score[2] += 1.5
    drawn = loss.frozen(loss.parameters_of(raw_score)).rvs(random_state=seed)
    return loss, raw_score, np.asarray(drawn, dtype=np.float64)


def log_likelihood(name, loss, y, raw_score):
    distribution = loss.frozen(loss.parameters_of(raw_score))
    if loss.is_of_counts:
        return distribution.logpmf(y)
    if name in OF_AMOUNTS:
        return np.where(y == 0.0, distribution.logpmf(0.0), distribution.logpdf(np.abs(y)))
    return distribution.logpdf(y)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_loss_is_the_negative_log_likelihood(name):
    loss, raw_score, y = make(name)
    expected = -log_likelihood(name, loss, y, raw_score)
    assert_allclose(loss.row_values(y, raw_score), expected, rtol=1e-9, atol=1e-9)
    weight = np.arange(1.0, 61.0)
    mean = np.average(expected, weights=weight)
    assert_allclose(loss.value(y[np.newaxis], raw_score, weight), mean, rtol=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_natural_gradients_are_those_of_the_whole_information(name):
    """Gradient / information is the solution of I x = g, also where parameters are not orthogonal.

    The information is the mean of g g' under the distribution, by sums over a fine grid.
    """
    loss, raw_score, _ = make(name, n_rows=1, seed=3, width=0.3)
    if "binomial" in name:
        raw_score[-2:] += [[2.0], [1.0]]  # else hardly anything tells inflation from other zeros
    distribution = loss.frozen(loss.parameters_of(raw_score[:, 0]))
    if loss.is_of_counts:
        y = np.arange(2000.0)
        chances = distribution.pmf(y)
    else:
        q = (np.arange(40_000) + 0.5) / 40_000
        if name in OF_AMOUNTS:
            rest = 1.0 - distribution.inflation
            y = np.concatenate([[0.0], distribution.base.ppf(q)])
            chances = np.concatenate([[distribution.inflation], np.full(len(q), rest / len(q))])
        else:
            y, chances = distribution.ppf(q), np.full(len(q), 1.0 / len(q))
    scores = np.repeat(raw_score, len(y), axis=1)
    gradient, information = loss.gradients(y, scores)
    step = 1e-5
    slopes = []
    for output in range(loss.n_outputs):
        ends = []
        for sign in (1.0, -1.0):
            moved = scores.copy()
            moved[output] += sign * step
            ends.append(loss.row_values(y, moved))
        slopes.append((ends[0] - ends[1]) / (2.0 * step))
    slopes = np.array(slopes)
    if name == "laplace":  # not smooth where the target is the location
        slopes[0] = gradient[0]
    whole = (slopes * chances) @ slopes.T
    natural = np.linalg.solve(whole, slopes)
    tolerance = 0.04 if "binomial" in name else 0.02  # a bound of the information of the size
    squares = (gradient / information - natural) ** 2 @ chances
    assert (squares <= tolerance**2 * (natural**2 @ chances)).all()
    assert_allclose(information[:, 0], 1.0 / np.diag(np.linalg.inv(whole)), rtol=2.0 * tolerance)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_crps_is_the_integral_of_the_squared_distance_of_the_distribution_functions(name):
    loss, raw_score, y = make(name, n_rows=6, seed=1)
    found = loss.crps(y, loss.parameters_of(raw_score))
    for row, target in enumerate(y):
        distribution = loss.frozen(tuple(p[row] for p in loss.parameters_of(raw_score)))
        if loss.is_of_counts:
            k = np.arange(5000)
            expected = ((distribution.cdf(k) - (target <= k)) ** 2).sum()
        else:
            least = -np.inf if name in ("normal", "laplace", "student_t") else 0.0
            cdf, sf = distribution.cdf, distribution.sf
            below = integrate.quad(lambda x, cdf=cdf: cdf(x) ** 2, least, target)[0]
            above = integrate.quad(lambda x, sf=sf: sf(x) ** 2, target, np.inf)[0]
            expected = below + above
        assert_allclose(found[row], expected, rtol=1e-6)


@np.errstate(over="ignore", under="ignore")
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_frozen_distributions_have_no_nan_at_the_ends(name):
    """Of tiny, usual and huge parameters, and at all probabilities and values."""
    loss = find_distribution(name)(1.0)
    logarithms = np.array([-30.0, 0.0, 13.9, 69.0])
    raw_score = np.array(np.meshgrid(*[logarithms] * loss.n_outputs)).reshape(loss.n_outputs, -1)
    distribution = loss.frozen(loss.parameters_of(raw_score))
    low = -np.inf if name in ("normal", "laplace", "student_t") else 0.0
    levels = np.array([[0.0], [5e-324], [1e-300], [1e-9], [0.5], [1.0 - 2.0**-53], [1.0]])
    quantiles = distribution.ppf(levels)
    assert (quantiles[0] == low).all()
    assert (quantiles[-1] == np.inf).all()
    assert (np.diff(quantiles[:-1], axis=0) >= 0.0).all()
    upper = distribution.isf(levels)
    assert (upper[0] == np.inf).all()
    assert (upper[-1] == low).all()
    assert (upper[:-1] >= upper[1:]).all()
    assert_array_equal(distribution.interval(1.0), quantiles[[0, -1]])
    assert_array_equal(distribution.median(), quantiles[4])
    values = np.array([[-np.inf], [-1.0], [0.0], [0.5], [1.0], [1e12], [np.inf]])
    probability = "pmf" if loss.is_of_counts else "pdf"
    for method in ("cdf", "sf", "logcdf", "logsf", probability, f"log{probability}"):
        assert not np.isnan(getattr(distribution, method)(values)).any(), method
    for method in ("mean", "var", "std"):
        assert not np.isnan(getattr(distribution, method)()).any(), method
    if loss.is_of_counts:  # the smallest count that is enough
        inner = quantiles[1:-1]
        assert (distribution.cdf(inner) >= levels[1:-1]).all()
        below = np.minimum(inner - 1.0, np.nextafter(inner, 0.0))
        assert (distribution.cdf(below) < levels[1:-1]).all()
        counts = np.arange(6.0)[:, np.newaxis]
        usual = loss.frozen(loss.parameters_of(np.full((loss.n_outputs, 1), 0.5)))
        assert_array_equal(usual.ppf(usual.cdf(counts)), counts)
        assert_array_equal(usual.isf(usual.sf(counts)), counts)
    entropy = loss.frozen(loss.parameters_of(raw_score[:, ::7])).entropy()
    assert not np.isnan(entropy).any()
    drawn = distribution.rvs(random_state=0)
    assert not np.isnan(drawn).any()
    assert (drawn >= low).all()


def test_quantiles_far_out_in_the_tails_of_students_t():
    """Against the closed form of 2 degrees of freedom, and the distribution function of others."""
    q = np.array([1e-300, 1e-200, 1e-120, 1e-90])
    frozen = find_distribution("student_t")().frozen
    assert_allclose(frozen((2.0, 0.0, 1.0)).ppf(q), -1.0 / np.sqrt(2.0 * q), rtol=1e-13)
    assert_allclose(frozen((2.0, 3.0, 5.0)).isf(q), 5.0 / np.sqrt(2.0 * q), rtol=1e-13)
    for df in (1.1, 3.7, 30.0, 100.0, 1000.0):
        distribution = frozen((df, 0.0, 1.0))
        assert_allclose(distribution.cdf(distribution.ppf(q)), q, rtol=1e-11)
        assert_allclose(distribution.ppf(distribution.cdf(-50.0)), -50.0, rtol=1e-12)


def test_probabilities_of_large_and_of_rare_counts():
    """By Stirling's series at the mean, and by all digits of few counts."""
    poisson = find_distribution("poisson")().frozen
    mean = np.array([1e4, 5e10, 1e15, 1e20])
    log_chance = -0.5 * np.log(2.0 * np.pi * mean) - 1.0 / (12.0 * mean)
    assert_allclose(poisson((mean,)).logpmf(mean), log_chance, rtol=1e-12)
    assert_allclose(poisson((mean,)).entropy(), 0.5 - log_chance, rtol=1e-5)
    assert_allclose(poisson((mean,)).ppf(0.5), mean, rtol=1e-4)
    rare = np.array([1e-13, 1e-6])
    assert_allclose(poisson((rare,)).pmf([[1], [2]]), [rare, rare**2 / 2.0], rtol=1.1e-6)
    binomial = find_distribution("negative_binomial")().frozen
    large = binomial((mean, np.ones(4)))  # of size 1 it is geometric
    assert_allclose(large.logpmf(mean), -np.log(mean) - 1.0, rtol=1e-4)
    assert_allclose(large.ppf(0.5), np.log(2.0) * mean, rtol=1e-4)
    assert_allclose(large.isf(1e-12), 12.0 * np.log(10.0) * mean, rtol=1e-4)
    assert_allclose(large.entropy(), np.log(mean) + 1.0, rtol=1e-4)
    few = binomial((rare, np.full(2, 1.2e6)))
    assert_allclose(few.mean(), rare, rtol=1e-15)
    assert_allclose(few.sf(0), rare, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in DISTRIBUTIONS if name.startswith("zero")])
def test_zero_inflated_distributions_have_the_moments_of_their_probabilities(name):
    loss, raw_score, _ = make(name, n_rows=1, seed=4, width=0.1)
    distribution = loss.frozen(loss.parameters_of(raw_score[:, 0]))
    if loss.is_of_counts:
        values = np.arange(3000.0)
        chances = distribution.pmf(values)
        entropy = special.entr(chances).sum()
    else:
        values = np.concatenate([[0.0], np.exp(np.arange(-50.0, 50.0, 0.01))])
        density = distribution.pdf(values)
        widths = 0.01 * values
        chances = widths * density + (values == 0.0) * distribution.pmf(0.0)
        entropy = special.entr(chances[0]) + (widths * special.entr(density)).sum()
    assert_allclose(distribution.mean(), values @ chances, rtol=1e-6)
    for order in (0, 1, 2):
        assert_allclose(distribution.moment(order), values**order @ chances, rtol=1e-6)
    assert_allclose(distribution.var(), values**2 @ chances - distribution.mean() ** 2, rtol=1e-6)
    assert_allclose(distribution.entropy(), entropy, rtol=1e-6)
    q = 1e-30
    assert distribution.isf(q) < np.inf
    assert distribution.sf(distribution.isf(q)) <= q * (1.0 + 1e-9)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_equal_targets_have_a_spread_above_0(name):
    loss = find_distribution(name)()
    for target in (1.0, 3.0):
        assert loss.spread_of(np.full(9, target), np.empty(0)) > 0.0


@pytest.mark.parametrize(
    ("log_mean", "log_size"),
    [(-6, -3), (0, -3), (0, 0), (2, 0), (2, 1.2), (5, 3), (5, 6), (8, 6), (8, 10), (2, 13.9)],
)
def test_crps_of_the_negative_binomial_at_any_size(log_mean, log_size):
    """Of counts that vary as Poisson's do, sizes grow as far as they may."""
    loss = find_distribution("negative_binomial")()
    parameters = np.exp([[log_mean], [log_size]])
    distribution = loss.frozen(parameters[:, 0])
    k = np.arange(int(distribution.isf(1e-14)) + 2)
    y = np.round(distribution.mean())
    expected = ((distribution.cdf(k) - (y <= k)) ** 2).sum()
    assert_allclose(loss.crps(np.array([y]), parameters), [expected], rtol=1e-8, atol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("log_mean", [-6.0, 0.0, 1.0, 3.0, 5.0])
def test_the_information_of_a_size_is_bounded_closely(log_mean):
    loss = find_distribution("negative_binomial")()
    log_sizes = np.array([-5.0, -3.0, -1.0, -0.01, 0.0, 1.0, 3.0])
    raw_score = np.array([np.full(len(log_sizes), log_mean), log_sizes])
    found = loss.gradients(np.ones(len(log_sizes)), raw_score)[1][1]
    for information, mean, size in zip(found, *np.exp(raw_score), strict=True):
        distribution = loss.frozen((mean, size))
        y = np.arange(int(distribution.isf(1e-13)) + 50)
        whole = (distribution.sf(y) / (size + y) ** 2).sum() - mean / (size * (size + mean))
        assert 1.0 - 1e-4 <= information / (size * size * whole) <= 1.07


def test_crps_of_a_wide_lognormal():
    """Half the mean distance of two amounts is a tiny part of a huge mean."""
    loss = find_distribution("lognormal")()
    found = loss.crps(np.array([1.0]), (np.array([0.0]), np.array([12.0])))
    # by r = 0, with terms that are exact: y (2 F(y) - 1) = 0
    expected = 2.0 * np.exp(72.0) * (special.ndtr(-12.0 / np.sqrt(2.0)) - special.ndtr(-12.0))
    assert_allclose(found, [expected])


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_start_has_the_largest_likelihood(name):
    loss, raw_score, _ = make(name, n_rows=1, seed=2)
    scores = np.repeat(raw_score, 500, axis=1)
    y = np.asarray(loss.frozen(loss.parameters_of(scores)).rvs(random_state=0), dtype=np.float64)
    start = loss.start(y[np.newaxis], NO_WEIGHT)

    def value(constants):
        return loss.value(y[np.newaxis], np.repeat(constants, 500).reshape(-1, 500), NO_WEIGHT)

    for output in range(loss.n_outputs):
        for sign in (-1.0, 1.0):
            moved = start.copy()
            moved[output] += sign * 0.01
            assert value(moved) >= value(start) - 1e-9
    weight = np.where(np.arange(500) < 250, 2.0, 1.0)
    twice = np.concatenate([y[:250], y])
    assert_allclose(loss.start(y[np.newaxis], weight), loss.start(twice[np.newaxis], NO_WEIGHT))


@pytest.mark.parametrize("df", [0.3, 0.7, 1.05, 1.2, 2.0, 300.0])
@pytest.mark.parametrize("shift", [0.0, 1e9])
def test_the_start_of_heavy_and_of_light_tails_has_the_largest_likelihood(df, shift):
    """Also where the best degrees of freedom are at an end of their range."""
    y = shift + np.random.default_rng(1).standard_t(df, 200)
    student_t = find_distribution("student_t")
    loss = student_t(student_t.spread_of(y, NO_WEIGHT))
    start = loss.start(y[np.newaxis], NO_WEIGHT)
    moves = [scale * move for move in np.eye(3) for scale in (-0.1, -0.003, 0.003, 0.1)]
    for move in [*moves, np.array([0.0, 0.05, 0.1]), np.array([0.0, -0.05, -0.1])]:
        both = [np.repeat(each, 200).reshape(3, -1) for each in (start, start + move)]
        best, other = (loss.value(y[np.newaxis], scores, NO_WEIGHT) for scores in both)
        assert other >= best - 1e-9


@pytest.mark.interpreted
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_extreme_rows_have_finite_derivatives(name):
    loss = find_distribution(name)(1.0)
    numbers = np.array([1e-9, 1.0, 7.0, 1e4, 1e9])
    y = np.concatenate([numbers, -numbers if name in ("normal", "laplace", "student_t") else []])
    y = np.unique(np.ceil(y)) if loss.is_of_counts else y
    for scores in (-1e3, -20.0, 0.0, 20.0, 1e3):
        raw_score = np.full((loss.n_outputs, len(y)), scores)
        gradient, information = loss.gradients(y, raw_score)
        assert np.isfinite(gradient).all()
        assert np.isfinite(information).all()
        assert (information > 0.0).all()
        assert np.isfinite(loss.row_values(y, raw_score)).all()
        assert np.isfinite(loss.predictions(raw_score)).all()
