"""Continuous distributions: of positive numbers, and of all real numbers."""

import math
from typing import Any, ClassVar

import numpy as np
from scipy.special import betaln, erf, gammainc, ndtr, stdtr

from sklboost.engine.elementary import (
    HALF_LOG_2_PI,
    digamma,
    exp,
    log,
    log_of_factorial,
    log_of_one_plus,
    trigamma,
)
from sklboost.objectives.domains import POSITIVE
from sklboost.objectives.loss import row_formula
from sklboost.objectives.losses.distributions import (
    ANY_SIZE,
    LOG_SCALES,
    DistributionLoss,
    Parameters,
    is_between,
    residual_of,
    within,
)
from sklboost.objectives.start_values import weighted_mean, weighted_quantile

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
        """Return raw scores of the mean, and of Minka's (2002) approximation of the shape."""
        mean = weighted_mean(y, weight)
        excess = max(np.log(mean) - weighted_mean(np.log(y), weight), 1e-7)
        shape = (3.0 - excess + np.sqrt((excess - 3.0) ** 2 + 24.0 * excess)) / (12.0 * excess)
        return [np.log(mean), np.clip(np.log(shape), *_LOG_SHAPES)]

    @row_formula
    def derivatives(y, z, spread, first, second):
        shape = exp(within(z[1], _LOG_SHAPES))
        log_ratio = log(y) - within(z[0], _LOG_MEANS)
        ratio = min(exp(log_ratio), _LARGEST_RATIO)
        first[0] = shape * (1.0 - ratio)
        second[0] = shape
        first[1] = shape * (digamma(shape) - log(shape) - 1.0 - log_ratio + ratio)
        second[1] = shape * (shape * trigamma(shape) - 1.0)

    @row_formula
    def row_value(y, z, spread):
        log_shape = within(z[1], _LOG_SHAPES)
        shape, log_y = exp(log_shape), log(y)
        log_ratio = log_y - within(z[0], _LOG_MEANS)
        constant = log_of_factorial(shape) - log_shape - shape * log_shape
        return constant + shape * (exp(log_ratio) - log_ratio) + log_y

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``y (2 F_k(y) - 1) - m (2 F_(k + 1)(y) - 1)``; m: mean."""
        mean, shape = parameters
        x = shape * y / mean
        others = 2.0 * gammainc(shape + 1.0, x) - 1.0
        return y * (2.0 * gammainc(shape, x) - 1.0) - mean * others

    def half_distance(self, parameters: Parameters) -> Any:
        """Return ``m / (k B(1 / 2, k))``; m: mean."""
        mean, shape = parameters
        return mean * (np.exp(-betaln(0.5, shape)) / shape)


_LOG_2 = math.log(2.0)


class LocationScale(DistributionLoss):
    """Base of distributions with the raw scores ``loc / spread`` and ``log(scale / spread)``."""

    has_own_unit = True
    has_median = False  # whether the best location is rather the median than the mean
    parameter_names: ClassVar[tuple[str, ...]] = ("loc", "scale")
    output_names: ClassVar[tuple[str, ...]] = ("loc", "log scale")
    limits: ClassVar[tuple[tuple[float, float], ...]] = (ANY_SIZE, LOG_SCALES)

    @classmethod
    def spread_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the scale of all targets together; of equal ones, their size or 1."""
        size = float(np.abs(y).max(initial=0.0)) or 1.0
        if y.min(initial=np.inf) >= y.max(initial=-np.inf):
            return size
        return max(cls._scale_of(y, weight), float(np.spacing(size)))

    @classmethod
    def _scale_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the scale of largest likelihood, or something near to it."""
        return math.sqrt(weighted_mean(np.square(y - weighted_mean(y, weight)), weight))

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return raw scores of the median or mean, and of the scale."""
        loc = weighted_quantile(y, weight, 0.5) if self.has_median else weighted_mean(y, weight)
        relative = max(self._scale_of(y, weight) / self.spread, math.exp(LOG_SCALES[0]))
        return [loc / self.spread, min(math.log(relative), LOG_SCALES[1])]

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        loc, log_scale, *_ = self.limited(raw_score)
        return self.spread * loc, self.spread * np.exp(log_scale)


class Normal(LocationScale):
    """The normal distribution."""

    name = "normal"

    @row_formula
    def derivatives(y, z, spread, first, second):
        scale = exp(within(z[1], LOG_SCALES))
        r = residual_of((y / spread - z[0]) / scale)
        first[0] = -r / scale
        second[0] = 1.0 / (scale * scale)
        first[1] = 1.0 - r * r
        second[1] = 2.0

    @row_formula
    def row_value(y, z, spread):
        log_scale = within(z[1], LOG_SCALES)
        r = (y / spread - z[0]) * exp(-log_scale)
        return 0.5 * r * r + log_scale + log(spread) + HALF_LOG_2_PI

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``scale (r (2 Phi(r) - 1) + 2 phi(r) - 1 / sqrt(pi))``."""
        loc, scale = parameters
        r = (y - loc) / scale
        density = np.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
        return scale * (r * erf(r / math.sqrt(2.0)) + 2.0 * density - 1.0 / math.sqrt(math.pi))


_normal_derivatives, _normal_value = Normal.derivatives, Normal.row_value


class Lognormal(LocationScale):
    """The normal distribution of logarithms; `loc` and `scale` are the logarithm's."""

    name = "lognormal"
    targets = POSITIVE

    @classmethod
    def spread_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the standard deviation of the logarithms; of equal targets 1."""
        logarithms = np.log(y)
        is_constant = logarithms.min(initial=np.inf) >= logarithms.max(initial=-np.inf)
        return 1.0 if is_constant else super().spread_of(logarithms, weight)

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return raw scores of the logarithms."""
        return super().guess(np.log(y), weight)

    @row_formula
    def derivatives(y, z, spread, first, second):
        _normal_derivatives(log(y), z, spread, first, second)

    @row_formula
    def row_value(y, z, spread):
        logarithm = log(y)
        return _normal_value(logarithm, z, spread) + logarithm

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return ``e^(loc + scale^2 / 2)``."""
        loc, scale = parameters
        return np.exp(np.minimum(loc + 0.5 * scale * scale, 700.0))

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``y (2 F(y) - 1) - m (2 Phi(r - scale) - 1)``; m: mean."""
        loc, scale = parameters
        r = (np.log(np.maximum(y, 5e-324)) - loc) / scale  # 0 if there are more zeros
        near = self.mean(parameters) * (2.0 * ndtr(r - scale) - 1.0)
        return y * (2.0 * ndtr(r) - 1.0) - near

    def half_distance(self, parameters: Parameters) -> Any:
        """Return ``m (2 Phi(scale / sqrt 2) - 1)``; m: mean."""
        return self.mean(parameters) * erf(0.5 * parameters[1])

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``y (2 F(y) - 1) - 2 m (Phi(r - scale) - Phi(-scale / sqrt 2))``; m: mean.

        Of wide distributions it is a tiny part of both distances.
        """
        loc, scale = parameters
        r = (np.log(y) - loc) / scale
        others = ndtr(r - scale) - ndtr(-scale / math.sqrt(2.0))
        return y * (2.0 * ndtr(r) - 1.0) - 2.0 * self.mean(parameters) * others


class Laplace(LocationScale):
    """The Laplace distribution: errors count by their absolute values."""

    name = "laplace"
    has_median = True
    guess_is_best = True

    @classmethod
    def _scale_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean distance from the median."""
        return weighted_mean(np.abs(y - weighted_quantile(y, weight, 0.5)), weight)

    @row_formula
    def derivatives(y, z, spread, first, second):
        scale = exp(within(z[1], LOG_SCALES))
        r = residual_of((y / spread - z[0]) / scale)
        sign = (1.0 if r > 0.0 else 0.0) - (1.0 if r < 0.0 else 0.0)
        first[0] = -sign / scale
        second[0] = 1.0 / (scale * scale)
        first[1] = 1.0 - abs(r)
        second[1] = 1.0

    @row_formula
    def row_value(y, z, spread):
        log_scale = within(z[1], LOG_SCALES)
        return abs(y / spread - z[0]) * exp(-log_scale) + log_scale + log(spread) + _LOG_2

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``scale (abs(r) + e^-abs(r) - 3 / 4)``."""
        loc, scale = parameters
        r = np.abs(y - loc) / scale
        return scale * (r + np.exp(-r) - 0.75)


_HALF_LOG_PI = 0.5 * math.log(math.pi)
# Below, there is hardly a mean; beyond, the normal distribution.
_LOG_DFS = (math.log(1.1), math.log(1000.0))
_QUARTILE_OF_NORMAL = 0.6744897501960817


class StudentT(LocationScale):
    """Student's t distribution, whose tails are heavier the fewer degrees of freedom.

    Scale and degrees of freedom are not orthogonal: a sample of heavy tails could have a larger
    scale as well. So each has its efficient gradient, what is left of it after its regression on
    the other's, and the information that is left: together these are the natural gradient.
    """

    name = "student_t"
    has_median = True
    parameter_names = ("df", "loc", "scale")
    output_names = ("loc", "log scale", "log df")
    limits = (ANY_SIZE, LOG_SCALES, _LOG_DFS)

    @classmethod
    def _scale_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the scale by the quartiles, which outliers do not move."""
        low, high = (weighted_quantile(y, weight, alpha) for alpha in (0.25, 0.75))
        scale = (high - low) / (2.0 * _QUARTILE_OF_NORMAL)
        return scale if scale > 0.0 else super()._scale_of(y, weight)

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return raw scores of the median and the quartiles, with 5 degrees of freedom."""
        return [*super().guess(y, weight), math.log(5.0)]

    @row_formula
    def derivatives(y, z, spread, first, second):
        scale = exp(within(z[1], LOG_SCALES))
        df = exp(within(z[2], _LOG_DFS))
        r = (y / spread - z[0]) / scale
        pull = (df + 1.0) / (df + r * r)
        first[0] = -pull * r / scale
        second[0] = (df + 1.0) / ((df + 3.0) * scale * scale)
        of_scale = 1.0 - pull * r * r
        between = digamma(0.5 * df) - digamma(0.5 * df + 0.5)
        of_df = 0.5 * df * (between + log_of_one_plus(r * r / df)) + 0.5 * of_scale
        both = (df + 1.0) * (df + 3.0)
        scale_information = 2.0 * df / (df + 3.0)
        # a parameter that cannot move is known
        are_free = is_between(z[1], LOG_SCALES) and is_between(z[2], _LOG_DFS)
        mixed = -2.0 * df / both if are_free else 0.0
        curve = 0.25 * (trigamma(0.5 * df) - trigamma(0.5 * df + 0.5))
        df_information = df * df * (curve - (df + 5.0) / (2.0 * df * both))
        first[1] = of_scale - mixed / df_information * of_df
        second[1] = scale_information - mixed * mixed / df_information
        first[2] = of_df - mixed / scale_information * of_scale
        second[2] = df_information - mixed * mixed / scale_information

    @row_formula
    def row_value(y, z, spread):
        log_scale = within(z[1], LOG_SCALES)
        log_df = within(z[2], _LOG_DFS)
        df = exp(log_df)
        r = (y / spread - z[0]) * exp(-log_scale)
        # log gamma(x) = log gamma(x + 1) - log x, for x = df / 2, which may be less than 1
        constant = log_of_factorial(0.5 * df) - log(0.5 * df) - log_of_factorial(0.5 * df - 0.5)
        tail = 0.5 * (df + 1.0) * log_of_one_plus(r * r / df)
        return tail + constant + 0.5 * log_df + _HALF_LOG_PI + log_scale + log(spread)

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        df = np.exp(np.clip(raw_score[2], *_LOG_DFS))
        return df, *super().parameters_of(raw_score)

    def mean(self, parameters: Parameters) -> np.ndarray:
        return parameters[1]

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return Jordan, Krueger & Lerch's closed form, with the beta function B.

        ``scale (r (2 F(r) - 1) + 2 f(r) (n + r^2) / (n - 1)
        - 2 sqrt(n) / (n - 1) B(1/2, n - 1/2) / B(1/2, n/2)^2)``.
        """
        df, loc, scale = parameters
        r = (y - loc) / scale
        log_beta = betaln(0.5, 0.5 * df)
        density = np.exp(-0.5 * (df + 1.0) * np.log1p(r * r / df) - log_beta) / np.sqrt(df)
        spread = 2.0 * np.sqrt(df) * np.exp(betaln(0.5, df - 0.5) - 2.0 * log_beta)
        near = 2.0 * density * (df + r * r)
        return scale * (r * (2.0 * stdtr(df, r) - 1.0) + (near - spread) / (df - 1.0))
