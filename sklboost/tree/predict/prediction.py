"""Prediction: from raw feature values to raw scores or leaves.

In: a model and raw values. Out: the sum of the leaf values for each row, or the leaf each row
reaches in each tree.

The one idea: 64 rows go down a tree together, as the bits of one word. A split compares one feature
of the 64 rows with its threshold, which gives a word of decisions, and divides the word of the rows
that came to it in two::

    right = here & (values >= threshold)        left = here ^ right

So each split of the first levels is visited once, not once a row. Deeper down, and for few rows,
each row takes its own way, all rows one step at a time and without a branch to mispredict. The
splits as words of bits come from QuickScorer (Lucchese et al. 2015), though not the order of work.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import above, add_where, at_least, trailing_zeros
from sklboost.engine.model import ALL_ROWS, TOP_DEPTH, Model
from sklboost.engine.parallel import FAR_APART, next_task
from sklboost.tree.predict.category_bits import is_listed

WORD = 64  # rows
# A tree's splits stay in the first-level cache for so many words of rows, if the rows fit as well.
_WORDS_PER_BLOCK = 4
_BLOCK_VALUES = 8192
# With fewer rows a word is too empty.
_MIN_ROWS = 8


class PredictionScratch(NamedTuple):
    """What prediction writes on the way; the first axis is threads.

    Attributes
    ----------
    columns : ndarray of the dtype of the raw values, shape (n_threads, n_columns, n_rows)
        The values of a block of rows, feature by feature; or all blocks, as bins.
    missing : ndarray of uint64, shape (n_threads, n_columns, n_words)
        Which of them are missing, a bit each.
    here : ndarray of uint64, shape (n_threads, 2 * 2**TOP_DEPTH)
        Which of 64 rows have come to each place of the tree.
    goes_right : ndarray of uint64, shape (n_threads, TOP_DEPTH or more)
        Which of them go right at each level.
    digits : ndarray of uint8, shape (n_threads, 64 or more)
        The decisions of each row, as in ``TreeTops.landings``.
    positions : ndarray of int64, shape (n_threads, n_rows)
        The node each row has come to.
    """

    columns: np.ndarray
    missing: np.ndarray
    here: np.ndarray
    goes_right: np.ndarray
    digits: np.ndarray
    positions: np.ndarray


def prepare_prediction(
    model: Model, raw: RawMatrix, n_threads: int
) -> tuple[np.ndarray, PredictionScratch]:
    """Give the thresholds for this kind of raw values, and scratch, for the kernels below."""
    tops, dtype = model.tops, raw.values.dtype
    n_columns = len(tops.features)
    n_words = min(_WORDS_PER_BLOCK, _BLOCK_VALUES // (WORD * max(1, n_columns)))
    n_words = max(1, min(n_words, -(-raw.n_samples // WORD)))
    # beyond the last row of the last block lie zeros, whose way nobody asks for
    columns = np.zeros((n_threads, n_columns, n_words * WORD), dtype=dtype)
    missing = np.zeros((n_threads, n_columns, n_words), dtype=np.uint64)
    scratch = allocate_scratch(columns, missing, n_threads)
    return tops.thresholds32 if dtype == np.float32 else tops.thresholds, scratch


def allocate_scratch(columns: np.ndarray, missing: np.ndarray, n_threads: int) -> PredictionScratch:
    """Make room for all but the rows themselves."""
    return PredictionScratch(
        columns=columns,
        missing=missing,
        here=np.empty((n_threads, 2 << TOP_DEPTH), dtype=np.uint64),
        goes_right=np.empty((n_threads, TOP_DEPTH + FAR_APART), dtype=np.uint64),
        digits=np.empty((n_threads, WORD + 8 * FAR_APART), dtype=np.uint8),
        positions=np.empty((n_threads, columns.shape[2]), dtype=np.int64),
    )


@kernel
def copy_block(raw, features, first_row, n_rows, columns, missing):
    """Fill `columns` and `missing` with a block of rows."""
    for column in range(len(features)):
        start = first_row * raw.row_step + features[column] * raw.feature_step
        values = columns[column]
        n_missing = 0
        for row in range(n_rows):
            value = raw.values[np.uint64(start + row * raw.row_step)]
            values[np.uint64(row)] = value
            n_missing += value != value
        missing[column, :] = 0
        for row in range(n_rows if n_missing > 0 else 0):
            is_missing = np.uint64(values[row] != values[row])
            missing[column, row // WORD] |= is_missing << np.uint64(row % WORD)


@kernel
def compare_values(decisions, rows, threshold, feature, raw, first_row):
    """Correct the decisions of some of 64 rows by their raw values; `rows` are the bits of these.

    A threshold can lie within a bin, which then has rows on both sides.
    """
    while rows != np.uint64(0):
        bit = trailing_zeros(rows)
        row = np.int64(first_row + bit)
        if row < raw.n_samples:
            value = raw.values[row * raw.row_step + feature * raw.feature_step]
            is_below = np.uint64(value < threshold)
            decisions &= ~(is_below << bit)
        rows &= rows - np.uint64(1)
    return decisions


@inlined
def has_categories(bits):
    """Tell whether some trees are split on categories: by a type, so the compiler knows.

    It leaves out what others do not need. A mere branch made their predictions a tenth slower.
    """
    return len(bits.in_use) > 0


@late("uint64")
def not_listed(values, bits, node):
    """Give 64 bits, of which bit i is 1 if level ``values[i]`` does not go left at a node."""
    decisions = np.uint64(0)
    for row in range(WORD):
        value = values[row]
        level = np.int64(value) if value == value else np.int64(-1)
        decisions |= np.uint64(not is_listed(level, bits, node)) << np.uint64(row)
    return decisions


@kernel
def take_top(tops, thresholds, tree, block, scratch, word):
    """Fill ``scratch.digits`` with the decisions of 64 rows; `scratch` is one thread's.

    `block` are the raw values of all rows and the number of the block's first row.
    """
    columns = scratch.columns[:, word * WORD : (word + 1) * WORD]
    here, goes_right, digits = scratch.here, scratch.goes_right, scratch.digits
    here[1] = ALL_ROWS
    goes_right[:] = 0
    for index in range(np.uint64(tops.starts[tree]), np.uint64(tops.starts[tree + 1])):
        split = tops.splits[index]
        column, place = np.uint64(split.column), np.uint64(split.place)
        if has_categories(tops.bits) and split.node >= 0:
            decisions = not_listed(columns[column], tops.bits, np.int64(split.node))
        else:
            decisions = at_least(columns[column], thresholds[index])
        if split.cuts_bin == 1:
            # those of the bins above are decided
            in_bin = decisions & here[place] & ~above(columns[column], thresholds[index])
            feature, first_row = tops.features[column], block[1] + word * WORD
            threshold = tops.thresholds[index]
            decisions = compare_values(decisions, in_bin, threshold, feature, block[0], first_row)
        missing = scratch.missing[column, np.uint64(word)]
        decisions = (decisions & ~missing) | (missing & split.missing_right)
        right = here[place] & decisions
        here[place + place] = here[place] ^ right
        here[place + place + np.uint64(1)] = right
        goes_right[np.uint64(split.depth)] |= right
    digits[:] = 0
    for depth in range(TOP_DEPTH):
        add_where(digits, goes_right[depth], np.uint8(1 << (TOP_DEPTH - 1 - depth)))


@kernel
def take_steps(model, n_steps, raw, first_row, positions):
    """Move the rows from `first_row` on so many levels down from their `positions`."""
    for _ in range(n_steps):
        for index in range(len(positions)):
            route = model.routes[np.uint64(positions[index])]
            row = (first_row + index) * raw.row_step
            value = raw.values[np.uint64(row + route.feature * raw.feature_step)]
            goes_right = (value >= route.threshold) | ((value != value) & (route.default_left == 0))
            if has_categories(model.tops.bits) and route.has_categories == 1 and value == value:
                goes_right = not is_listed(np.int64(value), model.tops.bits, positions[index])
            positions[index] = route.left + goes_right


@kernel
def walk_tree(model, thresholds, tree, raw, first_row, scratch):
    """Fill ``scratch.positions`` with the leaves, in ``model.routes``, of a block of rows."""
    positions = scratch.positions
    n_rows = len(positions)
    if n_rows < _MIN_ROWS:
        positions[:] = model.tree_starts[tree]
        take_steps(model, model.depths[tree], raw, first_row, positions)
        return
    landings = model.tops.landings[tree]
    for start in range(0, n_rows, WORD):
        take_top(model.tops, thresholds, tree, (raw, first_row), scratch, start // WORD)
        part = positions[start : min(start + WORD, n_rows)]
        for row in range(len(part)):
            part[row] = landings[np.uint64(scratch.digits[row])]
    take_steps(model, model.depths[tree] - TOP_DEPTH, raw, first_row, positions)


@inlined
def first_output(model, tree, raw_score):
    """Give the first of the outputs that a tree adds to, as many as it has values for."""
    n_tree_outputs = len(model.values)
    return tree * n_tree_outputs % len(raw_score)


@kernel
def add_top(model, thresholds, tree, raw, first_row, scratch, raw_score):
    """Add the leaf values of a tree that has no more than the first levels to a block's scores."""
    values, n_rows = model.tops.values[tree], len(scratch.positions)
    first = first_output(model, tree, raw_score)
    for start in range(0, n_rows, WORD):
        take_top(model.tops, thresholds, tree, (raw, first_row), scratch, start // WORD)
        stop = min(start + WORD, n_rows)
        for output in range(len(values)):
            part, own = (
                raw_score[first + output, first_row + start : first_row + stop],
                values[output],
            )
            for row in range(len(part)):
                part[row] += own[np.uint64(scratch.digits[row])]


@kernel
def add_tree(model, thresholds, tree, raw, first_row, scratch, raw_score):
    """Add the leaf values of one tree to the raw scores of the block of rows in `scratch`.

    The block begins at `first_row` of `raw_score`, which has shape (n_outputs, n_samples).
    """
    n_rows = len(scratch.positions)
    if model.depths[tree] <= TOP_DEPTH and n_rows >= _MIN_ROWS:
        add_top(model, thresholds, tree, raw, first_row, scratch, raw_score)
        return
    walk_tree(model, thresholds, tree, raw, first_row, scratch)
    first = first_output(model, tree, raw_score)
    for output in range(len(model.values)):
        scores, own = (
            raw_score[first + output, first_row : first_row + n_rows],
            model.values[output],
        )
        for row in range(n_rows):
            scores[row] += own[np.uint64(scratch.positions[row])]


@kernel
def begin_block(team, model, raw, start, scratch):
    """Copy the rows from `start` on, as many as a block has, and give this thread's scratch."""
    n_rows = min(scratch.positions.shape[1], raw.n_samples - start)
    columns, missing = scratch.columns[team.rank], scratch.missing[team.rank]
    if n_rows >= _MIN_ROWS:
        copy_block(raw, model.tops.features, start, n_rows, columns, missing)
    return PredictionScratch(
        columns,
        missing,
        scratch.here[team.rank],
        scratch.goes_right[team.rank],
        scratch.digits[team.rank],
        scratch.positions[team.rank, :n_rows],
    )


@kernel
def add_trees(team, model, raw, trees, prepared, raw_score):
    """Add the leaf values of some trees to the raw scores; every member takes blocks of rows.

    Parameters
    ----------
    team : Team
    model : Model
    raw : RawMatrix
    trees : tuple of int
        Start and stop.
    prepared : tuple
        From :func:`prepare_prediction`.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Added to in place, tree after tree, so in the same order for any number of threads.
    """
    thresholds, scratch = prepared
    n_rows = scratch.positions.shape[1]
    start = next_task(team, 0) * n_rows
    while start < raw.n_samples:
        own = begin_block(team, model, raw, start, scratch)
        for tree in range(trees[0], trees[1]):
            add_tree(model, thresholds, tree, raw, start, own, raw_score)
        start = next_task(team, 0) * n_rows


@kernel
def find_leaves(team, model, raw, prepared, leaves):
    """Fill ``leaves[row, tree]`` with the number of the leaf, counted from the tree's root."""
    thresholds, scratch = prepared
    n_rows = scratch.positions.shape[1]
    start = next_task(team, 0) * n_rows
    while start < raw.n_samples:
        own = begin_block(team, model, raw, start, scratch)
        for tree in range(leaves.shape[1]):
            walk_tree(model, thresholds, tree, raw, start, own)
            for row in range(len(own.positions)):
                leaves[start + row, tree] = own.positions[row] - model.tree_starts[tree]
        start = next_task(team, 0) * n_rows
