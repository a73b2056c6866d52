"""One against the rest: for each of K classes the log loss of being it or not.

Output k is the log-odds of class k and does not look at the others. Probabilities are those of the
outputs over their sum. LightGBM calls it multiclassova.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.objectives.links import shares
from sklboost.objectives.loss import by_rows
from sklboost.objectives.losses.rows import RowLoss
from sklboost.objectives.losses.two_classes import LogLoss

_log_loss_derivatives, _log_loss_value = LogLoss.derivatives, LogLoss.row_value


class OneVsRest(RowLoss):
    """Log losses of `n_classes` classes, each against the others; y is 0 to ``n_classes - 1``."""

    name = "multi:onevsrest"
    link = "other"

    def __init__(self, n_classes: int):
        super().__init__(1, tuple(float(own) for own in range(n_classes)))

    @staticmethod
    @inlined
    def derivatives(y, z, own_class):
        """Give those of the log loss of being of this class."""
        return _log_loss_derivatives(1.0 if y == own_class else 0.0, z, own_class)

    @staticmethod
    @inlined
    def row_value(y, z, own_class):
        """Give the log loss of being of this class."""
        return _log_loss_value(1.0 if y == own_class else 0.0, z, own_class)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the log-odds of the shares of the classes."""
        codes = np.atleast_2d(y)[0]
        is_own = (codes == self.parameters[:, np.newaxis]).astype(np.float64)
        return LogLoss(self.n_outputs).start(is_own, weight)

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the probabilities of the classes, shape (n_samples, n_classes)."""
        # logarithms first: where no class is likely, all their probabilities could round to 0
        logarithms = -np.logaddexp(0.0, -raw_score)
        return by_rows(shares(logarithms))

    probabilities = predictions
