"""Blocks: loops over rows around the formula of one row, which rounds of boosting call by address.

The rounds are compiled once for all losses and metrics. Each of these is compiled apart, when it is
first used, as a *block*: a kernel for a range of rows. There are two kinds. Both return -1,
but a user's loss the first row whose derivatives no tree can be grown on, if there is one.

- ``block(rows, y, raw_score, parameters, gradient, hessian, scratch)`` fills the derivatives of the
  rows ``[start, stop)``, with ``rows = (start, stop, first)``; `y` begins with the row `first`.
- ``block(rows, output, y, raw_score, parameters, scratch)`` fills ``scratch[0]`` with the losses of
  the rows ``[start, stop)``, at most 256, in one output.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.compiling import address_of, by_address, inlined, made_kernel
from sklboost.engine.elementary import exp, exp_of_negative, log, log_of_one_plus, zero_unless
from sklboost.objectives.domains import ANYWHERE, IDENTITY, LOG, LOG_ODDS, SOFTMAX, Domain

# A block returns this if all is well.
NO_FAULT = -1
# Derivatives are float32 and sums of them must be numbers; and no cover is 0, as in XGBoost. A
# user's loss has them in units that suit the largest, see `custom.py`.
LARGEST, LEAST_HESSIAN = 1e37, 1e-16
# So many rows at a time stay in the first-level cache. A power of two, see `metric.py`.
BLOCK_ROWS = 256

_VECTOR, _MATRIX, _DERIVATIVES = "float64[::1]", "float64[:, ::1]", "float32[:, ::1]"
# Of the arguments of blocks: of a loss, of a metric.
LOSS_TYPES = ", ".join(
    ["UniTuple(int64, 3)", _MATRIX, _MATRIX, _VECTOR, _DERIVATIVES, _DERIVATIVES, _MATRIX]
)
METRIC_TYPES = ", ".join(["UniTuple(int64, 2)", "int64", _MATRIX, _MATRIX, _VECTOR, _MATRIX])


@by_address(LOSS_TYPES)
def call_loss(address, rows, y, raw_score, parameters, gradient, hessian, scratch):
    """Call the block of a loss at `address`; return what it returns, or -2 if it raised."""
    return address(rows, y, raw_score, parameters, gradient, hessian, scratch)


@by_address(METRIC_TYPES)
def call_metric(address, rows, output, y, raw_score, parameters, scratch):
    """Call the block of a metric at `address`; return what it returns, or -2 if it raised."""
    return address(rows, output, y, raw_score, parameters, scratch)


# --- derivatives


@inlined
def limited(derivative, least):
    """Return a derivative, brought between `least` and the largest that can be added up."""
    return min(max(derivative, least), LARGEST)


@inlined
def are_usable(gradient, hessian):
    """Whether a tree can be grown on a row's derivatives: no NaN, nothing infinite, h >= 0."""
    return abs(gradient) < math.inf and 0.0 <= hessian < math.inf


def gradient_block(
    formula: Any, *, least_hessian: float = LEAST_HESSIAN, is_of_user: bool = False
) -> Any:
    """Make the block of ``formula(target, raw_score, parameter) -> (gradient, hessian)``, float64.

    `is_of_user`: a user has written it. Then the block looks for derivatives that are not usable,
    its parameters are what they are multiplied by, all gradients before all hessians, and its code
    is not kept on disk.
    """
    name = None if is_of_user else full_name(formula)

    def fill_rows(first_row, target, score, factors, gradients, hessians):
        fault = NO_FAULT
        for row in range(len(target)):
            first, second = formula(target[row], score[row], factors[0])
            # a target that is not known has no say; it is NaN, which equals nothing
            is_known = target[row] == target[row]
            if is_of_user:
                if is_known and fault == NO_FAULT and not are_usable(first, second):
                    fault = first_row + row
                first, second = first * factors[0], second * factors[1]
            gradients[row] = zero_unless(is_known, limited(first, -LARGEST))
            hessians[row] = zero_unless(is_known, limited(second, least_hessian))
        return fault

    # A kernel of its own: in a loop around this one, the compiler loads the constants of the
    # formula anew for each row (log loss: 7.1 ns a row instead of 4.7). That of a user's loss is
    # called, and gains nothing.
    fill_rows = made_kernel(fill_rows, name)

    def fill_block(rows, y, raw_score, parameters, gradient, hessian, scratch):
        fault = NO_FAULT
        for output in range(raw_score.shape[0]):
            # slices, so that the compiler sees that no index is negative and makes vectors of
            # the loop
            target = y[output % y.shape[0], rows[0] - rows[2] : rows[1] - rows[2]]
            score = raw_score[output, rows[0] : rows[1]]
            second_factor = parameters[output + len(raw_score)] if is_of_user else 1.0
            found = fill_rows(
                rows[0],
                target,
                score,
                (parameters[output], second_factor),
                gradient[output, rows[0] : rows[1]],
                hessian[output, rows[0] : rows[1]],
            )
            if found != NO_FAULT:
                fault = found if fault == NO_FAULT else min(fault, found)
        return fault

    return made_kernel(fill_block, name)


@functools.lru_cache(maxsize=64)  # at each fit it would take half a second
def users_block(function: Callable[..., Any]) -> Any:
    """Make the block of ``function(y_true, y_pred) -> (gradient, hessian)``, a user's, compiled.

    Nothing of it is kept on disk: what the function calls may change without a trace in it.
    """

    def formula(target, score, parameter):
        gradient, hessian = function(target, score)
        return float(gradient), float(hessian)

    return gradient_block(made_kernel(formula, None), is_of_user=True)


def derivatives_by_block(
    block: Any, parameters: np.ndarray, y: np.ndarray, raw_score: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return gradient and hessian of all rows as a block fills them, in float64."""
    targets, scores = two_matrices(y, raw_score)
    gradient, hessian = np.empty((2, *scores.shape))
    rows, scratch = (0, scores.shape[1], 0), np.empty((2, BLOCK_ROWS))
    block(rows, targets, scores, parameters, gradient, hessian, scratch)
    return gradient, hessian


def two_matrices(y: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return targets and scores as kernels are compiled for them: float64 in C order, two axes."""
    targets, scores = (
        np.ascontiguousarray(np.atleast_2d(array), np.float64) for array in (y, score)
    )
    return targets, scores


# --- losses

# What formulas read other than raw scores of a link: log(1 + prediction); scores of which only the
# order counts.
LOG_1P, ANY = "log1p", "any"
# As scikit-learn: the logarithm of 0 would make one row count more than all others.
LEAST_PROBABILITY = float(np.finfo(np.float64).eps)
# e^340 is 1e147: its square, and the sum of many, is still a number.
_MOST_LOG = 340.0


@inlined
def unchanged(score):
    """Return the score."""
    return score


@inlined
def parameter_itself(score, parameter):
    """Return the parameter."""
    return parameter


@inlined
def nothing(y, parameter):
    """Return 0."""
    return 0.0


class Formula(NamedTuple):
    """The loss of a row, as the value of a loss and the metrics read it."""

    # A kernel ``value(target, score, term) -> loss``, all float64; or the block
    value: Callable[..., Any]
    # What the score is: a raw score of this link (so ``"identity"``: a prediction), LOG_1P or ANY
    reads: str
    # A kernel ``term(score, parameter)`` that gives the loss its third number: the parameter
    # itself, or, where there is none, a part that takes long
    term: Callable[..., Any] = parameter_itself
    # A kernel ``constant(target, parameter)``: what is subtracted, which no prediction changes.
    # Less the least value that a target allows, a loss is half a deviance.
    constant: Callable[..., Any] = nothing
    targets: Domain = ANYWHERE  # where it is defined
    # whether `value` is the block itself, which reads all raw scores of a row together
    is_block: bool = False


@inlined
def mean_of_log(z):
    """Return e^z, with z brought to within 340 of 0."""
    return exp(min(_MOST_LOG, max(-_MOST_LOG, z)))


@inlined
def probability_of_log_odds(z):
    """Return ``1 / (1 + e^-z)``."""
    decay = exp_of_negative(-abs(z))
    return (1.0 if z >= 0.0 else decay) / (1.0 + decay)


@inlined
def log_of_mean(mean):
    """Return the logarithm; NaN where there is none."""
    return log(mean) if mean > 0.0 else np.nan


@inlined
def log_odds_of_mean(mean):
    """Return ``log(p / (1 - p))`` of a probability, both at least 2e-16; of other means NaN."""
    rest = max(1.0 - mean, LEAST_PROBABILITY)
    log_odds = log(max(mean, LEAST_PROBABILITY) / rest)
    return log_odds if abs(mean - 0.5) <= 0.5 else np.nan


@inlined
def log_1p_of_mean(mean):
    """Return ``log(1 + p)``; NaN where there is none."""
    return log_of_one_plus(mean) if mean > -1.0 else np.nan


# From raw scores to predictions, by the link; and from these to what a formula reads. A formula of
# raw scores that have its link goes neither way, since digits are lost: a probability close to 1
# has none left of its log loss.
_PREDICTION_OF = {IDENTITY: unchanged, LOG: mean_of_log, LOG_ODDS: probability_of_log_odds}
_SCORE_OF = {
    IDENTITY: unchanged,
    LOG: log_of_mean,
    LOG_ODDS: log_odds_of_mean,
    LOG_1P: log_1p_of_mean,
}


def can_read(formula: Formula, link: str) -> bool:
    """Whether there is a block of the formula that reads raw scores of this link."""
    if formula.is_block:
        return link == formula.reads or (formula.reads == ANY and link in (SOFTMAX, IDENTITY))
    return link == formula.reads or link in _PREDICTION_OF


@functools.cache  # also so that the code lives as long as the process, which has its address
def loss_block(formula: Formula, link: str) -> Any:
    """Make the block of a formula, for raw scores of this link; predictions are raw scores, too."""
    if formula.is_block:
        return formula.value
    predict, read = _PREDICTION_OF.get(link, unchanged), _SCORE_OF.get(formula.reads, unchanged)
    if link == formula.reads:
        predict, read = unchanged, unchanged
    value, term, constant = formula.value, formula.term, formula.constant
    has_constant = constant is not nothing

    def fill_row_losses(rows, output, y, raw_score, parameters, scratch):
        # slices, so that the compiler sees that no index is negative and makes vectors of the loop
        targets = y[output % y.shape[0], rows[0] : rows[1]]
        given, n_rows = raw_score[output, rows[0] : rows[1]], rows[1] - rows[0]
        losses, scores, terms = scratch[0, :n_rows], scratch[1, :n_rows], scratch[2, :n_rows]
        # several loops: in one the processor would wait for all that leads to one row's loss before
        # it begins with the next rows (log loss: 3.7 ns a row in one, 2.5 in three)
        for row in range(len(targets)):
            scores[row] = read(predict(given[row]))
        for row in range(len(targets)):
            terms[row] = term(scores[row], parameters[output])
        for row in range(len(targets)):
            losses[row] = value(targets[row], scores[row], terms[row])
        if has_constant:
            for row in range(len(targets)):
                losses[row] -= constant(targets[row], parameters[output])
        return NO_FAULT

    parts = (full_name(value), constant.__name__, predict.__name__, read.__name__)
    return made_kernel(fill_row_losses, ", ".join(parts))


def address_of_losses(formula: Formula, link: str) -> Any:
    """Return the address of the block of a formula, for raw scores of this link."""
    return address_of(loss_block(formula, link), METRIC_TYPES)


def full_name(kernel: Callable[..., Any]) -> str:
    """Return a name that no other kernel has, also in the methods of classes."""
    return f"{kernel.__module__}.{kernel.__qualname__}"
