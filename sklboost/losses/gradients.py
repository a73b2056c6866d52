"""The gradients of any loss behind one kernel, so that rounds of boosting need not leave it.

In: where the loss's code is, targets and raw scores. Out: gradient and hessian of each row, not
weighted.

The one idea: the rounds do not know the loss they are compiled with. They call its *block*, a
kernel ``block(rows, y, raw_score, parameters, gradient, hessian, scratch)``, by its address. It
fills both for the rows ``[start, stop)``, of ``rows = (start, stop, first)``; `first` is the row
that `y` begins with. It gives the number of the first row whose derivatives no tree can be grown
on, or -1. So the rounds are compiled once for all losses, each loss apart, and a
loss that a user has written in numba runs like one of ours.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.compiling import address_of, kernel
from sklboost.instructions import LOSS_TYPES, call_loss
from sklboost.losses.base import Loss
from sklboost.losses.blocks import BLOCK_ROWS, NO_FAULT
from sklboost.parallel import share


class CompiledLoss(NamedTuple):
    """What rounds know of a loss.

    Attributes
    ----------
    is_compiled : int
        0: somebody else fills the derivatives before each round.
    address : int
        Of its block.
    parameters : ndarray of float64, shape (n_outputs,)
    faults : ndarray of int64, shape (n_threads,)
        What the blocks said that each member called, if it was not :data:`NO_FAULT`.
    faulty_turn : ndarray of int64, shape (1,)
        The turn in which that was.
    """

    is_compiled: int
    address: Any
    parameters: np.ndarray
    faults: np.ndarray
    faulty_turn: np.ndarray


class Targets(NamedTuple):
    """The targets of the rows, in one of two forms; the other is empty.

    Attributes
    ----------
    values : ndarray of float64, shape (n_targets, n_samples) or (1, 0)
    codes : ndarray of uint8, shape (n_samples,) or (0,)
        Numbers of classes. They become float64 for a block of rows at a time, since eight bytes a
        row are as much as all the raw scores.
    """

    values: np.ndarray
    codes: np.ndarray


def targets_of(y: np.ndarray) -> Targets:
    """Give targets of shape (n_targets, n_samples), float64 or, one a row, uint8, for a kernel."""
    if y.dtype == np.uint8:
        return Targets(np.empty((1, 0)), y[0])
    return Targets(y, np.empty(0, dtype=np.uint8))


def compile_loss(loss: Loss, n_threads: int) -> CompiledLoss:
    """Compile the block of a loss, if it has one."""
    address = 0 if loss.block is None else address_of(loss.block, LOSS_TYPES)
    faults = np.full(n_threads, NO_FAULT)
    faulty_turn = np.zeros(1, dtype=np.int64)
    # one for each output, also where a loss of a user's has none
    parameters = np.resize(loss.parameters, max(len(loss.parameters), loss.n_outputs))
    return CompiledLoss(int(loss.block is not None), address, parameters, faults, faulty_turn)


def allocate_scratch(n_threads: int) -> np.ndarray:
    """Make the scratch of :func:`fill_gradients`: three numbers for each row of a block."""
    return np.empty((n_threads, 3, BLOCK_ROWS))


@kernel
def fill_gradients(team, loss, targets, raw_score, gradient, hessian, scratch):
    """Fill gradient and hessian of this member's share of the rows.

    Parameters
    ----------
    team : Team
    loss : CompiledLoss
    targets : Targets
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    gradient, hessian : ndarray of float32, shape (n_outputs, n_samples)
        Filled.
    scratch : ndarray of float64
        From :func:`allocate_scratch`.
    """
    start, stop = share(team, raw_score.shape[1])
    codes, y, own_scratch = targets.codes, targets.values, scratch[team.rank]
    n_at_once = BLOCK_ROWS if len(codes) > 0 else max(stop - start, 1)
    for begin in range(start, stop, n_at_once):
        end, first = min(begin + n_at_once, stop), 0
        if len(codes) > 0:
            # the third row of the scratch; blocks use the others
            y, first = own_scratch[2:], begin
            for row in range(begin, end):
                y[0, row - begin] = codes[row]
        rows = (np.int64(begin), np.int64(end), np.int64(first))
        parameters = loss.parameters
        fault = call_loss(
            loss.address, rows, y, raw_score, parameters, gradient, hessian, own_scratch
        )
        if fault != NO_FAULT and loss.faults[team.rank] == NO_FAULT:
            loss.faults[team.rank] = fault


@kernel
def has_fault(loss):
    """Tell whether a member found derivatives that no tree can be grown on."""
    n_faults = 0
    for member in range(len(loss.faults)):
        n_faults += loss.faults[member] != NO_FAULT
    return n_faults > 0
