"""The row partition: which rows belong to which node.

The rows of the nodes that are split are divided between their children, into the other of two lists
(see :class:`~sklboost.tree.core.workspace.RowPartition`). At the end leaf values are added to the
raw scores of each leaf's rows.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.parallel import barrier, next_task, share
from sklboost.tree.core import options
from sklboost.tree.core.prefetching import prefetch_values, values_are_scattered

_ROUTE_COUNTER = np.int64(0)
_ADD_COUNTER = np.int64(3)


@kernel
def own_all_rows(team, partition):
    """Let the root (node 0) own every row; each member writes its share of the list."""
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
def fill_sides(split, categories, matrix, sides):
    """Fill ``sides[bin]`` with 1 where rows of that bin of the feature's column go left, else 0.

    A table, since a byte of it is read as fast as a range is compared, whatever the split is like.
    `categories` begin with those that the split lists, if it is on categories.
    """
    feature = split.feature
    if matrix.n_categories[feature] > 0 or matrix.places[feature].is_shared == 1:
        options.fill_special_sides(split, categories, matrix, sides)
        return
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    for bin_ in range(n_bins):
        sides[bin_] = bin_ < split.bin
    if matrix.has_missing[feature] == 1:
        sides[n_bins - 1] = split.default_left


@inlined
def divide_rows(column, source, sides, target):
    """Copy a node's rows from `source` to `target`, left-going ones first; return how many go left.

    Every row is written at both ends and only one end advances: no branch to mispredict. The right
    rows come out in reverse, which changes no sum. `sides` is from :func:`fill_sides`, for the bins
    of `column`.
    """
    left, right = np.uint64(0), np.uint64(len(source))
    one, are_scattered = np.uint64(1), values_are_scattered(source)
    for position in range(len(source)):
        if are_scattered:
            prefetch_values(column, one, source, position)
        row = source[np.uint64(position)]
        goes_left = np.uint64(sides[np.uint64(column[np.uint64(row)])])
        target[left] = row
        target[right - one] = row
        left += goes_left
        right -= one - goes_left
    return np.int64(left)


@inlined
def route_segment(matrix, workspace, node, block, sides):
    """Divide the rows that `node` owns in `block` between its children; `sides` is scratch."""
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    depth = tree.growth[node].depth
    split = tree.splits[node]
    fill_sides(split, tree.categories[node], matrix, sides)
    n_left = divide_rows(
        matrix.columns[matrix.places[split.feature].column],
        partition.lists[depth % 2, start:stop],
        sides,
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

    A task is a block of rows, with all its nodes, and the block of those that were left out of it.
    """
    partition, counts = workspace.partition, workspace.tree.counts[0]
    n_blocks, sides = partition.start.shape[0], partition.sides[team.rank]
    task = next_task(team, _ROUTE_COUNTER, partition.n_counted)
    while task < partition.n_counted:
        for block in range(task, n_blocks, partition.n_counted):
            for index in range(counts.n_frontier):
                route_segment(matrix, workspace, workspace.tree.frontier[index], block, sides)
        task = next_task(team, _ROUTE_COUNTER, partition.n_counted)
    barrier(team)


@kernel
def add_by_side(column, row_list, sides, values, raw_score):
    """Add ``values[0]`` to the raw scores of the rows that go left, ``values[1]`` to the others."""
    one, are_scattered = np.uint64(1), values_are_scattered(row_list)
    for position in range(len(row_list)):
        if are_scattered:
            prefetch_values(raw_score, one, row_list, position)
            prefetch_values(column, one, row_list, position)
        row = np.uint64(row_list[np.uint64(position)])
        # an index, not a branch: half the rows go either way, in no order
        raw_score[row] += values[one - np.uint64(sides[np.uint64(column[row])])]


@inlined
def add_segment_values(matrix, workspace, node, block, values, scored):
    """Add `values`, one a node, to those of the rows that `node` owns in `block`.

    `scored` has what they are added to, and scratch for :func:`fill_sides`. The children of a split
    that was made last own no rows: they are told apart by bin, which saves writing their lists.
    """
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    row_list = partition.lists[tree.growth[node].depth % 2, start:stop]
    left = np.int64(tree.nodes[node].left)  # the right child is the next node
    target, sides = scored
    if left < 0:
        value = values[node]
        for position in range(len(row_list)):
            target[np.uint64(row_list[np.uint64(position)])] += value
        return
    split = tree.splits[node]
    fill_sides(split, tree.categories[node], matrix, sides)
    column = matrix.columns[matrix.places[split.feature].column]
    add_by_side(column, row_list, sides, values[left : left + 2], target)


@kernel
def add_values(team, matrix, workspace, n_blocks, target):
    """Add to each row of the first blocks what ``tree.values`` says; ends when all are done.

    `target` has shape (n_outputs, n_samples), or fewer outputs, of which `values` are then used.
    """
    partition = workspace.partition
    task = next_task(team, _ADD_COUNTER, partition.n_counted)
    while task < partition.n_counted:
        for block in range(task, n_blocks, partition.n_counted):
            add_block_values(matrix, workspace, block, partition.sides[team.rank], target)
        task = next_task(team, _ADD_COUNTER, partition.n_counted)
    barrier(team)


@inlined
def add_block_values(matrix, workspace, block, sides, target):
    """Add to each row of a block what ``tree.values`` says; `sides` is scratch."""
    tree = workspace.tree
    for output in range(len(target)):
        values, scored = tree.values[output], (target[output], sides)
        for node in range(tree.counts[0].n_nodes):
            if tree.growth[node].owns_rows == 1:
                add_segment_values(matrix, workspace, node, block, values, scored)


@kernel
def add_leaf_values(team, matrix, workspace, raw_score):
    """Add to each row's raw score the value of the leaf it reached; ends when all are done."""
    add_values(team, matrix, workspace, workspace.partition.start.shape[0], raw_score)
