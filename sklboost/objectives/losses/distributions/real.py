"""Distributions of all real numbers, and the lognormal: a location and a scale.

With the residual ``r = (y - loc) / scale``, and the logarithm of the scale as parameter:

========= ============================= ========================= ======================
of        negative log-likelihood       gradients                 information
========= ============================= ========================= ======================
normal    r^2 / 2 + log scale           -r / scale, 1 - r^2       1 / scale^2, 2
Laplace   abs(r) + log scale            -sign r / scale, 1-abs(r) 1 / scale^2, 1
========= ============================= ========================= ======================

Continuous ranked probability scores: Jordan, Krueger & Lerch (2019), "Evaluating Probabilistic
Forecasts with scoringRules", appendix A.
"""

import math
from typing import Any, ClassVar

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp, log
from sklboost.objectives.domains import POSITIVE
from sklboost.objectives.losses.distributions.base import (
    ANY_SIZE,
    LOG_SCALES,
    DistributionLoss,
    Parameters,
    residual_of,
    within,
)
from sklboost.objectives.start_values import weighted_mean, weighted_quantile

_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)
_LOG_2 = math.log(2.0)


class LocationScale(DistributionLoss):
    """What these share: raw scores ``loc / spread`` and ``log(scale / spread)``."""

    has_own_unit = True
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
        return math.sqrt(weighted_mean((y - weighted_mean(y, weight)) ** 2, weight))

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return those of the mean and the standard deviation."""
        return self._raw(weighted_mean(y, weight), self._scale_of(y, weight))

    def _raw(self, loc: float, scale: float) -> list[float]:
        relative = max(scale / self.spread, math.exp(LOG_SCALES[0]))
        return [loc / self.spread, min(math.log(relative), LOG_SCALES[1])]

    def parameters_of(self, raw_score: np.ndarray) -> Parameters:
        """Return locations and scales."""
        loc, log_scale, *_ = self.limited(raw_score)
        return self.spread * loc, self.spread * np.exp(log_scale)


class Normal(LocationScale):
    """The normal distribution."""

    name = "normal"

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradients and the information of a row."""
        scale = exp(within(z[1], LOG_SCALES))
        r = residual_of((y / spread - z[0]) / scale)
        first[0] = -r / scale
        second[0] = 1.0 / (scale * scale)
        first[1] = 1.0 - r * r
        second[1] = 2.0

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        log_scale = within(z[1], LOG_SCALES)
        r = (y / spread - z[0]) * exp(-log_scale)
        return 0.5 * r * r + log_scale + log(spread) + _HALF_LOG_2_PI

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the locations."""
        return parameters[0]

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``scale (r (2 Phi(r) - 1) + 2 phi(r) - 1 / sqrt(pi))``."""
        loc, scale = parameters
        from scipy.special import erf

        r = (y - loc) / scale
        density = np.exp(-0.5 * r * r) / math.sqrt(2.0 * math.pi)
        return scale * (r * erf(r / math.sqrt(2.0)) + 2.0 * density - 1.0 / math.sqrt(math.pi))

    def frozen(self, parameters: Parameters) -> Any:
        """Return ``scipy.stats.norm``."""
        loc, scale = parameters
        from scipy import stats

        return stats.norm(loc, scale)


_normal_derivatives, _normal_value = Normal.derivatives, Normal.row_value


class Lognormal(LocationScale):
    """The normal distribution of logarithms; `loc` and `scale` are those of the logarithm."""

    name = "lognormal"
    targets = POSITIVE

    @classmethod
    def spread_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the standard deviation of the logarithms; of equal targets 1."""
        logarithms = np.log(y)
        is_constant = logarithms.min(initial=np.inf) >= logarithms.max(initial=-np.inf)
        return 1.0 if is_constant else super().spread_of(logarithms, weight)

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return those of the logarithms."""
        return super().guess(np.log(y), weight)

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradients and the information of a row."""
        _normal_derivatives(log(y), z, spread, first, second)

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        logarithm = log(y)
        return _normal_value(logarithm, z, spread) + logarithm

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return ``e^(loc + scale^2 / 2)``."""
        loc, scale = parameters
        return np.exp(np.minimum(loc + 0.5 * scale * scale, 700.0))

    def mean_distance(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``y (2 F(y) - 1) - m (2 Phi(r - scale) - 1)``; m: mean."""
        loc, scale = parameters
        from scipy.special import ndtr

        r = (np.log(np.maximum(y, 5e-324)) - loc) / scale  # 0 if there are more zeros
        near = self.mean(parameters) * (2.0 * ndtr(r - scale) - 1.0)
        return y * (2.0 * ndtr(r) - 1.0) - near

    def half_distance(self, parameters: Parameters) -> Any:
        """Return ``m (2 Phi(scale / sqrt 2) - 1)``; m: mean."""
        from scipy.special import erf

        return self.mean(parameters) * erf(0.5 * parameters[1])

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``y (2 F(y) - 1) - 2 m (Phi(r - scale) - Phi(-scale / sqrt 2))``; m: mean.

        Of wide distributions it is a tiny part of both distances.
        """
        loc, scale = parameters
        from scipy.special import ndtr

        r = (np.log(y) - loc) / scale
        others = ndtr(r - scale) - ndtr(-scale / math.sqrt(2.0))
        return y * (2.0 * ndtr(r) - 1.0) - 2.0 * self.mean(parameters) * others

    def frozen(self, parameters: Parameters) -> Any:
        """Return that of amounts, by the logarithm's scale and the median."""
        loc, scale = parameters
        from sklboost.objectives.losses.distributions.frozen import lognormal

        return lognormal(s=scale, scale=np.exp(loc))


class Laplace(LocationScale):
    """The Laplace distribution: errors count by their absolute values."""

    name = "laplace"

    @classmethod
    def _scale_of(cls, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean distance from the median."""
        return weighted_mean(np.abs(y - weighted_quantile(y, weight, 0.5)), weight)

    def guess(self, y: np.ndarray, weight: np.ndarray) -> list[float]:
        """Return those of the median and the mean distance from it."""
        return self._raw(weighted_quantile(y, weight, 0.5), self._scale_of(y, weight))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return those of the median and the mean distance from it, the best constants."""
        return np.array(self.guess(np.atleast_2d(y)[0], weight))

    @staticmethod
    @inlined
    def derivatives(y, z, spread, first, second):
        """Fill the gradients and the information of a row."""
        scale = exp(within(z[1], LOG_SCALES))
        r = residual_of((y / spread - z[0]) / scale)
        sign = (1.0 if r > 0.0 else 0.0) - (1.0 if r < 0.0 else 0.0)
        first[0] = -sign / scale
        second[0] = 1.0 / (scale * scale)
        first[1] = 1.0 - abs(r)
        second[1] = 1.0

    @staticmethod
    @inlined
    def row_value(y, z, spread):
        """Return the negative log-likelihood of a row."""
        log_scale = within(z[1], LOG_SCALES)
        return abs(y / spread - z[0]) * exp(-log_scale) + log_scale + log(spread) + _LOG_2

    def mean(self, parameters: Parameters) -> np.ndarray:
        """Return the locations."""
        return parameters[0]

    def crps(self, y: np.ndarray, parameters: Parameters) -> Any:
        """Return ``scale (abs(r) + e^-abs(r) - 3 / 4)``."""
        loc, scale = parameters
        r = np.abs(y - loc) / scale
        return scale * (r + np.exp(-r) - 0.75)

    def frozen(self, parameters: Parameters) -> Any:
        """Return ``scipy.stats.laplace``."""
        loc, scale = parameters
        from scipy import stats

        return stats.laplace(loc, scale)
