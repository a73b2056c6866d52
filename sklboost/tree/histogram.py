"""Histograms: for every bin of every feature, the packed sum of the gradients of a node's rows.

In: binned rows, packed gradients and the row partition (the blocks that count). Out: the histograms
of the nodes listed in ``pool.builds``, and of their siblings by subtraction.

The one idea: one 64-bit addition for each (row, feature), and only for the smaller of two children;
the other child is parent minus child, exactly, since the sums are integers.
"""

import numpy as np

from sklboost.compiling import inlined, kernel
from sklboost.instructions import prefetch
from sklboost.parallel import barrier, next_task, share
from sklboost.tree.workspace import NARROW_CELLS

# How many rows ahead of their use the bins of a row are fetched: the rows of a small node lie
# scattered, and memory answers about 24 rows later.
_PREFETCH_ROWS = 24
# Features are taken in blocks of about so many: their cells then fit the first two levels of cache.
_BLOCK_FEATURES = 40
# A node is small if it has less than a third as many rows as its features have bins.
_SMALL = 3
_PLUS, _MINUS = np.int64(1), np.int64(-1)
_COUNTER = np.int64(1)


@kernel
def cells_per_feature(bins, accumulator):
    """Give the distance between two features in an accumulator, a constant for one-byte bins.

    A distance known to the compiler is part of the address in the addition itself: one instruction
    less for each of the billion updates of a fit.
    """
    return np.uint64(NARROW_CELLS if bins.itemsize == 1 else accumulator.shape[1])


@kernel
def add_rows(bins, packed, row_list, features, accumulator):
    """Add the packed gradients of the listed rows to the cells of features ``[start, stop)``.

    Parameters
    ----------
    bins : ndarray of uint8 or uint16, shape (n_samples, n_features)
    packed : ndarray of int64, shape (n_samples,)
    row_list : ndarray of uint32
    features : tuple of int
        Start and stop.
    accumulator : ndarray of int64, shape (n_features, cells_per_feature)
        Added to in place.
    """
    # unsigned indices: the compiler then leaves out the test for negative ones
    first, stop = np.uint64(features[0]), np.uint64(features[1])
    width = cells_per_feature(bins, accumulator)
    cells = accumulator.reshape(-1)
    last = len(row_list) - 1
    for position in range(len(row_list)):
        row = np.uint64(row_list[np.uint64(position)])
        ahead = np.uint64(row_list[np.uint64(min(position + _PREFETCH_ROWS, last))])
        prefetch(bins, ahead, first)
        prefetch(bins, ahead, stop - np.uint64(1))  # where the row goes on into another cache line
        prefetch(packed, ahead, first)
        value, row_bins = packed[row], bins[row]
        for feature in range(first, stop):
            cells[feature * width + np.uint64(row_bins[feature])] += value


@kernel
def add_segment(matrix, packed, workspace, node, block, accumulator):
    """Add the rows that `node` owns in `block`, feature block by feature block."""
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    row_list = partition.lists[tree.growth[node].depth % 2, start:stop]
    n_features = matrix.rows.shape[1]
    n_blocks = -(-n_features // _BLOCK_FEATURES)
    for index in range(n_blocks if start < stop else 0):
        features = (n_features * index // n_blocks, n_features * (index + 1) // n_blocks)
        add_rows(matrix.rows, packed, row_list, features, accumulator)


@kernel
def empty_accumulator(matrix, features, accumulator, histogram, n_before):
    """Move the sums of features ``[start, stop)`` to `histogram`, added if others came before."""
    for feature in range(features[0], features[1]):
        start, stop = matrix.cell_starts[feature], matrix.cell_starts[feature + 1]
        cells, target = accumulator[feature], histogram[start:stop]
        for bin_ in range(len(target)):
            target[bin_] = cells[bin_] if n_before == 0 else target[bin_] + cells[bin_]
            cells[bin_] = 0


@kernel
def subtract_from_sibling(build, growth, histograms, start, stop):
    """Turn the parent's histogram into the sibling's, for the cells `start` to `stop`."""
    if build.sibling < 0:
        return
    built = histograms[growth[build.node].slot]
    sibling = histograms[growth[build.sibling].slot]
    for cell in range(start, stop):
        sibling[cell] -= built[cell]


@kernel
def add_few_rows(matrix, packed, row_list, sign, histogram):
    """Add the packed gradients of the listed rows, times `sign`, to a histogram itself."""
    bins, cell_starts = matrix.rows, matrix.cell_starts
    for position in range(len(row_list)):
        row = np.uint64(row_list[position])
        value, row_bins = sign * packed[row], bins[row]
        for feature in range(np.uint64(len(row_bins))):
            cell = np.uint64(cell_starts[feature]) + np.uint64(row_bins[feature])
            histogram[cell] += value


@inlined
def build_small(matrix, packed, workspace, build):
    """Build the histogram of few rows, and its sibling's, row by row.

    Emptying an accumulator would take longer than that.
    """
    tree, partition, histograms = workspace.tree, workspace.partition, workspace.pool.histograms
    node = build.node
    rows_of_depth = partition.lists[tree.growth[node].depth % 2]
    histogram = histograms[tree.growth[node].slot]
    histogram[:] = 0
    for block in range(partition.n_counted):
        row_list = rows_of_depth[partition.start[block, node] : partition.stop[block, node]]
        add_few_rows(matrix, packed, row_list, _PLUS, histogram)
        if build.sibling >= 0:
            sibling = histograms[tree.growth[build.sibling].slot]
            add_few_rows(matrix, packed, row_list, _MINUS, sibling)


@inlined
def build_alone(team, matrix, packed, workspace, build):
    """Build one histogram, and its sibling's, by one member of the team."""
    tree, pool = workspace.tree, workspace.pool
    histogram = pool.histograms[tree.growth[build.node].slot]
    n_features = matrix.rows.shape[1]
    if _SMALL * tree.growth[build.node].n_rows * n_features < len(histogram):
        build_small(matrix, packed, workspace, build)
        return
    accumulator = pool.accumulators[team.rank, 0]
    for block in range(workspace.partition.n_counted):
        add_segment(matrix, packed, workspace, build.node, block, accumulator)
    features = (np.int64(0), np.int64(n_features))
    empty_accumulator(matrix, features, accumulator, histogram, np.int64(0))
    subtract_from_sibling(build, tree.growth, pool.histograms, np.int64(0), len(histogram))


@inlined
def build_shared_part(team, matrix, packed, workspace, task):
    """Add one block of rows of a node that several members build to this member's part."""
    pool = workspace.pool
    n_blocks = workspace.partition.n_counted
    shared = task // n_blocks
    pool.accumulator_used[team.rank, shared + 1] = 1
    accumulator = pool.accumulators[team.rank, shared + 1]
    add_segment(matrix, packed, workspace, pool.builds[shared].node, task % n_blocks, accumulator)


@kernel
def merge_parts(team, matrix, workspace):
    """Add up the parts of the shared histograms; each member takes a range of features."""
    tree, pool = workspace.tree, workspace.pool
    features = share(team, matrix.rows.shape[1])
    start, stop = matrix.cell_starts[features[0]], matrix.cell_starts[features[1]]
    for shared in range(tree.counts[0].n_shared):
        build = pool.builds[shared]
        histogram = pool.histograms[tree.growth[build.node].slot]
        n_before = np.int64(0)
        for rank in range(team.size):
            if pool.accumulator_used[rank, shared + 1] != 0:
                accumulator = pool.accumulators[rank, shared + 1]
                empty_accumulator(matrix, features, accumulator, histogram, n_before)
                n_before += 1
        subtract_from_sibling(build, tree.growth, pool.histograms, start, stop)


@kernel
def build_histograms(team, matrix, packed, workspace):
    """Fill the histograms of all ``pool.builds`` and of their siblings.

    Large nodes, listed first, are built block by block by whoever is free; the rest node by node.
    Ends with every histogram complete for every member of the team.
    """
    pool, counts = workspace.pool, workspace.tree.counts[0]
    n_shared_tasks = counts.n_shared * workspace.partition.n_counted
    n_tasks = n_shared_tasks + counts.n_builds - counts.n_shared
    task = next_task(team, _COUNTER)
    while task < n_tasks:
        if task < n_shared_tasks:
            build_shared_part(team, matrix, packed, workspace, task)
        else:
            build = pool.builds[counts.n_shared + task - n_shared_tasks]
            build_alone(team, matrix, packed, workspace, build)
        task = next_task(team, _COUNTER)
    barrier(team)
    if counts.n_shared > 0:
        merge_parts(team, matrix, workspace)
        barrier(team)
