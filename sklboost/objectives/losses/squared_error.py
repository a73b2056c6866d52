"""Squared error, ``(y - p)^2 / 2``: gradient ``p - y``, hessian 1, raw score = prediction."""

import numpy as np

from sklboost.objectives.loss import RowLoss, row_formula
from sklboost.objectives.start_values import known_means


class SquaredError(RowLoss):
    """Half the squared error. The best constant is the mean; the best leaf, a mean of residuals."""

    name = "reg:squarederror"
    hessian_is_one = True

    @row_formula
    def derivatives(y, p, parameter):
        """Return ``p - y`` and 1."""
        return p - y, 1.0

    @row_formula
    def row_value(y, p, parameter):
        """Return ``(y - p)^2 / 2``."""
        return 0.5 * (y - p) ** 2

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the means of the targets."""
        return known_means(y, weight)
