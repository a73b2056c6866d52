"""Log loss of K classes, K raw scores a row: ``p = softmax(z)``, loss ``-log p_y``.

Gradient of output k ``p_k - [y = k]``, hessian ``K / (K - 1) p_k (1 - p_k)``. The factor is
Friedman's (2001, algorithm 6): the K trees of a round are grown side by side, each as if it alone
moved, while only differences of raw scores count. For K = 2 it makes the two trees together exactly
the one Newton step of the binary loss; without it they would go twice as far. LightGBM does the
same; XGBoost has 2 for every K, which is shorter steps for more than two classes.
"""

import numpy as np

from sklboost.compiling import kernel
from sklboost.losses.base import SOFTMAX, weighted_mean
from sklboost.losses.exponential import exp_of_negative
from sklboost.parallel import share

_MIN_HESSIAN = 1e-16


@kernel
def softmax_gradients(team, y, raw_score, gradient, hessian):
    """Fill gradient and hessian of this member's share of the rows, all outputs."""
    n_outputs = raw_score.shape[0]
    factor = n_outputs / (n_outputs - 1.0)
    start, stop = share(team, len(y))
    for row in range(start, stop):
        largest = raw_score[0, row]
        for output in range(1, n_outputs):
            largest = max(largest, raw_score[output, row])
        total = 0.0
        for output in range(n_outputs):
            term = exp_of_negative(raw_score[output, row] - largest)
            gradient[output, row] = term  # kept here until the total is known
            total += term
        for output in range(n_outputs):
            probability = gradient[output, row] / total
            gradient[output, row] = probability - (y[row] == output)
            curvature = factor * probability * (1.0 - probability)
            hessian[output, row] = max(curvature, _MIN_HESSIAN)


class Softmax:
    """Log loss of `n_outputs` classes; y is 0 to ``n_outputs - 1``."""

    code = SOFTMAX

    def __init__(self, n_outputs: int):
        self.n_outputs = n_outputs

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the logarithms of the shares of the classes."""
        shares = [weighted_mean((y == k).astype(float), weight) for k in range(self.n_outputs)]
        return np.log(shares)

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the same raw score for every class: equal probabilities, whatever the number."""
        return np.full(self.n_outputs, prediction)

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the probabilities of the classes, shape (n_samples, n_outputs)."""
        terms = np.exp(raw_score - raw_score.max(axis=0))
        return np.ascontiguousarray((terms / terms.sum(axis=0)).T)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean of ``-log`` of the probability of what happened."""
        largest = raw_score.max(axis=0)
        log_total = np.log(np.exp(raw_score - largest).sum(axis=0)) + largest
        own = np.take_along_axis(raw_score, y.astype(np.intp)[np.newaxis], axis=0)[0]
        return weighted_mean(log_total - own, weight)
