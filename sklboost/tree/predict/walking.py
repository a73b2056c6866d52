"""Rows going down a finished tree, a block of rows at a time, by values or by ranks."""

from typing import NamedTuple

import numpy as np

from sklboost.data.binning import rank_values, table_sizes
from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.instructions import WORDS, above, at_least, descend, trailing_zeros
from sklboost.engine.model import ALL_ROWS, N_LANDINGS, TOP_DEPTH, Model
from sklboost.engine.packing import PackedOnce
from sklboost.engine.structs import LINE_BYTES, aligned_zeros
from sklboost.tree.predict.category_bits import is_listed

WORD = 64  # rows
# With fewer rows a word is too empty.
MIN_ROWS = 8
# Trees that are added to a raw score of ranked rows before it is stored: four, which `add_four` of
# prediction.py is written out for.
TREES_TOGETHER = 4
_BLOCK_BYTES = 2**18  # within the second-level cache
_LINE_WORDS = LINE_BYTES // np.dtype(np.uint64).itemsize


class WalkScratch(NamedTuple):
    """Scratch of a walk; the first axis is threads, and a thread's part does not have it."""

    # the dtype of the raw values, shape (n_threads, n_columns, n_rows): the values of a block of
    # rows, feature by feature. In evaluation all blocks, as bins; the first axis of `columns` and
    # `missing` is then blocks.
    columns: np.ndarray
    # uint64, shape (n_threads, n_columns, n_words): which of them are missing, a bit each
    missing: np.ndarray
    # uint64, shape (n_threads, n_comparisons, WORDS): which rows go right, for each comparison:
    # N_LANDINGS of them, at the places of a tree, or the comparisons
    # of a :class:`Ranking`
    decisions: np.ndarray
    # uint8, shape (n_threads, TREES_TOGETHER, WORDS * WORD): the landing of each row in some trees,
    # an index of ``TreeTops.landings``
    landings: np.ndarray
    positions: np.ndarray  # int64, shape (n_threads, n_rows): the node each row has come to
    # uint64, shape (n_threads, n_set_words): one set of categories with the words that CategoryBits
    # leaves out; all 0 between two splits, the last one always
    category_set: np.ndarray


class Walk(NamedTuple):
    """Thresholds and scratch of a walk."""

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
    n_categories = WORD * (int(tops.bits.numbers.max(initial=0)) + 1)
    scratch = allocate_scratch(columns, missing, n_threads, n_categories=n_categories)
    return Walk(tops.thresholds32 if dtype == np.float32 else tops.thresholds, scratch)


def block_words(n_samples: int, n_columns: int, dtype: np.dtype, n_threads: int) -> int:
    """Return how many words of rows a block should have."""
    fitting = _BLOCK_BYTES // (WORD * dtype.itemsize * max(1, n_columns))
    of_thread = -(-n_samples // (WORD * n_threads))
    return max(1, min(WORDS, fitting, of_thread))


def allocate_scratch(
    columns: np.ndarray,
    missing: np.ndarray,
    n_threads: int,
    n_comparisons: int = N_LANDINGS,
    n_categories: int = 0,
) -> WalkScratch:
    """Allocate what a walk through these blocks of rows needs, with categories below a number."""
    # a word more than the categories have, in whole lines
    n_set_words = _LINE_WORDS * (-(-n_categories // WORD) // _LINE_WORDS + 1)
    return WalkScratch(
        columns=columns,
        missing=missing,
        decisions=aligned_zeros((n_threads, n_comparisons, WORDS), np.uint64),
        landings=aligned_zeros((n_threads, TREES_TOGETHER, WORDS * WORD), np.uint8),
        positions=np.empty((n_threads, columns.shape[2]), dtype=np.int64),
        category_set=aligned_zeros((n_threads, n_set_words), np.uint64),
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
        scratches.category_set[rank],
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


# Words of a set for each of which all rows are looked at; of larger sets, a row looks up its word.
_FEW_WORDS = 2


@late()
def find_unlisted(values, bits, node, category_set, decisions):
    """Fill `decisions`, a bit for each row: 1 if its category does not go left at a node.

    `values` are the categories of a block of rows. `category_set` is scratch, as in WalkScratch.
    """
    first, stop = bits.starts[node], bits.starts[node + 1]
    if stop - first <= _FEW_WORDS:
        for word in range(len(decisions)):
            listed = np.uint64(0)
            for index in range(first, stop):
                category_word, lowest = bits.words[index], np.int64(bits.numbers[index]) * WORD
                for row in range(WORD):
                    digit = category_at(values, word, row) - lowest
                    is_of_word = np.uint64((digit >= 0) & (digit < WORD))
                    bit = (category_word >> np.uint64(digit & (WORD - 1))) & is_of_word
                    listed |= bit << np.uint64(row)
            decisions[np.uint64(word)] = ~listed
        return
    for index in range(first, stop):
        category_set[np.uint64(bits.numbers[index])] = bits.words[index]
    last = np.uint64(len(category_set) - 1)
    for word in range(len(decisions)):
        listed = np.uint64(0)
        for row in range(WORD):
            category = np.uint64(category_at(values, word, row))
            # what is no category of the set, -1 included, is among those of the last word
            number = min(category // np.uint64(WORD), last)
            bit = (category_set[number] >> (category % np.uint64(WORD))) & np.uint64(1)
            listed |= bit << np.uint64(row)
        decisions[np.uint64(word)] = ~listed
    for index in range(first, stop):
        category_set[np.uint64(bits.numbers[index])] = 0


@inlined
def category_at(values, word, row):
    """Return the category of a row of a word of rows; -1 if it is missing."""
    value = values[np.uint64(word) * np.uint64(WORD) + np.uint64(row)]
    return np.int64(value) if value == value else np.int64(-1)


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
        values, has_set = columns[column], has_categories(tops.bits) and split.node >= 0
        if has_set:
            node, found = np.int64(split.node), decisions[place, :n_words]
            find_unlisted(values, tops.bits, node, scratch.category_set, found)
        for word in range(n_words):
            start = word * np.uint64(WORD)
            goes_right = decisions[place, word] if has_set else at_least(values, start, threshold)
            if split.cuts_bin == 1:
                # the bins above are decided
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


_MOST = 255  # thresholds of a column
# of tables of so many, see `rank_values`
_LENGTH, _SHIFT = map(np.uint64, table_sizes(np.array(_MOST)))
# Fewer rows are done before the thresholds are sorted.
_LEAST_ROWS = 1024
# To rank a value takes as long as ranks save in so many splits, by the bytes of a value: measured
# on a Zen 3 with 50,000 rows of 8 to 100 columns. The first ranks of a model take 1 ms more.
_SPLITS_PER_RANK = {4: 24, 8: 15}
# At most: a few trees of a large group would make comparisons that none of their splits uses.
_COMPARISONS_PER_SPLIT = 2
# Of a group of trees: their decisions, 64 bytes each for a block of 512 rows, take half of the
# second-level cache of a Zen 4.
_MOST_COMPARISONS = 2**13


class _RankingFields(NamedTuple):
    """The fields of :class:`Ranking`."""

    features: np.ndarray  # int64, shape (n_columns,): the feature of each column of ranks
    # float32 or float64, shape (n_columns, 256): the thresholds of each column; behind them NaN,
    # which is below nothing
    tables: np.ndarray
    missing_ranks: np.ndarray  # uint8, shape (n_columns,): the rank of missing values: 0 or 255
    group_trees: int  # trees of a group, of which the last one may have fewer
    # int64, shape (n_groups + 1,): group g makes the comparisons ``[starts[g], starts[g + 1])``
    starts: np.ndarray
    columns: np.ndarray  # int64, shape (n_comparisons,)
    # uint8, shape (n_comparisons,): rows whose rank in a column is at least this go right
    ranks: np.ndarray
    # int32, shape (n_trees, N_LANDINGS): the comparison of each split, by its place, counted from
    # the first one of the group
    comparisons: np.ndarray


class Ranking(_RankingFields, PackedOnce):
    """The thresholds of a model, sorted, and its splits as they compare ranks."""


class RankedWalk(NamedTuple):
    """The ranking and the scratch of a walk by ranks."""

    ranking: Ranking
    # float32 or float64, shape (n_threads, n_rows): scratch: one feature of a block of rows
    values: np.ndarray
    scratch: WalkScratch  # its `columns` are ranks, uint8


def ranked_walk(
    model: Model, raw: RawMatrix, trees: tuple[int, int], n_threads: int
) -> RankedWalk | None:
    """Return what a walk by ranks needs, or None where a walk by values takes less time."""
    tops, dtype = model.tops, raw.values.dtype
    n_splits = int(tops.starts[trees[1]] - tops.starts[trees[0]])
    least = _SPLITS_PER_RANK[dtype.itemsize]
    is_worth_it = n_splits >= least * len(tops.features) > 0 and raw.n_samples >= _LEAST_ROWS
    if not is_worth_it or len(tops.bits.starts) > 0:
        return None
    # two threads may both make it, and it is the same
    ranking = model.rankings.get(dtype.char) or model.rankings.setdefault(
        dtype.char, rank_thresholds(model, dtype)
    )
    n_columns = len(ranking.features)
    groups = slice(trees[0] // ranking.group_trees, -(-trees[1] // ranking.group_trees) + 1)
    n_comparisons = np.diff(ranking.starts[groups])
    most = _COMPARISONS_PER_SPLIT * n_splits
    if n_splits < least * n_columns or n_comparisons.sum() > most:
        return None
    n_words = block_words(raw.n_samples, n_columns, np.dtype(np.uint8), n_threads)
    columns = aligned_zeros((n_threads, n_columns, n_words * WORD), np.uint8)
    missing = np.empty((n_threads, 0, 0), dtype=np.uint64)
    scratch = allocate_scratch(columns, missing, n_threads, int(n_comparisons.max()))
    return RankedWalk(ranking, np.zeros((n_threads, n_words * WORD), dtype=dtype), scratch)


def rank_thresholds(model: Model, dtype: np.dtype) -> Ranking:
    """Sort the thresholds of a model without categories, for values of a dtype."""
    tops, n_trees = model.tops, model.n_trees
    splits, n_splits = tops.splits, np.diff(tops.starts)
    thresholds = tops.thresholds32 if dtype == np.float32 else tops.thresholds
    sides = 2 * splits.column + (splits.missing_right != 0)
    order = np.lexsort((thresholds, sides))
    values, sides = thresholds[order], sides[order]
    begins = np.diff(sides, prepend=-1) != 0
    is_new = begins | (values != np.roll(values, 1))
    number = np.empty(len(splits), dtype=np.int64)  # of the distinct thresholds
    number[order] = np.cumsum(is_new) - 1
    values, sides, begins = values[is_new], sides[is_new], begins[is_new]
    place = np.arange(len(values))
    place -= np.maximum.accumulate(np.where(begins, place, 0))
    ranks = (place % _MOST + 1).astype(np.uint8)
    columns = np.cumsum(ranks == 1) - 1
    firsts = np.flatnonzero(ranks == 1)
    tables = np.full((len(firsts), _LENGTH), np.nan, dtype=dtype)
    tables[columns, ranks - 1] = values
    # so few trees that no group has too many, or one group of all
    group_trees = _MOST_COMPARISONS // (N_LANDINGS - 1)
    if len(values) <= _MOST_COMPARISONS:
        group_trees = n_trees
    trees = np.repeat(np.arange(n_trees), n_splits)
    groups = trees // group_trees
    made, comparison = np.unique(groups * len(values) + number, return_inverse=True)
    n_groups = -(-n_trees // group_trees)
    starts = np.searchsorted(made, np.arange(n_groups + 1) * len(values))
    comparisons = np.zeros((n_trees, N_LANDINGS), dtype=np.int32)
    comparisons[trees, splits.place] = comparison - starts[groups]
    return Ranking(
        features=tops.features[sides[firsts] // 2],
        tables=tables,
        missing_ranks=(_MOST * (sides[firsts] % 2)).astype(np.uint8),
        group_trees=group_trees,
        starts=starts,
        columns=columns[made % len(values)],
        ranks=ranks[made % len(values)],
        comparisons=comparisons,
    )


@kernel
def rank_block(raw, ranking, start, n_rows, values, columns):
    """Fill `columns` with the ranks of a block of rows; `values` is scratch."""
    features = ranking.features
    for column in range(len(features)):
        first = start * raw.row_step + features[column] * raw.feature_step
        for row in range(n_rows):
            values[np.uint64(row)] = raw.values[np.uint64(first + row * raw.row_step)]
        missing_rank = ranking.missing_ranks[column]
        rank_values(values, ranking.tables[column], _SHIFT, missing_rank, columns[column])


@kernel
def compare(ranking, group, scratch):
    """Make the comparisons of a group of trees: fill ``scratch.decisions`` with a block's."""
    n_words = words_of(scratch)
    first = ranking.starts[group]
    for index in range(first, ranking.starts[group + 1]):
        values, rank = scratch.columns[ranking.columns[index]], ranking.ranks[index]
        decisions = scratch.decisions[index - first]
        for word in range(n_words):
            decisions[word] = at_least(values, word * np.uint64(WORD), rank)
