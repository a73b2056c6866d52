"""Histograms of trees of several outputs: strips of four outputs that are added up at once.

The cells of four outputs lie side by side (its lanes), and one vector instruction adds a row to all
of them, in one and a half times the time of one output.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import add_lanes, item_bytes, load_lanes, load_word
from sklboost.engine.parallel import barrier, share
from sklboost.tree.core.prefetching import bins_are_scattered, prefetch_bins, prefetch_values
from sklboost.tree.core.quantization import LANES
from sklboost.tree.core.workspace import NARROW_CELLS, OWN

_PLUS, _N_LANES = np.int64(1), np.uint64(LANES)
_LANES = (0,) * LANES  # the compiler knows the length of a tuple


@late()
def fill_strips(team, gradients):
    """Copy the packed gradients to ``gradients.strips``; ends when all rows are done."""
    start, stop = share(team, gradients.packed.shape[1])
    for index in range(len(gradients.strips)):
        strip, packed = gradients.strips[index], gradients.packed[LANES * index :]
        n_lanes = np.uint64(min(LANES, len(packed)))
        for row in range(start, stop):
            for lane in range(n_lanes):
                strip[np.uint64(row * LANES) + lane] = packed[lane, np.uint64(row)]
    barrier(team)


@late()
def add_rows_to_strip(bins, packed, row_list, columns, accumulator):
    """Do for four outputs what :func:`~sklboost.tree.core.histogram.add_rows` does for one.

    `packed` is one of ``Gradients.strips``, and a cell of `accumulator` has four numbers.
    """
    columns = (np.uint64(columns[0]), np.uint64(columns[1]))
    width, are_scattered = width_of_four(bins, accumulator), bins_are_scattered(bins, row_list)
    for position in range(len(row_list)):
        if are_scattered:
            prefetch_bins(bins, row_list, position, columns)
            prefetch_values(packed, _N_LANES, row_list, position)
        row = np.uint64(row_list[np.uint64(position)])
        values = load_lanes(packed, row * _N_LANES, _LANES)
        add_row_of_four(bins, row, values, columns, width, accumulator)


@inlined
def width_of_four(bins, accumulator):
    """Return how many numbers a column has in an accumulator of four numbers a cell."""
    n_columns = bins.shape[1]
    return np.uint64(
        NARROW_CELLS * LANES if item_bytes(bins) == 1 else len(accumulator) // n_columns
    )


@inlined
def add_row_of_four(bins, row, values, columns, width, accumulator):
    """Add four numbers to a row's cell of each column ``[start, stop)``.

    Several bins are read as one word, as in :func:`~sklboost.tree.core.histogram.add_row`.
    """
    first, stop = columns
    bits = np.uint64(8 * item_bytes(bins))
    per_word, mask = np.uint64(64) // bits, (np.uint64(1) << bits) - np.uint64(1)
    whole, row_bins = stop - (stop - first) % per_word, bins[row]
    for column in range(first, whole, per_word):
        word = load_word(bins, row, column)
        for place in range(per_word):
            bin_ = (word >> (place * bits)) & mask
            add_lanes(accumulator, (column + place) * width + bin_ * _N_LANES, values, _PLUS)
    for column in range(whole, stop):
        bin_ = np.uint64(row_bins[column])
        add_lanes(accumulator, column * width + bin_ * _N_LANES, values, _PLUS)


@late()
def add_few_rows_to_strip(bins, packed, row_list, sign, starts, histogram):
    """Add the rows of a strip, times `sign`, to its histogram itself."""
    for position in range(len(row_list)):
        row = np.uint64(row_list[position])
        values, row_bins = load_lanes(packed, row * _N_LANES, _LANES), bins[row]
        for column in range(np.uint64(len(starts))):
            place = np.uint64(starts[column]) + np.uint64(row_bins[column]) * _N_LANES
            add_lanes(histogram, place, values, sign)


@kernel
def sum_cells(matrix, histogram, output, start, stop):
    """Return the packed sum of the cells ``[start, stop)`` for one output.

    `histogram` is a node's, with all its strips: shape (n_strips, n_cells * n_lanes).
    """
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    numbers, lane = histogram[output // n_lanes], output % n_lanes
    total = np.int64(0)
    for cell in range(start, stop):
        total += numbers[np.uint64(cell * n_lanes + lane)]
    return total


@late()
def sum_root_of_several(matrix, workspace):
    """Fill the root's sums: the cells of any one column that was built hold all rows."""
    tree, column = workspace.tree, workspace.pool.columns[0]
    start, stop = matrix.cell_starts[column], matrix.cell_starts[column + 1]
    histogram = workspace.pool.histograms[tree.growth[0].slot]
    for output in range(tree.sums.shape[2]):
        tree.sums[0, OWN, output] = sum_cells(matrix, histogram, output, start, stop)


@kernel
def list_sums(numbers, n_lanes, lane, bins, sums):
    """Fill `sums` with the packed sum before each of the listed bins.

    `numbers`, of shape (n_bins * n_lanes,), is a feature's part of a strip's histogram. `bins` are
    all that are not empty, in any order.
    """
    before = np.int64(0)
    for position in range(len(bins)):
        sums[np.uint64(position)] = before
        before += numbers[np.uint64(bins[np.uint64(position)] * n_lanes + lane)]
