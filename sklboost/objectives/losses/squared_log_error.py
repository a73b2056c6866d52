"""Squared log error, ``(log(1 + p) - log(1 + y))^2 / 2``: what counts is by which factor one errs.

In ``z = log(1 + p)`` it is the squared error of ``log(1 + y)``: gradient ``z - log(1 + y)``,
hessian 1, best constant the mean. XGBoost has the prediction itself for its raw score, in which the
loss is not convex, so that it has to put a number in the place of negative second derivatives.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import log_of_one_plus
from sklboost.objectives.domains import check_base_score, check_within
from sklboost.objectives.loss import by_rows
from sklboost.objectives.losses.rows import RowLoss
from sklboost.objectives.losses.squared_error import known_means

_LARGEST = 700.0  # of raw scores: beyond, e^z leaves the range of numbers


class SquaredLogError(RowLoss):
    """Half the squared error of logarithms; targets and predictions are above -1."""

    name = "reg:squaredlogerror"
    link = "other"

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Give ``z - log(1 + y)`` and 1."""
        return z - log_of_one_plus(y), 1.0

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Give ``(z - log(1 + y))^2 / 2``."""
        return 0.5 * (z - log_of_one_plus(y)) ** 2

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the means of ``log(1 + y)``."""
        return known_means(np.log1p(y), weight)

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give ``log(1 + p)``."""
        check_base_score(prediction, self.name, -1.0)
        return np.full(self.n_outputs, np.log1p(prediction))

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Give ``e^z - 1``, shape (n_samples,) or (n_samples, n_outputs)."""
        return by_rows(np.expm1(np.minimum(raw_score, _LARGEST)))

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target that is not above -1."""
        check_within(y, name, self.name, -1.0, excluded=True)
