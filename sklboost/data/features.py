"""What a fit and a prediction ask of features, be they raw values or bins that were made before.

In: a 2-D float array or a :class:`~sklboost.data.binned_matrix.BinnedMatrix`. Out: the bins that a
tree is grown from, or blocks of values that go down the trees.

The one idea: for prediction a bin becomes a value again, one from its middle. No threshold of a
tree divides the values of a bin, so they all go where this one goes.
"""

from collections.abc import Iterator

import numpy as np

from sklboost.compiling import kernel
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import bin_matrix, lay_out_cells
from sklboost.data.raw import RawMatrix, raw_matrix
from sklboost.data.sparse_binning import bin_sparse
from sklboost.data.sparse_table import SparseTable, write_rows
from sklboost.parallel import ThreadTeam, share
from sklboost.structs import BinCuts, TrainingBins

Features = np.ndarray | BinnedMatrix | SparseTable

# Rows are transposed in blocks that stay in the first-level cache.
_BLOCK_ROWS = 256
# Bins become values in blocks of 8 MB: enough work for a team, little beside a large matrix.
_BLOCK_VALUES = 2**20


def training_bins(
    team: ThreadTeam, X: Features, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Give the bins of the training rows in both layouts, and how values become bins.

    Parameters
    ----------
    team : ThreadTeam
    X : ndarray of float32 or float64, BinnedMatrix or SparseTable; shape (n_samples, n_features)
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Decides on the cuts of raw values. Empty: all 1.
    max_bin : int
        For raw values; a BinnedMatrix has its own.
    """
    if isinstance(X, SparseTable):
        return bin_sparse(team, X, weight, max_bin)
    if not isinstance(X, BinnedMatrix):
        return bin_matrix(team, raw_matrix(X), weight, max_bin)
    columns = np.empty(X.shape[::-1], dtype=X.dtype)
    team.run(fill_columns, X.bins, columns)
    # a copy: kernels know this one as writable, and here it may be a memory map
    has_missing = np.array(X.binning.has_missing)
    cuts = X.binning.cuts
    return lay_out_cells(X.bins, columns, cuts, has_missing), cuts


@kernel
def fill_columns(team, rows, columns):
    """Fill `columns`, (n_features, n_samples), with the bins of `rows`; each member a share."""
    start, stop = share(team, len(rows))
    for block in range(start, stop, _BLOCK_ROWS):
        for feature in range(rows.shape[1]):
            for row in range(block, min(block + _BLOCK_ROWS, stop)):
                columns[feature, row] = rows[row, feature]


def raw_blocks(team: ThreadTeam, X: Features) -> Iterator[tuple[slice, RawMatrix]]:
    """Yield ranges of rows and their values, which the next block overwrites.

    Raw values are one block, as they are; bins and stored values become a block at a time.
    """
    if isinstance(X, SparseTable):
        yield from _dense_blocks(team, X)
        return
    if not isinstance(X, BinnedMatrix):
        yield slice(0, len(X)), raw_matrix(X)
        return
    cells = lay_out_cells(X.bins, X.bins.T, X.binning.cuts, X.binning.has_missing)
    cell_values = _middles(cells.lower, cells.upper)
    n_rows = max(1, _BLOCK_VALUES // X.shape[1])
    values = np.empty((min(n_rows, len(X)), X.shape[1]))
    for start in range(0, len(X), n_rows):
        rows = slice(start, min(start + n_rows, len(X)))
        block = values[: rows.stop - start]
        team.run(fill_values, X.bins[rows], cells.cell_starts, cell_values, block)
        yield rows, raw_matrix(block)


def _dense_blocks(team: ThreadTeam, X: SparseTable) -> Iterator[tuple[slice, RawMatrix]]:
    entries, n_rows = X.by_row, max(1, _BLOCK_VALUES // X.shape[1])
    values = np.zeros((min(n_rows, len(X)), X.shape[1]), dtype=X.dtype)
    for start in range(0, len(X), n_rows):
        rows = (start, min(start + n_rows, len(X)))
        team.run(write_rows, entries, rows, 1, values)
        yield slice(*rows), raw_matrix(values[: rows[1] - start])
        team.run(write_rows, entries, rows, 0, values)


@kernel
def fill_values(team, bins, cell_starts, cell_values, values):
    """Fill `values` with the value that stands for each bin; each member takes a share of rows."""
    start, stop = share(team, len(bins))
    for row in range(start, stop):
        for feature in range(bins.shape[1]):
            values[row, feature] = cell_values[cell_starts[feature] + bins[row, feature]]


def _middles(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Give a value in the middle of each bin, from `lower` to `upper`; NaN for a bin of missing.

    A bin without middle, from -inf to inf, is represented by -inf.
    """
    with np.errstate(invalid="ignore"):
        middle = lower / 2.0 + upper / 2.0  # halved first: their sum may overflow
    # subnormal halves are rounded; and fmax and fmin prefer numbers to NaN
    return np.fmin(np.fmax(middle, lower), upper)
