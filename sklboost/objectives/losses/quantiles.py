"""Losses whose best constant is a quantile: the absolute error, and that of any level.

Their hessian says nothing (it is 0 but for a kink), so 1 stands for it while a tree is grown, and
leaf values are renewed: in each leaf the quantile of the residuals is the least loss exactly.

Quantile of level a: ``a (y - p)`` where y > p, else ``(1 - a) (p - y)``. Source: Koenker & Bassett
(1978), "Regression quantiles". Several levels in one model have an output each; a row's predictions
are put in order, so that they never cross, which can only make them better (Chernozhukov,
Fernandez-Val & Galichon 2010, "Quantile and probability curves without crossing").
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.objectives.loss import by_rows
from sklboost.objectives.losses.rows import RowLoss


class OrderedAlphas(RowLoss):
    """A loss of one level or several: an output for each, predictions from lowest to highest."""

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.5,)):
        super().__init__(n_targets, tuple(sorted(parameters)))
        self._n_alphas = len(parameters)

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Give them in order, shape (n_samples,) or (n_samples, n_alphas * n_targets)."""
        alphas = raw_score.reshape(self._n_alphas, -1, raw_score.shape[1])
        return by_rows(np.sort(alphas, axis=0).reshape(raw_score.shape))


class QuantileError(OrderedAlphas):
    """The loss of quantiles; one output for each level, from the lowest to the highest."""

    name = "reg:quantileerror"
    parameter = "quantile_alpha"
    hessian_is_bound = True

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.5,)):
        super().__init__(n_targets, parameters)
        self.renewal = self.parameters
        if len(parameters) > 1:
            self.link = "other"  # they are put in order

    @staticmethod
    @inlined
    def derivatives(y, p, alpha):
        """Give ``1 - a`` above the target and ``-a`` below; 1 for the hessian."""
        gradient = (1.0 if p > y else 0.0) - alpha
        return 0.0 if p == y else gradient, 1.0

    @staticmethod
    @inlined
    def row_value(y, p, alpha):
        """Give the weighted distance."""
        return max(alpha * (y - p), (alpha - 1.0) * (y - p))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the quantiles of the targets."""
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
        """Give the sign of ``p - y``; 1 for the hessian."""
        return (1.0 if p > y else 0.0) - (1.0 if p < y else 0.0), 1.0

    @staticmethod
    @inlined
    def row_value(y, p, alpha):
        """Give ``|y - p|``."""
        return abs(y - p)


def weighted_quantile(values: np.ndarray, weight: np.ndarray, alpha: float) -> float:
    """Give the smallest value up to which the weights come to more than their share `level`.

    Where they come to exactly that, the mean of this value and the next; as leaves are renewed.
    Values that are NaN are left out; weights of shape (0,) are all 1.
    """
    is_known = ~np.isnan(values)
    order = np.argsort(values[is_known], kind="stable")
    ordered = values[is_known][order]
    weights = weight[is_known][order] if len(weight) else np.ones(len(ordered))
    so_far = np.cumsum(weights)
    wanted = alpha * so_far[-1]
    first = min(int(np.searchsorted(so_far, wanted, side="left")), len(ordered) - 1)
    last = min(int(np.searchsorted(so_far, wanted, side="right")), len(ordered) - 1)
    return float(0.5 * ordered[first] + 0.5 * ordered[last])
