"""Squared error, ``(y - p)^2 / 2``: gradient ``p - y``, hessian 1, raw score = prediction."""

import numpy as np

from sklboost.compiling import kernel
from sklboost.losses.base import SQUARED_ERROR, weighted_mean
from sklboost.parallel import share


@kernel
def squared_error_gradients(team, y, raw_score, gradient, hessian):
    """Fill ``p - y`` and 1 for this member's share of the rows."""
    # slices, so that the compiler sees that no index is negative and makes vectors of the loop
    start, stop = share(team, len(y))
    y, raw_score = y[start:stop], raw_score[start:stop]
    gradient, hessian = gradient[start:stop], hessian[start:stop]
    for row in range(len(y)):
        gradient[row] = raw_score[row] - y[row]
        hessian[row] = 1.0


class SquaredError:
    """Half the squared error. The best constant is the mean; the best leaf, a mean of residuals."""

    code = SQUARED_ERROR
    n_outputs = 1

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the mean of y."""
        return np.array([weighted_mean(y, weight)])

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the prediction itself: the link is the identity."""
        return np.array([prediction])

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean of ``(y - p)^2 / 2``."""
        return weighted_mean((y - raw_score[0]) ** 2 / 2.0, weight)
