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

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import (
    digamma,
    exp,
    log,
    log_of_factorial,
    log_of_one_plus,
    trigamma,
)
from sklboost.objectives.domains import NOT_NEGATIVE
from sklboost.objectives.losses.distributions.base import (
    DistributionLoss,
    Parameters,
    within,
)
from sklboost.objectives.start_values import weighted_mean

_LOG_MEANS = (-30.0, 70.0)
_LOG_SIZES = (-7.0, 14.0)
# Where all targets are 0 the best constant is infinite.
_LEAST_START = -16.0
# Of the series; the rest of it is bounded by what it is where the mean is infinite.
_N_TERMS = 8
# Of the mean distance of counts: up to this size by a series, beyond by so many nodes.
_LARGEST_SUMMED, _N_NODES = 3.0, 48


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

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return the logarithm of the mean."""
        return [_log_of_mean(y, weight)]

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the logarithm of the mean, the best constant."""
        return np.array(self.guess(np.atleast_2d(y)[0], weight))

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradient and the information of a row."""
        mean = exp(within(z[0], _LOG_MEANS))
        first[0] = mean - y
        second[0] = mean

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        log_mean = within(z[0], _LOG_MEANS)
        return exp(log_mean) - y * log_mean + log_of_factorial(y)

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        """Return the means."""
        return tuple(np.exp(self.limited(raw_score)))

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the means."""
        return parameters[0]

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``(y - m) (2 F(y) - 1) + 2 m f(y) - m e^-2m (I_0(2 m) + I_1(2 m))``."""
        (mean,) = parameters
        from scipy.special import gammaln, ive, pdtr

        chance = np.exp(y * np.log(mean) - mean - gammaln(y + 1.0))
        spread = ive(0, 2.0 * mean) + ive(1, 2.0 * mean)
        return (y - mean) * (2.0 * pdtr(y, mean) - 1.0) + mean * (2.0 * chance - spread)

    def frozen(self, parameters: Parameters) -> Any:
        """Return ``scipy.stats.poisson``."""
        (mean,) = parameters
        from scipy import stats

        return stats.poisson(mean)


def half_distance(mean: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return half the mean distance of two counts of a negative binomial distribution.

    It is ``m / p 2F1(k + 1, 1/2; 2; -4 (1 - p) / p^2)`` with the hypergeometric function, which
    SciPy computes for small sizes only. By the transformations of Pfaff and Euler it is ``4 m / (pi
    (2 - p))`` times the integral of ``cos(t)^2 (1 - w sin(t)^2)^(k - 1)`` from 0 to pi / 2, with
    ``w = 4 (1 - p) / (2 - p)^2``; most of it is near 0, so the nodes are densest there.
    """
    from scipy.special import hyp2f1

    is_large = size > _LARGEST_SUMMED
    rest = mean / (size + mean)  # 1 - p
    small, p = np.minimum(size, _LARGEST_SUMMED), size / (size + mean)
    z = np.where(is_large, 0.0, -4.0 * rest / p**2)
    of_small = hyp2f1(small + 1.0, 0.5, 2.0, z) / p
    w = 4.0 * rest / (1.0 + rest) ** 2
    width = 1.0 / np.sqrt(1.0 + size * w)
    end, integral = np.arcsinh(0.5 * np.pi / width), np.zeros_like(size)
    for node, share in zip(*np.polynomial.legendre.leggauss(_N_NODES), strict=True):
        v = 0.5 * end * (1.0 + node)
        angle = width * np.sinh(v)
        tail = np.exp((size - 1.0) * np.log1p(-w * np.sin(angle) ** 2))
        integral += share * np.cos(angle) ** 2 * tail * width * np.cosh(v)
    of_large = 2.0 / np.pi * end * integral / (1.0 + rest)
    distance: np.ndarray = mean * np.where(is_large, of_large, of_small)
    return distance


class NegativeBinomial(DistributionLoss):
    """The negative binomial distribution, of counts that vary more than Poisson's."""

    name = "negative_binomial"
    parameter_names = ("mean", "size")
    output_names = ("log mean", "log size")
    limits = (_LOG_MEANS, _LOG_SIZES)
    targets = NOT_NEGATIVE
    is_of_counts = True

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return those of the moments."""
        mean = weighted_mean(y, weight)
        excess = weighted_mean((y - mean) ** 2, weight) - mean
        size = mean * mean / excess if excess > 0.0 else 100.0
        return [_log_of_mean(y, weight), min(max(math.log(max(size, 1e-3)), -5.0), 5.0)]

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradients and the information of a row."""
        mean = exp(within(z[0], _LOG_MEANS))
        size = exp(within(z[1], _LOG_SIZES))
        rest = size / (size + mean)
        first[0] = (mean - y) * rest
        second[0] = mean * rest
        slope = digamma(size) - digamma(size + y) + log_of_one_plus(mean / size)
        first[1] = size * (slope + (y - mean) / (size + mean))
        second[1] = size * size * size_information(mean, size)

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        log_mean = within(z[0], _LOG_MEANS)
        log_size = within(z[1], _LOG_SIZES)
        size = exp(log_size)
        odds = exp(log_mean - log_size)
        # log gamma(x) = log gamma(x + 1) - log x
        ways = log_of_factorial(size) - log_size - log_of_factorial(size + y) + log(size + y)
        log_one_plus = log_of_one_plus(odds)
        tail = (size + y) * log_one_plus - y * (log_mean - log_size)
        return ways + tail + log_of_factorial(y)

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        """Return means and sizes."""
        log_mean, log_size = self.limited(raw_score)
        return np.exp(log_mean), np.exp(log_size)

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the means."""
        return parameters[0]

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return Wei & Held's (2014) closed form, with ``p = k / (k + m)``.

        It is ``y (2 F_k(y) - 1) - m (2 F_(k + 1)(y - 1) - 1) - d``, where d is half the mean
        distance of two counts.
        """
        mean, size = parameters
        from scipy.special import betainc

        chance = size / (size + mean)
        below = np.where(y > 0.0, betainc(size + 1.0, np.maximum(y, 1.0), chance), 0.0)
        near = y * (2.0 * betainc(size, y + 1.0, chance) - 1.0)
        return near - mean * (2.0 * below - 1.0) - half_distance(mean, size)

    def frozen(self, parameters: Parameters) -> Any:
        """Return ``scipy.stats.nbinom``."""
        mean, size = parameters
        from scipy import stats

        return stats.nbinom(size, size / (size + mean))


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
