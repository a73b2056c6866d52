"""Raw feature values as kernels take them: blocks of read-only memory, whatever holds the values.

A :class:`RawMatrix` is the memory of a 2-D array as a read-only 1-D array and two strides, so that
C order, Fortran order, writable arrays and read-only memory maps all compile to one version of a
kernel, and nothing is copied. Everything that reads values reads them in such blocks: parts of an
array as they are, or rows of a table as floats.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np

from sklboost.data.row_arrays import row_blocks

# Of an array. Where it is a memory map, these take a second to read from a slow disk: as often can
# progress be shown, and Ctrl-C be heard.
ARRAY_BLOCK_VALUES = 2**24


class RawMatrix(NamedTuple):
    """Element (row, feature) is ``values[row * row_step + feature * feature_step]``."""

    values: np.ndarray  # float32 or float64, read-only, shape (n_samples * n_features,)
    n_samples: int
    n_features: int
    row_step: int
    feature_step: int


def raw_matrix(X: np.ndarray) -> RawMatrix:
    """Describe `X` (2-D, float32 or float64); copied only if contiguous in neither order."""
    n_samples, n_features = X.shape
    if X.flags.f_contiguous and not X.flags.c_contiguous:
        values, row_step, feature_step = X.T.reshape(-1), 1, n_samples
    else:
        values, row_step, feature_step = np.ascontiguousarray(X).reshape(-1), n_features, 1
    return RawMatrix(read_only(values), n_samples, n_features, row_step, feature_step)


def array_of(raw: RawMatrix) -> np.ndarray:
    """Return raw values as the 2-D array that they are, without a copy."""
    if raw.feature_step == 1:
        return raw.values.reshape(raw.n_samples, raw.n_features)
    return raw.values.reshape(raw.n_features, raw.n_samples).T


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a plain, read-only view: one type for kernels, memory map or not."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


class BlockTable(Protocol):
    """A table of float values that is read block by block, such as a Table or a SparseTable."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    @property
    def size(self) -> int:
        """Number of values that are stored."""

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories of each feature, int64, shape (n_features,); 0 for numbers."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: np.ndarray, /) -> "BlockTable": ...

    def column_blocks(self, feature: int) -> Iterator[np.ndarray]:
        """Yield the values of one feature, shape (n_rows,), some rows after others."""

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of rows and their values, which the next block may overwrite."""


Values = np.ndarray | BlockTable


def ignore_progress(n_rows: int) -> None:
    """Take no notice."""


def value_blocks(
    X: Values, tell: Callable[[int], None] = ignore_progress
) -> Iterator[tuple[slice, RawMatrix]]:
    """Yield ranges of rows and their values, which the next block may overwrite.

    After each block `tell` is called with the number of its rows.
    """
    for rows, values in _array_blocks(X) if isinstance(X, np.ndarray) else X.blocks():
        yield rows, raw_matrix(values)
        tell(rows.stop - rows.start)


def _array_blocks(X: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    n_rows = max(1, ARRAY_BLOCK_VALUES // max(1, X.shape[1]))
    for start in range(0, max(1, len(X)), n_rows):  # of an empty array there is a block, too
        rows = slice(start, min(start + n_rows, len(X)))
        yield rows, X[rows]


def value_column(X: Values, feature: int) -> np.ndarray:
    """Return all values of one feature, shape (n_samples,)."""
    if isinstance(X, np.ndarray):
        return X[:, feature]
    return np.concatenate([*X.column_blocks(feature)])


def column_blocks(X: Values, feature: int) -> Iterator[np.ndarray]:
    """Yield the values of one feature, shape (n_rows,), some rows after others."""
    if isinstance(X, np.ndarray):
        yield from (X[rows, feature] for rows in row_blocks(len(X)))
    else:
        yield from X.column_blocks(feature)


def categories_of(X: Values) -> np.ndarray:
    """Return the number of categories of each feature, int64; 0 for numbers."""
    return np.zeros(X.shape[1], np.int64) if isinstance(X, np.ndarray) else X.n_categories
