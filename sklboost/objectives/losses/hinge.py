"""Hinge loss, ``max(0, 1 - s z)`` with s = 1 or -1 for the two classes: which class, and no more.

Gradient ``-s`` where s z < 1, else 0. The second derivative says nothing; 1 stands for it. A raw
score above 0 is class 1. There are no probabilities behind it: as in XGBoost, they are 0 and 1.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.objectives.domains import check_labels
from sklboost.objectives.loss import by_rows
from sklboost.objectives.losses.quantiles import weighted_quantile
from sklboost.objectives.losses.rows import RowLoss


class HingeLoss(RowLoss):
    """Hinge loss of two classes; y is 0 or 1."""

    name = "binary:hinge"
    link = "other"
    hessian_is_bound = True

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Give ``-s`` where the margin is below 1, and 1."""
        sign = 2.0 * y - 1.0
        return -sign * (1.0 if sign * z < 1.0 else 0.0), 1.0

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Give what the margin lacks of 1."""
        return max(1.0 - (2.0 * y - 1.0) * z, 0.0)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give 1 where class 1 has more than half of the weight, -1 for less, 0 for just half."""
        targets = np.atleast_2d(y)
        return np.array([2.0 * weighted_quantile(own, weight, 0.5) - 1.0 for own in targets])

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the point between -1 and 1 that the prediction is between 0 and 1."""
        return np.full(self.n_outputs, 2.0 * prediction - 1.0)

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Give 0 or 1, shape (n_samples,) or (n_samples, n_outputs)."""
        return by_rows((raw_score > 0.0).astype(np.float64))

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Give 0 and 1 for the two classes, shape (n_samples, 2)."""
        is_one = (raw_score[0] > 0.0).astype(np.float64)
        return np.column_stack([1.0 - is_one, is_one])

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target that is neither 0 nor 1."""
        check_labels(y, name, self.name)
