"""The number of rows in a child, which `min_child_samples` asks for.

Where cover is no number of rows, rows are counted as an output of their own: their counts are added
up in a strip of the histograms, or in a lane that is free, as gradients are, and stay whole
numbers.
"""

import numpy as np

from sklboost.engine.compiling import late
from sklboost.engine.parallel import barrier, share
from sklboost.tree.core.workspace import OWN
from sklboost.tree.options.several_outputs import sum_cells

# Of a row of weight 1, so that weights may have fractions.
_ONE = np.int64(2**20)


def row_counts(weight: np.ndarray, least: int) -> np.ndarray:
    """Return the counts of rows of these weights, int64.

    Parameters
    ----------
    weight : ndarray of float64, shape (n_samples,)
        How many rows each counts as.
    least : int
        Of a child. More than that need not be told apart, and sums cannot become too large.
    """
    # up: rows whose weights add up to the least in all but rounding are enough
    counts: np.ndarray = np.ceil(np.minimum(weight, least) * _ONE).astype(np.int64)
    return counts


@late()
def fill_counts(team, gradients):
    """Copy the counts of rows to the strips; ends when all rows are done.

    A row whose target is not known counts for nothing in the tree of that target.
    """
    n_outputs, n_samples = gradients.packed.shape
    n_lanes = gradients.strips.shape[1] // n_samples
    strip, lane = gradients.strips[n_outputs // n_lanes], n_outputs % n_lanes
    start, stop = share(team, n_samples)
    for row in range(start, stop):
        is_seen = gradients.packed[0, row] != 0
        strip[np.uint64(row * n_lanes + lane)] = gradients.counts[row] if is_seen else 0
    barrier(team)


@late("boolean")
def has_rows_for_two(node, params, tree):
    """Whether a node has rows enough for two children."""
    counts = tree.sums[node, OWN]
    return counts[len(counts) - 1] >= 2 * params.min_child_samples * _ONE


@late()
def forbid_few_rows(search, workspace, task, places, missing_cell):
    """Set the gains to -inf of splits that leave fewer rows than `min_child_samples` on a side.

    Of the places ``[first, stop)`` of a feature whose sums are listed; the rows of `missing_cell`
    go left, too, unless it is -1.
    """
    tree, (first, stop) = workspace.tree, places
    output = tree.sums.shape[2] - 1
    least, total = search.params.min_child_samples * _ONE, tree.sums[task.node, OWN, output]
    counts, left_start = workspace.options.sums[task.rank, output, first:stop], np.int64(0)
    if missing_cell >= 0:
        histogram = workspace.pool.histograms[tree.growth[task.node].slot]
        left_start = sum_cells(search.matrix, histogram, output, missing_cell, missing_cell + 1)
    gains = task.gains[np.int64(missing_cell >= 0)]
    for position in range(len(counts)):
        left = left_start + counts[np.uint64(position)]
        if min(left, total - left) < least:
            gains[np.uint64(position)] = -np.inf
