"""The row partition: which rows belong to which node.

In: the splits of the frontier. Out: the rows of their children, in the other of the two lists (see
:class:`~sklboost.tree.workspace.RowPartition`); at the end, leaf values added to the raw scores.
"""

import numpy as np

from sklboost.compiling import inlined, kernel
from sklboost.instructions import prefetch
from sklboost.parallel import barrier, next_task, share

# How many rows ahead of their use scattered values are fetched.
_PREFETCH_ROWS = 32
_ROUTE_COUNTER = np.int64(0)
_ADD_COUNTER = np.int64(3)


@kernel
def own_all_rows(team, partition):
    """Give every row to the root (node 0); each member writes its share of the list."""
    n_samples = partition.lists.shape[1]
    start, stop = share(team, n_samples)
    rows = partition.lists[0, start:stop]
    for position in range(len(rows)):
        rows[position] = start + position
    if team.rank == 0:
        n_blocks = partition.start.shape[0]
        for block in range(n_blocks):
            partition.start[block, 0] = n_samples * block // n_blocks
            partition.stop[block, 0] = n_samples * (block + 1) // n_blocks


@kernel
def left_range(split, matrix):
    """Describe which bins go left as ``(first, width, inside)``.

    A row goes left if its bin lies in the `width` bins from `first` on, or, if `inside` is 0, if it
    does not. The missing bin is the last one, so both default directions are one such range, and
    routing needs one comparison.
    """
    if split.default_left == 0:
        return 0, split.bin, 1
    n_bins = matrix.cell_starts[split.feature + 1] - matrix.cell_starts[split.feature]
    return split.bin, n_bins - 1 - split.bin, 0


@kernel
def divide_rows(column, source, going_left, target):
    """Copy the rows of one node to `target`, left-going ones first; return how many those are.

    Every row is written at both ends and only one end advances: no branch to mispredict. The right
    rows come out in reverse, which no sum notices.

    Parameters
    ----------
    column : ndarray of uint8 or uint16, shape (n_samples,)
        Bins of the split's feature.
    source : ndarray of uint32
        The node's rows.
    going_left : tuple of int
        From :func:`left_range`.
    target : ndarray of uint32, as long as `source`
        Filled.
    """
    first, width = np.uint64(going_left[0]), np.uint64(going_left[1])
    outside = np.uint64(1 - going_left[2])
    left, right = np.uint64(0), np.uint64(len(source))
    one = np.uint64(1)
    for position in range(len(source)):
        row = source[np.uint64(position)]
        bin_ = np.uint64(column[np.uint64(row)])
        inside = np.uint64(bin_ >= first) & np.uint64(bin_ < first + width)
        goes_left = inside ^ outside
        target[left] = row
        target[right - one] = row
        left += goes_left
        right -= one - goes_left
    return np.int64(left)


@inlined
def route_segment(matrix, workspace, node, block):
    """Divide the rows that `node` owns in `block` between its children."""
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    depth = tree.growth[node].depth
    split = tree.splits[node]
    n_left = divide_rows(
        matrix.columns[split.feature],
        partition.lists[depth % 2, start:stop],
        left_range(split, matrix),
        partition.lists[(depth + 1) % 2, start:stop],
    )
    left, right = np.int64(tree.nodes[node].left), np.int64(tree.nodes[node].right)
    partition.start[block, left] = start
    partition.stop[block, left] = start + n_left
    partition.start[block, right] = start + n_left
    partition.stop[block, right] = stop


@kernel
def route_rows(team, matrix, workspace):
    """Divide the rows of every frontier node between its children; ends when all are done.

    A task is a block of rows, with all its nodes.
    """
    n_blocks = workspace.partition.start.shape[0]
    block = next_task(team, _ROUTE_COUNTER)
    while block < n_blocks:
        for index in range(workspace.tree.counts[0].n_frontier):
            route_segment(matrix, workspace, workspace.tree.frontier[index], block)
        block = next_task(team, _ROUTE_COUNTER)
    barrier(team)


@kernel
def add_by_side(column, row_list, going_left, values, raw_score):
    """Add ``values[1]`` to the raw scores of the rows that go left, ``values[0]`` to the others."""
    first, stop = going_left[0], going_left[0] + going_left[1]
    last = len(row_list) - 1
    for position in range(len(row_list)):
        row = np.uint64(row_list[np.uint64(position)])
        ahead = np.uint64(row_list[np.uint64(min(position + _PREFETCH_ROWS, last))])
        prefetch(raw_score, ahead, ahead)
        prefetch(column, ahead, ahead)
        bin_ = np.int64(column[row])
        inside = (bin_ >= first) & (bin_ < stop)
        raw_score[row] += values[0] if inside ^ (going_left[2] == 1) else values[1]


@inlined
def add_segment_values(matrix, workspace, node, block, values, target):
    """Add `values`, one a node, of the rows that `node` owns in `block`.

    The children of a split that was made last own no rows: they are told apart by bin here, which
    saves writing their lists.
    """
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    row_list = partition.lists[tree.growth[node].depth % 2, start:stop]
    left, right = tree.nodes[node].left, tree.nodes[node].right
    if left < 0:
        value = values[node]
        for position in range(len(row_list)):
            target[np.uint64(row_list[np.uint64(position)])] += value
        return
    sides = (values[right], values[left])
    split = tree.splits[node]
    going_left = left_range(split, matrix)
    add_by_side(matrix.columns[split.feature], row_list, going_left, sides, target)


@kernel
def add_values(team, matrix, workspace, n_blocks, target):
    """Add to each row of the first blocks what ``tree.values`` says; ends when all are done.

    `target` has shape (n_outputs, n_samples), or fewer outputs, of which `values` are then used.
    """
    tree = workspace.tree
    block = next_task(team, _ADD_COUNTER)
    while block < n_blocks:
        for output in range(len(target)):
            values, own_target = tree.values[output], target[output]
            for node in range(tree.counts[0].n_nodes):
                if tree.growth[node].owns_rows == 1:
                    add_segment_values(matrix, workspace, node, block, values, own_target)
        block = next_task(team, _ADD_COUNTER)
    barrier(team)


@kernel
def add_leaf_values(team, matrix, workspace, raw_score):
    """Add to each row's raw score the value of the leaf it reached; ends when all are done."""
    add_values(team, matrix, workspace, workspace.partition.start.shape[0], raw_score)
