"""Histograms: for every bin of every column, the packed sum of the gradients of a node's rows.

In: binned rows, packed gradients and the row partition (the blocks that count). Out: the histograms
of the nodes listed in ``pool.builds``, and of their siblings by subtraction.

The one idea: one 64-bit addition for each (row, column), and only for the smaller of two children;
the other child is parent minus child, exactly, since the sums are integers. A tree of several
outputs has a histogram for each, built four at once: the cells of four outputs lie side by side,
and one vector instruction adds a row to all of them. Twice the time of one, so half that of four.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import add_lanes, load_lanes, prefetch
from sklboost.engine.parallel import barrier, next_task, share
from sklboost.tree.core.workspace import NARROW_CELLS

# How many rows ahead of their use the bins of a row are fetched: the rows of a small node lie
# scattered, and memory answers about 24 rows later.
_PREFETCH_ROWS = 24
# Columns are taken in blocks of about so many: their cells then fit the first two levels of cache.
_BLOCK_COLUMNS = 40
# A node is small if it has less than a third as many rows as its columns have bins.
_SMALL = 3
_PLUS, _MINUS = np.int64(1), np.int64(-1)
_COUNTER = np.int64(1)
# A tuple's length is known to the compiler. These make it compile what adds rows twice.
_ONE, _FOUR = (0,), (0, 0, 0, 0)


@inlined
def numbers_per_column(bins, accumulator, lanes):
    """Give the distance between two columns in an accumulator, a constant for one-byte bins.

    A distance known to the compiler is part of the address in the addition itself: one instruction
    less for each of the billion updates of a fit.
    """
    return np.uint64(NARROW_CELLS * len(lanes) if bins.itemsize == 1 else accumulator.shape[1])


@kernel
def add_rows(bins, packed, row_list, columns, accumulator, lanes):
    """Add the packed gradients of the listed rows to the cells of columns ``[start, stop)``.

    Parameters
    ----------
    bins : ndarray of uint8 or uint16, shape (n_samples, n_columns)
    packed : ndarray of int64, shape (n_samples * n_lanes,)
        One of ``Gradients.strips``.
    row_list : ndarray of uint32
    columns : tuple of int
        Start and stop.
    accumulator : ndarray of int64, shape (n_columns, numbers_per_column)
        Added to in place; a cell is `n_lanes` numbers.
    lanes : tuple of int
        Its length is `n_lanes`.
    """
    # unsigned indices: the compiler then leaves out the test for negative ones
    first, stop = np.uint64(columns[0]), np.uint64(columns[1])
    width, n_lanes = numbers_per_column(bins, accumulator, lanes), np.uint64(len(lanes))
    cells = accumulator.reshape(-1)
    last = len(row_list) - 1
    for position in range(len(row_list)):
        row = np.uint64(row_list[np.uint64(position)])
        ahead = np.uint64(row_list[np.uint64(min(position + _PREFETCH_ROWS, last))])
        prefetch(bins, ahead, first)
        prefetch(bins, ahead, stop - np.uint64(1))  # where the row goes on into another cache line
        prefetch(packed, ahead * n_lanes, first)
        values, row_bins = load_lanes(packed, row * n_lanes, lanes), bins[row]
        for column in range(first, stop):
            place = column * width + np.uint64(row_bins[column]) * n_lanes
            add_lanes(cells, place, values, _PLUS)


@kernel
def sum_cells(matrix, histogram, output, start, stop):
    """Give the packed sum of the cells ``[start, stop)`` for one output.

    `histogram` is a node's, with all its strips: shape (n_strips, n_cells * n_lanes).
    """
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    numbers, lane = histogram[output // n_lanes], output % n_lanes
    total = np.int64(0)
    for cell in range(start, stop):
        total += numbers[np.uint64(cell * n_lanes + lane)]
    return total


@inlined
def lanes_of(matrix, packed):
    """Give the number of lanes of a strip of packed gradients."""
    return len(packed) // len(matrix.rows)


@inlined
def add_segment(matrix, packed, workspace, node, block, accumulator):
    """Add the rows that `node` owns in `block`, some columns at a time."""
    tree, partition = workspace.tree, workspace.partition
    start, stop = partition.start[block, node], partition.stop[block, node]
    row_list = partition.lists[tree.growth[node].depth % 2, start:stop]
    n_columns, bins, n_lanes = matrix.rows.shape[1], matrix.rows, lanes_of(matrix, packed)
    n_blocks = -(-n_columns // _BLOCK_COLUMNS)
    for index in range(n_blocks if start < stop else 0):
        columns = (n_columns * index // n_blocks, n_columns * (index + 1) // n_blocks)
        if n_lanes == 1:
            add_rows(bins, packed, row_list, columns, accumulator, _ONE)
        else:
            add_rows(bins, packed, row_list, columns, accumulator, _FOUR)


@kernel
def empty_accumulator(matrix, columns, accumulator, histogram, n_before):
    """Move the sums of columns ``[start, stop)`` to `histogram`, added if others came before."""
    cell_starts = matrix.cell_starts
    n_lanes = len(histogram) // cell_starts[-1]
    for column in range(columns[0], columns[1]):
        start, stop = cell_starts[column] * n_lanes, cell_starts[column + 1] * n_lanes
        cells, target = accumulator[column], histogram[start:stop]
        for bin_ in range(len(target)):
            target[bin_] = cells[bin_] if n_before == 0 else target[bin_] + cells[bin_]
            cells[bin_] = 0


@inlined
def subtract_from_sibling(build, strip, growth, histograms, numbers):
    """Turn the parent's histogram into the sibling's, for its numbers ``[start, stop)``."""
    if build.sibling < 0:
        return
    built = histograms[growth[build.node].slot, strip]
    sibling = histograms[growth[build.sibling].slot, strip]
    for place in range(numbers[0], numbers[1]):
        sibling[place] -= built[place]


@kernel
def add_few_rows(matrix, packed, row_list, sign, histogram, lanes):
    """Add the packed gradients of the listed rows, times `sign`, to a histogram itself."""
    bins, cell_starts, n_lanes = matrix.rows, matrix.cell_starts, np.uint64(len(lanes))
    for position in range(len(row_list)):
        row = np.uint64(row_list[position])
        values, row_bins = load_lanes(packed, row * n_lanes, lanes), bins[row]
        for column in range(np.uint64(len(row_bins))):
            cell = np.uint64(cell_starts[column]) + np.uint64(row_bins[column])
            add_lanes(histogram, cell * n_lanes, values, sign)


@inlined
def add_segment_of_few(matrix, packed, row_list, sign, histogram):
    """Call :func:`add_few_rows` with the lanes that there are."""
    if lanes_of(matrix, packed) == 1:
        add_few_rows(matrix, packed, row_list, sign, histogram, _ONE)
    else:
        add_few_rows(matrix, packed, row_list, sign, histogram, _FOUR)


@inlined
def build_small(matrix, packed, workspace, build, strip):
    """Build the histogram of few rows, and its sibling's, row by row.

    Emptying an accumulator would take longer than that.
    """
    tree, partition, histograms = workspace.tree, workspace.partition, workspace.pool.histograms
    node = build.node
    rows_of_depth = partition.lists[tree.growth[node].depth % 2]
    histogram = histograms[tree.growth[node].slot, strip]
    histogram[:] = 0
    for block in range(partition.n_counted):
        row_list = rows_of_depth[partition.start[block, node] : partition.stop[block, node]]
        add_segment_of_few(matrix, packed, row_list, _PLUS, histogram)
        if build.sibling >= 0:
            sibling = histograms[tree.growth[build.sibling].slot, strip]
            add_segment_of_few(matrix, packed, row_list, _MINUS, sibling)


@inlined
def build_alone(team, matrix, packed, workspace, build, strip):
    """Build the histograms of one strip, and its sibling's, by one member of the team."""
    tree, pool = workspace.tree, workspace.pool
    histogram = pool.histograms[tree.growth[build.node].slot, strip]
    n_columns = matrix.rows.shape[1]
    if _SMALL * tree.growth[build.node].n_rows * n_columns < len(histogram):
        build_small(matrix, packed, workspace, build, strip)
        return
    accumulator = pool.accumulators[team.rank, 0]
    for block in range(workspace.partition.n_counted):
        add_segment(matrix, packed, workspace, build.node, block, accumulator)
    columns = (np.int64(0), np.int64(n_columns))
    empty_accumulator(matrix, columns, accumulator, histogram, np.int64(0))
    numbers = (np.int64(0), len(histogram))
    subtract_from_sibling(build, strip, tree.growth, pool.histograms, numbers)


@late()
def build_shared_part(team, matrix, packed, workspace, task):
    """Add one block of rows of a node that several members build to this member's part."""
    pool = workspace.pool
    n_strips, n_blocks = len(packed), workspace.partition.n_counted
    part, block = task // n_blocks, task % n_blocks
    pool.accumulator_used[team.rank, part + 1] = 1
    accumulator = pool.accumulators[team.rank, part + 1]
    node = pool.builds[part // n_strips].node
    add_segment(matrix, packed[part % n_strips], workspace, node, block, accumulator)


@late()
def merge_parts(team, matrix, workspace):
    """Add up the parts of the shared histograms; each member takes a range of columns."""
    tree, pool = workspace.tree, workspace.pool
    columns, cell_starts = share(team, matrix.rows.shape[1]), matrix.cell_starts
    n_strips, n_lanes = pool.histograms.shape[1], pool.histograms.shape[2] // cell_starts[-1]
    numbers = (cell_starts[columns[0]] * n_lanes, cell_starts[columns[1]] * n_lanes)
    for part in range(tree.counts[0].n_shared * n_strips):
        build, strip = pool.builds[part // n_strips], part % n_strips
        histogram = pool.histograms[tree.growth[build.node].slot, strip]
        n_before = np.int64(0)
        for rank in range(team.size):
            if pool.accumulator_used[rank, part + 1] != 0:
                accumulator = pool.accumulators[rank, part + 1]
                empty_accumulator(matrix, columns, accumulator, histogram, n_before)
                n_before += 1
        subtract_from_sibling(build, strip, tree.growth, pool.histograms, numbers)


@kernel
def build_histograms(team, matrix, packed, workspace):
    """Fill the histograms of all ``pool.builds`` and of their siblings.

    `packed` is ``Gradients.strips``.

    Large nodes, listed first, are built block by block by whoever is free; the rest node by node,
    in both cases strip by strip. Ends with every histogram complete for every member of the team.
    """
    pool, counts = workspace.pool, workspace.tree.counts[0]
    n_strips = len(packed)
    n_shared_tasks = counts.n_shared * n_strips * workspace.partition.n_counted
    n_tasks = n_shared_tasks + (counts.n_builds - counts.n_shared) * n_strips
    task = next_task(team, _COUNTER)
    while task < n_tasks:
        if task < n_shared_tasks:
            build_shared_part(team, matrix, packed, workspace, task)
        else:
            alone = task - n_shared_tasks
            build, strip = pool.builds[counts.n_shared + alone // n_strips], alone % n_strips
            build_alone(team, matrix, packed[strip], workspace, build, strip)
        task = next_task(team, _COUNTER)
    barrier(team)
    if counts.n_shared > 0:
        merge_parts(team, matrix, workspace)
        barrier(team)
