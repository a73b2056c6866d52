"""The gamma distribution, of amounts above 0: a mean and a shape.

With the ratio ``q = y / mean`` and the shape k the negative log-likelihood is
``log gamma(k) - k log k + k (q - log q) + log y``, its gradients in the logarithms of mean and
shape ``k (1 - q)`` and ``k (digamma(k) - log k - 1 - log q + q)``, the information k and
``k^2 trigamma(k) - k``. Source: Cox & Reid (1987), "Parameter Orthogonality and Approximate
Conditional Inference", for mean and shape being orthogonal.
"""

from typing import Any

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import digamma, exp, log, log_of_factorial, trigamma
from sklboost.objectives.domains import POSITIVE
from sklboost.objectives.losses.distributions.base import (
    DistributionLoss,
    Parameters,
    within,
)
from sklboost.objectives.start_values import weighted_mean

_LOG_MEANS = (-340.0, 340.0)
# 1 / sqrt(shape) is the standard deviation as a part of the mean: down to a thousandth.
_LOG_SHAPES = (-7.0, 14.0)
_LARGEST_RATIO = 1e4


class Gamma(DistributionLoss):
    """The gamma distribution."""

    name = "gamma"
    parameter_names = ("mean", "shape")
    output_names = ("log mean", "log shape")
    limits = (_LOG_MEANS, _LOG_SHAPES)
    targets = POSITIVE

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return those of the mean, and of Minka's (2002) approximation of the shape."""
        mean = weighted_mean(y, weight)
        excess = max(np.log(mean) - weighted_mean(np.log(y), weight), 1e-7)
        shape = (3.0 - excess + np.sqrt((excess - 3.0) ** 2 + 24.0 * excess)) / (12.0 * excess)
        return [np.log(mean), np.clip(np.log(shape), *_LOG_SHAPES)]

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradients and the information of a row."""
        shape = exp(within(z[1], _LOG_SHAPES))
        log_ratio = log(y) - within(z[0], _LOG_MEANS)
        ratio = min(exp(log_ratio), _LARGEST_RATIO)
        first[0] = shape * (1.0 - ratio)
        second[0] = shape
        first[1] = shape * (digamma(shape) - log(shape) - 1.0 - log_ratio + ratio)
        second[1] = shape * (shape * trigamma(shape) - 1.0)

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        log_shape = within(z[1], _LOG_SHAPES)
        shape, log_y = exp(log_shape), log(y)
        log_ratio = log_y - within(z[0], _LOG_MEANS)
        constant = log_of_factorial(shape) - log_shape - shape * log_shape
        return constant + shape * (exp(log_ratio) - log_ratio) + log_y

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        """Return means and shapes."""
        log_mean, log_shape = self.limited(raw_score)
        return np.exp(log_mean), np.exp(log_shape)

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the means."""
        return parameters[0]

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``y (2 F_k(y) - 1) - m (2 F_(k + 1)(y) - 1)``; m: mean."""
        mean, shape = parameters
        from scipy.special import gammainc

        x = shape * y / mean
        others = 2.0 * gammainc(shape + 1.0, x) - 1.0
        return y * (2.0 * gammainc(shape, x) - 1.0) - mean * others

    def half_distance(self, parameters: Parameters) -> Any:
        """Return ``m / (k B(1 / 2, k))``; m: mean."""
        mean, shape = parameters
        from scipy.special import betaln

        return mean * (np.exp(-betaln(0.5, shape)) / shape)

    def frozen(self, parameters: Parameters) -> Any:
        """Return that of amounts, by shape and scale."""
        mean, shape = parameters
        from sklboost.objectives.losses.distributions.frozen import gamma

        return gamma(shape, scale=mean / shape)
