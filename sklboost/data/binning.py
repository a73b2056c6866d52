"""Bins of raw values, and the two layouts of :class:`~sklboost.engine.structs.TrainingBins`."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.cuts import find_missing
from sklboost.data.ranks import rank_values, rounded_up, shifts_of, table_length
from sklboost.data.raw_values import Values, ignore_progress, read_only, value_blocks
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import LANES
from sklboost.engine.parallel import FAR_APART, ThreadTeam, assemble, share
from sklboost.engine.structs import PLACE_DTYPE, BinCuts, TrainingBins, records

# Rows are taken in blocks whose raw values and bins stay in the first-level caches while every
# feature passes over them.
_BLOCK_ROWS = 256
# The values of a fit for which a second thread costs as much as the first one takes: barriers, and
# parts of histograms to be added up. Measured on 2 cores: 28,000 values take 0.77 of the time with
# two threads, 280,000 take 0.65, 2,800,000 take 0.57; at 8,400 both take the same.
VALUES_PER_THREAD = 7_000
# The fewest values that are binned by a whole team. Cut points are found feature by feature, half
# of it in Python, whose lock two threads hand to and fro: on 2 cores they take 1.3 to 1.7 times as
# long for 28,000 values, the same for 150,000, and 0.55 of the time for a million.
LEAST_SHARED_VALUES = 150_000

# Makes the array of a name, such as the layout "rows" or "columns", a shape and a dtype.
Allocate = Callable[[str, tuple[int, ...], Any], np.ndarray]


def empty_layout(layout: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return an array in memory."""
    return np.empty(shape, dtype)


@kernel
def fill_bins(team, raw, first_row, tables, scratch, matrix):
    """Fill both layouts of `matrix` with the bins of a block of rows; each member a share of them.

    The block begins at `first_row` of the matrix; columns of no rows are left out. `tables` are
    CutTables, `scratch` is a BinScratch.
    """
    if not assemble(team):
        return
    start, stop = share(team, raw.n_samples)
    by_columns, step = matrix.columns.shape[1] > 0, np.uint64(raw.row_step)
    all_values, bins = scratch.values[team.rank], scratch.bins[team.rank]
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
                shift = np.uint64(tables.shifts[feature])
                missing_bin = bins.dtype.type(last_bin)
                rank_values(ranked, tables.cuts[feature], shift, missing_bin, ranks)
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


class CutTables(NamedTuple):
    """The cuts of each feature as :func:`~sklboost.data.ranks.rank_values` reads them."""

    # the dtype of the values, shape (n_features, length): increasing, then padded with NaN to one
    # length for all features
    cuts: np.ndarray
    shifts: np.ndarray  # int64, shape (n_features,)


class BinScratch(NamedTuple):
    """Scratch of :func:`fill_bins` for each member of a team."""

    # the dtype of the values, shape (n_threads, more than 256): one feature of a block of rows
    values: np.ndarray
    bins: np.ndarray  # the dtype of the bins, shape (n_threads, more than 256): their bins


def _cut_tables(cuts: BinCuts, dtype: np.dtype) -> CutTables:
    """Return the cuts for values of a dtype.

    Categories have none here: their codes are their bins, and they may be many.
    """
    n_cuts = np.where(cuts.n_categories > 0, 0, np.diff(cuts.starts))
    shifts = shifts_of(n_cuts)
    tables = np.full((len(n_cuts), table_length(int(n_cuts.max()))), np.nan, dtype=dtype)
    thresholds = rounded_up(cuts.cuts) if dtype == np.float32 else cuts.cuts
    for table, first, n_own in zip(tables, cuts.starts[:-1], n_cuts, strict=True):
        table[:n_own] = thresholds[first : first + n_own]
    return CutTables(tables, shifts)


def missing_features(team: ThreadTeam, X: Values) -> np.ndarray:
    """Return for each feature, as int64, whether it has missing values: 1 or 0."""
    has_missing = np.zeros(X.shape[1], dtype=np.int64)
    for _, raw in value_blocks(X):
        team.run(find_missing, raw, has_missing)
    return has_missing


def apply_cuts(
    team: ThreadTeam,
    X: Values,
    cuts: BinCuts,
    has_missing: np.ndarray,
    *,
    by_columns: bool = True,
    allocate: Allocate = empty_layout,
    tell: Callable[[int], None] = ignore_progress,
) -> TrainingBins:
    """Bin values by given cuts; as uint8 where all bins fit, else uint16.

    With ``by_columns=False`` the columns have no rows, which takes half the memory. `allocate`
    makes the two layouts. After each block of rows `tell` is called with their number.
    """
    n_cells = np.diff(cuts.starts) + 1 + has_missing
    dtype = np.uint8 if n_cells.max() <= 256 else np.uint16
    n_samples, n_features = X.shape
    rows = allocate("rows", (n_samples, n_features), dtype)
    columns = allocate("columns", (n_features, n_samples if by_columns else 0), dtype)
    matrix = lay_out_cells(rows, columns, cuts, has_missing)
    shape = (team.size, _BLOCK_ROWS + 8 * FAR_APART)
    scratch = BinScratch(np.zeros(shape, dtype=X.dtype), np.empty(shape, dtype=dtype))
    tables = _cut_tables(cuts, X.dtype)
    for block, raw in value_blocks(X, tell):
        team.run(fill_bins, raw, block.start, tables, scratch, matrix)
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
    # int64, shape (n_columns,): cells of each column, including that of rows without an entry
    n_cells: np.ndarray


@inlined
def cell_of_bin(place, bin_):
    """Return the histogram cell of a feature's bin; the bin of 0 has none in a shared column."""
    return place.first_cell + bin_ - (place.is_shared & np.int64(place.zero_bin < bin_))


def separate_columns(n_bins: np.ndarray) -> Bundles:
    """Return bundles of one feature each; `n_bins` includes the bin of missing values."""
    n_features = len(n_bins)
    first_cell = np.zeros(n_features, dtype=np.int64)
    return Bundles(np.arange(n_features), np.ones(n_features, dtype=bool), first_cell, n_bins)


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
    bundles = bundles or separate_columns(n_bins + has_missing)
    cell_starts = np.concatenate([[0], np.cumsum(bundles.n_cells)])
    places = records(len(n_bins), PLACE_DTYPE)
    places.column = bundles.column
    places.first_cell = cell_starts[bundles.column] + bundles.first_cell
    places.zero_bin, places.is_shared = zero_bins(cuts), ~bundles.is_alone
    return TrainingBins(
        rows=rows,
        columns=columns,
        cell_starts=cell_starts,
        places=places,
        bin_starts=np.concatenate([[0], np.cumsum(n_bins + has_missing)]),
        has_missing=has_missing,
        lower=_with_missing(cuts.lower, n_bins, has_missing),
        upper=_with_missing(cuts.upper, n_bins, has_missing),
        # a copy: it may be a memory map, and kernels know it as writable
        n_categories=np.array(cuts.n_categories),
    )


def _with_missing(values: np.ndarray, n_bins: np.ndarray, has_missing: np.ndarray) -> np.ndarray:
    """Put NaN, for missing values, behind the values of the bins of each feature that has some."""
    ends = np.cumsum(n_bins)
    return np.insert(values, ends[has_missing == 1], np.nan)


def zero_bins(cuts: BinCuts) -> np.ndarray:
    """Return the bin of each feature where a value of 0 belongs, int64."""
    n_before = np.concatenate([[0], np.cumsum(cuts.cuts <= 0.0)])
    return np.diff(n_before[cuts.starts])
