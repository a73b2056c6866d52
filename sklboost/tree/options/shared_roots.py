"""Root histograms of up to four trees of a round in one pass over the bins.

Where each output has trees of its own, as the classes of softmax do, the roots of a round's trees
have the same rows and derivatives that are known when the round begins. Their packed gradients are
put side by side, like the outputs of one tree in :mod:`sklboost.tree.options.several_outputs`, and
one vector instruction adds a row to the roots of four. Each tree then takes its lane of the sums,
which are integers: the same bits as if it had added up its rows itself. It takes its lane of the
packed gradients, too, which are those that it would make.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.parallel import barrier, next_task, reset_tasks, share
from sklboost.engine.structs import BuiltColumns, TrainingBins
from sklboost.tree.core.histogram import BLOCK_COLUMNS, empty_accumulator
from sklboost.tree.core.options import add_rows_to_strip
from sklboost.tree.core.partition import own_all_rows
from sklboost.tree.core.quantization import LANES, aligned_zeros, quantize
from sklboost.tree.core.workspace import NARROW_CELLS, SHARED_BYTES

# Least columns times outputs beyond the first of a group. With each, a part of a pass over the bins
# is saved; the gradients of all are copied there and back for it.
LEAST_SAVED = 40
_COUNTER = np.int64(1)  # of the team: it hands out the blocks of rows


class SharedRoots(NamedTuple):
    """The root histograms of the trees of up to four outputs, side by side.

    Attributes
    ----------
    lane : int
        Of the next tree; -1: it adds up its root's rows itself.
    strip : ndarray of int64, shape (n_samples * 4,) or (0,)
        Packed gradients, four lanes a row. Empty: no roots are shared.
    scales : ndarray of float64, shape (4, 2)
        Of each lane, as in ``Gradients``.
    places : ndarray of int64, shape (2, n_columns)
        Of each column, where it begins and ends in `histogram`.
    histogram : ndarray of int64, shape (n_cells * 4,)
    accumulators : ndarray of int64, shape (n_threads, n_columns * width)
        As in ``HistogramPool``. All 0 between two groups.
    """

    lane: np.int64
    strip: np.ndarray
    scales: np.ndarray
    places: np.ndarray
    histogram: np.ndarray
    accumulators: np.ndarray


def allocate_shared_roots(matrix: TrainingBins, n_threads: int, n_outputs: int) -> SharedRoots:
    """Make room for the roots of four outputs; none where it takes too much or saves little.

    `n_outputs` is 1 where roots must not be shared.
    """
    n_samples, n_columns = matrix.rows.shape
    is_worth_it = n_columns * (min(LANES, n_outputs) - 1) >= LEAST_SAVED
    starts = matrix.cell_starts * LANES
    width = NARROW_CELLS * LANES if matrix.rows.itemsize == 1 else int(np.diff(starts).max())
    if not is_worth_it or 8 * n_threads * n_columns * width > SHARED_BYTES:
        n_samples = n_threads = n_columns = 0
    return SharedRoots(
        lane=np.int64(-1),
        strip=aligned_zeros((n_samples * LANES,)),
        scales=np.ones((LANES, 2)),
        places=np.array([starts[:-1], starts[1:]])[:, :n_columns].copy(),
        histogram=np.empty(int(starts[n_columns]), dtype=np.int64),
        accumulators=aligned_zeros((n_threads, n_columns * width)),
    )


@inlined
def roots_of(roots, output, n_outputs):
    """Return the shared roots as the tree of an output has them: not if it is alone in its four."""
    lane = np.int64(-1)
    if len(roots.strip) > 0 and (output % LANES > 0 or output + 1 < n_outputs):
        lane = np.int64(output % LANES)
    return SharedRoots(
        lane, roots.strip, roots.scales, roots.places, roots.histogram, roots.accumulators
    )


@kernel
def fill_lane(team, derivatives, key, roots, lane, workspace):
    """Quantise the derivatives of one output as its tree will and copy them to its lane."""
    gradients, strip = workspace.gradients, roots.strip
    quantize(team, derivatives, key, gradients, workspace.machines)
    packed = gradients.packed[0]
    start, stop = share(team, len(packed))
    for row in range(start, stop):
        strip[np.uint64(row * LANES + lane)] = packed[np.uint64(row)]
    if team.rank == 0:
        for kind in range(2):
            roots.scales[lane, kind] = gradients.scales[0, kind]
    barrier(team)


@kernel
def build_roots(team, matrix, roots, workspace):
    """Add up all lanes; ends with the histogram complete for every member of the team."""
    partition = workspace.partition
    if team.rank == 0:
        reset_tasks(team)
    own_all_rows(team, partition)
    barrier(team)
    accumulator, n_columns = roots.accumulators[team.rank], np.int64(roots.places.shape[1])
    block = next_task(team, _COUNTER)
    while block < partition.n_counted:
        row_list = partition.lists[0, partition.start[block, 0] : partition.stop[block, 0]]
        for first in range(np.int64(0), n_columns, BLOCK_COLUMNS):
            columns = (first, min(first + BLOCK_COLUMNS, n_columns))
            add_rows_to_strip(matrix.rows, roots.strip, row_list, columns, accumulator)
        block = next_task(team, _COUNTER)
    barrier(team)
    own_columns = share(team, n_columns)
    built = BuiltColumns(matrix.rows, n_columns, workspace.pool.members, roots.places)
    for rank in range(team.size):
        part = roots.accumulators[rank]
        empty_accumulator(built, own_columns, part, roots.histogram, np.int64(rank))
    barrier(team)


@late()
def take_root(team, roots, workspace):
    """Fill a tree's gradients and root histogram with its lane; ends when all of it is there."""
    pool, gradients = workspace.pool, workspace.gradients
    packed = gradients.packed[0]
    start, stop = share(team, len(packed))
    for row in range(start, stop):
        packed[np.uint64(row)] = roots.strip[np.uint64(row * LANES + roots.lane)]
    if team.rank == 0:
        for kind in range(2):
            gradients.scales[0, kind] = roots.scales[roots.lane, kind]
    histogram = pool.histograms[workspace.tree.growth[0].slot, 0]
    start, stop = share(team, len(histogram))
    for cell in range(start, stop):
        histogram[cell] = roots.histogram[np.uint64(cell * LANES + roots.lane)]
    barrier(team)
