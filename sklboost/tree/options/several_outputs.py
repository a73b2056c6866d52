"""Histograms of several outputs: four outputs are added up at once.

The cells of four outputs lie side by side (its lanes), and one vector instruction adds a row to all
of them, in one and a half times the time of one output. A tree of several outputs has a *strip* of
histograms for each four.

Where each output has trees of its own, as the classes of softmax do, the roots of a round's trees
have the same rows, and derivatives that are known when the round begins. So four of them share a
strip: their derivatives are quantised first, one pass over the bins adds up all four, and each tree
takes its lane of the sums. These are integers: the same bits as if it had added up its rows itself.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import add_lanes, item_bytes, load_lanes, load_word
from sklboost.engine.parallel import barrier, next_task, reset_tasks, share
from sklboost.engine.structs import BuiltColumns, TrainingBins, aligned_zeros
from sklboost.tree.core.histogram import BLOCK_COLUMNS, flush_accumulator
from sklboost.tree.core.prefetching import bins_are_scattered, prefetch_bins, prefetch_values
from sklboost.tree.core.quantization import LANES, Gradients
from sklboost.tree.core.workspace import NARROW_CELLS, SHARED_BYTES

_PLUS, _N_LANES = np.int64(1), np.uint64(LANES)
_LANES = (0,) * LANES  # the compiler knows the length of a tuple


@late()
def fill_strips(gradients, rows):
    """Copy the packed gradients of rows ``[start, stop)`` to ``gradients.strips``."""
    for index in range(len(gradients.strips)):
        strip, packed = gradients.strips[index], gradients.packed[LANES * index :]
        n_lanes = np.uint64(min(LANES, len(packed)))
        for row in range(rows[0], rows[1]):
            for lane in range(n_lanes):
                strip[np.uint64(row * LANES) + lane] = packed[lane, np.uint64(row)]


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
def list_sums(numbers, n_lanes, lane, bins, sums):
    """Fill `sums` with the packed sum before each of the listed bins.

    `numbers`, of shape (n_bins * n_lanes,), is a feature's part of a strip's histogram. `bins` are
    all that are not empty, in any order.
    """
    before = np.int64(0)
    for position in range(len(bins)):
        sums[np.uint64(position)] = before
        before += numbers[np.uint64(bins[np.uint64(position)] * n_lanes + lane)]


# --- the roots of several trees

# Four roots take one and a half times as long as one, and then the sums have to be told apart: two
# outputs save next to nothing, nor do fewer rows than these.
LEAST_OUTPUTS, LEAST_ROWS = 3, 2_000
_COUNTER = np.int64(1)  # of the team: it hands out the blocks of rows


class SharedRoots(NamedTuple):
    """The root histograms of the trees of up to four outputs, side by side."""

    # int64, shape (4, n_samples) or (4, 0): packed gradients of each lane. Empty: no roots are
    # shared.
    packed: np.ndarray
    scales: np.ndarray  # float64, shape (4, 2): of each lane, as in ``Gradients``
    # int64, shape (2, n_columns): of each column, where it begins and ends in `histogram`
    places: np.ndarray
    histogram: np.ndarray  # int64, shape (n_cells * 4,)
    # int64, shape (n_threads, n_columns * width): as in ``HistogramPool``. All 0 between two
    # groups.
    accumulators: np.ndarray


def allocate_shared_roots(matrix: TrainingBins, n_threads: int, n_outputs: int) -> SharedRoots:
    """Make room for the roots of four outputs; none where it takes too much or saves little.

    `n_outputs` is 1 where roots must not be shared.
    """
    n_samples, n_columns = matrix.rows.shape
    is_worth_it = n_outputs >= LEAST_OUTPUTS and n_samples >= LEAST_ROWS
    starts = matrix.cell_starts * LANES
    width = NARROW_CELLS * LANES if matrix.rows.itemsize == 1 else int(np.diff(starts).max())
    if not is_worth_it or 8 * n_threads * n_columns * width > SHARED_BYTES:
        n_samples = n_threads = n_columns = 0
    return SharedRoots(
        packed=np.zeros((LANES, n_samples), dtype=np.int64),
        scales=np.ones((LANES, 2)),
        places=np.array([starts[:-1], starts[1:]])[:, :n_columns].copy(),
        histogram=np.empty(int(starts[n_columns]), dtype=np.int64),
        accumulators=aligned_zeros((n_threads, n_columns * width)),
    )


@inlined
def gradients_of(roots, lane, gradients):
    """Return what a tree's derivatives are quantised to: its lane or, if it is -1, `gradients`."""
    packed, strips, scales = gradients.packed, gradients.strips, gradients.scales
    if lane >= 0:
        packed, scales = roots.packed[lane : lane + 1], roots.scales[lane : lane + 1]
        strips = packed
    return Gradients(packed, strips, scales, gradients.counts)


@kernel
def add_rows_of_four(bins, packed, rows, columns, accumulator):
    """Add rows ``[start, stop)`` of four lanes to the cells of columns ``[start, stop)``."""
    columns = (np.uint64(columns[0]), np.uint64(columns[1]))
    width = width_of_four(bins, accumulator)
    for row in range(np.uint64(rows[0]), np.uint64(rows[1])):
        values = (packed[0, row], packed[1, row], packed[2, row], packed[3, row])
        add_row_of_four(bins, row, values, columns, width, accumulator)


@kernel
def build_roots(team, matrix, roots, workspace):
    """Add up all lanes; ends with the histogram complete for every member of the team."""
    n_blocks, (n_samples, n_columns) = workspace.partition.n_counted, matrix.rows.shape
    if team.rank == 0:
        reset_tasks(team)
    barrier(team)
    accumulator = roots.accumulators[team.rank]
    block = next_task(team, _COUNTER, n_blocks)
    while block < n_blocks:
        rows = (n_samples * block // n_blocks, n_samples * (block + 1) // n_blocks)
        for first in range(np.int64(0), n_columns, BLOCK_COLUMNS):
            columns = (first, min(first + BLOCK_COLUMNS, n_columns))
            add_rows_of_four(matrix.rows, roots.packed, rows, columns, accumulator)
        block = next_task(team, _COUNTER, n_blocks)
    barrier(team)
    own_columns = share(team, n_columns)
    built = BuiltColumns(matrix.rows, n_columns, workspace.pool.members, roots.places)
    for rank in range(team.size):
        part = roots.accumulators[rank]
        flush_accumulator(built, own_columns, part, roots.histogram, np.int64(rank))
    barrier(team)


@late()
def take_root(team, roots, lane, workspace):
    """Fill a tree's root histogram with its lane of the sums; all are there when the team met."""
    histogram = workspace.pool.histograms[workspace.tree.growth[0].slot, 0]
    start, stop = share(team, len(histogram))
    for cell in range(start, stop):
        histogram[cell] = roots.histogram[np.uint64(cell * LANES + lane)]
