"""Raw values, block by block, whatever holds them.

In: a 2-D float array, or anything with ``blocks()`` and ``column(feature)``, such as a
:class:`~sklboost.data.table.Table`. Out: :class:`~sklboost.data.raw.RawMatrix` blocks.

The one idea: an array is one block, as it is; so all that reads values reads blocks.
"""

from collections.abc import Iterator

import numpy as np

from sklboost.data.batched_table import BatchedTable
from sklboost.data.raw import RawMatrix, raw_matrix
from sklboost.data.sparse_table import SparseTable
from sklboost.data.table import Table

InMemory = np.ndarray | Table | SparseTable
# What values are read from.
Values = InMemory | BatchedTable


def value_blocks(X: Values) -> Iterator[tuple[slice, RawMatrix]]:
    """Yield ranges of rows and their values, which the next block may overwrite."""
    if isinstance(X, np.ndarray):
        yield slice(0, len(X)), raw_matrix(X)
        return
    for rows, values in X.blocks():
        yield rows, raw_matrix(values)


def value_column(X: InMemory, feature: int) -> np.ndarray:
    """Give all values of one feature, shape (n_samples,)."""
    return X[:, feature] if isinstance(X, np.ndarray) else X.column(feature)


def value_array(X: InMemory) -> np.ndarray:
    """Give all values as one array: of anything but an array a copy, as large as floats are."""
    return X if isinstance(X, np.ndarray) else X.values()


def levels_of(X: Values) -> np.ndarray:
    """Give the number of levels of each feature, int64, shape (n_features,); 0 for numbers."""
    return np.zeros(X.shape[1], np.int64) if isinstance(X, np.ndarray) else X.n_levels
