"""Raw feature values as kernels take them: blocks of read-only memory."""

import math
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from sklboost.data.parquet_files import BatchedTable
    from sklboost.data.sparse_table import SparseTable
    from sklboost.data.table import Table

# What is computed of so many rows at a time is small, compared with the data of many rows.
BLOCK_ROWS = 2**18
_WRITTEN_AT_ONCE = 2**20

# Makes the array of a name, such as the layout "rows" or "columns", a shape and a dtype.
Allocate = Callable[[str, tuple[int, ...], Any], np.ndarray]


@dataclass(frozen=True)
class RowArrays:
    """Makes arrays that have something for each row."""

    folder: Path | None = None  # where their files are; None: they are in memory

    @property
    def are_on_disk(self) -> bool:
        """Whether they are in files."""
        return self.folder is not None

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """Return an array that can be written; OSError if the disk is full."""
        if self.folder is None or 0 in shape:
            return np.empty(shape, dtype)
        n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
        with _new_file(self.folder) as file:
            reserve(file, n_bytes, self.folder)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))

    def zeros(self, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
        """Return an array of zeros, as new files have them."""
        return np.zeros(shape, dtype) if self.folder is None else self.empty(shape, dtype)

    def full(self, value: Any, n_rows: int, dtype: Any = np.float64) -> np.ndarray:
        """Return an array of shape (len(value), n_rows), each row one of the values."""
        array = self.empty((len(value), n_rows), dtype)
        array[:] = np.asarray(value)[:, np.newaxis]
        return array

    def copy(self, array: np.ndarray, dtype: Any) -> np.ndarray:
        """Return a copy in C order."""
        target = self.empty(array.shape, dtype)
        np.copyto(target, array, casting="unsafe")
        return target

    def take(self, array: np.ndarray, numbers: np.ndarray) -> np.ndarray:
        """Return the rows of these numbers, a copy."""
        taken = self.empty((len(numbers), *array.shape[1:]), array.dtype)
        for rows in row_blocks(len(numbers)):
            taken[rows] = array[numbers[rows]]
        return taken


IN_MEMORY = RowArrays()


def _new_file(folder: Path) -> IO[bytes]:
    """Return a file without a name."""
    try:
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        problem = "what a fit has for each row of bins on disk is written to their folder"
        remedy = "name a folder that can be written to, open_bins(path, scratch=...)"
        raise OSError(error.errno, f"{error.strerror}: {problem}; {remedy}", str(folder)) from error


def row_blocks(n_rows: int) -> Iterator[slice]:
    """Yield ranges of rows, in order."""
    for start in range(0, n_rows, BLOCK_ROWS):
        yield slice(start, min(start + BLOCK_ROWS, n_rows))


def reserve(file: IO[bytes], n_bytes: int, folder: Path) -> None:
    """Give a file its size, and the room on the disk.

    A file with holes would be made at once, and the process killed where the disk is full later.
    """
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, n_bytes)
        else:
            file.seek(0, os.SEEK_END)
            for start in range(file.tell(), n_bytes, _WRITTEN_AT_ONCE):
                file.write(bytes(min(_WRITTEN_AT_ONCE, n_bytes - start)))
            file.flush()
    except OSError as error:
        size = f"{n_bytes / 2**20:,.1f} MiB"
        problem = f"there is no room for {size} of bins, or of what a fit has for each row"
        remedy = "make some, or choose another folder, path=... or open_bins(path, scratch=...)"
        raise OSError(error.errno, f"{error.strerror}: {problem}; {remedy}", str(folder)) from error


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


class FeatureRows(ABC):
    """Rows of features that are no array, but have its length and size, by their `shape`."""

    __slots__ = ()
    ndim = 2

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""

    @property
    def size(self) -> int:
        """Number of values: rows times features."""
        n_rows, n_features = self.shape
        return n_rows * n_features

    def __len__(self) -> int:
        return self.shape[0]


# An array, or a table of floats that is read block by block.
Values: TypeAlias = "np.ndarray | Table | SparseTable | BatchedTable"


def value_blocks(
    X: Values, tell: Callable[[int], None] | None = None
) -> Iterator[tuple[slice, RawMatrix]]:
    """Yield ranges of rows and their values, which the next may overwrite; `tell` how many rows."""
    if isinstance(X, np.ndarray):
        n_rows = max(1, ARRAY_BLOCK_VALUES // max(1, X.shape[1]))
        starts = range(0, max(1, len(X)), n_rows)  # of an empty array there is a block, too
        ranges = (slice(start, min(start + n_rows, len(X))) for start in starts)
        blocks: Iterator[tuple[slice, np.ndarray]] = ((rows, X[rows]) for rows in ranges)
    else:
        blocks = X.blocks()
    for rows, values in blocks:
        yield rows, raw_matrix(values)
        if tell is not None:
            tell(rows.stop - rows.start)


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
