"""Columns of bins that several features have.

Most tables have columns of few values: codes, flags, counts. Two of 16 bins become one *joint
column* of 256, whose bin is ``a + 16 * b``: a row then takes one addition where it took two. The
histograms of both are the marginal sums of their joint histogram. These are sums of integers, so
they have the same bits as if columns were added up one by one. Taking a joint histogram apart takes
time for each of its cells, so nodes of few rows are built from the columns themselves.

Sparse features of which no row has two share a column, a *bundle* (see ``data/binning.py``). There
the bin of 0 of a feature has no cell: its sum is the node's less the sums of the feature's other
bins, exactly, since the sums are integers.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.binning import cell_of_bin
from sklboost.data.raw_values import read_only
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.structs import BuiltColumns, TrainingBins
from sklboost.tree.core.quantization import sum_cells

# Bins of a joint column: what one byte can hold.
MOST_BINS = 256
# Least part of the additions of a row that joint columns must save, for the memory that they take.
_LEAST_SAVED = 1 / 8
# Least rows of a fit, in least rows of a node that is built from joint columns.
_LEAST_NODES = 4
_NEVER = np.int64(np.iinfo(np.int64).max)


class HistogramBins(NamedTuple):
    """The bins that histograms are built from."""

    # uint8 or uint16, read-only, shape (n_samples, n_built): ``TrainingBins.rows``, or if it has
    # fewer columns a copy of those that the features of a tree are in, which is made for each tree
    rows: np.ndarray
    # the columns of the matrix, where columns of few bins are joined; none if that saves too little
    joint: BuiltColumns
    least_joint_rows: np.int64  # nodes of at least so many rows are built from `joint`


def group_columns(n_bins: np.ndarray) -> list[list[int]]:
    """Return the columns of each joint column, so that there are few of these.

    Bin packing by "first fit decreasing" (Johnson, 1973): columns of many bins first, each to the
    first joint column that has room for it.
    """
    groups: list[list[int]] = []
    sizes: list[int] = []
    n_last, group = 0, 0
    for column in np.argsort(-n_bins, kind="stable").tolist():
        n_of_column = int(n_bins[column])
        if n_of_column < n_last:
            group = 0  # those without room for more bins may have room for these
        n_last = n_of_column
        while group < len(groups) and sizes[group] * n_of_column > MOST_BINS:
            group += 1
        if group == len(groups):
            groups.append([])
            sizes.append(1)
        groups[group].append(column)
        sizes[group] *= n_of_column
    return groups


def join_columns(matrix: TrainingBins) -> HistogramBins:
    """Join columns of few bins if that saves a fair part of the additions to histograms.

    For trees of one output.
    """
    n_samples, n_columns = matrix.rows.shape
    n_bins = np.diff(matrix.cell_starts)
    n_few = np.count_nonzero(n_bins <= MOST_BINS // 2)
    if matrix.rows.itemsize > 1 or n_few < 2 or n_few < n_columns * _LEAST_SAVED:
        return single_columns(matrix.rows)
    groups = group_columns(n_bins)
    n_saved = n_columns - len(groups)
    n_joint_bins = sum(math.prod(n_bins[group].tolist()) for group in groups if len(group) > 1)
    least_rows = -(-n_joint_bins // max(n_saved, 1))
    if n_saved < n_columns * _LEAST_SAVED or n_samples < _LEAST_NODES * least_rows:
        return single_columns(matrix.rows)
    rows = np.empty((n_samples, len(groups)), dtype=matrix.rows.dtype)
    for joint, group in enumerate(groups):
        rows[:, joint] = _joint_bins(matrix.columns, group, n_bins)
    order, starts = np.concatenate(groups), matrix.cell_starts
    built = BuiltColumns(
        rows=read_only(rows),
        n_columns=np.int64(len(groups)),
        members=np.cumsum([0, *map(len, groups)]),
        cells=np.array([starts[order], starts[order + 1]]),
    )
    return HistogramBins(matrix.rows, built, np.int64(least_rows))


def _joint_bins(columns: np.ndarray, group: list[int], n_bins: np.ndarray) -> np.ndarray:
    """Return the bins of a joint column, shape (n_samples,)."""
    bins: np.ndarray = columns[group[0]].copy()
    n_before = n_bins[group[0]]
    for column in group[1:]:
        if n_bins[column] > 1:  # else all are 0, and there may be 256 before, which is no uint8
            bins += columns[column] * np.uint8(n_before)
            n_before *= n_bins[column]
    return bins


def single_columns(rows: np.ndarray) -> HistogramBins:
    """Return what histograms are built from where no columns are joined."""
    none = read_only(np.empty((0, 0), dtype=rows.dtype))
    members, cells = np.zeros(1, dtype=np.int64), np.empty((2, 0), dtype=np.int64)
    return HistogramBins(rows, BuiltColumns(none, np.int64(0), members, cells), _NEVER)


@late()
def unjoin_columns(built, column, cells, histogram, n_before):
    """Move the sums of a joint column to its members but the first, added if others came before.

    Member by member from the last: the joint histogram is cut into a block for each bin of it. The
    sum of a block is the member's cell; the sum of all blocks, cell by cell, is the joint histogram
    of the others. What is left at the front of `cells` is the histogram of the first member.
    """
    first, last, n_cells = built.members[column], built.members[column + 1] - 1, np.int64(1)
    for member in range(first, last):
        n_cells *= built.cells[1, member] - built.cells[0, member]
    for member in range(last, first, -1):
        target = histogram[built.cells[0, member] : built.cells[1, member]]
        for bin_ in range(len(target)):
            block = cells[bin_ * n_cells : (bin_ + 1) * n_cells]
            total = np.int64(0)
            for cell in range(len(block)):
                total += block[cell]
            target[bin_] = total if n_before == 0 else target[bin_] + total
            for cell in range(len(block) if bin_ > 0 else 0):
                cells[cell] += block[cell]
                block[cell] = 0
        n_cells //= built.cells[1, member - 1] - built.cells[0, member - 1]


# --- the cells of features, in bundles or not


@late()
def copy_cells(matrix, histogram, feature, output, total, cells):
    """Fill `cells` with the packed sums of a feature's bins, the missing values' last.

    `histogram`, of shape (n_strips, n_cells * n_lanes), and the packed sum `total` are a node's.
    """
    n_lanes, place = histogram.shape[1] // matrix.cell_starts[-1], matrix.places[feature]
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    numbers, lane = histogram[output // n_lanes], output % n_lanes
    without_cell = place.zero_bin if place.is_shared == 1 else n_bins
    stored = np.int64(0)
    for bin_ in range(n_bins - place.is_shared):
        cell = place.first_cell + bin_
        content = numbers[np.uint64(cell * n_lanes + lane)]
        cells[np.uint64(bin_ + (bin_ >= without_cell))] = content
        stored += content
    if place.is_shared == 1:
        cells[without_cell] = total - stored


@inlined
def missing_cell_of(matrix, feature):
    """Return the cell of a feature's missing values, its last one."""
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    return cell_of_bin(matrix.places[feature], n_bins - 1)


@kernel
def sum_below(matrix, histogram, output, total, feature, bin_):
    """Return the packed sum of a feature's bins below one; `total` is the node's, of the output."""
    place = matrix.places[feature]
    first, cell = place.first_cell, cell_of_bin(place, bin_)
    if place.is_shared == 0 or bin_ <= place.zero_bin:
        return sum_cells(matrix, histogram, output, first, cell)
    # without a cell for the bin of 0: all less what is above
    stop = first + matrix.bin_starts[feature + 1] - matrix.bin_starts[feature] - 1
    return total - sum_cells(matrix, histogram, output, cell, stop)
