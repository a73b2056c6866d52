"""Bins of raw values, dense and sparse, by rows and by columns."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklboost.data.cuts import find_entry_cuts
from sklboost.data.raw_values import Allocate, Values, read_only, value_blocks
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import (
    FEW_LANES,
    LANES,
    add_where,
    at_least,
    count_at_most,
    trailing_zeros,
)
from sklboost.engine.parallel import FAR_APART, ThreadTeam, assemble, next_task, share
from sklboost.engine.structs import PLACE_DTYPE, BinCuts, TrainingBins, records

_PIVOTS = 15  # of a table, which all values are compared with


def table_sizes(n_thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the fewest entries of tables with so many thresholds, and their shifts, int64.

    The pivots are ``16 * 2**shift`` apart.
    """
    groups = (n_thresholds + 1) / ((_PIVOTS + 1) * FEW_LANES)
    shifts = np.ceil(np.log2(groups)).clip(0).astype(np.int64)
    return (n_thresholds // FEW_LANES + 1) * FEW_LANES, shifts


def rounded_up(thresholds: np.ndarray) -> np.ndarray:
    """Return the smallest float32 that are not below float64 thresholds.

    Every float32 is then on the same side of them.
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = thresholds.astype(np.float32)
        above = np.nextafter(rounded, np.float32(np.inf))
    result: np.ndarray = np.where(rounded < thresholds, above, rounded)
    return result


@kernel
def rank_values(values, table, shift, missing_rank, ranks):
    """Fill `ranks` with the number of entries of a sorted table that are at or below each value.

    Up to 15 of them at equal distances, the pivots, are compared with 64 values at once. What lies
    between two of these is searched by halves, without a branch and a step for all values before
    the next one, down to 16 entries, which are compared with the value at once.

    The number of `values` is a multiple of 64. `table`, of their dtype, is increasing, some entries
    perhaps equal, then padded with NaN, which no value reaches, to the size in
    :func:`table_sizes`, which has `shift`, too. NaN has the `missing_rank`, of the dtype of
    `ranks`, uint8 or uint16.
    """
    width, length = np.uint64(FEW_LANES) << shift, np.uint64(len(table))
    n_pivots = min(np.uint64(_PIVOTS), length // width)
    for start in range(0, len(values), LANES):
        word_ranks = ranks[start : start + LANES]
        word_ranks[:] = 0
        for pivot in range(np.uint64(1), n_pivots + np.uint64(1)):
            threshold = table[pivot * width - np.uint64(1)]
            if threshold != threshold:
                break
            are_above = at_least(values, np.uint64(start), threshold)
            add_where(word_ranks, are_above, ranks.dtype.type(width))
    half = width
    while half > np.uint64(FEW_LANES):
        half >>= np.uint64(1)
        for row in range(len(values)):
            rank = np.uint64(ranks[np.uint64(row)])
            middle = table[min(rank + half, length) - np.uint64(1)]  # the last entry is NaN
            is_above = np.uint64(middle <= values[np.uint64(row)])
            ranks[np.uint64(row)] = rank + is_above * half
    for row in range(len(values)):
        rank = np.uint64(ranks[np.uint64(row)])
        ranks[np.uint64(row)] = rank + count_at_most(table, rank, values[np.uint64(row)])
    for start in range(0, len(values), LANES):
        is_missing = ~at_least(values, np.uint64(start), table.dtype.type(-np.inf))
        add_where(ranks[start : start + LANES], is_missing, missing_rank)


# Rows are taken in blocks whose raw values and bins stay in the first-level caches while every
# feature passes over them.
_BLOCK_ROWS = 256
# The values of a fit for which a second thread costs as much as the first one takes: barriers, and
# parts of histograms to be added up. Measured on 2 cores: 28,000 values take 0.77 of the time with
# two threads, 280,000 take 0.65, 2,800,000 take 0.57; at 8,400 both take the same.
VALUES_PER_THREAD = 7_000
# The fewest values that are binned by a whole team: for 28,000 values two threads take as long for
# cut points as one, and for 280,000 0.6 of the time.
LEAST_SHARED_VALUES = 150_000


@kernel
def fill_bins(team, raw, first_row, task, matrix):
    """Fill both layouts of `matrix` with the bins of a block of rows; each member a share of them.

    The block begins at `first_row` of the matrix; columns of no rows are left out.
    """
    if not assemble(team):
        return
    start, stop = share(team, raw.n_samples)
    by_columns, step = matrix.columns.shape[1] > 0, np.uint64(raw.row_step)
    all_values, bins = task.values[team.rank], task.bins[team.rank]
    for block in range(start, stop, _BLOCK_ROWS):
        n_rows, row = min(_BLOCK_ROWS, stop - block), first_row + block
        values, n_ranked = all_values[:n_rows], (n_rows + LANES - 1) // LANES * LANES
        for feature in range(raw.n_features):
            first = np.uint64(block * raw.row_step + feature * raw.feature_step)
            for position in range(n_rows):
                values[position] = raw.values[first + np.uint64(position) * step]
            last_bin = matrix.cell_starts[feature + 1] - matrix.cell_starts[feature] - 1
            if matrix.n_categories[feature] == 0:
                # beyond the last row are values left over from others; their bins are not read
                ranked, ranks = all_values[:n_ranked], bins[:n_ranked]
                shift = np.uint64(task.shifts[feature])
                missing_bin = bins.dtype.type(last_bin)
                rank_values(ranked, task.tables[feature], shift, missing_bin, ranks)
            else:
                for position in range(n_rows):
                    value = values[position]  # a code, which is its bin
                    bins[position] = last_bin if value != value else np.int64(value)
            if by_columns:
                column = matrix.columns[feature, row : row + n_rows]
                for position in range(n_rows):
                    column[position] = bins[position]
            rows = matrix.rows[row : row + n_rows]
            for position in range(n_rows):
                rows[np.uint64(position), np.uint64(feature)] = bins[position]


class BinningTask(NamedTuple):
    """The cuts of each feature as :func:`rank_values` reads them, and scratch for each member."""

    # the dtype of the values, shape (n_features, length): increasing, then padded with NaN to one
    # length for all features
    tables: np.ndarray
    shifts: np.ndarray  # int64, shape (n_features,)
    # the dtype of the values, shape (n_threads, more than 256): one feature of a block of rows
    values: np.ndarray
    bins: np.ndarray  # the dtype of the bins, shape (n_threads, more than 256): their bins


def apply_cuts(
    team: ThreadTeam,
    X: Values,
    cuts: BinCuts,
    has_missing: np.ndarray,
    *,
    by_columns: bool = True,
    allocate: Allocate | None = None,
    tell: Callable[[int], None] | None = None,
) -> TrainingBins:
    """Bin values by given cuts; as uint8 where all bins fit, else uint16.

    With ``by_columns=False`` the columns have no rows, which takes half the memory.
    """
    n_samples, n_features = X.shape
    n_cells = np.diff(cuts.starts) + 1 + has_missing
    dtype = np.uint8 if n_cells.max() <= 256 else np.uint16
    shapes = {"rows": (n_samples, n_features), "columns": (n_features, n_samples * by_columns)}
    rows, columns = (
        np.empty(shape, dtype) if allocate is None else allocate(layout, shape, dtype)
        for layout, shape in shapes.items()
    )
    matrix = lay_out_cells(rows, columns, cuts, has_missing)

    # categories have no cuts here: their codes are their bins, and they may be many
    n_cuts = np.where(cuts.n_categories > 0, 0, np.diff(cuts.starts))
    lengths, shifts = table_sizes(n_cuts)
    tables = np.full((n_features, lengths.max()), np.nan, dtype=X.dtype)
    thresholds = rounded_up(cuts.cuts) if X.dtype == np.float32 else cuts.cuts
    for table, first, n_own in zip(tables, cuts.starts[:-1], n_cuts, strict=True):
        table[:n_own] = thresholds[first : first + n_own]

    shape = (team.size, _BLOCK_ROWS + 8 * FAR_APART)
    task = BinningTask(tables, shifts, np.zeros(shape, X.dtype), np.empty(shape, dtype))
    for block, raw in value_blocks(X, tell):
        team.run(fill_bins, raw, block.start, task, matrix)
    return matrix._replace(rows=read_only(rows), columns=read_only(columns))


# --- histogram cells


class Bundles(NamedTuple):
    """Which features share a column of bins, each column being a bundle of them."""

    column: np.ndarray  # int64, shape (n_features,)
    # bool, shape (n_features,): whether it is the only feature of its column that is not always 0:
    # then its bin of 0 has a cell, too
    is_alone: np.ndarray
    # int64, shape (n_features,): its first among the cells of its column; 0 if it is alone
    first_cell: np.ndarray
    # int64, shape (n_columns,): cells of each column, including the cell of rows without an entry
    n_cells: np.ndarray


@inlined
def cell_of_bin(place, bin_):
    """Return the histogram cell of a feature's bin; the bin of 0 has none in a shared column."""
    return place.first_cell + bin_ - (place.is_shared & np.int64(place.zero_bin < bin_))


def lay_out_cells(
    rows: np.ndarray,
    columns: np.ndarray,
    cuts: BinCuts,
    has_missing: np.ndarray,
    bundles: Bundles | None = None,
) -> TrainingBins:
    """Lay out histogram cells: one for each bin, and one for the missing values of a feature.

    Without bundles each feature has its own column of bins.
    """
    n_bins = np.diff(cuts.starts) + 1
    n_features, n_cells = len(n_bins), n_bins + has_missing
    if bundles is None:
        is_alone, first_cell = np.ones(n_features, bool), np.zeros(n_features, np.int64)
        bundles = Bundles(np.arange(n_features), is_alone, first_cell, n_cells)
    cell_starts = np.concatenate([[0], np.cumsum(bundles.n_cells)])
    places = records(n_features, PLACE_DTYPE)
    places.column = bundles.column
    places.first_cell = cell_starts[bundles.column] + bundles.first_cell
    places.zero_bin, places.is_shared = zero_bins(cuts), ~bundles.is_alone
    ends = np.cumsum(n_bins)[has_missing == 1]  # behind these bins is the one of missing values
    return TrainingBins(
        rows=rows,
        columns=columns,
        cell_starts=cell_starts,
        places=places,
        bin_starts=np.concatenate([[0], np.cumsum(n_cells)]),
        has_missing=has_missing,
        lower=np.insert(cuts.lower, ends, np.nan),
        upper=np.insert(cuts.upper, ends, np.nan),
        # a copy: it may be a memory map, and kernels know it as writable
        n_categories=np.array(cuts.n_categories),
    )


def zero_bins(cuts: BinCuts) -> np.ndarray:
    """Return the bin of each feature where a value of 0 belongs, int64."""
    n_before = np.concatenate([[0], np.cumsum(cuts.cuts <= 0.0)])
    return np.diff(n_before[cuts.starts])


_COUNTER = np.int64(0)  # of the team: it hands out the features
# Columns are filled so many at a time, in words of 64: 32 bytes a row say which have an entry.
_WORDS = 4
_WORD = 64
_BYTE_CELLS, _MOST_CELLS = 2**8, 2**16


def bin_sparse(
    team: ThreadTeam, table: SparseTable, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Find the cuts of the values and bin them; `weight`, (n_samples,) or (0,), decides on them."""
    n_samples, n_features = table.shape
    entries = table.by_feature()
    features = np.repeat(np.arange(n_features, dtype=np.int32), np.diff(entries.starts))
    cuts, has_missing = find_entry_cuts(team, entries, n_samples, weight, max_bin)
    bins = np.empty(len(features), dtype=np.uint16)
    team.run(find_bins, entries, cuts, bins)
    kept = bins != zero_bins(cuts)[features]
    starts = np.concatenate([[0], np.cumsum(kept)])[entries.starts]
    stored = Entries(*map(read_only, (starts, entries.numbers[kept], bins[kept])))

    bundles = bundle_features(stored, np.diff(cuts.starts) + 1 + has_missing, n_samples)
    dtype = np.uint8 if bundles.n_cells.max() <= 256 else np.uint16
    rows = np.empty((n_samples, len(bundles.n_cells)), dtype=dtype)
    columns = np.empty(rows.shape[::-1], dtype=dtype)
    matrix = lay_out_cells(rows, columns, cuts, has_missing, bundles)
    # what rows without an entry have
    empty = np.zeros(len(columns), dtype=np.int64)
    empty[bundles.column[bundles.is_alone]] = matrix.places.zero_bin[bundles.is_alone]
    rows[:], columns[:] = empty, empty[:, np.newaxis]
    team.run(write_entries, stored, matrix)
    return matrix._replace(rows=read_only(rows), columns=read_only(columns)), cuts


@kernel
def find_bins(team, entries, cuts, bins):
    """Fill the bin of each entry, uint16; the entries are listed by features."""
    if not assemble(team):
        return
    n_features = len(cuts.starts) - 1
    feature = next_task(team, _COUNTER, n_features)
    while feature < n_features:
        feature_cuts = cuts.cuts[cuts.starts[feature] : cuts.starts[feature + 1]]
        for index in range(entries.starts[feature], entries.starts[feature + 1]):
            value = np.float64(entries.values[index])
            if value != value:
                bins[index] = len(feature_cuts) + 1
            else:
                bins[index] = np.searchsorted(feature_cuts, value, side="right")
        feature = next_task(team, _COUNTER, n_features)


@kernel
def write_entries(team, entries, matrix):
    """Write the bins of the entries to both layouts; no two are written to the same place."""
    if not assemble(team):
        return
    feature = next_task(team, _COUNTER, len(matrix.places))
    while feature < len(matrix.places):
        place = matrix.places[feature]
        column = place.column
        for index in range(entries.starts[feature], entries.starts[feature + 1]):
            cell = cell_of_bin(place, np.int64(entries.values[index]))
            matrix.rows[entries.numbers[index], column] = cell - matrix.cell_starts[column]
            matrix.columns[column, entries.numbers[index]] = cell - matrix.cell_starts[column]
        feature = next_task(team, _COUNTER, len(matrix.places))


# --- which features share a column


@kernel
def find_room(rows, n_cells, most_cells, taken, filled):
    """Return the first column without any of the rows and with room for the cells, or -1.

    Bit i of ``taken[w]``, uint64 of shape (n_words, n_samples), says of each row whether column 64
    w + i has an entry in it; `filled` has the cells of the columns, 0: none yet, nor has a column
    behind it.
    """
    for word in range(len(taken)):
        bits = np.uint64(0)
        for row in rows:
            bits |= taken[word, row]
        bits = ~bits
        while bits != np.uint64(0):
            column = word * _WORD + np.int64(trailing_zeros(bits))
            if filled[column] == 0 or filled[column] + n_cells <= most_cells:
                return column
            bits &= bits - np.uint64(1)
    return -1


@kernel
def place_features(entries, features, n_cells, most_cells, taken, filled, columns):
    """Fill the column of each feature that finds room, counted from 0, and -1 for the others.

    `features` are listed in the order in which they are placed; `taken` and `filled` begin as 0.
    """
    for feature in features:
        rows = entries.numbers[entries.starts[feature] : entries.starts[feature + 1]]
        column = find_room(rows, n_cells[feature], most_cells, taken, filled)
        columns[feature] = column
        if column >= 0:
            filled[column] = max(filled[column], 1) + n_cells[feature]
            bit = np.uint64(1) << np.uint64(column % _WORD)
            for row in rows:
                taken[column // _WORD, row] |= bit


def share_columns(
    entries: Entries, n_cells: np.ndarray, n_samples: int, most_cells: int
) -> np.ndarray:
    """Return the column of each feature, int64; columns are numbered without gaps."""
    columns = np.full(len(n_cells), -1, dtype=np.int64)
    left = np.argsort(-np.diff(entries.starts), kind="stable")
    n_columns = 0
    while len(left) > 0:
        taken = np.zeros((_WORDS, n_samples), dtype=np.uint64)
        filled = np.zeros(_WORDS * _WORD, dtype=np.int64)
        place_features(entries, left, n_cells, most_cells, taken, filled, columns)
        found = columns[left] >= 0
        columns[left[found]] += n_columns
        left = left[~found]
        n_columns += int(np.count_nonzero(filled))
    return columns


def bundle_features(entries: Entries, n_bins: np.ndarray, n_samples: int) -> Bundles:
    """Decide which features share a column.

    The entries, whose values do not matter, are listed by features, without those in the bin of 0.
    `n_bins` of a feature includes that bin and the one of missing values.
    """
    n_cells = n_bins - 1
    column = share_columns(entries, n_cells, n_samples, _MOST_CELLS)
    if n_bins.max() <= _BYTE_CELLS:
        narrow = share_columns(entries, n_cells, n_samples, _BYTE_CELLS)
        # a byte a row for each column, unless half as many columns of two bytes do
        if narrow.max() < 2 * (column.max() + 1):
            column = narrow
    order = np.argsort(column, kind="stable")
    ends = np.cumsum(n_cells[order])
    last = np.cumsum(np.bincount(column)) - 1
    column_ends = ends[last]
    before = np.concatenate([[0], column_ends[:-1]])  # cells of all columns before
    first_cell = np.empty(len(column), dtype=np.int64)
    first_cell[order] = ends - n_cells[order] - before[column[order]] + 1
    # a feature that is always 0 needs no cell, so its column may still belong to one other alone
    n_sharing = np.bincount(column, n_cells > 0)
    is_alone = (n_sharing[column] == 1) & (n_cells > 0)
    first_cell[is_alone] = 0
    return Bundles(column, is_alone, first_cell, column_ends - before + 1)
