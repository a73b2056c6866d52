"""Values as ranks among the thresholds of a model: a byte each, for many rows and many trees.

A split asks whether ``x >= threshold``. Sorted, the thresholds that a feature is compared with are
``t[0] < t[1] < ...``, and the rank of x is the number of those at or below it. Then ``x >= t[k]``
is ``rank >= k + 1``, exactly, so rows go the very ways that they go by their values. Each block of
rows is ranked once, and 64 bytes are compared in a quarter of the instructions of 64 float32.

Splits that send missing values left and those that send them right compare different columns of
ranks: a missing value is below all thresholds of the first and above all of the second, so that no
split needs to ask. A feature with more thresholds than a byte has numbers gets several columns,
each for a stretch of them.

Many trees compare a feature with the same thresholds, most of them cuts of its bins: 1,000 trees
on 28 features had 35,000 splits, but 6,900 thresholds. So a block of rows makes each comparison
once for a group of trees, and their splits look its decisions up.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.ranks import rank_values, shifts_of, table_length
from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import at_least
from sklboost.engine.library.packing import PackedOnce
from sklboost.engine.model import N_LANDINGS, Model
from sklboost.engine.structs import aligned_zeros
from sklboost.tree.predict.walking import (
    WORD,
    WalkScratch,
    allocate_scratch,
    block_words,
    words_of,
)

_MOST = 255  # thresholds of a column
_SHIFT = np.uint64(shifts_of(np.array(_MOST)))  # of tables of so many, see `rank_values`
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

    features: np.ndarray
    tables: np.ndarray
    missing_ranks: np.ndarray
    group_trees: int
    starts: np.ndarray
    columns: np.ndarray
    ranks: np.ndarray
    comparisons: np.ndarray


class Ranking(_RankingFields, PackedOnce):
    """The thresholds of a model, sorted, and its splits as they compare ranks.

    Attributes
    ----------
    features : ndarray of int64, shape (n_columns,)
        The feature of each column of ranks.
    tables : ndarray of float32 or float64, shape (n_columns, 256)
        The thresholds of each column; behind them NaN, which is below nothing.
    missing_ranks : ndarray of uint8, shape (n_columns,)
        The rank of missing values: 0 or 255.
    group_trees : int
        Trees of a group, of which the last one may have fewer.
    starts : ndarray of int64, shape (n_groups + 1,)
        Group g makes the comparisons ``starts[g]`` to ``starts[g + 1]``, excluded.
    columns : ndarray of int64, shape (n_comparisons,)
    ranks : ndarray of uint8, shape (n_comparisons,)
        Rows whose rank in a column is at least this go right.
    comparisons : ndarray of int32, shape (n_trees, N_LANDINGS)
        The comparison of each split, by its place, counted from the first one of the group.
    """


class RankedWalk(NamedTuple):
    """What a walk by ranks needs beside the rows."""

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
    tables = np.full((len(firsts), table_length(_MOST)), np.nan, dtype=dtype)
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
