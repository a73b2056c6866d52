"""Where arrays lie that have something for each row: in memory, or in files mapped into it.

Where bins are on disk, all else that a fit has for each row is, too: in files without a name, which
the system removes when the array, or the process, is no more, however that ends.
"""

import math
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

# What is computed of so many rows at a time stays small beside many rows.
BLOCK_ROWS = 2**18
_WRITTEN_AT_ONCE = 2**20


@dataclass(frozen=True)
class RowArrays:
    """Makes arrays that have something for each row.

    Attributes
    ----------
    folder : Path or None
        Where their files are. None: they are in memory.
    """

    folder: Path | None = None

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
        problem = "what a fit has for each row of bins on disk is written beside them"
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
