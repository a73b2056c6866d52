"""Losses of two classes and of several."""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import exp_of_negative, log, log_of_one_plus
from sklboost.objectives.blocks import BLOCK_ROWS, LEAST_HESSIAN, NO_FAULT, Formula
from sklboost.objectives.domains import SHARES, SOFTMAX, predictions_of, refuse_first
from sklboost.objectives.loss import Loss, RowLoss, by_rows, row_formula
from sklboost.objectives.metric import losses_of_rows
from sklboost.objectives.start_values import (
    class_shares,
    each_target,
    find_constants,
    known_means,
    weighted_mean,
    weighted_quantile,
)

# Of start values in log-odds: where all targets are 0, or 1, the best constant is infinite.
_LARGEST_START = 16.0
# Stands for 0 where a logarithm is multiplied by 0.
_TINY = 1e-290
# Of leaf weights in log-odds. Rows to which the model gave a small chance p of what happened have a
# gradient near 1 and a hessian near p, so Newton's step is 1 / p, and where p vanishes has no end;
# to make what happened as likely as not takes log(1 / p). A step of 10 multiplies odds by 22,000,
# and no leaf of fewer rows can tell that much, even if they all agree.
LARGEST_STEP = 10.0


class LogLoss(RowLoss):
    """Log loss in log-odds z, ``-y z + log(1 + e^z)``; y is 0 or 1, or a probability.

    With ``p = 1 / (1 + e^-z)`` the gradient is ``p - y`` and the hessian ``p (1 - p)``.
    """

    name = "binary:logistic"
    link = "logit"
    targets = SHARES
    largest_step = LARGEST_STEP

    @row_formula
    def derivatives(y, z, parameter):
        """Return ``p - y`` and ``p (1 - p)``."""
        # e^-|z| cannot overflow; p and 1 - p both come out to full precision
        decay = exp_of_negative(-abs(z))
        larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
        is_positive = z >= 0.0
        probability = larger if is_positive else smaller
        complement = smaller if is_positive else larger
        # written so, a saturated row's gradient is a tiny number and not 0
        return probability * (1.0 - y) - complement * y, larger * smaller

    @row_formula
    def term(z, parameter):
        """Return ``e^-|z|``."""
        return exp_of_negative(-abs(z))

    @row_formula
    def row_value(y, z, decay):
        """Return ``-y z + log(1 + e^z)``, written so that nothing overflows or cancels."""
        return max(z, 0.0) - y * z + log_of_one_plus(decay)

    @row_formula
    def least_value(y, parameter):
        """Return the value where p = y, the entropy of y."""
        rest = 1.0 - y
        return -(y * log(max(y, _TINY)) + rest * log(max(rest, _TINY)))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the log-odds of the mean target."""
        # from both means: one close to 1 would round to 1
        with np.errstate(divide="ignore"):
            means_of_0 = known_means(y, weight, lambda some: 1.0 - some)
            log_odds = np.log(known_means(y, weight)) - np.log(means_of_0)
        return _bounded(log_odds)


def _bounded(log_odds: np.ndarray) -> np.ndarray:
    """Return start values, brought within the largest."""
    starts: np.ndarray = np.clip(log_odds, -_LARGEST_START, _LARGEST_START)
    return starts


class LogisticRegression(LogLoss):
    """Log loss of targets that are probabilities, as a regression."""

    name = "reg:logistic"


class _LabelLoss(RowLoss):
    """A loss of targets that are 0 or 1, and nothing between."""

    hessian_is_bound = True

    def check_targets(self, y: np.ndarray, name: str) -> None:
        is_other = ~np.isnan(y) & (y != 0.0) & (y != 1.0)
        remedy = "for probabilities choose 'binary:logistic'"
        why = f"objective={self.name!r} needs targets 0 and 1; {remedy}"
        refuse_first(is_other, y, name, why)


class FocalLoss(_LabelLoss):
    """Focal loss: log loss in which rows that are predicted well count less.

    With q the probability that the model gives to what did not happen, and p = 1 - q:
    ``-q^gamma log(p)``. Gamma 0 is log loss; with gamma 2 a row of q = 0.1 counts a hundredth. In
    the log-odds m of what happened:

        first derivative    q^gamma (gamma p log(p) - q)
        second              p q^gamma (q (1 + 2 gamma) + gamma log(p) (q - gamma p))

    The second is negative where the model is badly wrong. Its terms with log(p) are of either sign;
    what stands in its place is at least ``p q^(1 + gamma)``, the hessian of log loss times the
    weight of the row. Source: Lin, Goyal, Girshick, He & Dollar (2017), "Focal loss for dense
    object detection".

    Probabilities are ``1 / (1 + e^-z)``, as for log loss, but closer to 1/2 than what happens: the
    loss asks which class it is, and not how sure that is.
    """

    name = "binary:focal"
    link = "logit"
    parameter = "focal_gamma"
    largest_step = LARGEST_STEP

    @row_formula
    def derivatives(y, z, gamma):
        """Return the derivatives in z, of the sign of the label."""
        sign = 2.0 * y - 1.0
        p, q, log_p, log_q = _chances(sign * z)
        weight = exp_of_negative(gamma * log_q)
        slope = weight * (gamma * p * log_p - q)
        bend = weight * p * (q * (1.0 + 2.0 * gamma) + gamma * log_p * (q - gamma * p))
        return sign * slope, max(bend, weight * p * q)

    @row_formula
    def row_value(y, z, gamma):
        """Return ``-q^gamma log(p)``."""
        _, _, log_p, log_q = _chances((2.0 * y - 1.0) * z)
        return -exp_of_negative(gamma * log_q) * log_p

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return _bounded(find_constants(self, y, weight))


@inlined
def _chances(margin):
    """Return p, q and the logarithms of both for log-odds of p; none is rounded to 1 or 0."""
    decay = exp_of_negative(-abs(margin))
    larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    log_larger = -log_of_one_plus(decay)
    log_smaller = log_larger - abs(margin)
    is_right = margin >= 0.0
    p = larger if is_right else smaller
    q = smaller if is_right else larger
    log_p = log_larger if is_right else log_smaller
    log_q = log_smaller if is_right else log_larger
    return p, q, log_p, log_q


class HingeLoss(_LabelLoss):
    """Hinge loss, ``max(0, 1 - s z)`` with s = 1 or -1 for the two classes: which class, no more.

    Gradient ``-s`` where s z < 1, else 0. The second derivative says nothing; 1 stands for it. A
    raw score above 0 is class 1. There are no probabilities behind it: as in XGBoost, they are 0
    and 1.
    """

    name = "binary:hinge"
    link = "other"

    @row_formula
    def derivatives(y, z, parameter):
        """Return ``-s`` where the margin is below 1, and 1."""
        sign = 2.0 * y - 1.0
        return -sign * (1.0 if sign * z < 1.0 else 0.0), 1.0

    @row_formula
    def row_value(y, z, parameter):
        """Return ``max(1 - s z, 0)``."""
        return max(1.0 - (2.0 * y - 1.0) * z, 0.0)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return 1 where class 1 has more than half of the weight, -1 for less, 0 for just half."""
        medians = [weighted_quantile(*known, 0.5) for known in each_target(y, weight)]
        return 2.0 * np.array(medians) - 1.0

    def raw_of(self, prediction: float) -> np.ndarray:
        """Return the point between -1 and 1 that the prediction is between 0 and 1."""
        return np.full(self.n_outputs, 2.0 * prediction - 1.0)

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        return by_rows((raw_score > 0.0).astype(np.float64))

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        is_one = (raw_score[0] > 0.0).astype(np.float64)
        return np.column_stack([1.0 - is_one, is_one])


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
    fill_largest(rows, raw_score, largest)
    total[:] = 0.0
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


@kernel
def softmax_values(rows, output, y, raw_score, parameters, scratch):
    """Fill ``log(sum of e^z_k) - z_y`` of the rows ``[start, stop)``."""
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
            below = largest[row] - scores[row]
            others[row] += exp_of_negative(-below)
            losses[row] += below if targets[row] == number else 0.0
    for row in range(len(targets)):
        losses[row] += log_of_one_plus(max(others[row], 0.0))
    return NO_FAULT


@kernel
def fill_largest(rows, raw_score, largest):
    """Fill the largest raw score of each of the rows ``[start, stop)``."""
    largest[:] = -np.inf
    for class_ in range(raw_score.shape[0]):
        scores = raw_score[class_, rows[0] : rows[1]]
        for row in range(len(largest)):
            largest[row] = max(largest[row], scores[row])


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

    formula = Formula(softmax_values, SOFTMAX, is_block=True)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the logarithms of the shares of the classes."""
        codes = y[0] if y.ndim > 1 else y
        logarithms: np.ndarray = np.log(class_shares(codes, weight, self.n_outputs))
        return logarithms

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        (losses,) = losses_of_rows(self.formula, self.parameters, y, raw_score)
        return weighted_mean(losses, weight)


_log_loss_derivatives, _log_loss_value = LogLoss.derivatives, LogLoss.row_value


class OneVsRest(RowLoss):
    """For each of K classes the log loss of being it or not; targets are 0 to K - 1.

    Output k is the log-odds of class k and does not look at the others. Probabilities are the
    outputs' over their sum. LightGBM calls it multiclassova.
    """

    name = "multi:onevsrest"
    link = "other"
    largest_step = LARGEST_STEP

    def __init__(self, n_classes: int):
        super().__init__(1, tuple(map(float, range(n_classes))))

    @row_formula
    def derivatives(y, z, class_):
        """Return the derivatives of the log loss of being of this class."""
        return _log_loss_derivatives(1.0 if y == class_ else 0.0, z, class_)

    @row_formula
    def row_value(y, z, class_):
        """Return the log loss of being of this class."""
        return _log_loss_value(1.0 if y == class_ else 0.0, z, exp_of_negative(-abs(z)))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the log-odds of the shares of the classes."""
        codes, of_one = y[0] if y.ndim > 1 else y, LogLoss(1)
        starts = [of_one.start((codes == class_) * 1.0, weight) for class_ in self.parameters]
        return np.concatenate(starts)

    @np.errstate(all="ignore")
    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        # logarithms first: where no class is likely, all their probabilities could round to 0
        logarithms = -np.logaddexp(0.0, -raw_score)
        return by_rows(predictions_of(SOFTMAX, logarithms))

    probabilities = predictions
