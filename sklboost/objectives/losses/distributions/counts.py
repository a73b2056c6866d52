"""Distributions of counts: Poisson, and the negative binomial with a variance of its own.

Of the Poisson distribution of mean m the negative log-likelihood is ``m - y log m + log y!``, the
gradient in log m ``m - y``, the information m. The negative binomial has also a size k, and the
variance ``m + m^2 / k``. In log m its gradient is ``(m - y) k / (k + m)``, its information
``m k / (k + m)``; mean and size are orthogonal. The information of the size is a series: Anscombe
(1950), "Sampling Theory of the Negative Binomial and Logarithmic Series Distributions", (3.6).
"""

import math
from typing import Any

import numpy as np
from scipy.special import betainc, gammaln, i0e, i1e, pdtr

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import (
    HALF_LOG_2_PI,
    digamma,
    exp,
    log,
    log_of_factorial,
    log_of_one_plus,
    trigamma,
)
from sklboost.objectives.domains import NOT_NEGATIVE
from sklboost.objectives.loss import row_formula
from sklboost.objectives.losses.distributions import DistributionLoss, Parameters, within
from sklboost.objectives.start_values import weighted_mean

_LOG_MEANS = (-30.0, 70.0)
_LOG_SIZES = (-7.0, 14.0)
# Where all targets are 0 the best constant is infinite.
_LEAST_START = -16.0
# Of the series; the rest of it is bounded by what it is where the mean is infinite.
_N_TERMS = 8
# Of scores: up to this count probabilities are added up.
_LARGEST_SUMMED = 40


def _log_of_mean(y: np.ndarray, weight: np.ndarray) -> float:
    mean = weighted_mean(y, weight)
    return math.log(mean) if mean > 0.0 else _LEAST_START


class Poisson(DistributionLoss):
    """The Poisson distribution."""

    name = "poisson"
    parameter_names = ("mean",)
    output_names = ("log mean",)
    limits = (_LOG_MEANS,)
    targets = NOT_NEGATIVE
    is_of_counts = True
    guess_is_best = True

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        return [_log_of_mean(y, weight)]

    @row_formula
    def derivatives(y, z, spread, first, second):
        mean = exp(within(z[0], _LOG_MEANS))
        first[0] = mean - y
        second[0] = mean

    @row_formula
    def row_value(y, z, spread):
        log_mean = within(z[0], _LOG_MEANS)
        return exp(log_mean) - y * log_mean + log_of_factorial(y)

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``(y - m) (2 F(y) - 1) + 2 m f(y)``."""
        (mean,) = parameters
        return (y - mean) * (2.0 * pdtr(y, mean) - 1.0) + 2.0 * mean * np.exp(
            log_of_poisson(y, mean)
        )

    def half_distance(self, parameters: Parameters) -> Any:
        """Return ``m e^-2m (I_0(2 m) + I_1(2 m))``."""
        (mean,) = parameters
        # eight times as fast as ive
        return mean * (i0e(2.0 * mean) + i1e(2.0 * mean))


# --- probabilities: Loader (2000), "Fast and Accurate Computation of Binomial Probabilities". No
# logarithms of large factorials cancel


def _beyond_stirling(x: Any) -> Any:
    """Return ``log x! - (x + 1/2) log x + x - log(2 pi) / 2`` for x > 0."""
    near, square = np.minimum(x, 16.0), 1.0 / (x * x)
    exact = gammaln(near + 1.0) - (near + 0.5) * np.log(near) + near - HALF_LOG_2_PI
    series = 1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0))
    return np.where(x < 16.0, exact, series / x)


def _deviance(x: Any, mean: Any, excess: Any) -> Any:
    """Return ``x log(x / mean) + mean - x``, of which excess is ``(mean - x) / x``."""
    log_ratio = np.where(np.abs(excess) < 0.5, np.log1p(excess), np.log(mean / x))
    return x * (excess - log_ratio)


@np.errstate(all="ignore")
def log_of_poisson(y: Any, mean: Any) -> Any:
    """Return the logarithms of the probabilities of counts y >= 0, which may be infinite."""
    counts = np.where((y > 0.0) & (y < np.inf), y, 1.0)
    log_chance = -_deviance(counts, mean, (mean - counts) / counts) - _beyond_stirling(counts)
    log_chance -= 0.5 * np.log(counts) + HALF_LOG_2_PI
    return np.where(y > 0.0, np.where(y < np.inf, log_chance, -np.inf), -mean)


@np.errstate(all="ignore")
def log_of_negative_binomial(y: Any, mean: Any, size: Any) -> Any:
    """Return the logarithms of the probabilities of counts y >= 0, which may be infinite."""
    counts = np.where((y > 0.0) & (y < np.inf), y, 1.0)
    both, distance = counts + size, (counts - mean) / (size + mean)
    share = both / (size + mean)
    log_chance = -_deviance(size, size * share, distance)
    log_chance -= _deviance(counts, mean * share, -distance * (size / counts))
    log_chance += _beyond_stirling(both) - _beyond_stirling(size) - _beyond_stirling(counts)
    log_chance += 0.5 * np.log(size / both / counts) - HALF_LOG_2_PI
    of_zero = -size * np.log1p(mean / size)
    return np.where(y > 0.0, np.where(y < np.inf, log_chance, -np.inf), of_zero)


class NegativeBinomial(DistributionLoss):
    """The negative binomial distribution, of counts that vary more than Poisson's."""

    name = "negative_binomial"
    parameter_names = ("mean", "size")
    output_names = ("log mean", "log size")
    limits = (_LOG_MEANS, _LOG_SIZES)
    targets = NOT_NEGATIVE
    is_of_counts = True

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return raw scores of the moments."""
        mean = weighted_mean(y, weight)
        excess = weighted_mean(np.square(y - mean), weight) - mean
        size = mean * mean / excess if excess > 0.0 else 100.0
        return [_log_of_mean(y, weight), min(max(math.log(max(size, 1e-3)), -5.0), 5.0)]

    @row_formula
    def derivatives(y, z, spread, first, second):
        mean = exp(within(z[0], _LOG_MEANS))
        size = exp(within(z[1], _LOG_SIZES))
        rest = size / (size + mean)
        first[0] = (mean - y) * rest
        second[0] = mean * rest
        slope = digamma(size) - digamma(size + y) + log_of_one_plus(mean / size)
        first[1] = size * (slope + (y - mean) / (size + mean))
        second[1] = size * size * size_information(mean, size)

    @row_formula
    def row_value(y, z, spread):
        log_mean = within(z[0], _LOG_MEANS)
        log_size = within(z[1], _LOG_SIZES)
        size = exp(log_size)
        odds = exp(log_mean - log_size)
        # log gamma(x) = log gamma(x + 1) - log x
        ways = log_of_factorial(size) - log_size - log_of_factorial(size + y) + log(size + y)
        log_one_plus = log_of_one_plus(odds)
        tail = (size + y) * log_one_plus - y * (log_mean - log_size)
        return ways + tail + log_of_factorial(y)

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``(y - m) (2 F(y) - 1) + 2 m (1 + y / k) f(y)``: Wei & Held (2014).

        Of small counts, most often all, F is a sum, which takes half as long as the function.
        """
        mean, size = parameters
        chance = np.exp(-size * np.log1p(mean / size))
        at_most, share = chance, mean / (size + mean)
        for count in range(1, 1 + int(min(np.max(y, initial=0.0), _LARGEST_SUMMED))):
            is_within = count <= y
            chance = np.where(is_within, chance * (share * ((size + count - 1.0) / count)), chance)
            at_most = at_most + np.where(is_within, chance, 0.0)
        large = np.flatnonzero(y > _LARGEST_SUMMED)
        if len(large):
            y_large, means, sizes = (values[large] for values in (y, mean, size))
            at_most[large] = betainc(sizes, y_large + 1.0, sizes / (sizes + means))
            chance[large] = np.exp(log_of_negative_binomial(y_large, means, sizes))
        near = 2.0 * mean * (1.0 + y / size) * chance
        return (y - mean) * (2.0 * at_most - 1.0) + near

    def half_distance(self, parameters: Parameters) -> Any:
        """Return ``m / p 2F1(k + 1, 1/2; 2; -4 (1 - p) / p^2)``, with ``p = k / (k + m)``.

        By the transformations of Pfaff and Euler, and with sinh(u) as the tangent of Euler's angle,
        it is ``4 m / (pi (2 - p))`` times the integral over u > 0 of ``(1 + (e sinh u)^2)^(k - 1) /
        cosh(u)^(2 k + 1)``, where ``e = p / (2 - p)``. That is even and has no singularity nearer
        to the real numbers than pi / 2, so the trapezoidal rule is exact to nine digits with these
        few steps.
        """
        mean, size = parameters
        rest = mean / (size + mean)  # 1 - p
        ratio = size / (size + mean) / (1.0 + rest)
        steepness = 1.5 + np.maximum(size - 1.0, 0.0) * 4.0 * rest / (1.0 + rest) ** 2
        step = np.minimum(0.3, 0.5 / np.sqrt(steepness))
        factor, power, integral = np.exp(step), np.ones_like(step), np.full_like(step, 0.5)
        term = integral
        while (term > 1e-12 * integral).any():
            power = power * factor
            square = (0.5 * (power - 1.0 / power)) ** 2
            term = (size - 1.0) * np.log1p(ratio * ratio * square)
            term = np.exp(term - (size + 0.5) * np.log1p(square))
            integral = integral + term
        return 4.0 / np.pi * mean / (1.0 + rest) * step * integral


@inlined
def size_information(mean, size):
    """Return the information of the size k of a negative binomial distribution of mean m.

    It is too large by at most 7%.
    """
    if size < 1.0:
        return _information_by_chances(mean, size)
    return _information_by_shares(mean, size)


@inlined
def _information_by_chances(mean, size):
    """Return it as the sum over y >= 0 of ``P(Y > y) / (k + y)^2``, less ``m / (k (k + m))``.

    From the eighth term on, P is bounded by what it is in the eighth, and the rest of the sum is
    ``trigamma(k + 8)``. For large sizes the difference would be one of almost equal numbers.
    """
    share = mean / (size + mean)
    chance = exp(-size * log_of_one_plus(mean / size))  # of y
    above, total = 1.0 - chance, 0.0
    for y in range(_N_TERMS):
        total += above / ((size + y) * (size + y))
        chance *= (size + y) / (y + 1.0) * share
        above = max(above - chance, 0.0)
    return total + above * trigamma(size + _N_TERMS) - share / size


@inlined
def _information_by_shares(mean, size):
    """Return it as a sum over j >= 1 of ``p^(j + 1) j! gamma(k) / ((j + 1) gamma(k + j + 1))``.

    With ``p = m / (k + m)``. The terms after the first eight are bounded by ``p^10`` times what
    they are for p = 1, where the whole sum is ``trigamma(k) - 1 / k``.
    """
    share = mean / (size + mean)
    term = 1.0 / (size * (size + 1.0))  # j! gamma(k) / gamma(k + j + 1)
    power, total, of_one = share * share, 0.0, 0.0
    for j in range(1, _N_TERMS + 1):
        total += power * term / (j + 1.0)
        of_one += term / (j + 1.0)
        power *= share
        term *= (j + 1.0) / (size + j + 1.0)
    return total + power * max(trigamma(size) - 1.0 / size - of_one, 0.0)
