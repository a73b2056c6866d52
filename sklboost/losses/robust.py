"""Losses for targets with outliers: squared error near 0, absolute error far from it.

In residuals ``r = p - y``, with d = ``huber_slope`` and c = ``fair_c``:

=========== ======================================= ==================
loss        value                                   weight g / r
=========== ======================================= ==================
Huber       r^2 / 2 up to d, then d (abs(r) - d/2)  min(1, d / abs(r))
pseudo-     d^2 (sqrt(1 + (r/d)^2) - 1)             1 / sqrt(1 + (r/d)^2)
log-cosh    log(cosh(r))                            tanh(r) / r
Fair        c^2 (abs(r)/c - log(1 + abs(r)/c))      1 / (1 + abs(r)/c)
=========== ======================================= ==================

The second derivative goes to 0 where the residual is large, so that Newton's steps would have no
end. In its place stands the weight of iteratively reweighted least squares, ``g / r``. The parabola
with this curvature lies above the loss everywhere, since the weight falls with ``abs(r)``: no step
to its minimum makes the loss larger. Sources: Huber (1964), "Robust estimation of a location
parameter"; Holland & Welsch (1977), "Robust regression using iteratively reweighted least-squares";
Huber & Ronchetti (2009), "Robust statistics", section 7.8 (why the parabola is above).
"""

import math

import numpy as np

from sklboost.compiling import kernel
from sklboost.elementary import exp_of_negative, log_of_one_plus
from sklboost.losses.base import weighted_mean
from sklboost.losses.minimum import find_constants
from sklboost.losses.quantiles import weighted_quantile
from sklboost.losses.rows import RowLoss

_LOG_2 = 0.6931471805599453
# tanh(r) / r is its series below: r^4 is less than rounding there, and nothing is divided by 0
_SMALL = 1e-4


class _RobustLoss(RowLoss):
    """What these losses share: gradients that stay small, and weights for hessians."""

    hessian_is_bound = True

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the constants at which the mean gradients are 0, found from the medians."""
        targets = np.atleast_2d(y)
        medians = np.array([weighted_quantile(target, weight, 0.5) for target in targets])
        return find_constants(self, targets, weight, medians)

    def unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean weight of the rows at the start: tiny, if their residuals are large."""
        targets = np.atleast_2d(y)
        start = self.start(y, weight)[:, np.newaxis]
        _, hessian = self.gradients(targets, np.repeat(start, targets.shape[1], axis=1))
        return float(np.mean([weighted_mean(own, weight) for own in hessian]))


class Huber(_RobustLoss):
    """Huber's loss: squared error up to a residual of `huber_slope`, absolute error beyond."""

    name = "reg:huber"
    parameter = "huber_slope"

    @staticmethod
    @kernel
    def derivatives(y, p, slope):
        """Give the residual within ``+-slope``, and ``slope / |r|``, at most 1."""
        size = max(abs(p - y), slope)
        weight = slope / size
        return weight * (p - y), weight

    @staticmethod
    @kernel
    def row_value(y, p, slope):
        """Give ``r^2 / 2``, and beyond the slope the straight line that continues it."""
        size = abs(p - y)
        within = min(size, slope)
        return within * (size - 0.5 * within)


class PseudoHuber(_RobustLoss):
    """A smooth Huber loss, XGBoost's."""

    name = "reg:pseudohubererror"
    parameter = "huber_slope"

    @staticmethod
    @kernel
    def derivatives(y, p, slope):
        """Give ``r / sqrt(1 + (r/d)^2)``, and the same over r."""
        share = (p - y) / slope
        weight = 1.0 / math.sqrt(1.0 + share * share)
        return weight * (p - y), weight

    @staticmethod
    @kernel
    def row_value(y, p, slope):
        """Give ``d^2 (sqrt(1 + (r/d)^2) - 1)``, written so that nothing cancels."""
        share = (p - y) / slope
        return (p - y) * ((p - y) / (1.0 + math.sqrt(1.0 + share * share)))


class LogCosh(_RobustLoss):
    """The logarithm of the hyperbolic cosine of the residual."""

    name = "reg:logcosh"

    @staticmethod
    @kernel
    def derivatives(y, p, parameter):
        """Give ``tanh(r)``, and the same over r."""
        size = abs(p - y)
        decay = exp_of_negative(-2.0 * size)
        large = (1.0 - decay) / ((1.0 + decay) * max(size, _SMALL))
        weight = large if size > _SMALL else 1.0 - size * size / 3.0
        return weight * (p - y), weight

    @staticmethod
    @kernel
    def row_value(y, p, parameter):
        """Give ``|r| + log(1 + e^-2|r|) - log(2)``: the cosine itself would overflow."""
        size = abs(p - y)
        return size + log_of_one_plus(exp_of_negative(-2.0 * size)) - _LOG_2


class Fair(_RobustLoss):
    """Fair's loss, LightGBM's: its gradient goes to its limit more slowly than the others'."""

    name = "reg:fair"
    parameter = "fair_c"

    @staticmethod
    @kernel
    def derivatives(y, p, scale):
        """Give ``r / (1 + |r|/c)``, and the same over r."""
        weight = scale / (scale + abs(p - y))
        return weight * (p - y), weight

    @staticmethod
    @kernel
    def row_value(y, p, scale):
        """Give ``c^2 (|r|/c - log(1 + |r|/c))``."""
        share = abs(p - y) / scale
        return scale * scale * (share - log_of_one_plus(share))
