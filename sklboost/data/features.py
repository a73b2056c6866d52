"""The entrance to this room: the bins that a tree is grown from, and the values that go down trees.

Features are raw values (a 2-D float array, a :class:`~sklboost.data.table.Table`, a
:class:`~sklboost.data.sparse_table.SparseTable`) or a
:class:`~sklboost.data.binned_matrix.BinnedMatrix`, whose bins were made before. For prediction its
bins become values again, one from the middle of each. No threshold of a tree divides the values of
a bin, so they all go where this one goes.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import apply_cuts, lay_out_cells
from sklboost.data.cuts import find_cuts
from sklboost.data.raw_values import RawMatrix, raw_matrix, read_only, value_blocks
from sklboost.data.row_arrays import IN_MEMORY, RowArrays
from sklboost.data.sparse_binning import bin_sparse
from sklboost.data.sparse_table import SparseTable, join_sparse
from sklboost.data.table import BLOCK_VALUES, Table, join_tables, table_of
from sklboost.engine.compiling import kernel
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam, assemble, share
from sklboost.engine.structs import BinCuts, TrainingBins

# What fits and predictions take.
Features = np.ndarray | Table | SparseTable | BinnedMatrix


class RemoteFeatures(ABC):
    """Features whose values are not in this process: of a cluster. Their rows are chosen here."""

    ndim = 2

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    @property
    def size(self) -> int:
        """Number of values: rows times features."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, key: slice | np.ndarray) -> "RemoteFeatures":
        """Choose rows by a slice, by increasing numbers or by a mask; nothing is moved."""

    @abstractmethod
    def hashes(self, y: np.ndarray, seed: int) -> np.ndarray:
        """Return what :func:`~sklboost.data.row_hashes.hash_rows` does of features here."""

    @abstractmethod
    def gather(self) -> np.ndarray:
        """Return all values as an array here: floats, codes of categories; NaN where missing."""

    @abstractmethod
    def join(self, values: np.ndarray) -> "RemoteFeatures":
        """Return the rows and behind them others, given as :meth:`gather` returns them."""

    @abstractmethod
    def add_trees(self, model: Model, trees: tuple[int, int], raw_score: np.ndarray) -> None:
        """Add the trees ``[start, stop)`` to `raw_score`, shape (n_outputs, n_samples)."""


# Rows are transposed in blocks that stay in the first-level cache.
_BLOCK_ROWS = 256


@np.errstate(all="ignore")
def training_bins(
    team: ThreadTeam, X: Features | RemoteFeatures, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Return the bins of the training rows in both layouts, and how values become bins.

    Parameters
    ----------
    team : ThreadTeam
    X : ndarray of float32 or float64, Table, SparseTable or BinnedMatrix; (n_samples, n_features)
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive weights of the rows, which decide on the cuts of raw values. Empty: all 1.
    max_bin : int
        For raw values, 2 to 65,535; a BinnedMatrix has its own.
    """
    if isinstance(X, RemoteFeatures):
        raise TypeError("X is a Dask collection, which this does not take yet: pass X.compute()")
    if isinstance(X, SparseTable):
        return bin_sparse(team, X, weight, max_bin)
    if not isinstance(X, BinnedMatrix):
        cuts, has_missing = find_cuts(team, X, weight, max_bin)
        return apply_cuts(team, X, cuts, has_missing), cuts
    columns = X.columns
    if columns is None:
        columns = X.row_arrays.empty(X.shape[::-1], X.dtype)
        team.run(fill_columns, X.bins, columns)
    # copies: kernels know these as writable, and here they may be memory maps
    has_missing = np.array(X.binning.has_missing)
    cuts = BinCuts(*map(np.array, X.binning.cuts))
    return lay_out_cells(X.bins, read_only(columns), cuts, has_missing), cuts


def row_arrays_of(X: Features) -> RowArrays:
    """Return where what a fit has for each row of `X` lies."""
    return X.row_arrays if isinstance(X, BinnedMatrix) else IN_MEMORY


@kernel
def fill_columns(team, rows, columns):
    """Fill `columns`, (n_features, n_samples), with the bins of `rows`; each member a share."""
    if not assemble(team):
        return
    start, stop = share(team, len(rows))
    for block in range(start, stop, _BLOCK_ROWS):
        for feature in range(rows.shape[1]):
            for row in range(block, min(block + _BLOCK_ROWS, stop)):
                columns[feature, row] = rows[row, feature]


def raw_blocks(team: ThreadTeam, X: Features) -> Iterator[tuple[slice, RawMatrix]]:
    """Yield ranges of rows and their values, which the next block overwrites.

    An array is one block, as it is; bins become float64 values a block at a time.
    """
    if not isinstance(X, BinnedMatrix):
        yield from value_blocks(X)
        return
    cells = lay_out_cells(X.bins, X.bins.T, X.binning.cuts, X.binning.has_missing)
    cell_values = _middles(cells.lower, cells.upper)
    n_rows = max(1, BLOCK_VALUES // X.shape[1])
    values = np.empty((min(n_rows, len(X)), X.shape[1]))
    for start in range(0, len(X), n_rows):
        rows = slice(start, min(start + n_rows, len(X)))
        block = values[: rows.stop - start]
        team.run(fill_values, X.bins[rows], cells.cell_starts, cell_values, block)
        yield rows, raw_matrix(block)


@kernel
def fill_values(team, bins, cell_starts, cell_values, values):
    """Fill `values` with the value that stands for each bin; each member takes a share of rows."""
    if not assemble(team):
        return
    start, stop = share(team, len(bins))
    for row in range(start, stop):
        for feature in range(bins.shape[1]):
            values[row, feature] = cell_values[cell_starts[feature] + bins[row, feature]]


@np.errstate(all="ignore")
def _middles(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Return a value in the middle of each bin, from `lower` to `upper`; NaN for missing values.

    A bin without middle, from -inf to inf, is represented by -inf.
    """
    middle = lower / 2.0 + upper / 2.0  # halved first: their sum may overflow
    # subnormal halves are rounded; and fmax and fmin prefer numbers to NaN
    return np.fmin(np.fmax(middle, lower), upper)


def value_array(X: np.ndarray | Table | SparseTable) -> np.ndarray:
    """Return all values as one array: a copy, unless `X` is an array."""
    return X if isinstance(X, np.ndarray) else X.values()


def join_rows(X: Features | RemoteFeatures, other: Features) -> Features | RemoteFeatures:
    """Return the rows of `X` and behind them those of `other`, the same features: a copy of both.

    Raises
    ------
    ValueError
        If only one of them is a BinnedMatrix, or sparse.
    """
    if isinstance(X, RemoteFeatures):
        local: Any = other  # no bins: a fit on a cluster has values
        return X.join(value_array(local))
    if isinstance(X, BinnedMatrix) and isinstance(other, BinnedMatrix):
        bins = X.row_arrays.empty((len(X) + len(other), X.shape[1]), X.dtype)
        np.concatenate([X.bins, other.bins], out=bins)
        return BinnedMatrix(bins, X.binning, X.row_arrays)
    if isinstance(X, BinnedMatrix) or isinstance(other, BinnedMatrix):
        raise ValueError(
            "refit=True joins the rows of X and of the validation data: pass both as raw "
            "values, or both as rows of one BinnedMatrix"
        )
    if isinstance(X, SparseTable) and isinstance(other, SparseTable):
        return join_sparse(X, other)
    if isinstance(X, SparseTable) or isinstance(other, SparseTable):
        raise ValueError(
            "refit=True joins the rows of X and of the validation data: pass both as sparse "
            "matrices, or neither"
        )
    if isinstance(X, np.ndarray) and isinstance(other, np.ndarray):
        return np.concatenate([X, other])
    tables = [rows if isinstance(rows, Table) else table_of(rows) for rows in (X, other)]
    return join_tables(*tables)
