"""Machines that grow one tree together, each with some of the rows.

Every machine does the same steps on its rows. At a few places of a tree, its *stages*, one member
of the team calls a function by its address, which adds up or compares what all machines have.
Sums are integers, or added in the order of fixed blocks of rows, so the tree has the same bits
whatever rows each machine has. A fit on one machine calls nothing.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.compiling import by_address, inlined, late
from sklboost.engine.parallel import begin_step, end_step

# Rows are numbered through all machines and cut into blocks of this size. A machine has whole
# blocks, and only the last of all may be shorter. Derivatives are made and added up in pieces of a
# block, so few rows that they stay in the first-level cache.
BLOCK_ROWS, PIECE_ROWS = 4096, 256

# Stages: what is exchanged.
TOTALS = np.int64(0)  # sums of the derivatives of each block, for their scales
HISTOGRAMS = np.int64(1)  # cells of the nodes that were built
SPLITS = np.int64(2)  # best splits of the nodes that were searched
MAGNITUDES = np.int64(3)  # counts of the magnitudes of rows, by which they are drawn
WEIGHTS = np.int64(4)  # largest weight in each leaf
QUANTILES = np.int64(5)  # weights of the residuals in each leaf, by a digit


class Machines(NamedTuple):
    """All machines of a fit, as one of them has them."""

    size: int  # number of machines; 1: nothing is exchanged
    n_samples: int  # rows of all machines
    # the columns whose cells this machine adds up over all machines, and searches for splits
    first_column: int
    stop_column: int
    # int64, shape (n_blocks,): number of the first row of each block of this machine, among the
    # rows of all
    first_rows: np.ndarray
    address: Any  # of the function that exchanges, as :func:`call_exchange` takes it
    # int64, shape (1,): 1 once an exchange has failed: then no tree that is being grown is of use
    failed: np.ndarray


def one_machine(n_samples: int, n_columns: int) -> Machines:
    """Return the only machine of a fit."""
    first_rows = np.arange(0, n_samples, BLOCK_ROWS)
    return Machines(1, n_samples, 0, n_columns, first_rows, 0, np.zeros(1, dtype=np.int64))


def row_numbers(first_rows: np.ndarray, n_samples: int) -> np.ndarray:
    """Return the numbers of the rows in some blocks, of `n_samples` rows in all; int64."""
    numbers = (first_rows[:, np.newaxis] + np.arange(BLOCK_ROWS)).ravel()
    return numbers[numbers < n_samples]


@by_address("int64")
def call_exchange(address, stage):
    """Call the function at `address` for a stage; it returns 0."""
    return address(stage)


@late()
def exchange_with_others(machines, stage):
    """Exchange what a stage asks for with the other machines."""
    if machines.failed[0] == 0:
        call_exchange(machines.address, stage)


@inlined
def exchange(machines, stage):
    """Let all machines exchange what a stage asks for; one member of the team calls it."""
    if machines.size > 1:
        exchange_with_others(machines, stage)


@inlined
def exchange_together(team, machines, stage):
    """Meet and exchange, called by every member of the team; ends when it is done."""
    if begin_step(team, np.int64(machines.size > 1)) == 1:
        exchange(machines, stage)
        end_step(team)


@late("int64")
def list_own_features(machines, features, listed):
    """List the `features` that this machine searches for splits; return how many."""
    n_listed = 0
    for feature in features:
        if machines.first_column <= feature < machines.stop_column:
            listed[n_listed] = feature
            n_listed += 1
    return n_listed
