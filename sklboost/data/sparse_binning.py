"""Bins of sparse features, in bundles: a bundle is several features that share a column of bins.

No row has an entry in two features of a bundle. A feature needs no histogram cell for the bin of 0,
whose content is the node's sum less that of its other bins. So a column says of each row which one
feature has an entry, and in which bin::

    column   0 | 1 2 3 | 4 | 5 6 ...     0: no feature of this column has an entry in the row
                 a a a   b   c c         the bins of features a, b, c, without those of 0

Features are taken by decreasing number of entries, each going to the first column that has none of
its rows yet (Ke et al. 2017, "LightGBM", algorithm 3, but without any conflict: the bits of a model
do not depend on who shares a column).

The cuts are those of the same dense table. No step takes more memory than the entries, or the bins.
"""

import numpy as np

from sklboost.data.binning import Bundles, cell_of_bin, lay_out_cells, zero_bins
from sklboost.data.cuts import find_entry_cuts
from sklboost.data.raw_values import read_only
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import trailing_zeros
from sklboost.engine.parallel import ThreadTeam, assemble, next_task
from sklboost.engine.structs import BinCuts, TrainingBins

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
    return _lay_out(team, stored, n_samples, cuts, has_missing), cuts


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


def _lay_out(
    team: ThreadTeam, entries: Entries, n_samples: int, cuts: BinCuts, has_missing: np.ndarray
) -> TrainingBins:
    """Lay the bins out in columns; the values of the entries are bins here, none that of 0."""
    bundles = bundle_features(entries, np.diff(cuts.starts) + 1 + has_missing, n_samples)
    dtype = np.uint8 if bundles.n_cells.max() <= 256 else np.uint16
    rows = np.empty((n_samples, len(bundles.n_cells)), dtype=dtype)
    columns = np.empty(rows.shape[::-1], dtype=dtype)
    matrix = lay_out_cells(rows, columns, cuts, has_missing, bundles)
    # what rows without an entry have
    empty = np.zeros(len(columns), dtype=np.int64)
    empty[bundles.column[bundles.is_alone]] = matrix.places.zero_bin[bundles.is_alone]
    rows[:], columns[:] = empty, empty[:, np.newaxis]
    team.run(write_entries, entries, matrix)
    return matrix._replace(rows=read_only(rows), columns=read_only(columns))


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

    Parameters
    ----------
    rows : ndarray of int32
    n_cells, most_cells : int
        How many are needed, and how many a column may have.
    taken : ndarray of uint64, shape (n_words, n_samples)
        Bit i of word w: whether column 64 w + i has an entry in the row.
    filled : ndarray of int64, shape (64 * n_words,)
        The cells that the columns have; 0: none yet, nor have the columns behind it.
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

    Parameters
    ----------
    entries : Entries
        Listed by features, without those in the bin of 0; their values do not matter.
    n_bins : ndarray of int64, shape (n_features,)
        Bins of each feature, that of 0 and that of missing values included.
    n_samples : int
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
