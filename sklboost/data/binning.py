"""From raw values to bins, in the two layouts of the binned matrix.

In: raw values and, for new data, the cuts. Out: :class:`~sklboost.structs.BinnedMatrix`.
"""

import numpy as np

from sklboost.data.cuts import find_cuts
from sklboost.data.raw import RawMatrix
from sklboost.parallel import ThreadTeam, kernel, share
from sklboost.structs import BinCuts, BinnedMatrix

# Rows are taken in blocks whose raw values and bins stay in the first-level caches while every
# feature passes over them.
_BLOCK_ROWS = 256


@kernel
def find_missing(team, raw, has_missing):
    """Set ``has_missing[feature]`` to 1 where a value is NaN; each member looks at a share."""
    start, stop = share(team, raw.n_samples)
    for block in range(start, stop, _BLOCK_ROWS):
        for feature in range(raw.n_features):
            n_missing = 0
            for row in range(block, min(block + _BLOCK_ROWS, stop)):
                value = raw.values[row * raw.row_step + feature * raw.feature_step]
                n_missing += value != value
            if n_missing > 0:
                has_missing[feature] = 1  # all who write here write 1


@kernel
def count_not_above(cuts, value):
    """Count the cuts that are not above `value`, which is its bin: halving without a branch."""
    first = np.uint64(0)
    length = np.uint64(len(cuts))
    one = np.uint64(1)
    while length > one:
        half = length >> one
        first += half * np.uint64(cuts[first + half - one] <= value)
        length -= half
    if length == one:
        first += np.uint64(cuts[first] <= value)
    return np.int64(first)


@kernel
def fill_bins(team, raw, cuts, matrix):
    """Fill both layouts of `matrix` with the bins of the raw values; each member a share of rows."""
    start, stop = share(team, raw.n_samples)
    for block in range(start, stop, _BLOCK_ROWS):
        for feature in range(raw.n_features):
            own_cuts = cuts.cuts[cuts.starts[feature] : cuts.starts[feature + 1]]
            missing_bin = len(own_cuts) + 1
            for row in range(block, min(block + _BLOCK_ROWS, stop)):
                value = raw.values[row * raw.row_step + feature * raw.feature_step]
                bin_ = missing_bin if value != value else count_not_above(own_cuts, value)
                matrix.columns[feature, row] = bin_
                matrix.rows[row, feature] = bin_


def _cell_values(values: np.ndarray, n_bins: np.ndarray, has_missing: np.ndarray) -> np.ndarray:
    """Spread one value a bin over the histogram cells; NaN where a cell counts missing values."""
    ends = np.cumsum(n_bins)
    return np.insert(values, ends[has_missing == 1], np.nan)


def bin_matrix(
    team: ThreadTeam, raw: RawMatrix, weight: np.ndarray, max_bin: int
) -> BinnedMatrix:
    """Find the cuts of the raw values and bin them.

    Parameters
    ----------
    team : ThreadTeam
    raw : RawMatrix
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive weights of the rows; empty: all 1.
    max_bin : int
        2 to 65,535.
    """
    has_missing = np.zeros(raw.n_features, dtype=np.int64)
    team.run(find_missing, raw, has_missing)
    cuts = find_cuts(team, raw, weight, max_bin, has_missing)
    return apply_cuts(team, raw, cuts, has_missing)


def apply_cuts(
    team: ThreadTeam, raw: RawMatrix, cuts: BinCuts, has_missing: np.ndarray
) -> BinnedMatrix:
    """Bin raw values by given cuts. Codes are uint8 where all fit, else uint16."""
    n_bins = np.diff(cuts.starts) + 1
    cell_starts = np.zeros(raw.n_features + 1, dtype=np.int64)
    np.cumsum(n_bins + has_missing, out=cell_starts[1:])
    dtype = np.uint8 if np.diff(cell_starts).max() <= 256 else np.uint16
    matrix = BinnedMatrix(
        rows=np.empty((raw.n_samples, raw.n_features), dtype=dtype),
        columns=np.empty((raw.n_features, raw.n_samples), dtype=dtype),
        cell_starts=cell_starts,
        has_missing=has_missing,
        lower=_cell_values(cuts.lower, n_bins, has_missing),
        upper=_cell_values(cuts.upper, n_bins, has_missing),
    )
    team.run(fill_bins, raw, cuts, matrix)
    return matrix
