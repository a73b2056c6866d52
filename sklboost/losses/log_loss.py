"""Log loss of two classes, in log-odds z: ``-y z + log(1 + e^z)``, with p = 1 / (1 + e^-z).

Gradient ``p - y``, hessian ``p (1 - p)``.
"""

import math

import numpy as np

from sklboost.compiling import kernel
from sklboost.elementary import exp_of_negative
from sklboost.losses.base import LOG_LOSS, weighted_mean
from sklboost.parallel import share

# As in XGBoost: keeps the cover of a saturated row positive.
_MIN_HESSIAN = 1e-16


@kernel
def log_loss_gradients(team, y, raw_score, gradient, hessian):
    """Fill ``p - y`` and ``p (1 - p)`` for this member's share of the rows."""
    # slices, so that the compiler sees that no index is negative and makes vectors of the loop
    start, stop = share(team, len(y))
    y, raw_score = y[start:stop], raw_score[start:stop]
    gradient, hessian = gradient[start:stop], hessian[start:stop]
    for row in range(len(y)):
        # e^-|z| cannot overflow; p and 1 - p both come out to full precision
        decay = exp_of_negative(-abs(raw_score[row]))
        larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
        is_positive = raw_score[row] >= 0.0
        probability = larger if is_positive else smaller
        complement = smaller if is_positive else larger
        # y is 0 or 1; written so, a saturated row's gradient is a tiny number and not 0
        gradient[row] = probability * (1.0 - y[row]) - complement * y[row]
        hessian[row] = max(larger * smaller, _MIN_HESSIAN)


class LogLoss:
    """Log loss of two classes; y is 0 or 1."""

    code = LOG_LOSS
    n_outputs = 1

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the log-odds of the share of ones."""
        # from both shares: a share close to 1 would round to 1
        odds = weighted_mean(y, weight) / weighted_mean(1.0 - y, weight)
        return np.array([math.log(odds)])

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the log-odds of a probability."""
        return np.array([math.log(prediction) - math.log1p(-prediction)])

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the probabilities of both classes, shape (n_samples, 2)."""
        decay = np.exp(-np.abs(raw_score[0]))
        larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
        is_positive = raw_score[0] >= 0.0
        return np.column_stack(
            [np.where(is_positive, smaller, larger), np.where(is_positive, larger, smaller)]
        )

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean of ``-log`` of the probability of what happened."""
        return weighted_mean(np.logaddexp(0.0, raw_score[0]) - y * raw_score[0], weight)
