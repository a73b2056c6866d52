"""A feature's part of a node's histogram.

In: the histogram of a node, column by column. Out: the sums of the bins of one feature, in order.

The one idea: most features have a column of their own, and are read where they lie. In a column
that features share, the bin of 0 has no cell (see ``data/sparse_binning.py``): it has what the node
has less what the feature's other bins have, exactly, since the sums are integers.
"""

import numpy as np

from sklboost.data.binning import cell_of_bin
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core.histogram import sum_cells
from sklboost.tree.core.occupied_bins import list_few, list_many, list_sums
from sklboost.tree.core.workspace import LEFT, OWN
from sklboost.tree.options.categories import is_one_hot, set_apart, sum_categories

# Listing few occupied bins pays where a node has less than a quarter as many rows as bins.
_FEW = 4


@late()
def copy_cells(matrix, histogram, feature, output, total, cells):
    """Fill `cells` with the packed sums of a feature's bins.

    Parameters
    ----------
    matrix : TrainingBins
    histogram : ndarray of int64, shape (n_strips, n_cells * n_lanes)
        A node's.
    feature, output : int
    total : int
        The node's packed sum: what the bin of 0 of a shared column has beyond the others.
    cells : ndarray of int64
        Filled from the front, missing values last.
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
def list_bins(matrix, histogram, node, feature, cells, scratch):
    """List a feature's occupied bins, and the first output's sums before them; return how many."""
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    start, stop = cells
    numbers, is_shared = histogram[0, start:stop], matrix.places[feature].is_shared
    if n_lanes > 1 or is_shared == 1:
        copy_cells(matrix, histogram, feature, np.int64(0), node.sums[0], scratch.cells)
        numbers = scratch.cells[: stop - start + is_shared]
    if _FEW * node.n_rows < len(numbers):
        return list_few(numbers, scratch.bins, scratch.sums[0])
    return list_many(numbers, scratch.bins, scratch.sums[0])


@late()
def list_others(search, node, histogram, feature, cells, bins, scratch):
    """Fill ``scratch.sums`` of the outputs after the first, of the feature in these cells."""
    n_lanes = histogram.shape[1] // search.matrix.cell_starts[-1]
    one_hot = search.matrix.n_categories[feature] > 0 and is_one_hot(search, feature)
    for output in range(1, len(scratch.sums)):
        sums = scratch.sums[output]
        if search.matrix.places[feature].is_shared == 1:
            own = scratch.cells
            copy_cells(search.matrix, histogram, feature, output, node.sums[output], own)
            list_sums(own, np.int64(1), np.int64(0), bins, sums)
            continue
        numbers = histogram[output // n_lanes, cells[0] * n_lanes : cells[1] * n_lanes]
        list_sums(numbers, n_lanes, output % n_lanes, bins, sums)
        if one_hot:
            total = sum_cells(search.matrix, histogram, output, cells[0], cells[1])
            set_apart(sums, len(bins), total)


@inlined
def missing_cell_of(matrix, feature):
    """Give the cell of a feature's missing values, its last one."""
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    return cell_of_bin(matrix.places[feature], n_bins - 1)


@kernel
def sum_below(matrix, histogram, output, total, feature, bin_):
    """Give the packed sum of a feature's bins below one; `total` is the node's, of the output."""
    place = matrix.places[feature]
    first, cell = place.first_cell, cell_of_bin(place, bin_)
    if place.is_shared == 0 or bin_ <= place.zero_bin:
        return sum_cells(matrix, histogram, output, first, cell)
    # without a cell for the bin of 0: all less what is above
    stop = first + matrix.bin_starts[feature + 1] - matrix.bin_starts[feature] - 1
    return total - sum_cells(matrix, histogram, output, cell, stop)


@kernel
def sum_left_rows(node, matrix, workspace):
    """Fill the sums of the left child of a node's best split, if there is one."""
    tree, split = workspace.tree, workspace.tree.splits[node]
    tree.sums[node, LEFT, 0] = split.left_sum
    histogram = workspace.pool.histograms[tree.growth[node].slot]
    for output in range(1, tree.sums.shape[2] if split.gain > -np.inf else 0):
        if matrix.n_categories[split.feature] > 0:
            categories = tree.categories[node, : split.n_listed]
            left_sum = sum_categories(matrix, histogram, output, split.feature, categories)
        else:
            total = tree.sums[node, OWN, output]
            left_sum = sum_below(matrix, histogram, output, total, split.feature, split.bin)
        if split.default_left == 1:
            cell = missing_cell_of(matrix, split.feature)
            left_sum += sum_cells(matrix, histogram, output, cell, cell + 1)
        tree.sums[node, LEFT, output] = left_sum
