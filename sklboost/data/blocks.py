"""Raw values, block by block, whatever holds them.

In: a 2-D float array, or anything with ``blocks()`` and ``column(feature)``, such as a
:class:`~sklboost.data.table.Table`. Out: :class:`~sklboost.data.raw.RawMatrix` blocks.

The one idea: parts of an array are blocks, as they are; so all that reads values reads blocks.
"""

from collections.abc import Callable, Iterator

import numpy as np

from sklboost.data.batched_table import BatchedTable
from sklboost.data.raw import RawMatrix, raw_matrix
from sklboost.data.sparse_table import SparseTable
from sklboost.data.table import Table

InMemory = np.ndarray | Table | SparseTable
# What values are read from.
Values = InMemory | BatchedTable

# Of an array. Where it is a memory map, these take a second to read from a slow disk: as often can
# progress be shown, and Ctrl-C be heard.
_ARRAY_BLOCK_VALUES = 2**24


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
    n_rows = max(1, _ARRAY_BLOCK_VALUES // max(1, X.shape[1]))
    for start in range(0, max(1, len(X)), n_rows):  # of an empty array there is a block, too
        rows = slice(start, min(start + n_rows, len(X)))
        yield rows, X[rows]


def value_column(X: InMemory, feature: int) -> np.ndarray:
    """Give all values of one feature, shape (n_samples,)."""
    return X[:, feature] if isinstance(X, np.ndarray) else X.column(feature)


def value_array(X: InMemory) -> np.ndarray:
    """Give all values as one array: of anything but an array a copy, as large as floats are."""
    return X if isinstance(X, np.ndarray) else X.values()


def categories_of(X: Values) -> np.ndarray:
    """Give the number of levels of each feature, int64, shape (n_features,); 0 for numbers."""
    return np.zeros(X.shape[1], np.int64) if isinstance(X, np.ndarray) else X.n_categories
