"""Features most of whose values are 0, as a table of the other values, from scipy.sparse.

An entry that is absent is 0, and one that is stored as 0 counts as absent. NaN is a missing value,
and has to be stored.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from sklboost.data.raw_values import FeatureRows, read_only
from sklboost.data.table import BLOCK_VALUES, LARGEST_EXACT
from sklboost.engine.compiling import kernel

# Up to so many entries scipy numbers them by int32.
_MOST_INT32 = 2**31 - 1


class Entries(NamedTuple):
    """The values that are stored, row after row or feature after feature; all read-only."""

    # int64, shape (n_rows + 1,) or (n_features + 1,): number i of the rows, or features, has the
    # entries ``[starts[i], starts[i + 1])``
    starts: np.ndarray
    # int32, shape (n_entries,): the feature of each entry; or, where they are listed by features,
    # its row. Increasing within a row, or a feature.
    numbers: np.ndarray
    values: np.ndarray  # float32 or float64, shape (n_entries,): None is 0


class SparseTable(FeatureRows):
    """Rows of features, of which only the values other than 0 are stored.

    The matrix of float32 or float64 is sorted, without duplicates or stored zeros, and kept.
    """

    __slots__ = ("_rows",)

    def __init__(self, rows: csr_array):
        self._rows = rows

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n_samples, n_features = self._rows.shape
        return n_samples, n_features

    @property
    def size(self) -> int:
        """Number of stored values: what the work of a fit grows with."""
        return self._rows.nnz

    @property
    def dtype(self) -> np.dtype:
        """Type of the values: float32 or float64."""
        return self._rows.dtype

    def __repr__(self) -> str:
        n_samples, n_features = self.shape
        return (
            f"<SparseTable of {n_samples:,} rows and {n_features:,} features, {self.size:,} values>"
        )

    def __getitem__(self, rows: Any) -> "SparseTable":
        """Choose rows by a slice, an array of their numbers or a mask; their values are copied."""
        return SparseTable(self._rows[rows])

    def with_missing(self, marker: float) -> "SparseTable":
        """Return a copy in which the values equal to `marker`, which is not 0, are missing."""
        rows = self._rows.copy()
        rows.data[rows.data == marker] = np.nan
        return SparseTable(rows)

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories of each feature, int64: 0, since all are numbers."""
        return np.zeros(self.shape[1], dtype=np.int64)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of rows and all their values, which the next block overwrites.

        The values have shape (n_rows, n_features). The time for all blocks is in proportion to the
        number of stored values.
        """
        entries, n_features = self.by_row, self.shape[1]
        step = max(1, BLOCK_VALUES // n_features)
        values = np.zeros((min(step, len(self)), n_features), dtype=self.dtype)
        for start in range(0, len(self), step):
            rows = (start, min(start + step, len(self)))
            write_rows(entries, rows, 1, values)
            yield slice(*rows), values[: rows[1] - start]
            write_rows(entries, rows, 0, values)

    def column_blocks(self, feature: int) -> Iterator[np.ndarray]:
        """Yield the values of one feature, shape (n_rows,), all at once."""
        yield self._rows[:, [feature]].toarray().ravel()

    def values(self) -> np.ndarray:
        """Return all values, shape (n_rows, n_features): as large as a dense table is."""
        return self._rows.toarray()

    @property
    def by_row(self) -> Entries:
        """The stored values row after row."""
        return _entries(self._rows)

    def by_feature(self) -> Entries:
        """Return the stored values feature after feature: a copy of them."""
        return _entries(self._rows.tocsc())


def _entries(stored: Any) -> Entries:
    return Entries(
        read_only(stored.indptr.astype(np.int64, copy=False)),
        read_only(stored.indices.astype(np.int32, copy=False)),
        read_only(stored.data),
    )


def sparse_table(X: Any) -> SparseTable:
    """Return the table of a CSR matrix or array of float32 or float64.

    Nothing is copied if `X` is in the form that the table has, and `X` is never changed.
    """
    arrays = (X.data, X.indices, X.indptr)
    if X.indices.dtype != np.int32 and max(X.nnz, *X.shape) <= _MOST_INT32:
        arrays = (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32))
    rows = csr_array(arrays, shape=X.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not rows.data.all():
        rows = rows.copy()
        rows.eliminate_zeros()
    return SparseTable(rows)


def check_exact(X: Any) -> None:
    """Raise ValueError if a sparse matrix has an integer that float64 has not."""
    if X.dtype.kind not in "iu" or X.dtype.itemsize < 8 or X.nnz == 0:
        return
    values = X.tocoo().data
    largest = max(int(values.max()), -int(values.min()))
    if largest > LARGEST_EXACT:
        raise ValueError(
            f"X is sparse and contains an integer as large as {largest}: beyond 2^53 they are not "
            "all float64, and values that differ could become equal; make them smaller, for "
            "instance by subtracting a constant"
        )


def join_sparse(first: SparseTable, second: SparseTable) -> SparseTable:
    """Return the rows of `first`, then the rows of `second`."""
    return SparseTable(vstack([first._rows, second._rows], format="csr"))


@kernel
def write_rows(entries, rows, is_kept, block):
    """Write the entries of the rows ``[start, stop)`` to `block`, which is 0 everywhere else.

    With ``is_kept=0`` the entries are overwritten by 0 again, which takes no longer. `rows` are
    start and stop; `block`, shape (n_rows, n_features), is modified.
    """
    for row in range(rows[0], rows[1]):
        values = block[row - rows[0]]
        for index in range(entries.starts[row], entries.starts[row + 1]):
            values[entries.numbers[index]] = entries.values[index] if is_kept == 1 else 0.0
