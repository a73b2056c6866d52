"""The row partition: which rows belong to which node.

The rows of the nodes that are split are divided between their children, into the other of two lists
(see :class:`~sklboost.tree.core.workspace.RowPartition`). At the end leaf values are added to the
raw scores of each leaf's rows.

Here rows are divided by their bins, and in predictions by their values. So a threshold never
divides the values of one bin: then rows go the same way by both, also those that the node's split
was not found from: rows that sampling left out, and rows of a
:class:`~sklboost.data.binned_matrix.BinnedMatrix` that a fold holds out.
"""

import numpy as np

from sklboost.data.cuts import midpoint
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.parallel import barrier, next_task, share
from sklboost.tree.core.machines import PIECE_ROWS
from sklboost.tree.core.prefetching import prefetch_values, values_are_scattered

_ROUTE_COUNTER = np.int64(0)
ADD_COUNTER = np.int64(3)


@inlined
def rows_of_blocks(partition, blocks):
    """Return the rows ``[start, stop)`` of such a range of blocks that count: whole pieces."""
    n_samples, n_counted = partition.lists.shape[1], partition.n_counted
    n_pieces = (n_samples + PIECE_ROWS - 1) // PIECE_ROWS
    return (
        min(n_pieces * blocks[0] // n_counted * PIECE_ROWS, n_samples),
        min(n_pieces * blocks[1] // n_counted * PIECE_ROWS, n_samples),
    )


@kernel
def own_all_rows(team, partition):
    """Let the root (node 0) own every row; each member lists its own."""
    start, stop = rows_of_blocks(partition, share(team, partition.n_counted))
    rows = partition.lists[0, start:stop]
    for position in range(len(rows)):
        rows[position] = start + position
    if team.rank == 0:
        n_blocks = partition.start.shape[0]
        for block in range(n_blocks):
            rows_of_block = rows_of_blocks(partition, (block, block + 1))
            partition.start[block, 0], partition.stop[block, 0] = rows_of_block


@kernel
def route_rows(team, matrix, workspace):
    """Divide the rows of every frontier node between its children; all are when the team has met.

    A task is a block of rows, with all its nodes, and the block of those that were left out of it.
    """
    tree, partition, counts = workspace.tree, workspace.partition, workspace.tree.counts[0]
    n_blocks, sides = partition.start.shape[0], partition.sides[team.rank]
    task = next_task(team, _ROUTE_COUNTER, partition.n_counted)
    while task < partition.n_counted:
        for index in range(counts.n_frontier):
            node = tree.frontier[index]
            fill_sides(tree.splits[node], tree.categories[node], matrix, sides)
            column = matrix.columns[matrix.places[tree.splits[node].feature].column]
            for block in range(task, n_blocks, partition.n_counted):
                route_segment(workspace, node, block, column, sides)
        task = next_task(team, _ROUTE_COUNTER, partition.n_counted)


@inlined
def route_segment(workspace, node, block, column, sides):
    """Divide the rows that `node` owns in `block` between its children, by bins of `column`."""
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    depth = tree.growth[node].depth
    n_left = divide_rows(
        column,
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
def fill_sides(split, categories, matrix, sides):
    """Fill ``sides[bin]`` with 1 where rows of that bin of the feature's column go left, else 0.

    A table, since a byte of it is read as fast as a range is compared, whatever the split is like:
    of categories the first ``split.n_listed`` of `categories` go left, and features may share the
    column.
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


@kernel
def add_values(team, matrix, workspace, n_blocks, target):
    """Add to each row of the first blocks what ``tree.values`` says; ends when all are done."""
    n_counted, sides = workspace.partition.n_counted, workspace.partition.sides[team.rank]
    task = next_task(team, ADD_COUNTER, n_counted)
    while task < n_counted:
        add_values_of(matrix, workspace, (task, n_blocks), target, sides)
        task = next_task(team, ADD_COUNTER, n_counted)
    barrier(team)


@kernel
def add_values_of(matrix, workspace, blocks, target, sides):
    """Add what ``tree.values`` says to each row of a task: of a block, and of those left out of it.

    `target` has shape (n_outputs, n_samples), or fewer outputs, of which `values` are then used.
    ``blocks`` are the task, and where blocks end; `sides` is scratch.
    """
    tree, partition = workspace.tree, workspace.partition
    for node in range(tree.counts[0].n_nodes):
        if tree.growth[node].owns_rows == 0:
            continue
        row_list = partition.lists[tree.growth[node].depth % 2]
        left = np.int64(tree.nodes[node].left)  # the right child is the next node
        # The children of a split that was made last own no rows: they are told apart by bin, which
        # saves writing their lists.
        number = np.int64(0)  # of a column: of a leaf it is not read
        if left >= 0:
            fill_sides(tree.splits[node], tree.categories[node], matrix, sides)
            number = np.int64(matrix.places[tree.splits[node].feature].column)
        column = matrix.columns[number]
        for block in range(blocks[0], blocks[1], partition.n_counted):
            rows = row_list[partition.start[block, node] : partition.stop[block, node]]
            for output in range(len(target)):
                values = tree.values[output]
                if left >= 0:
                    add_by_side(column, rows, sides, values[left : left + 2], target[output])
                else:
                    add_value(rows, values[node], target[output])


@inlined
def add_value(row_list, value, raw_score):
    """Add a value to the raw scores of the rows."""
    for position in range(len(row_list)):
        raw_score[np.uint64(row_list[np.uint64(position)])] += value


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


@kernel
def place_threshold(split, matrix):
    """Return the threshold of a split and set ``split.bin`` to the first bin on its right.

    It is the value halfway between the node's neighbours of the split, so that ``x < threshold``
    holds for the lower one only; -inf if only missing values go left. Where a feature has more
    values than bins, it is the cut nearest to that, the lower of two. A split on categories has
    none: NaN.
    """
    if matrix.n_categories[split.feature] > 0:
        return np.nan
    if split.below < 0:
        split.bin = 0
        return -np.inf
    start, stop = matrix.bin_starts[split.feature], matrix.bin_starts[split.feature + 1]
    stop -= matrix.has_missing[split.feature]
    lower, upper = matrix.lower[start:stop], matrix.upper[start:stop]
    # whether every value has a bin of its own; of a feature of many values few bins are read
    n_own = 0
    while n_own < len(lower) and lower[n_own] == upper[n_own]:
        n_own += 1
    is_exact = n_own == len(lower)
    below = upper[split.below]
    if below == -np.inf:
        below = upper[split.bin - 1]  # nothing is halfway to -inf
    halfway = midpoint(below, lower[split.bin])
    bin_, last = split.below + 1, split.bin  # halving: the first bin not wholly left of halfway
    while bin_ < last:
        middle = (bin_ + last) // 2
        if right_end(middle, is_exact, lower, upper) >= halfway:
            last = middle
        else:
            bin_ = middle + 1
    threshold = halfway
    if not is_exact:
        threshold = right_end(bin_, is_exact, lower, upper)
        if bin_ - 1 > split.below:
            before = right_end(bin_ - 1, is_exact, lower, upper)
            if halfway <= midpoint(before, threshold):
                bin_, threshold = bin_ - 1, before
    split.bin = bin_
    return threshold


@inlined
def right_end(bin_, is_exact, lower, upper):
    """Return the largest threshold that has `bin_` on its right and the bin before on its left.

    If every value has its own bin, that is the value itself. Else rows that the cut points were not
    chosen from may lie anywhere between two bins, and only the cut divides them as bins do.
    """
    return lower[bin_] if is_exact else midpoint(upper[bin_ - 1], lower[bin_])
