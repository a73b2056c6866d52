"""Histograms: for every bin of every feature, the packed sum of the gradients of a node's rows.

In: binned rows, packed gradients and the row partition. Out: the histograms of the nodes listed in
``pool.builds``, and of their siblings by subtraction.

The one idea: one 64-bit addition for each (row, feature), and only for the smaller of two children;
the other child is parent minus child, exactly, since the sums are integers.
"""

import numpy as np

from sklboost.compiling import kernel
from sklboost.parallel import barrier, next_task, prefetch, share

# How many rows ahead of their use the bins of a row are fetched: the rows of a small node lie
# scattered, and memory answers about 24 rows later.
_PREFETCH_ROWS = 24
# Features are taken in blocks whose cells fit the second-level cache.
_BLOCK_CELLS = 32768
_COUNTER = np.int64(1)


@kernel
def add_rows(matrix, packed, row_list, features, histogram):
    """Add the packed gradients of the listed rows to the cells of features ``[start, stop)``.

    Parameters
    ----------
    matrix : TrainingBins
    packed : ndarray of int64, shape (n_samples,)
    row_list : ndarray of uint32
    features : tuple of int
        Start and stop.
    histogram : ndarray of int64, shape (n_cells,)
        Added to in place.
    """
    bins, cell_starts = matrix.rows, matrix.cell_starts
    # unsigned indices: the compiler then leaves out the test for negative ones
    first_feature, stop_feature = np.uint64(features[0]), np.uint64(features[1])
    last = len(row_list) - 1
    for position in range(len(row_list)):
        row = np.uint64(row_list[np.uint64(position)])
        ahead = np.uint64(row_list[np.uint64(min(position + _PREFETCH_ROWS, last))])
        prefetch(bins, ahead)
        prefetch(packed, ahead)
        value = packed[row]
        for feature in range(first_feature, stop_feature):
            cell = np.uint64(cell_starts[feature]) + np.uint64(bins[row, feature])
            histogram[cell] += value


@kernel
def add_segment(matrix, packed, workspace, node, block, histogram):
    """Add the rows that `node` owns in `block` to `histogram`, feature block by feature block."""
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[node, block], partition.stop[node, block]
    row_list = partition.lists[tree.growth[node].depth % 2, start:stop]
    n_features = matrix.rows.shape[1]
    first = np.int64(0)
    while first < n_features and start < stop:
        last = first + 1
        limit = matrix.cell_starts[first] + _BLOCK_CELLS
        while last < n_features and matrix.cell_starts[last + 1] <= limit:
            last += 1
        add_rows(matrix, packed, row_list, (first, last), histogram)
        first = last


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
def build_alone(matrix, packed, workspace, build):
    """Build one histogram, and its sibling's, by one member of the team."""
    tree, pool = workspace.tree, workspace.pool
    histogram = pool.histograms[tree.growth[build.node].slot]
    histogram[:] = 0
    for block in range(workspace.partition.start.shape[1]):
        add_segment(matrix, packed, workspace, build.node, block, histogram)
    subtract_from_sibling(build, tree.growth, pool.histograms, np.int64(0), len(histogram))


@kernel
def build_shared_part(team, matrix, packed, workspace, task):
    """Add one block of rows of a node that several members build to this member's part."""
    pool = workspace.pool
    n_blocks = workspace.partition.start.shape[1]
    shared = task // n_blocks
    part = pool.partials[team.rank, shared]
    if pool.partial_used[team.rank, shared] == 0:
        pool.partial_used[team.rank, shared] = 1
        part[:] = 0
    add_segment(matrix, packed, workspace, pool.builds[shared].node, task % n_blocks, part)


@kernel
def merge_parts(team, workspace):
    """Add up the parts of the shared histograms; each member takes a range of cells."""
    tree, pool = workspace.tree, workspace.pool
    start, stop = share(team, pool.histograms.shape[1])
    for shared in range(tree.counts[0].n_shared):
        build = pool.builds[shared]
        histogram = pool.histograms[tree.growth[build.node].slot]
        histogram[start:stop] = 0
        for rank in range(team.size):
            if pool.partial_used[rank, shared] != 0:
                part = pool.partials[rank, shared]
                for cell in range(start, stop):
                    histogram[cell] += part[cell]
        subtract_from_sibling(build, tree.growth, pool.histograms, start, stop)


@kernel
def build_histograms(team, matrix, packed, workspace):
    """Fill the histograms of all ``pool.builds`` and of their siblings.

    Large nodes, listed first, are built block by block by whoever is free; the rest node by node.
    Ends with every histogram complete for every member of the team.
    """
    pool, counts = workspace.pool, workspace.tree.counts[0]
    n_shared_tasks = counts.n_shared * workspace.partition.start.shape[1]
    n_tasks = n_shared_tasks + counts.n_builds - counts.n_shared
    task = next_task(team, _COUNTER)
    while task < n_tasks:
        if task < n_shared_tasks:
            build_shared_part(team, matrix, packed, workspace, task)
        else:
            build = pool.builds[counts.n_shared + task - n_shared_tasks]
            build_alone(matrix, packed, workspace, build)
        task = next_task(team, _COUNTER)
    barrier(team)
    if counts.n_shared > 0:
        merge_parts(team, workspace)
        barrier(team)
