"""Sparse matrices as users give them.

In: a matrix or array of scipy.sparse. Out: a :class:`~sklboost.data.sparse_table.SparseTable`, or a
word on what cannot be done with it.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklboost.data.features import Features
from sklboost.data.sparse_table import SparseTable, sparse_table

# float64 has all integers up to here, and not the next.
_LARGEST_EXACT = 2**53
# The bins of bin_features have a place for every value, stored or not.
_MOST_BIN_BYTES = 2**28


def check_exact(X: Any) -> None:
    """Raise ValueError if `X` is sparse and has an integer that float64 has not."""
    if not issparse(X) or X.dtype.kind not in "iu" or X.dtype.itemsize < 8 or X.nnz == 0:
        return
    values = X.tocoo().data
    largest = max(int(values.max()), -int(values.min()))
    if largest > _LARGEST_EXACT:
        raise ValueError(
            f"X is sparse and contains an integer as large as {largest}: beyond 2^53 they are not "
            "all float64, and values that differ could become equal; make them smaller, for "
            "instance by subtracting a constant"
        )


def as_table(X: Any) -> Any:
    """Give a CSR matrix or array as a SparseTable, and an array as it is."""
    return sparse_table(X) if issparse(X) else X


def check_is_dense(X: Features) -> None:
    """Raise ValueError for sparse features: leaves that are linear in them read every value."""
    if isinstance(X, SparseTable):
        raise ValueError(
            f"{X!r}: linear leaves (linear_tree=True) are not for sparse input; pass X.toarray(), "
            "or set linear_tree=False"
        )


def check_is_small(X: Features, max_bin: int) -> None:
    """Raise ValueError for sparse features whose bins would fill the memory."""
    n_bytes = int(np.prod(X.shape, dtype=np.int64)) * (1 if max_bin <= 256 else 2)
    if isinstance(X, SparseTable) and n_bytes > _MOST_BIN_BYTES:
        raise ValueError(
            f"{X!r}: bin_features gives each value a place, stored or not, and here that would be "
            f"{n_bytes / 2**30:.1f} GiB; pass X itself to fit, which takes memory only for what is "
            "stored"
        )
