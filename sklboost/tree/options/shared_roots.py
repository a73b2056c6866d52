"""Root histograms of up to four trees of a round in one pass over the bins.

Where each output has trees of its own, as the classes of softmax do, the roots of a round's trees
have the same rows and derivatives that are known when the round begins. The derivatives of four
trees are quantised first. One vector instruction then adds a row to all four roots, whose cells lie
side by side, like those of the outputs of one tree in
:mod:`sklboost.tree.options.several_outputs`. Each tree takes its lane of the sums, which are
integers: the same bits as if it had added up its rows itself.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.parallel import barrier, next_task, reset_tasks, share
from sklboost.engine.structs import BuiltColumns, TrainingBins, aligned_zeros
from sklboost.tree.core.histogram import BLOCK_COLUMNS, flush_accumulator
from sklboost.tree.core.quantization import LANES, Gradients, quantize
from sklboost.tree.core.workspace import NARROW_CELLS, SHARED_BYTES
from sklboost.tree.options.several_outputs import add_row_of_four, width_of_four

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
def lane_of(roots, output, n_outputs):
    """Return the lane of an output's tree, -1 if it has none: it may be alone in its four."""
    lane = np.int64(-1)
    if roots.packed.shape[1] > 0 and (output % LANES > 0 or output + 1 < n_outputs):
        lane = np.int64(output % LANES)
    return lane


@inlined
def gradients_of(roots, lane, gradients):
    """Return what a tree's derivatives are quantised to: its lane or, if it is -1, `gradients`.

    The scratch is the same in both.
    """
    packed, strips, scales = gradients.packed, gradients.strips, gradients.scales
    if lane >= 0:
        packed, scales = roots.packed[lane : lane + 1], roots.scales[lane : lane + 1]
        strips = packed
    return Gradients(
        packed, strips, scales, gradients.counts, gradients.block_sums, gradients.totals
    )


@inlined
def quantize_lane(team, derivatives, key, lane, roots, workspace):
    """Quantise the derivatives of the tree of a lane."""
    gradients = gradients_of(roots, lane, workspace.gradients)
    quantize(team, derivatives, key, gradients, workspace.machines)


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
    """Fill a tree's root histogram with its lane of the sums; ends when all of it is there."""
    histogram = workspace.pool.histograms[workspace.tree.growth[0].slot, 0]
    start, stop = share(team, len(histogram))
    for cell in range(start, stop):
        histogram[cell] = roots.histogram[np.uint64(cell * LANES + lane)]
    barrier(team)
