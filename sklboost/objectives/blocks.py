"""Blocks: loops over rows around the formula of one row, which rounds of boosting call by address.

The rounds are compiled once for all losses and metrics. Each of these is compiled apart, when it is
first used, as a *block*: a kernel for a range of rows. There are two kinds. Both return -1; that of
a loss a user has written, the first row whose derivatives no tree can be grown on, if there is one.

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
from sklboost.engine.elementary import zero_unless
from sklboost.objectives.domains import ANYWHERE, Domain
from sklboost.objectives.links import change_of_scale

# What a block returns if all is well.
NO_FAULT = -1
# Derivatives are float32 and sums of them must be numbers; and no cover is 0, as in XGBoost. Those
# of a user's loss are in units that suit the largest, see `derivative_checks.py`.
LARGEST, LEAST_HESSIAN = 1e37, 1e-16
# What is computed of so many rows stays in the first-level cache. A power of two, see `means.py`.
BLOCK_ROWS = 256

_VECTOR, _MATRIX, _DERIVATIVES = "float64[::1]", "float64[:, ::1]", "float32[:, ::1]"
# Of the arguments of blocks: of a loss, of a metric.
LOSS_TYPES = ", ".join(
    ["UniTuple(int64, 3)", _MATRIX, _MATRIX, _VECTOR, _DERIVATIVES, _DERIVATIVES, _MATRIX]
)
METRIC_TYPES = ", ".join(["UniTuple(int64, 2)", "int64", _MATRIX, _MATRIX, _VECTOR, _MATRIX])


@by_address(LOSS_TYPES)
def call_loss(  # noqa: PLR0913, the arguments of every block
    address, rows, y, raw_score, parameters, gradient, hessian, scratch
):
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


def gradient_block(formula: Any, *, is_of_user: bool = False) -> Any:
    """Make the block of derivatives from their formula.

    Parameters
    ----------
    formula : kernel
        ``formula(target, raw_score, parameter) -> (gradient, hessian)``, all float64.
    is_of_user : bool
        Whether a user has written it: then the block looks for derivatives that are not usable,
        takes for its parameters what they are multiplied by, all gradients before all hessians, and
        its code is not kept on disk.
    """
    name = None if is_of_user else _name(formula)

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
            hessians[row] = zero_unless(is_known, limited(second, LEAST_HESSIAN))
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
    """Return gradient and hessian of all rows as a block fills them, in float64.

    `y` has shape (n_targets, n_samples) or (n_samples,); the others have n_outputs rows.
    """
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

    # A kernel ``value(target, score, term) -> loss``, all float64. Of classes, a function that
    # makes the block from a change of scale and a name.
    value: Callable[..., Any]
    reads: str  # the scale of the score, see :mod:`sklboost.objectives.links`
    # A kernel ``term(score, parameter)`` that gives the loss its third number: the parameter
    # itself, or, where there is none, a part that takes long
    term: Callable[..., Any] = parameter_itself
    # A kernel ``less(target, parameter)``: what is subtracted, which no prediction changes. Less
    # the least value that a target allows, a loss is half a deviance.
    less: Callable[..., Any] = nothing
    targets: Domain = ANYWHERE  # where it is defined
    is_of_classes: bool = False  # whether it reads all raw scores of a row together


def address_of_losses(formula: Formula, scale: str) -> Any:
    """Return the address of the block of a formula, for scores on this scale."""
    return address_of(_loss_block(formula, scale), METRIC_TYPES)


@functools.cache  # also so that the code lives as long as the process, which has its address
def _loss_block(formula: Formula, scale: str) -> Any:
    change = change_of_scale(scale, formula.reads)
    if change is None:
        raise ValueError(f"there is no way from the scale {scale!r} to {formula.reads!r}")
    name = f"{_name(formula.value)}, {formula.less.__name__}, {change.kernel.__name__}"
    if formula.is_of_classes:
        return formula.value(change.kernel, name)
    return _row_block(formula, change.kernel, name)


def _row_block(formula: Formula, change: Any, name: str) -> Any:
    """Make the block of a loss that reads one score."""
    value, term, less = formula.value, formula.term, formula.less
    is_lessened = less is not nothing

    def fill_row_losses(rows, output, y, raw_score, parameters, scratch):
        # slices, so that the compiler sees that no index is negative and makes vectors of the loop
        targets = y[output % y.shape[0], rows[0] : rows[1]]
        given, n_rows = raw_score[output, rows[0] : rows[1]], rows[1] - rows[0]
        losses, scores, terms = scratch[0, :n_rows], scratch[1, :n_rows], scratch[2, :n_rows]
        # several loops: in one the processor would wait for all that leads to one row's loss before
        # it begins with the next rows (log loss: 3.7 ns a row in one, 2.5 in three)
        for row in range(len(targets)):
            scores[row] = change(given[row])
        for row in range(len(targets)):
            terms[row] = term(scores[row], parameters[output])
        for row in range(len(targets)):
            losses[row] = value(targets[row], scores[row], terms[row])
        if is_lessened:
            for row in range(len(targets)):
                losses[row] -= less(targets[row], parameters[output])
        return NO_FAULT

    return made_kernel(fill_row_losses, name)


def _name(kernel: Callable[..., Any]) -> str:
    """Return a name that no other kernel has, also in the methods of classes."""
    return f"{kernel.__module__}.{kernel.__qualname__}"
