"""Mean absolute percentage error, ``|y - p| / |y|``: the absolute error in parts of the target.

It is the absolute error of rows that weigh ``u = 1 / |y|``, so the best constant and the best leaf
are weighted medians: gradient ``u sign(p - y)``; u stands for the hessian while a tree is grown,
and leaves are renewed. Small targets weigh most. LightGBM has ``1 / max(1, |y|)``, which is another
loss for targets below 1, without a word; here a target of 0, for which there is no percentage, is
an error.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.objectives.domains import refuse_first
from sklboost.objectives.loss import weighted_mean
from sklboost.objectives.losses.quantiles import weighted_quantile
from sklboost.objectives.losses.rows import RowLoss


class AbsolutePercentageError(RowLoss):
    """The absolute error over the size of the target, which must not be 0."""

    name = "reg:mape"
    hessian_is_bound = True

    def __init__(self, n_targets: int = 1):
        super().__init__(n_targets)
        self.renewal = np.full(self.n_outputs, 0.5)

    @staticmethod
    @inlined
    def derivatives(y, p, parameter):
        """Give the sign of ``p - y`` over ``|y|``; ``1 / |y|`` for the hessian."""
        share = 1.0 / abs(y)
        return share * ((1.0 if p > y else 0.0) - (1.0 if p < y else 0.0)), share

    @staticmethod
    @inlined
    def row_value(y, p, parameter):
        """Give ``|y - p| / |y|``."""
        return abs(y - p) / abs(y)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the medians of the targets, weighted with ``1 / |y|``."""
        targets = np.atleast_2d(y)
        shares = (weight if len(weight) else 1.0) / np.abs(targets)
        return np.array(
            [weighted_quantile(own, share, 0.5) for own, share in zip(targets, shares, strict=True)]
        )

    def unit(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean of ``1 / |y|``."""
        targets = np.atleast_2d(y)
        is_known = ~np.isnan(targets)
        weights = np.broadcast_to(weight if len(weight) else 1.0, targets.shape)
        return weighted_mean(1.0 / np.abs(targets[is_known]), weights[is_known])

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target of 0."""
        why = (
            f"objective={self.name!r} divides by the targets; leave such rows out, or choose "
            "'reg:absoluteerror' with a sample_weight of 1 / |y|, bounded"
        )
        refuse_first(y == 0.0, y, name, why)
