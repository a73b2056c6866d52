"""Losses of quantiles, the absolute error among them, and of expectiles.

Quantile of alpha a: ``a (y - p)`` where y > p, else ``(1 - a) (p - y)``; its best constant is the
quantile. The hessian says nothing (it is 0 but for a kink), so 1 stands for it while a tree is
grown, and leaf values are renewed: in each leaf the quantile of the residuals is the least loss
exactly. Source: Koenker & Bassett (1978), "Regression quantiles".

Expectile of alpha a: the same with squares, ``a (y - p)^2`` or ``(1 - a) (y - p)^2``; for 1/2 half
the squared error. An expectile is to the mean what a quantile is to the median: its expected excess
and expected shortfall are as ``1 - a`` to a. Source: Newey & Powell (1987), "Asymmetric least
squares estimation and testing".

Several alphas in one model have an output each; a row's predictions are put in order, so that they
never cross, which can only make them better (Chernozhukov, Fernandez-Val & Galichon 2010, "Quantile
and probability curves without crossing").
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.objectives.loss import RowLoss, by_rows
from sklboost.objectives.start_values import weighted_quantile


class OrderedAlphas(RowLoss):
    """A loss of one alpha or several: an output for each, predictions from lowest to highest."""

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.5,)):
        super().__init__(n_targets, tuple(sorted(parameters)))
        self._n_alphas = len(parameters)
        if self._n_alphas > 1:
            self.link = "other"  # they are put in order

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Return them in order, shape (n_samples,) or (n_samples, n_alphas * n_targets)."""
        alphas = raw_score.reshape(self._n_alphas, -1, raw_score.shape[1])
        return by_rows(np.sort(alphas, axis=0).reshape(raw_score.shape))


class QuantileError(OrderedAlphas):
    """The loss of quantiles; one output for each alpha, from the lowest to the highest."""

    name = "reg:quantileerror"
    parameter = "quantile_alpha"
    hessian_is_bound = True
    hessian_is_one = True

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.5,)):
        super().__init__(n_targets, parameters)
        self.renewal = self.parameters

    @staticmethod
    @inlined
    def derivatives(y, p, alpha):
        """Return ``1 - a`` above the target and ``-a`` below; 1 for the hessian."""
        gradient = (1.0 if p > y else 0.0) - alpha
        return 0.0 if p == y else gradient, 1.0

    @staticmethod
    @inlined
    def row_value(y, p, alpha):
        """Return the distance times a below the target, ``1 - a`` above."""
        difference = y - p
        return max(alpha * difference, (alpha - 1.0) * difference)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the quantiles of the targets."""
        targets = np.atleast_2d(y)
        return np.array(
            [
                weighted_quantile(targets[output % len(targets)], weight, alpha)
                for output, alpha in enumerate(self.parameters)
            ]
        )


class AbsoluteError(QuantileError):
    """The absolute error, whose best constant is the median."""

    name = "reg:absoluteerror"
    parameter = ""

    @staticmethod
    @inlined
    def derivatives(y, p, alpha):
        """Return the sign of ``p - y``; 1 for the hessian."""
        return (1.0 if p > y else 0.0) - (1.0 if p < y else 0.0), 1.0

    @staticmethod
    @inlined
    def row_value(y, p, alpha):
        """Return ``|y - p|``."""
        return abs(y - p)


class ExpectileError(OrderedAlphas):
    """The loss of expectiles; one output for each alpha, from the lowest to the highest."""

    name = "reg:expectileerror"
    parameter = "expectile_alpha"

    @staticmethod
    @inlined
    def derivatives(y, p, alpha):
        """Return the residual times 2 a below the target, ``2 (1 - a)`` above; this factor."""
        hessian = 2.0 * (alpha if y > p else 1.0 - alpha)
        return hessian * (p - y), hessian

    @staticmethod
    @inlined
    def row_value(y, p, alpha):
        """Return the squared distance times a below the target, ``1 - a`` above."""
        difference = y - p
        return (alpha if difference > 0.0 else 1.0 - alpha) * difference * difference
