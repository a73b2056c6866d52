"""Log loss of K classes, K raw scores a row: ``p = softmax(z)``, loss ``-log p_y``.

Gradient of output k ``p_k - [y = k]``, hessian ``K / (K - 1) p_k (1 - p_k)``. The factor is
Friedman's (2001, algorithm 6): the K trees of a round are grown side by side, each as if it alone
moved, while only differences of raw scores count. For K = 2 it makes the two trees together exactly
the one Newton step of the binary loss; without it they would go twice as far. LightGBM does the
same; XGBoost has 2 for every K, which is shorter steps for more than two classes.
"""

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.engine.elementary import exp_of_negative
from sklboost.objectives.blocks import (
    BLOCK_ROWS,
    LEAST_HESSIAN,
    NO_FAULT,
    derivatives_by_block,
)
from sklboost.objectives.loss import Loss, weighted_mean


@kernel
def softmax_block(rows, y, raw_score, parameters, gradient, hessian, scratch):
    """Fill gradient and hessian of the rows ``[start, stop)``, all outputs.

    Block by block, and within a block output by output: every inner loop runs over rows and becomes
    vector instructions.
    """
    for first in range(rows[0], rows[1], BLOCK_ROWS):
        last = min(first + BLOCK_ROWS, rows[1])
        targets = y[0, first - rows[2] : last - rows[2]]
        _softmax_rows((first, last), targets, raw_score, gradient, hessian, scratch)
    return NO_FAULT


@kernel
def _softmax_rows(rows, targets, raw_score, gradient, hessian, scratch):
    """Do the rows ``[start, stop)``; `scratch` holds their largest raw score and sum of terms."""
    first, last = rows
    n_outputs = raw_score.shape[0]
    factor = n_outputs / (n_outputs - 1.0)
    largest, total = scratch[0, : last - first], scratch[1, : last - first]
    largest[:] = -np.inf
    total[:] = 0.0
    for output in range(n_outputs):
        own_score = raw_score[output, first:last]
        for row in range(len(targets)):
            largest[row] = max(largest[row], own_score[row])
    for output in range(n_outputs):
        own_score, terms = raw_score[output, first:last], gradient[output, first:last]
        for row in range(len(targets)):
            term = exp_of_negative(own_score[row] - largest[row])
            terms[row] = term  # kept here until the total is known
            total[row] += term
    for output in range(n_outputs):
        own_gradient, own_hessian = gradient[output, first:last], hessian[output, first:last]
        for row in range(len(targets)):
            probability = own_gradient[row] / total[row]
            own_gradient[row] = probability - (1.0 if targets[row] == output else 0.0)
            own_hessian[row] = max(factor * probability * (1.0 - probability), LEAST_HESSIAN)


class Softmax(Loss):
    """Log loss of `n_outputs` classes; y is 0 to ``n_outputs - 1``."""

    name = "multi:softprob"
    link = "softmax"
    hessian_is_bound = True
    block = staticmethod(softmax_block)

    def __init__(self, n_outputs: int):
        self.n_outputs = n_outputs
        self.parameters = np.zeros(n_outputs)

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give gradient and hessian of each output."""
        return derivatives_by_block(self.block, self.parameters, y, raw_score)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the logarithms of the shares of the classes."""
        codes = np.atleast_2d(y)[0]
        shares = [weighted_mean((codes == k).astype(float), weight) for k in range(self.n_outputs)]
        return np.log(shares)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean of ``-log`` of the probability of what happened."""
        codes = np.atleast_2d(y)[:1].astype(np.intp)
        largest = raw_score.max(axis=0)
        log_total = np.log(np.exp(raw_score - largest).sum(axis=0)) + largest
        own = np.take_along_axis(raw_score, codes, axis=0)[0]
        return weighted_mean(log_total - own, weight)
