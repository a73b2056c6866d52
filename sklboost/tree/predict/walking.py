"""How rows go down a finished tree, a block of rows at a time.

512 rows go down a tree together, as the bits of eight words. Each split above `TOP_DEPTH` compares
one feature of the rows with its threshold, whichever of them come to it, which gives words of
decisions. From these :func:`~sklboost.engine.instructions.descend` finds where the rows land.
Below `TOP_DEPTH`, and for few rows, each row takes its own way, all rows one step at a time and
without a branch to mispredict. The splits as words of bits come from QuickScorer (Lucchese et al.
2015), though not the order of work.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import WORDS, above, at_least, descend, trailing_zeros
from sklboost.engine.model import ALL_ROWS, N_LANDINGS, TOP_DEPTH, Model
from sklboost.engine.structs import aligned_zeros
from sklboost.tree.predict.category_bits import is_listed

WORD = 64  # rows
# With fewer rows a word is too empty.
MIN_ROWS = 8
# Trees that are added to a raw score of ranked rows before it is stored: four, which `add_four` of
# prediction.py is written out for.
TREES_TOGETHER = 4
_BLOCK_BYTES = 2**18  # within the second-level cache


class WalkScratch(NamedTuple):
    """What a walk writes on the way; the first axis is threads, which a thread's part has not."""

    # the dtype of the raw values, shape (n_threads, n_columns, n_rows): the values of a block of
    # rows, feature by feature. In evaluation all blocks, as bins; the first axis of `columns` and
    # `missing` is then blocks.
    columns: np.ndarray
    # uint64, shape (n_threads, n_columns, n_words): which of them are missing, a bit each
    missing: np.ndarray
    # uint64, shape (n_threads, n_comparisons, WORDS): which rows go right, for each comparison:
    # N_LANDINGS of them, at the places of a tree, or those of
    # :class:`~sklboost.tree.predict.ranking.Ranking`
    decisions: np.ndarray
    # uint8, shape (n_threads, TREES_TOGETHER, WORDS * WORD): the landing of each row in some trees,
    # an index of ``TreeTops.landings``
    landings: np.ndarray
    positions: np.ndarray  # int64, shape (n_threads, n_rows): the node each row has come to


class Walk(NamedTuple):
    """What a walk needs beside the model and the rows."""

    # the dtype of the raw values, shape (n_splits,): of the splits above TOP_DEPTH
    thresholds: np.ndarray
    scratch: WalkScratch


def prepare_walk(model: Model, raw: RawMatrix, n_threads: int) -> Walk:
    """Return what a walk of these rows needs."""
    tops, dtype = model.tops, raw.values.dtype
    n_columns = len(tops.features)
    n_words = block_words(raw.n_samples, n_columns, dtype, n_threads)
    # places beyond the last row are 0 or of earlier rows; where these go is never read
    columns = aligned_zeros((n_threads, n_columns, n_words * WORD), dtype)
    missing = np.zeros((n_threads, n_columns, n_words), dtype=np.uint64)
    scratch = allocate_scratch(columns, missing, n_threads)
    return Walk(tops.thresholds32 if dtype == np.float32 else tops.thresholds, scratch)


def block_words(n_samples: int, n_columns: int, dtype: np.dtype, n_threads: int) -> int:
    """Return how many words of rows a block should have."""
    fitting = _BLOCK_BYTES // (WORD * dtype.itemsize * max(1, n_columns))
    of_thread = -(-n_samples // (WORD * n_threads))
    return max(1, min(WORDS, fitting, of_thread))


def allocate_scratch(
    columns: np.ndarray, missing: np.ndarray, n_threads: int, n_comparisons: int = N_LANDINGS
) -> WalkScratch:
    """Allocate what a walk through these blocks of rows needs."""
    return WalkScratch(
        columns=columns,
        missing=missing,
        decisions=aligned_zeros((n_threads, n_comparisons, WORDS), np.uint64),
        landings=aligned_zeros((n_threads, TREES_TOGETHER, WORDS * WORD), np.uint8),
        positions=np.empty((n_threads, columns.shape[2]), dtype=np.int64),
    )


@inlined
def part_of(scratches, block, rank, n_rows):
    """Return the part of the scratch that a thread needs for the rows of a block."""
    return WalkScratch(
        scratches.columns[block],
        scratches.missing[block],
        scratches.decisions[rank],
        scratches.landings[rank],
        scratches.positions[rank, :n_rows],
    )


@kernel
def begin_block(team, model, raw, start, scratches):
    """Copy the rows of the block from `start` on; return this thread's part of the scratches."""
    n_rows = min(scratches.positions.shape[1], raw.n_samples - start)
    scratch = part_of(scratches, team.rank, team.rank, n_rows)
    if n_rows >= MIN_ROWS:
        copy_block(raw, model.tops.features, start, n_rows, scratch.columns, scratch.missing)
    return scratch


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
    """Whether some trees split on categories: told by a type, so that the compiler knows.

    It leaves out what others do not need. A mere branch made their predictions a tenth slower.
    """
    return len(bits.in_use) > 0


@late("uint64")
def not_listed(values, bits, node):
    """Return 64 bits; bit i is 1 if the category ``values[i]`` does not go left at a node."""
    decisions = np.uint64(0)
    for row in range(WORD):
        value = values[row]
        category = np.int64(value) if value == value else np.int64(-1)
        decisions |= np.uint64(not is_listed(category, bits, node)) << np.uint64(row)
    return decisions


@kernel
def take_top(tops, thresholds, tree, raw, first_row, scratch):
    """Fill ``scratch.landings[0]`` for the block of rows that begins at `first_row`.

    `raw` are the raw values of all rows, `scratch` is one thread's.
    """
    columns, decisions = scratch.columns, scratch.decisions
    n_words = words_of(scratch)
    # read from the groups once, not for each split
    splits, word_missing = tops.splits, scratch.missing
    for index in range(np.uint64(tops.starts[tree]), np.uint64(tops.starts[tree + 1])):
        split, threshold = splits[index], thresholds[index]
        column, place = np.uint64(split.column), np.uint64(split.place)
        values = columns[column]
        for word in range(n_words):
            start = word * np.uint64(WORD)
            if has_categories(tops.bits) and split.node >= 0:
                goes_right = not_listed(values[start:], tops.bits, np.int64(split.node))
            else:
                goes_right = at_least(values, start, threshold)
            if split.cuts_bin == 1:
                # those of the bins above are decided
                in_bin = goes_right & ~above(values, start, threshold)
                if in_bin != np.uint64(0):
                    in_bin &= rows_at(decisions, word, split.place)
                    value, feature = tops.thresholds[index], tops.features[column]
                    first = first_row + np.int64(start)
                    goes_right = compare_values(goes_right, in_bin, value, feature, raw, first)
            missing = word_missing[column, word]
            goes_right = (goes_right & ~missing) | (missing & split.missing_right)
            decisions[place, word] = goes_right
    descend(decisions, (), scratch.landings[0])


@inlined
def words_of(scratch):
    """Return how many words the rows of a block fill."""
    return np.uint64((len(scratch.positions) + WORD - 1) // WORD)


@kernel
def rows_at(decisions, word, place):
    """Return which of 64 rows come to a split: the decisions above it are known."""
    here, half = ALL_ROWS, place & -place
    while half < N_LANDINGS // 2:
        is_right = place & (half + half)
        place = (place ^ half) | (half + half)
        half += half
        here &= decisions[place, word] if is_right else ~decisions[place, word]
    return here


@kernel
def take_steps(routes, bits, n_steps, raw, first, step, positions):
    """Move rows `n_steps` down from their `positions`.

    The values of row i begin at ``raw.values[first + i * step]``. With a `step` of 0 it is one row
    in several trees.
    """
    for _ in range(n_steps):
        for index in range(len(positions)):
            route = routes[np.uint64(positions[index])]
            place = first + index * step + route.feature * raw.feature_step
            value = raw.values[np.uint64(place)]
            goes_right = (value >= route.threshold) | ((value != value) & (route.default_left == 0))
            if has_categories(bits) and route.has_categories == 1 and value == value:
                goes_right = not is_listed(np.int64(value), bits, positions[index])
            positions[index] = route.left + goes_right


@kernel
def walk_tree(model, thresholds, tree, raw, first_row, scratch):
    """Fill ``scratch.positions`` with the leaves, in ``model.routes``, of a block of rows."""
    landings, positions = scratch.landings[0], scratch.positions
    if len(positions) >= MIN_ROWS:
        take_top(model.tops, thresholds, tree, raw, first_row, scratch)
    walk_on(model, tree, raw, first_row, landings, positions)


@kernel
def walk_on(model, tree, raw, first_row, landings, positions):
    """Fill `positions` with the leaves, in ``model.routes``, of a block of rows.

    MIN_ROWS rows or more begin at their `landings`, fewer at the root.
    """
    routes, bits = model.routes, model.tops.bits
    n_rows, n_steps = len(positions), model.depths[tree]
    first = first_row * raw.row_step
    if n_rows < MIN_ROWS:
        positions[:] = model.tree_starts[tree]
        take_steps(routes, bits, n_steps, raw, first, raw.row_step, positions)
        return
    nodes = model.tops.landings[tree]
    for row in range(n_rows):
        positions[row] = nodes[np.uint64(landings[row])]
    take_steps(routes, bits, n_steps - TOP_DEPTH, raw, first, raw.row_step, positions)
