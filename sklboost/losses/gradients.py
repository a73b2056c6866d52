"""The gradients of any loss behind one kernel, so that rounds of boosting need not leave it.

In: where the loss's code is, targets and raw scores. Out: gradient and hessian of each row, not
weighted.

The one idea: the rounds do not know the loss they are compiled with. They call its *block*, a
kernel ``block(rows, y, raw_score, parameters, gradient, hessian, scratch)`` that fills both for the
rows ``[start, stop)``, by its address. It gives the number of the first row whose derivatives no
tree can be grown on, or -1. So the rounds are compiled once for all losses, each loss apart, and a
loss that a user has written in numba runs like one of ours.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.compiling import address_of, kernel
from sklboost.instructions import LOSS_TYPES, call_loss
from sklboost.losses.base import BLOCK_ROWS, Loss
from sklboost.losses.blocks import NO_FAULT
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


def compile_loss(loss: Loss, n_threads: int) -> CompiledLoss:
    """Compile the block of a loss, if it has one."""
    address = 0 if loss.block is None else address_of(loss.block, LOSS_TYPES)
    faults = np.full(n_threads, NO_FAULT)
    faulty_turn = np.zeros(1, dtype=np.int64)
    # one for each output, also where a loss of a user's has none
    parameters = np.resize(loss.parameters, max(len(loss.parameters), loss.n_outputs))
    return CompiledLoss(int(loss.block is not None), address, parameters, faults, faulty_turn)


def allocate_scratch(n_threads: int) -> np.ndarray:
    """Make the scratch of :func:`fill_gradients`: two numbers for each row of a block."""
    return np.empty((n_threads, 2, BLOCK_ROWS))


@kernel
def fill_gradients(team, loss, y, raw_score, gradient, hessian, scratch):
    """Fill gradient and hessian of this member's share of the rows.

    Parameters
    ----------
    team : Team
    loss : CompiledLoss
    y : ndarray of float64, shape (n_targets, n_samples)
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    gradient, hessian : ndarray of float32, shape (n_outputs, n_samples)
        Filled.
    scratch : ndarray of float64
        From :func:`allocate_scratch`.
    """
    start, stop = share(team, y.shape[1])
    rows = (np.int64(start), np.int64(stop))
    fault = call_loss(
        loss.address, rows, y, raw_score, loss.parameters, gradient, hessian, scratch[team.rank]
    )
    if fault != NO_FAULT:
        loss.faults[team.rank] = fault


@kernel
def has_fault(loss):
    """Tell whether a member found derivatives that no tree can be grown on."""
    n_faults = 0
    for member in range(len(loss.faults)):
        n_faults += loss.faults[member] != NO_FAULT
    return n_faults > 0
