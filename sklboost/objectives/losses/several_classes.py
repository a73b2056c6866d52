"""Losses of more than two classes: softmax, and one class against the rest."""

from functools import partial
from typing import Any

import numpy as np

from sklboost.engine.compiling import inlined, kernel, made_kernel
from sklboost.engine.elementary import exp_of_negative, log_of_one_plus
from sklboost.objectives.blocks import (
    BLOCK_ROWS,
    LEAST_HESSIAN,
    NO_FAULT,
    Formula,
    derivatives_by_block,
)
from sklboost.objectives.links import SOFTMAX, shares
from sklboost.objectives.loss import Loss, RowLoss, by_rows
from sklboost.objectives.losses.two_classes import LARGEST_STEP, LogLoss
from sklboost.objectives.means import losses_of_rows
from sklboost.objectives.start_values import weighted_mean


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
    """Fill the rows ``[start, stop)``; `scratch` holds their largest raw score and sum of terms."""
    first, last = rows
    n_outputs = raw_score.shape[0]
    factor = n_outputs / (n_outputs - 1.0)
    largest, total = scratch[0, : last - first], scratch[1, : last - first]
    largest[:] = -np.inf
    total[:] = 0.0
    for output in range(n_outputs):
        scores = raw_score[output, first:last]
        for row in range(len(targets)):
            largest[row] = max(largest[row], scores[row])
    for output in range(n_outputs):
        # the terms are kept as gradients until the total is known
        _add_terms(raw_score[output, first:last], largest, gradient[output, first:last], total)
    for output in range(n_outputs):
        gradients, hessians = gradient[output, first:last], hessian[output, first:last]
        for row in range(len(targets)):
            probability = gradients[row] / total[row]
            gradients[row] = probability - (1.0 if targets[row] == output else 0.0)
            hessians[row] = max(factor * probability * (1.0 - probability), LEAST_HESSIAN)


@kernel
def _add_terms(scores, largest, terms, total):
    """Fill the term of each row for one output, and add it to the row's total.

    A kernel of its own, so that the constants are loaded once, not for each row.
    """
    for row in range(len(scores)):
        term = exp_of_negative(scores[row] - largest[row])
        terms[row] = term
        total[row] += term


def softmax_values(change: Any, name: str) -> Any:
    """Make the block that fills ``log(sum of e^z_k) - z_y``; `change` gives z of a score."""
    fill_largest = largest_scores(change, name)

    def fill_softmax_values(rows, output, y, raw_score, parameters, scratch):
        n_rows = rows[1] - rows[0]
        targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
        largest, others = scratch[1, :n_rows], scratch[2, :n_rows]
        fill_largest(rows, raw_score, largest)
        # the largest has the term 1: what is left is the sum of the others' terms
        others[:] = -1.0
        losses[:] = 0.0
        for class_ in range(raw_score.shape[0]):
            scores, number = raw_score[class_, rows[0] : rows[1]], float(class_)
            for row in range(len(targets)):
                below = largest[row] - change(scores[row])
                others[row] += exp_of_negative(-below)
                losses[row] += below if targets[row] == number else 0.0
        for row in range(len(targets)):
            losses[row] += log_of_one_plus(max(others[row], 0.0))
        return NO_FAULT

    return made_kernel(fill_softmax_values, name)


def largest_scores(change: Any, name: str) -> Any:
    """Make a kernel that fills the largest changed score of each row."""

    def fill_largest(rows, raw_score, largest):
        largest[:] = -np.inf
        for class_ in range(raw_score.shape[0]):
            scores = raw_score[class_, rows[0] : rows[1]]
            for row in range(len(largest)):
                largest[row] = max(largest[row], change(scores[row]))

    return made_kernel(fill_largest, name)


def _is_of_class(number: int, codes: np.ndarray) -> np.ndarray:
    """Return 1 where the class has this number, else 0; float64."""
    found: np.ndarray = (codes == number).astype(np.float64)
    return found


class Softmax(Loss):
    """Log loss of K classes, K raw scores a row: ``p = softmax(z)``, loss ``-log p_y``.

    Gradient of output k ``p_k - [y = k]``, hessian ``K / (K - 1) p_k (1 - p_k)``. The factor is
    Friedman's (2001, algorithm 6): the K trees of a round are grown side by side, each as if it
    alone moved, while only differences of raw scores count. For K = 2 it makes the two trees
    together exactly the one Newton step of the binary loss; without it they would go twice as far.
    LightGBM does the same; XGBoost has 2 for every K, which is shorter steps for more than two
    classes. Targets are 0 to K - 1.
    """

    name = "multi:softprob"
    link = SOFTMAX
    largest_step = LARGEST_STEP
    hessian_is_bound = True
    block = staticmethod(softmax_block)

    def __init__(self, n_outputs: int):
        self.n_outputs = n_outputs
        self.parameters = np.zeros(n_outputs)

    @staticmethod
    def formula(**changes: Any) -> Formula:
        """Return the loss of a row for metrics; `changes` are fields of a Formula."""
        return Formula(softmax_values, SOFTMAX, is_of_classes=True)._replace(**changes)

    def gradients(self, y: np.ndarray, raw_score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return gradient and hessian of each output."""
        return derivatives_by_block(self.block, self.parameters, y, raw_score)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the logarithms of the shares of the classes."""
        codes = np.atleast_2d(y)[0]
        numbers = range(self.n_outputs)
        shares = [weighted_mean(codes, weight, partial(_is_of_class, k)) for k in numbers]
        return np.log(shares)

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean of ``-log`` of the probability of what happened."""
        (losses,) = losses_of_rows(self.formula(), self.parameters, y, raw_score)
        return weighted_mean(losses, weight)


_log_loss_derivatives, _log_loss_value = LogLoss.derivatives, LogLoss.row_value


class OneVsRest(RowLoss):
    """For each of K classes the log loss of being it or not; targets are 0 to K - 1.

    Output k is the log-odds of class k and does not look at the others. Probabilities are those of
    the outputs over their sum. LightGBM calls it multiclassova.
    """

    name = "multi:onevsrest"
    link = "other"
    largest_step = LARGEST_STEP

    def __init__(self, n_classes: int):
        super().__init__(1, tuple(map(float, range(n_classes))))

    @staticmethod
    @inlined
    def derivatives(y, z, class_):
        """Return those of the log loss of being of this class."""
        return _log_loss_derivatives(1.0 if y == class_ else 0.0, z, class_)

    @staticmethod
    @inlined
    def row_value(y, z, class_):
        """Return the log loss of being of this class."""
        return _log_loss_value(1.0 if y == class_ else 0.0, z, exp_of_negative(-abs(z)))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the log-odds of the shares of the classes."""
        codes = np.atleast_2d(y)[0]
        is_of_class = (codes == self.parameters[:, np.newaxis]).astype(np.float64)
        return LogLoss(self.n_outputs).start(is_of_class, weight)

    @np.errstate(all="ignore")
    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, shape (n_samples, n_classes)."""
        # logarithms first: where no class is likely, all their probabilities could round to 0
        logarithms = -np.logaddexp(0.0, -raw_score)
        return by_rows(shares(logarithms))

    probabilities = predictions
