"""From the formula of a row to the code that rounds call.

In: a formula, and the scale of the raw scores. Out: a *block*, ``block(rows, output, y, raw_score,
parameters, scratch)``: it fills ``scratch[0]`` with the losses of the rows ``[start, stop)`` and
one output. It is called by its address: the rounds are compiled once for all metrics, and each
metric apart, when it is first used.
"""

import functools
from collections.abc import Callable
from typing import Any

from numba import types

from sklboost.engine.compiling import address_of, made_kernel
from sklboost.engine.instructions import by_address
from sklboost.objectives.metrics.formulas import Formula
from sklboost.objectives.metrics.scales import change_of_scale

_MATRIX = types.Array(types.float64, 2, "C")
# Of the arguments of a block.
METRIC_TYPES = (
    *(types.UniTuple(types.int64, 2), types.int64, _MATRIX, _MATRIX),
    *(types.Array(types.float64, 1, "C"), _MATRIX),
)
# Code is called as long as the process lives, and so must its kernel.
_BLOCKS: list[Callable] = []


@by_address(*METRIC_TYPES)
def call_metric(address, rows, output, y, raw_score, parameters, scratch):
    """Call the block of a metric at `address`; return what it returns, or -2 if it raised."""
    return address(rows, output, y, raw_score, parameters, scratch)


@functools.cache
def address_of_losses(formula: Formula, scale: str) -> Any:
    """Compile the block of a formula for predictions on this scale; give its address."""
    block = make_block(formula, scale)
    _BLOCKS.append(block)
    return address_of(block, METRIC_TYPES)


def make_block(formula: Formula, scale: str) -> Callable:
    """Make the block of a formula for predictions on this scale."""
    change = change_of_scale(scale, formula.reads)
    name = f"{formula.row_loss.__name__}-{change.__name__}"
    if formula.is_of_classes:
        return formula.row_loss(change, name)
    return row_losses(formula.row_loss, formula.term, change, name)


def row_losses(row_loss: Callable, term: Callable, change: Callable, name: str) -> Callable:
    """Make the block of a loss of one raw score."""

    def fill_row_losses(rows, output, y, raw_score, parameters, scratch):
        # slices, so that the compiler sees that no index is negative and makes vectors of the loop
        targets = y[output % y.shape[0], rows[0] : rows[1]]
        own_score, n_rows = raw_score[output, rows[0] : rows[1]], rows[1] - rows[0]
        losses, prediction, terms = scratch[0, :n_rows], scratch[1, :n_rows], scratch[2, :n_rows]
        # three loops: in one the processor would wait for all that leads to one row's loss before
        # it begins with the next rows
        for row in range(len(targets)):
            prediction[row] = change(own_score[row])
        for row in range(len(targets)):
            terms[row] = term(prediction[row], parameters[output])
        for row in range(len(targets)):
            losses[row] = row_loss(targets[row], prediction[row], terms[row])
        return 0

    return made_kernel(fill_row_losses, name)
