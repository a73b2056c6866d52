"""Values as ranks among the thresholds of a model: a byte each, for many rows and many trees.

A split asks whether ``x >= threshold``. Sorted, the thresholds that a feature is compared with are
``t[0] < t[1] < ...``, and the rank of x is the number of those at or below it. Then ``x >= t[k]``
is ``rank >= k + 1``, exactly, so rows go the very ways that they go by their values. Each block of
rows is ranked once, and 64 bytes are compared in a quarter of the instructions of 64 float32.

Splits that send missing values left and those that send them right compare different columns of
ranks: a missing value is below all thresholds of the first and above all of the second, so that no
split needs to ask. A feature with more thresholds than a byte has numbers gets several columns,
each for a stretch of them.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.ranks import rank_values, shifts_of, table_length
from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import kernel
from sklboost.engine.library.packing import PackedOnce
from sklboost.engine.model import Model
from sklboost.engine.structs import aligned_zeros
from sklboost.tree.predict.walking import WORD, WalkScratch, allocate_scratch, block_words

_MOST = 255  # thresholds of a column
_SHIFT = np.uint64(shifts_of(np.array(_MOST)))  # of tables of so many, see `rank_values`
# Fewer rows are done before the thresholds are sorted.
_LEAST_ROWS = 1024
# To rank a value takes as long as ranks save in so many splits, by the bytes of a value: measured
# on a Zen 3 with 50,000 rows of 8 to 100 columns. The first ranks of a model take 1 ms more.
_SPLITS_PER_RANK = {4: 24, 8: 15}


class _RankingFields(NamedTuple):
    """The fields of :class:`Ranking`."""

    model: Model
    thresholds: np.ndarray
    tables: np.ndarray
    missing_ranks: np.ndarray


class Ranking(_RankingFields, PackedOnce):
    """The thresholds of a model, sorted, and its splits as they compare ranks.

    Attributes
    ----------
    model : Model
        The same trees, with ``tops.features`` and ``tops.splits.column`` for columns of ranks.
    thresholds : ndarray of uint8, shape (n_splits,)
        rank >= threshold goes right.
    tables : ndarray of float32 or float64, shape (n_columns, 256)
        The thresholds of each column; behind them NaN, which is below nothing.
    missing_ranks : ndarray of uint8, shape (n_columns,)
        The rank of missing values: 0 or 255.
    """


class RankedWalk(NamedTuple):
    """What a walk by ranks needs beside the rows.

    Attributes
    ----------
    ranking : Ranking
    values : ndarray of float32 or float64, shape (n_threads, n_rows)
        Scratch: one feature of a block of rows.
    scratch : WalkScratch
        Its `columns` are ranks, uint8.
    """

    ranking: Ranking
    values: np.ndarray
    scratch: WalkScratch


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
    n_columns = len(ranking.tables)
    if n_splits < least * n_columns:
        return None
    n_words = block_words(raw.n_samples, n_columns, np.dtype(np.uint8), n_threads)
    columns = aligned_zeros((n_threads, n_columns, n_words * WORD), np.uint8)
    missing = np.empty((n_threads, 0, 0), dtype=np.uint64)
    scratch = allocate_scratch(columns, missing, n_threads)._replace(in_ranks=(1,))
    return RankedWalk(ranking, np.zeros((n_threads, n_words * WORD), dtype=dtype), scratch)


def rank_thresholds(model: Model, dtype: np.dtype) -> Ranking:
    """Sort the thresholds of a model without categories, for values of a dtype."""
    tops = model.tops
    splits = tops.splits.copy().view(np.recarray)
    thresholds = tops.thresholds32 if dtype == np.float32 else tops.thresholds
    sides = 2 * splits.column + (splits.missing_right != 0)
    order = np.lexsort((thresholds, sides))
    values, sides = thresholds[order], sides[order]
    begins = np.diff(sides, prepend=-1) != 0
    is_new = begins | (values != np.roll(values, 1))
    number = np.cumsum(is_new) - 1  # of the distinct thresholds
    values, sides, begins = values[is_new], sides[is_new], begins[is_new]
    place = np.arange(len(values))
    place -= np.maximum.accumulate(np.where(begins, place, 0))
    ranks = (place % _MOST + 1).astype(np.uint8)
    columns = np.cumsum(ranks == 1) - 1
    firsts = np.flatnonzero(ranks == 1)
    tables = np.full((len(firsts), table_length(_MOST)), np.nan, dtype=dtype)
    tables[columns, ranks - 1] = values
    splits.column[order] = columns[number]
    split_ranks = np.empty(len(splits), dtype=np.uint8)
    split_ranks[order] = ranks[number]
    tops = tops._replace(splits=splits, features=tops.features[sides[firsts] // 2])
    missing_ranks = (_MOST * (sides[firsts] % 2)).astype(np.uint8)
    return Ranking(model.constant._replace(tops=tops), split_ranks, tables, missing_ranks)


@kernel
def rank_block(raw, ranking, start, n_rows, values, columns):
    """Fill `columns` with the ranks of a block of rows; `values` is scratch."""
    features = ranking.model.tops.features
    for column in range(len(features)):
        first = start * raw.row_step + features[column] * raw.feature_step
        for row in range(n_rows):
            values[np.uint64(row)] = raw.values[np.uint64(first + row * raw.row_step)]
        missing_rank = ranking.missing_ranks[column]
        rank_values(values, ranking.tables[column], _SHIFT, missing_rank, columns[column])
