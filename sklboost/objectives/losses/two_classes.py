"""Log loss of two classes, in log-odds z: ``-y z + log(1 + e^z)``, with p = 1 / (1 + e^-z).

Gradient ``p - y``, hessian ``p (1 - p)``. A target may be a probability, too. With several targets,
each is a label that a row has or has not.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp_of_negative, log_of_one_plus
from sklboost.objectives.domains import check_within
from sklboost.objectives.losses.rows import RowLoss
from sklboost.objectives.losses.squared_error import known_means

# Of start values in log-odds: where all targets are 0, or 1, the best constant is infinite.
_LARGEST_START = 16.0


class LogLoss(RowLoss):
    """Log loss of two classes; y is 0 or 1, or from 0 to 1."""

    name = "binary:logistic"
    link = "logit"

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Give ``p - y`` and ``p (1 - p)``."""
        # e^-|z| cannot overflow; p and 1 - p both come out to full precision
        decay = exp_of_negative(-abs(z))
        larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
        is_positive = z >= 0.0
        probability = larger if is_positive else smaller
        complement = smaller if is_positive else larger
        # written so, a saturated row's gradient is a tiny number and not 0
        return probability * (1.0 - y) - complement * y, larger * smaller

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Give ``-y z + log(1 + e^z)``, written so that nothing overflows or cancels."""
        return max(z, 0.0) - y * z + log_of_one_plus(exp_of_negative(-abs(z)))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the log-odds of the mean target."""
        # from both means: one close to 1 would round to 1
        with np.errstate(divide="ignore"):
            log_odds = np.log(known_means(y, weight)) - np.log(known_means(1.0 - y, weight))
        return np.clip(log_odds, -_LARGEST_START, _LARGEST_START)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target outside of 0 to 1."""
        check_within(y, name, self.name, 0.0, 1.0)


class LogisticRegression(LogLoss):
    """Log loss of targets that are probabilities, as a regression."""

    name = "reg:logistic"
