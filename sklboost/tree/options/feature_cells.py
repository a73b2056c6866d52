"""The bins of a feature that shares its column with others.

In such a column the bin of 0 has no cell (see ``data/binning.py``): its sum is that of the
node less those of the feature's other bins, exactly, since the sums are integers.
"""

import numpy as np

from sklboost.data.binning import cell_of_bin
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.options.several_outputs import sum_cells


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


@late()
def fill_special_sides(split, categories, matrix, sides):
    """Fill ``sides[bin]`` with 1 where rows of that bin of a column go left, else 0.

    For features of categories, of which the first ``split.n_listed`` of `categories` go left, and
    for columns that features share.
    """
    feature, place = split.feature, matrix.places[split.feature]
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    n_left = split.bin if matrix.n_categories[feature] == 0 else 0
    first = place.first_cell - matrix.cell_starts[place.column]
    of_feature = sides[first : first + n_bins - place.is_shared]
    n_below = n_bins
    if place.is_shared == 1:
        # rows that have a bin of another feature have this one's bin of 0
        n_below = place.zero_bin
        n_cells = matrix.cell_starts[place.column + 1] - matrix.cell_starts[place.column]
        sides[:n_cells] = n_below < n_left
    for bin_ in range(n_below):
        of_feature[bin_] = bin_ < n_left
    for bin_ in range(n_below + 1, n_bins):
        of_feature[bin_ - 1] = bin_ < n_left
    for index in range(split.n_listed):
        of_feature[categories[index]] = 1
    if matrix.has_missing[feature] == 1:
        of_feature[len(of_feature) - 1] = split.default_left
