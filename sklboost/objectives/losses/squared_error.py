"""Squared error, ``(y - p)^2 / 2``: gradient ``p - y``, hessian 1, raw score = prediction."""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.objectives.loss import weighted_mean
from sklboost.objectives.losses.rows import RowLoss


class SquaredError(RowLoss):
    """Half the squared error. The best constant is the mean; the best leaf, a mean of residuals."""

    name = "reg:squarederror"

    @staticmethod
    @inlined
    def derivatives(y, p, parameter):
        """Give ``p - y`` and 1."""
        return p - y, 1.0

    @staticmethod
    @inlined
    def row_value(y, p, parameter):
        """Give ``(y - p)^2 / 2``."""
        return 0.5 * (y - p) ** 2

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the means of the targets."""
        return known_means(y, weight)


def known_means(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Give the mean of the known values of each target, shape (n_targets,)."""
    means = []
    for target in np.atleast_2d(y):
        is_known = ~np.isnan(target)
        own = (target, weight)
        if not is_known.all():
            own = (target[is_known], weight[is_known] if len(weight) else weight)
        means.append(weighted_mean(*own))
    return np.array(means)
