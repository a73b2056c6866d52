"""From stored values to bins, in columns that features share.

In: a :class:`~sklboost.data.sparse_table.SparseTable`. Out: the cuts that the same dense table has,
and :class:`~sklboost.engine.structs.TrainingBins` whose columns are bundles of features. No step
takes more memory than the entries, or the bins.
"""

import numpy as np

from sklboost.data.binning import bin_values, zero_bins
from sklboost.data.bundling import bundle_features, cell_of_bin
from sklboost.data.raw_values import read_only
from sklboost.data.sparse_cuts import cut_entries
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam, next_task
from sklboost.engine.structs import PLACE_DTYPE, BinCuts, TrainingBins, records


def bin_sparse(
    team: ThreadTeam, table: SparseTable, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Find the cuts of the values and bin them; give both.

    Parameters
    ----------
    team : ThreadTeam
    table : SparseTable
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive weights of the rows; empty: all 1.
    max_bin : int
        2 to 65,535.
    """
    n_samples, n_features = table.shape
    entries = table.by_feature()
    features = np.repeat(np.arange(n_features, dtype=np.int32), np.diff(entries.starts))
    cuts, has_missing = cut_entries(team, entries, n_samples, weight, max_bin)
    bins = np.empty(len(features), dtype=np.uint16)
    team.run(find_bins, entries, cuts, bins)
    kept = bins != zero_bins(cuts)[features]
    starts = np.concatenate([[0], np.cumsum(kept)])[entries.starts]
    stored = Entries(*map(read_only, (starts, entries.numbers[kept], bins[kept])))
    return _lay_out(team, stored, n_samples, cuts, has_missing), cuts


@kernel
def find_bins(team, entries, cuts, bins):
    """Fill the bin of each entry.

    Parameters
    ----------
    team : Team
    entries : Entries
        By features.
    cuts : BinCuts
    bins : ndarray of uint16, shape (n_entries,)
        Filled.
    """
    feature = next_task(team, 0)
    while feature < len(cuts.starts) - 1:
        own_cuts = cuts.cuts[cuts.starts[feature] : cuts.starts[feature + 1]]
        for index in range(entries.starts[feature], entries.starts[feature + 1]):
            value = np.float64(entries.values[index])
            if value != value:
                bins[index] = len(own_cuts) + 1
            else:
                bins[index] = np.searchsorted(own_cuts, value, side="right")
        feature = next_task(team, 0)


def _lay_out(
    team: ThreadTeam,
    entries: Entries,
    n_samples: int,
    cuts: BinCuts,
    has_missing: np.ndarray,
) -> TrainingBins:
    """Lay the bins out in columns; the values of the entries are bins here, none that of 0."""
    n_bins = np.diff(cuts.starts) + 1
    bundles = bundle_features(entries, n_bins + has_missing, n_samples)
    cell_starts = np.concatenate([[0], np.cumsum(bundles.n_cells)])
    places = records(len(n_bins), PLACE_DTYPE)
    places.column = bundles.column
    places.first_cell = cell_starts[bundles.column] + bundles.first_cell
    places.zero_bin, places.is_shared = zero_bins(cuts), ~bundles.is_alone
    # what rows without an entry have
    empty = np.zeros(len(bundles.n_cells), dtype=np.int64)
    empty[bundles.column[bundles.is_alone]] = places.zero_bin[bundles.is_alone]
    dtype = np.uint8 if bundles.n_cells.max() <= 256 else np.uint16
    rows = np.empty((n_samples, len(empty)), dtype=dtype)
    columns = np.empty((len(empty), n_samples), dtype=dtype)
    rows[:], columns[:] = empty, empty[:, np.newaxis]
    matrix = TrainingBins(
        rows=rows,
        columns=columns,
        cell_starts=cell_starts,
        places=places,
        bin_starts=np.concatenate([[0], np.cumsum(n_bins + has_missing)]),
        has_missing=has_missing,
        lower=bin_values(cuts.lower, n_bins, has_missing),
        upper=bin_values(cuts.upper, n_bins, has_missing),
        n_categories=cuts.n_categories,
    )
    team.run(write_entries, entries, matrix)
    return matrix._replace(rows=read_only(rows))


@kernel
def write_entries(team, entries, matrix):
    """Write the bins of the entries to both layouts; no two are written to the same place."""
    feature = next_task(team, 0)
    while feature < len(matrix.places):
        place = matrix.places[feature]
        column = place.column
        for index in range(entries.starts[feature], entries.starts[feature + 1]):
            cell = cell_of_bin(place, np.int64(entries.values[index]))
            matrix.rows[entries.numbers[index], column] = cell - matrix.cell_starts[column]
            matrix.columns[column, entries.numbers[index]] = cell - matrix.cell_starts[column]
        feature = next_task(team, 0)
