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
end. The weight of iteratively reweighted least squares, ``g / r``, is the other extreme: the
parabola with this curvature lies above the loss everywhere, since the weight falls with ``abs(r)``,
so steps are safe, but short. Twice as far as to its minimum a parabola is as high as at the start;
so up to that step the loss does not grow. The hessian here is the second derivative, but at least a
quarter of the weight. Steps then are 4 times those of the weight at most, and with a learning rate
up to 1/2 on the safe side. Sources: Huber (1964), "Robust estimation of a location parameter";
Holland & Welsch (1977), "Robust regression using iteratively reweighted least-squares"; Huber &
Ronchetti (2009), "Robust statistics", section 7.8 (why the parabola is above).
"""

import math

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp_of_negative, log_of_one_plus
from sklboost.objectives.loss import RowLoss
from sklboost.objectives.start_values import find_constants, mean_over_targets, weighted_quantile

# Beyond, log(cosh(r)) is a straight line, and cosh(r) would overflow.
_FAR = 600.0
# Below it tanh(r) / r is its series: r^4 is less than rounding there, and nothing is divided by 0
_SMALL = 1e-4
# Of the weight, which the hessian is at least.
_SHARE = 0.25


class _RobustLoss(RowLoss):
    """What these losses share: hessians that are no less than a share of the weight ``g / r``."""

    hessian_is_bound = True

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the constants at which the mean gradients are 0, found from the medians."""
        targets = np.atleast_2d(y)
        medians = np.array([weighted_quantile(target, weight, 0.5) for target in targets])
        return find_constants(self, targets, weight, medians)

    def unit(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean hessian at the best constant: tiny, if residuals are large there.

        The loss depends on differences only, so what scores explain of the targets is taken off.
        """
        targets = np.atleast_2d(y)
        if raw_score.size > 0:
            targets = targets - raw_score
        start = self.start(targets, weight)[:, np.newaxis]
        _, hessian = self.gradients(targets, np.repeat(start, targets.shape[1], axis=1))
        return mean_over_targets(hessian, targets, weight)


class Huber(_RobustLoss):
    """Huber's loss: squared error up to a residual of `huber_slope`, absolute error beyond."""

    name = "reg:huber"
    parameter = "huber_slope"

    @staticmethod
    @inlined
    def derivatives(y, p, slope):
        """Return the residual within ``+-slope``; 1 up to there, then a share of the weight."""
        size = abs(p - y)
        weight = slope / max(size, slope)
        return weight * (p - y), max(1.0 if size <= slope else 0.0, _SHARE * weight)

    @staticmethod
    @inlined
    def row_value(y, p, slope):
        """Return ``r^2 / 2``, and beyond the slope the straight line that continues it."""
        size = abs(p - y)
        within = min(size, slope)
        return within * (size - 0.5 * within)


class PseudoHuber(_RobustLoss):
    """A smooth Huber loss, XGBoost's."""

    name = "reg:pseudohubererror"
    parameter = "huber_slope"

    @staticmethod
    @inlined
    def derivatives(y, p, slope):
        """Return ``r w`` and ``w^3`` with ``w = 1 / sqrt(1 + (r/d)^2)``."""
        share = (p - y) / slope
        weight = 1.0 / math.sqrt(1.0 + share * share)
        return weight * (p - y), weight * max(weight * weight, _SHARE)

    @staticmethod
    @inlined
    def row_value(y, p, slope):
        """Return ``d^2 (sqrt(1 + (r/d)^2) - 1)``, written so that nothing cancels."""
        share = (y - p) / slope
        square = share * share
        return slope * slope * square / (math.sqrt(1.0 + square) + 1.0)


class LogCosh(_RobustLoss):
    """The logarithm of the hyperbolic cosine of the residual."""

    name = "reg:logcosh"

    @staticmethod
    @inlined
    def derivatives(y, p, parameter):
        """Return ``tanh(r)`` and ``1 - tanh(r)^2``."""
        size = abs(p - y)
        decay = exp_of_negative(-2.0 * size)
        large = (1.0 - decay) / ((1.0 + decay) * max(size, _SMALL))
        weight = large if size > _SMALL else 1.0 - size * size / 3.0
        bend = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))
        return weight * (p - y), max(bend, _SHARE * weight)

    @staticmethod
    @inlined
    def row_value(y, p, parameter):
        """Return ``log(cosh(r))``, of ``cosh(r) - 1`` so that no digit of a small r is lost."""
        size = abs(y - p)
        near = min(_FAR, size)
        decay = exp_of_negative(-near)
        excess = (1.0 - decay) * (1.0 - decay) / (2.0 * decay)
        return log_of_one_plus(excess) + (size - near)


class Fair(_RobustLoss):
    """Fair's loss, LightGBM's: its gradient goes to its limit more slowly than the others'."""

    name = "reg:fair"
    parameter = "fair_c"

    @staticmethod
    @inlined
    def derivatives(y, p, scale):
        """Return ``r w`` and ``w^2`` with ``w = 1 / (1 + |r|/c)``."""
        weight = scale / (scale + abs(p - y))
        return weight * (p - y), weight * max(weight, _SHARE)

    @staticmethod
    @inlined
    def row_value(y, p, scale):
        """Return ``c^2 (|r|/c - log(1 + |r|/c))``."""
        share = abs(y - p) / scale
        return scale * scale * (share - log_of_one_plus(share))
