"""The gradients of any loss behind one kernel, so that rounds of boosting need not leave it.

The rounds do not know the loss they are compiled with: they call its block by its address, see
:mod:`sklboost.objectives.blocks`. So a loss that a user has written in numba runs like one of ours.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.compiling import address_of, kernel
from sklboost.engine.parallel import share
from sklboost.objectives.blocks import BLOCK_ROWS, LOSS_TYPES, NO_FAULT, call_loss
from sklboost.objectives.loss import Loss


class CompiledLoss(NamedTuple):
    """A loss as rounds know it."""

    is_compiled: int  # 0: the derivatives are filled from Python before each round
    address: Any  # of its block
    # float64, shape (n_outputs,): of a user's function: what its derivatives are multiplied by,
    # shape (2 * n_outputs,)
    parameters: np.ndarray
    # int64, shape (n_threads,): what the blocks returned that each member called, the first that is
    # not ``NO_FAULT``
    faults: np.ndarray
    faulty_round: np.ndarray  # int64, shape (1,): the round in which that was


class Targets(NamedTuple):
    """The targets of the rows, in one of three forms; the others are empty.

    Short ones become float64 for a block of rows at a time, since eight bytes a row are as much as
    all the raw scores.
    """

    values: np.ndarray  # float64, shape (n_targets, n_samples) or (1, 0)
    singles: np.ndarray  # float32, shape (n_samples,) or (0,)
    codes: np.ndarray  # uint8, shape (n_samples,) or (0,): numbers of classes


def targets_of(y: np.ndarray) -> Targets:
    """Return targets for a kernel: float64, shape (n_targets, n_samples), or short, one a row."""
    no_targets = Targets(np.empty((1, 0)), np.empty(0, np.float32), np.empty(0, np.uint8))
    if y.dtype == np.uint8:
        return no_targets._replace(codes=y[0])
    if y.dtype == np.float32:
        return no_targets._replace(singles=y[0])
    return no_targets._replace(values=y)


def compile_loss(loss: Loss, n_threads: int) -> CompiledLoss:
    """Compile the block of a loss, if it has one."""
    address = 0 if loss.block is None else address_of(loss.block, LOSS_TYPES)
    faults = np.full(n_threads, NO_FAULT)
    faulty_round = np.zeros(1, dtype=np.int64)
    # one for each output, also where the loss of a user has none
    parameters = np.resize(loss.parameters, max(len(loss.parameters), loss.n_outputs))
    if loss.row_derivatives is not None:
        parameters = np.ones(2 * loss.n_outputs)  # factors: a user's function has no parameter
    return CompiledLoss(int(loss.block is not None), address, parameters, faults, faulty_round)


def allocate_scratch(n_threads: int) -> np.ndarray:
    """Allocate the scratch of :func:`fill_gradients`: three numbers for each row of a block."""
    return np.empty((n_threads, 3, BLOCK_ROWS))


@kernel
def write_short(targets, first, values):
    """Fill `values`, float64, with the short targets of as many rows, from `first` on."""
    if len(targets.codes) > 0:
        for row in range(len(values)):
            values[row] = targets.codes[first + row]
    else:
        for row in range(len(values)):
            values[row] = targets.singles[first + row]


@kernel
def fill_gradients(team, loss, targets, raw_score, gradient, hessian, scratch):
    """Fill gradient and hessian, float32, of this member's share of the rows."""
    start, stop = share(team, raw_score.shape[1])
    y, member_scratch = targets.values, scratch[team.rank]
    is_short = y.shape[1] < raw_score.shape[1]
    n_at_once = BLOCK_ROWS if is_short else max(stop - start, 1)
    for begin in range(start, stop, n_at_once):
        end, first = min(begin + n_at_once, stop), 0
        if is_short:
            # the third row of the scratch; blocks use the others
            y, first = member_scratch[2:], begin
            write_short(targets, begin, y[0, : end - begin])
        rows = (np.int64(begin), np.int64(end), np.int64(first))
        parameters = loss.parameters
        fault = call_loss(
            loss.address, rows, y, raw_score, parameters, gradient, hessian, member_scratch
        )
        if fault != NO_FAULT and loss.faults[team.rank] == NO_FAULT:
            loss.faults[team.rank] = fault


@kernel
def has_fault(loss):
    """Whether a member found derivatives that no tree can be grown on."""
    n_faults = 0
    for member in range(len(loss.faults)):
        n_faults += loss.faults[member] != NO_FAULT
    return n_faults > 0
