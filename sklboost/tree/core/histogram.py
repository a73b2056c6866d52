"""Histograms: for every bin of every column, the packed sum of the gradients of a node's rows.

One 64-bit addition for each (row, column), and only for the smaller of two children: the other
child is parent minus child, exactly, since the sums are integers.

Where a tree's features are drawn, only the columns that they are in are built, from a copy of these
columns; the cells of the others then hold what was there before, and nobody reads them.

Rows are added up in an accumulator, whose cells lie as the cache likes them; then that is flushed
to the node's histogram. Nodes of few rows go without. Large nodes are built by several members of
the team, each with an accumulator of its own.

A tree of several outputs has strips of four outputs, side by side in memory, and a histogram for
each strip; :mod:`sklboost.tree.options.several_outputs` adds their rows. A plain tree has one.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import item_bytes, load_word
from sklboost.engine.parallel import barrier, next_task, share
from sklboost.engine.structs import BuiltColumns
from sklboost.tree.core import options
from sklboost.tree.core.prefetching import bins_are_scattered, prefetch_bins, prefetch_values
from sklboost.tree.core.workspace import NARROW_CELLS

# Columns are taken in blocks of so many: their cells then fit the first two levels of cache.
BLOCK_COLUMNS = 40
# A node is small if it has less than a third as many rows as a column has bins, on average.
_SMALL = 3
_PLUS, _MINUS = np.int64(1), np.int64(-1)
_ONE = np.uint64(1)
_PART_COUNTER, _CHUNK_COUNTER = np.int64(1), np.int64(4)  # of the team: they hand out the tasks


@kernel
def build_histograms(team, bins, gradients, workspace):
    """Fill the histograms of all ``pool.builds`` and of their siblings from `bins`.

    First the smaller nodes, and where these are few, some columns of a node at a time; then the
    large ones, block by block, which are listed first: small tasks last, so that all members end at
    about the same time. The histograms are complete when the team has met.
    """
    tree, pool, counts = workspace.tree, workspace.pool, workspace.tree.counts[0]
    n_blocks = workspace.partition.n_counted
    n_chunks, accumulator = counts.n_build_chunks, pool.accumulators[team.rank, 0]
    n_tasks = (counts.n_builds - counts.n_shared) * n_chunks
    task = next_task(team, _CHUNK_COUNTER, n_tasks)
    while task < n_tasks:
        build, chunk = pool.builds[counts.n_shared + task // n_chunks], task % n_chunks
        growth = tree.growth[build.node]
        histogram = pool.histograms[growth.slot, build.strip]
        if _SMALL * growth.n_rows * len(pool.columns) >= len(histogram):
            built = columns_of(build, bins, workspace)
            n_columns = built.n_columns
            columns = (n_columns * chunk // n_chunks, n_columns * (chunk + 1) // n_chunks)
            for block in range(n_blocks):
                add_block(built, columns, gradients, workspace, build, block, accumulator)
            flush_accumulator(built, columns, accumulator, histogram, np.int64(0))
            subtract_from_sibling(build, tree.growth, pool, built, columns)
        elif chunk == 0:  # all columns at once
            build_small(bins.rows, gradients, workspace, build, histogram)
        task = next_task(team, _CHUNK_COUNTER, n_tasks)
    n_parts = counts.n_shared * n_blocks
    if n_parts > 0:
        pool.accumulator_used[team.rank] = 0
    task = next_task(team, _PART_COUNTER, n_parts)
    while task < n_parts:
        # of one block after the other, so that its rows are read once, should they be on a disk
        part, block = task % counts.n_shared, task // counts.n_shared
        build_part(team, bins, gradients, workspace, part, block)
        task = next_task(team, _PART_COUNTER, n_parts)
    if counts.n_shared > 0:
        barrier(team)
        merge_parts(team, bins, workspace)


@inlined
def columns_of(build, bins, workspace):
    """Return the columns that a histogram is built of."""
    pool = workspace.pool
    if workspace.tree.growth[build.node].n_rows >= bins.least_joint_rows:
        return bins.joint
    return BuiltColumns(bins.rows, pool.n_columns[0], pool.members, pool.cells)


@inlined
def add_block(built, columns, gradients, workspace, build, block, accumulator):
    """Add the rows that the node of a build owns in a block, some of the columns at a time."""
    partition, depth = workspace.partition, workspace.tree.growth[build.node].depth
    start, stop = partition.start[block, build.node], partition.stop[block, build.node]
    row_list = partition.lists[depth % 2, start:stop]
    packed, has_one_output = gradients.strips[build.strip], len(gradients.packed) == 1
    for first in range(columns[0], columns[1], BLOCK_COLUMNS):
        some = (first, min(first + BLOCK_COLUMNS, columns[1]))
        if has_one_output:
            add_rows(built.rows, packed, row_list, some, accumulator)
        else:
            options.add_rows_to_strip(built.rows, packed, row_list, some, accumulator)


@kernel
def add_rows(bins, packed, row_list, columns, accumulator):
    """Add the packed gradients of the listed rows to the cells of columns ``[start, stop)``.

    In `accumulator` all columns are given the same room.
    """
    # unsigned indices: the compiler then leaves out the test for negative ones
    columns = (np.uint64(columns[0]), np.uint64(columns[1]))
    # two loops, since a condition within one makes a row of nine columns an eighth slower
    if bins_are_scattered(bins, row_list):
        for position in range(len(row_list)):
            prefetch_bins(bins, row_list, position, columns)
            prefetch_values(packed, _ONE, row_list, position)
            add_row(bins, packed, row_list[np.uint64(position)], columns, accumulator)
    else:
        for position in range(len(row_list)):
            add_row(bins, packed, row_list[np.uint64(position)], columns, accumulator)


@inlined
def add_row(bins, packed, row, columns, accumulator):
    """Add the packed gradient of a row to its cell of each column ``[start, stop)``."""
    (first, stop), row = columns, np.uint64(row)
    # A width known to the compiler is part of the address in the addition itself: one instruction
    # less for each of the billion updates of a fit.
    width = np.uint64(NARROW_CELLS if item_bytes(bins) == 1 else len(accumulator) // bins.shape[1])
    # A processor reads and writes only so many numbers at a time: one read for eight bytes of bins
    # leaves room for the cells. The columns left over are read one by one.
    bits = np.uint64(8 * item_bytes(bins))
    per_word, mask = np.uint64(64) // bits, (np.uint64(1) << bits) - np.uint64(1)
    whole = stop - (stop - first) % per_word
    value, row_bins = packed[row], bins[row]
    for column in range(first, whole, per_word):
        word = load_word(bins, row, column)
        for place in range(per_word):
            bin_ = (word >> (place * bits)) & mask
            accumulator[(column + place) * width + bin_] += value
    for column in range(whole, stop):
        accumulator[column * width + np.uint64(row_bins[column])] += value


@kernel
def flush_accumulator(built, columns, accumulator, histogram, n_before):
    """Move the sums of columns ``[start, stop)`` to `histogram`, added if others came before."""
    width = len(accumulator) // built.cells.shape[1]
    for column in range(columns[0], columns[1]):
        cells, first = accumulator[column * width :], built.members[column]
        if built.members[column + 1] > first + 1:
            options.unjoin_columns(built, column, cells, histogram, n_before)
        target = histogram[built.cells[0, first] : built.cells[1, first]]
        for bin_ in range(len(target)):
            target[bin_] = cells[bin_] if n_before == 0 else target[bin_] + cells[bin_]
            cells[bin_] = 0


@inlined
def subtract_from_sibling(build, growth, pool, built, columns):
    """Turn the parent's histogram into the sibling's, for columns ``[start, stop)``."""
    if build.sibling < 0:
        return
    histogram = pool.histograms[growth[build.node].slot, build.strip]
    sibling = pool.histograms[growth[build.sibling].slot, build.strip]
    for member in range(built.members[columns[0]], built.members[columns[1]]):
        # slices: without a test for negative indices this becomes vector instructions
        start, stop = built.cells[0, member], built.cells[1, member]
        source, target = histogram[start:stop], sibling[start:stop]
        for place in range(len(source)):
            target[place] -= source[place]


@inlined
def build_small(rows, gradients, workspace, build, histogram):
    """Build the histogram of few rows, and its sibling's, row by row.

    Flushing an accumulator would take longer than that.
    """
    tree, pool, partition = workspace.tree, workspace.pool, workspace.partition
    lists = partition.lists[tree.growth[build.node].depth % 2]
    histogram[:] = 0
    for block in range(partition.n_counted):
        row_list = lists[partition.start[block, build.node] : partition.stop[block, build.node]]
        add_small(rows, gradients, workspace, build.strip, row_list, _PLUS, histogram)
        if build.sibling >= 0:
            sibling = pool.histograms[tree.growth[build.sibling].slot, build.strip]
            add_small(rows, gradients, workspace, build.strip, row_list, _MINUS, sibling)


@inlined
def add_small(rows, gradients, workspace, strip, row_list, sign, histogram):
    """Add few rows, times `sign`, to a histogram itself."""
    packed, starts = gradients.strips[strip], workspace.pool.cells[0]
    starts = starts[: workspace.pool.n_columns[0]]
    if len(gradients.packed) == 1:
        add_few_rows(rows, packed, row_list, sign, starts, histogram)
    else:
        options.add_few_rows_to_strip(rows, packed, row_list, sign, starts, histogram)


@kernel
def add_few_rows(bins, packed, row_list, sign, starts, histogram):
    """Add the packed gradients of the listed rows, times `sign`, to a histogram itself."""
    for position in range(len(row_list)):
        row = np.uint64(row_list[position])
        value, row_bins = sign * packed[row], bins[row]
        for column in range(np.uint64(len(starts))):
            histogram[np.uint64(starts[column]) + np.uint64(row_bins[column])] += value


@late()
def build_part(team, bins, gradients, workspace, part, block):
    """Add a block of rows of a histogram that several members build to this member's part."""
    pool = workspace.pool
    build, accumulator = pool.builds[part], pool.accumulators[team.rank, part + 1]
    pool.accumulator_used[team.rank, part + 1] = 1
    built = columns_of(build, bins, workspace)
    columns = (np.int64(0), built.n_columns)
    add_block(built, columns, gradients, workspace, build, block, accumulator)


@late()
def merge_parts(team, bins, workspace):
    """Add up the parts of the shared histograms; each member takes its share of all columns."""
    tree, pool, n_shared = workspace.tree, workspace.pool, workspace.tree.counts[0].n_shared
    n_each = pool.n_columns[0]  # the columns of a histogram; where they are joined, fewer
    start, stop = share(team, n_shared * n_each)
    for part in range(start // n_each, (stop + n_each - 1) // n_each):
        build, n_before = pool.builds[part], np.int64(0)
        built = columns_of(build, bins, workspace)
        first, last = max(start - part * n_each, 0), min(stop - part * n_each, n_each)
        columns = (built.n_columns * first // n_each, built.n_columns * last // n_each)
        histogram = pool.histograms[tree.growth[build.node].slot, build.strip]
        for rank in range(team.size):
            if pool.accumulator_used[rank, part + 1] != 0:
                accumulator = pool.accumulators[rank, part + 1]
                flush_accumulator(built, columns, accumulator, histogram, n_before)
                n_before += 1
        subtract_from_sibling(build, tree.growth, pool, built, columns)
