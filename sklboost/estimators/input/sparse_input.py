"""Sparse matrices as users give them.

In: a matrix or array of scipy.sparse. Out: a :class:`~sklboost.data.sparse_table.SparseTable`, or a
word on what cannot be done with it.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklboost.data.features import Features
from sklboost.data.sparse_table import SparseTable, sparse_table
from sklboost.data.table import LARGEST_EXACT
from sklboost.estimators.input.feature_tables import (
    Encodings,
    FeatureSettings,
    needs_table,
    unless_plain,
)

# The bins of bin_features have a place for every value, stored or not.
_MOST_BIN_BYTES = 2**28


def check_exact(X: Any) -> None:
    """Raise ValueError if `X` is sparse and has an integer that float64 has not."""
    if not issparse(X) or X.dtype.kind not in "iu" or X.dtype.itemsize < 8 or X.nnz == 0:
        return
    values = X.tocoo().data
    largest = max(int(values.max()), -int(values.min()))
    if largest > LARGEST_EXACT:
        raise ValueError(
            f"X is sparse and contains an integer as large as {largest}: beyond 2^53 they are not "
            "all float64, and values that differ could become equal; make them smaller, for "
            "instance by subtracting a constant"
        )


def read_sparse(X: Any, settings: FeatureSettings, encodings: Encodings) -> SparseTable:
    """Give a CSR matrix or array of floats as a SparseTable.

    Raises
    ------
    ValueError
        If its values cannot be taken as the numbers that they are.
    """
    if settings.missing == 0.0:
        raise ValueError(
            "missing=0, and X is sparse: whatever is not stored would be missing, and here an "
            "absent value is 0; leave `missing` as it is, or pass X.toarray()"
        )
    if unless_plain(encodings) is not None:
        raise ValueError(
            "X is sparse, and the model was fitted with features that are not just numbers "
            "(categories, times, or integers beyond 2^53): pass them as they were at fit"
        )
    if needs_table(settings._replace(missing=np.nan), None):
        raise ValueError(
            f"categorical_features={settings.categorical_features!r}, and X is sparse: its "
            "features are numbers; encode these categories one-hot, which costs nothing here, or "
            "pass a frame"
        )
    table = sparse_table(X)
    return table.with_missing(settings.missing) if settings.has_marker else table


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
