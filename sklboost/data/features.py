"""The entrance to this room: the bins that a tree is grown from, and the values that go down trees.

Features are raw values (a 2-D float array, a :class:`~sklboost.data.table.Table`, a
:class:`~sklboost.data.sparse_table.SparseTable`) or a
:class:`~sklboost.data.binned_matrix.BinnedMatrix`, whose bins were made before. For prediction its
bins become values again, one from the middle of each. No threshold of a tree divides the values of
a bin, so they all go where this one goes.

A search fits each candidate on the same few divisions of the rows. So in the tasks of joblib, in
threads and in processes, a fit looks for bins that were made of the same values; their key is a
SHA-256 digest of all that bins depend on, so they cannot be stale. Outside of such tasks nothing is
kept or looked for.

Each thread keeps what it used last, so all of it is freed when the threads of a search end. A
dictionary of weak references lets them find each other's. There are no locks, which a fork could
leave taken: two threads that miss the same bins at the same time both make them.
"""

from abc import abstractmethod
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import apply_cuts, bin_sparse, lay_out_cells
from sklboost.data.cuts import find_cuts
from sklboost.data.raw_values import (
    IN_MEMORY,
    FeatureRows,
    RawMatrix,
    RowArrays,
    raw_matrix,
    read_only,
    value_blocks,
)
from sklboost.data.sparse_table import SparseTable, join_sparse
from sklboost.data.table import BLOCK_VALUES, Column, Table, join_tables
from sklboost.engine.compiling import kernel
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadMemory, ThreadTeam, assemble, library_of_task, share
from sklboost.engine.structs import BinCuts, RemoteColumn, TrainingBins

# What fits and predictions take.
Features = np.ndarray | Table | SparseTable | BinnedMatrix


class RemoteFeatures(FeatureRows):
    """Features whose values are not in this process: of a cluster. Their rows are chosen here."""

    @abstractmethod
    def __getitem__(self, key: slice | np.ndarray) -> "RemoteFeatures":
        """Choose rows by a slice, by increasing numbers or by a mask; nothing is moved."""

    @abstractmethod
    def hashes(self, y: Any, seed: int) -> RemoteColumn:
        """Return the hashes of :func:`~sklboost.data.row_hashes.hash_rows`; `y` may be a column."""

    @abstractmethod
    def with_cuts(self, weight: np.ndarray, max_bin: int, n_jobs: int | None) -> "RemoteFeatures":
        """Return the rows with the cut points of these, which rows chosen among them keep."""

    @abstractmethod
    def here(self) -> np.ndarray | Table:
        """Return these features in this process: a table, if there are categories."""

    @abstractmethod
    def join(self, values: np.ndarray) -> "RemoteFeatures":
        """Return the rows and behind them others: floats, codes of categories, NaN if missing."""

    @abstractmethod
    def add_trees(self, model: Model, trees: tuple[int, int], raw_score: np.ndarray) -> None:
        """Add the trees ``[start, stop)`` to `raw_score`, shape (n_outputs, n_samples)."""

    @abstractmethod
    def leaves(self, model: Model) -> np.ndarray:
        """Return the leaf that each row reaches in each tree, int32, (n_samples, n_trees)."""


# Rows are transposed in blocks that stay in the first-level cache.
_BLOCK_ROWS = 256


@np.errstate(all="ignore")
def training_bins(
    team: ThreadTeam, X: Features, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Return the bins of the training rows in both layouts, and how values become bins.

    In a task of joblib, bins of not very many values are made once.
    """
    if isinstance(X, SparseTable):
        return bin_sparse(team, X, weight, max_bin)
    if not isinstance(X, BinnedMatrix):
        if X.size <= _MOST_VALUES and library_of_task() == "joblib":
            return _shared_bins(team, X, weight, max_bin)
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
    with np.errstate(all="ignore"):
        middle = cells.lower / 2.0 + cells.upper / 2.0  # halved first: their sum may overflow
    # subnormal halves are rounded; fmax and fmin prefer numbers to NaN, the bounds of
    # missing values: a bin without middle, from -inf to inf, is represented by -inf
    cell_values = np.fmin(np.fmax(middle, cells.lower), cells.upper)
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


def values_of_bins(team: ThreadTeam, X: BinnedMatrix) -> np.ndarray:
    """Return the values that stand for the bins, shape (n_samples, n_features)."""
    values = X.row_arrays.empty(X.shape)
    for rows, raw in raw_blocks(team, X):
        values[rows] = raw.values.reshape(-1, raw.n_features)
    return values


def value_array(X: np.ndarray | Table | SparseTable) -> np.ndarray:
    """Return all values as one array: a copy, unless `X` is an array."""
    return X if isinstance(X, np.ndarray) else X.values()


def join_rows(X: Features | RemoteFeatures, other: Features) -> Features | RemoteFeatures:
    """Return the rows of `X`, then the rows of `other`, which has the same features: a copy."""
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
    no_categories = np.zeros(X.shape[1], dtype=np.int64)
    tables = [
        rows if isinstance(rows, Table) else Table([Column(own) for own in rows.T], no_categories)
        for rows in (X, other)
    ]
    return join_tables(*tables)


# Bytes that a thread keeps, cut points included: 23 divisions of 20,000 rows of 28 features, say.
_ROOM = 2**25
# A quarter of this room, in two layouts of a byte: of larger ones it would hold too few.
_MOST_VALUES = 2**22


class _Made:
    """Bins and cuts, in a form that can be referred to weakly."""

    __slots__ = ("__weakref__", "cuts", "matrix")

    def __init__(self, matrix: TrainingBins, cuts: BinCuts):
        self.matrix = matrix
        self.cuts = cuts

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in (*self.matrix, *self.cuts))


_made: WeakValueDictionary[bytes, _Made] = WeakValueDictionary()
_memory = ThreadMemory()


def _shared_bins(
    team: ThreadTeam, X: np.ndarray | Table, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Return the bins that a task of joblib has made of the same values, or make them."""
    key, mine = _digest(X, weight, max_bin), _memory.kept
    made = _made.get(key)
    if made is None:
        cuts, has_missing = find_cuts(team, X, weight, max_bin)
        made = _Made(apply_cuts(team, X, cuts, has_missing), cuts)
    _made[key] = made
    mine.pop(key, None)
    mine[key] = made  # the last used is the last that goes
    while sum(kept.n_bytes for kept in mine.values()) > _ROOM:
        del mine[next(iter(mine))]
    return made.matrix, made.cuts


def _digest(X: np.ndarray | Table, weight: np.ndarray, max_bin: int) -> bytes:
    """Return the digest of all that bins depend on, and of the order in which values lie."""
    categories = X.n_categories.tolist() if isinstance(X, Table) else None
    facts = (X.shape, X.dtype.str, categories, len(weight), int(max_bin))
    digest = sha256(repr(facts).encode())
    for _, raw in value_blocks(X):
        digest.update(repr(raw[1:]).encode())
        digest.update(raw.values.data)
    digest.update(np.ascontiguousarray(weight).data)
    return digest.digest()
