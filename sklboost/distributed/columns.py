"""What workers do with one partition: look at its columns, and make features of it.

A partition is a frame, an array or a matrix of scipy.sparse. The functions are called in tasks of
Dask, with one thread each.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from sklboost.data.encoding import Encoding, encode
from sklboost.data.features import value_array
from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import (
    ColumnAdapter,
    FrameAdapter,
    as_objects,
    is_wide,
    may_be_rounded,
)
from sklboost.data.frames.numpy_arrays import ArrayTable, ObjectColumn
from sklboost.data.row_hashes import value_totals
from sklboost.data.sparse_table import SparseTable, check_exact, sparse_table
from sklboost.data.table import Column, Table
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.predict.prediction import add_trees

_ALL = slice(None)
# What a partition becomes.
RawFeatures = np.ndarray | Table | SparseTable
# Rows of a column that can be no feature, of which an error shows an example.
_FEW_ROWS = 100


class Facts(NamedTuple):
    """What is in a partition."""

    n_rows: int
    n_columns: int
    names: tuple[Any, ...] | None  # of the columns; None: they have none
    dtypes: tuple[str, ...]  # of the columns
    special: frozenset[int]  # the columns that are not just numbers that float64 holds
    is_sparse: bool


def look_at(partition: Any) -> Facts:
    """Look at the columns of a partition."""
    n_rows, n_columns = partition.shape
    table = None if issparse(partition) else adapter_for(partition)
    if table is None:
        check_exact(partition)
        dtypes = (str(partition.dtype),) * n_columns
        return Facts(n_rows, n_columns, None, dtypes, frozenset(), issparse(partition))
    columns = [table.column(i) for i in range(n_columns)]
    return Facts(
        n_rows,
        n_columns,
        names=None if table.names is None else tuple(table.names),
        dtypes=tuple(column.dtype_name for column in columns),
        special=frozenset(i for i, column in enumerate(columns) if not _is_plain(column)),
        is_sparse=False,
    )


def _is_plain(column: ColumnAdapter) -> bool:
    """Whether the values are numbers, and float64 holds them, by the dtype or by themselves."""
    if column.kind != "number" or isinstance(column, ObjectColumn):
        return False
    if column.is_exact():
        return True
    values, _ = column.numbers()
    return not (is_wide(values.dtype) and may_be_rounded(values.astype(np.float64)))


class Encoder(NamedTuple):
    """How partitions become features."""

    encodings: tuple[Encoding, ...] | None  # None: all features are numbers as they are
    missing: float  # A further value that counts as missing; NaN: none
    n_features: int
    # of columns of Python objects a value of each type that any partition has: they decide together
    # of which kind a column is
    examples: dict[int, list[Any]]

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories of each feature, int64; 0 for numbers."""
        if self.encodings is None:
            return np.zeros(self.n_features, dtype=np.int64)
        return np.array([known.n_categories for known in self.encodings], dtype=np.int64)

    def features(self, partition: Any, rows: slice | np.ndarray = _ALL) -> RawFeatures:
        """Return the features of some rows of a partition."""
        every = self._features(partition)
        return every if isinstance(rows, slice) else every[rows]

    def _features(self, partition: Any) -> RawFeatures:
        if isinstance(partition, Encoded):
            return partition.values
        if issparse(partition):
            dtype = np.float32 if partition.dtype == np.float32 else np.float64
            table = sparse_table(partition.tocsr().astype(dtype, copy=False))
            return table if np.isnan(self.missing) else table.with_missing(self.missing)
        source = adapter_for(partition)
        if self.encodings is None and np.isnan(self.missing):
            array = partition if source is None else source.matrix()
            if array is not None:
                return array if array.flags.forc else np.ascontiguousarray(array)
        source = ArrayTable(partition) if source is None else source
        columns = [self._column(partition, source, i) for i in range(self.n_features)]
        return Table(columns, self.n_categories)

    def _column(self, partition: Any, source: FrameAdapter, i: int) -> Column:
        encoding = Encoding() if self.encodings is None else self.encodings[i]
        if i in self.examples:
            examples = as_objects(self.examples[i])
            values = np.concatenate([examples, _objects(partition, i)])
            together = ArrayTable(values[:, np.newaxis])
            return encode(together, 0, encoding, self.missing)[0].take(slice(len(examples), None))
        if encoding.kind == "number":
            source.read_as_numbers(i)
        return encode(source, i, encoding, self.missing)[0]


def _objects(partition: Any, i: int) -> np.ndarray:
    if hasattr(partition, "iloc"):
        return partition.iloc[:, i].to_numpy(object)
    return np.asarray(partition[:, i], dtype=object)


class Distinct(NamedTuple):
    """The distinct values of a column of a partition, as rows of it, and the weight of each."""

    rows: Any
    masses: np.ndarray


def distinct_rows(
    partition: Any, weight: np.ndarray | None, columns: Sequence[int]
) -> list[Distinct]:
    """Choose for each of some columns rows that have all its values, the first of each.

    `weight`, of the rows, is such that sums are exact; None: all 1.
    """
    source = adapter_for(partition)
    table = ArrayTable(partition) if source is None else source
    return [_distinct(partition, i, table.column(i), weight) for i in columns]


def _distinct(partition: Any, i: int, column: ColumnAdapter, weight: np.ndarray | None) -> Distinct:
    codes = _codes(column, len(partition))
    places = np.flatnonzero(codes >= 0)
    _, first, inverse = np.unique(codes[places], return_index=True, return_inverse=True)
    masses = np.bincount(inverse, None if weight is None else weight[places], len(first))
    order = np.argsort(first)
    rows = places[first[order]]
    masses = masses[order].astype(np.float64)
    if not hasattr(partition, "iloc"):
        return Distinct(partition[rows][:, [i]], masses)
    values = partition.iloc[rows, i]
    if hasattr(values.dtype, "categories"):  # lists of categories may be long, and differ
        values = _with_own_categories(values)
    return Distinct(values.to_frame(), masses)


def _with_own_categories(values: Any) -> Any:
    """Return a Series of categories, none missing, with a list of only those that it has.

    The list before may be one for all partitions of this process, and what pandas asks of one
    (whether its values are unique) goes wrong in two threads at once; so it is only copied from.
    """
    import pandas as pd

    used, codes = np.unique(values.array.codes, return_inverse=True)
    own = pd.Categorical.from_codes(codes, values.array.categories.take(used))
    return pd.Series(own, values.index, name=values.name)


def _codes(column: ColumnAdapter, n_rows: int) -> np.ndarray:
    """Return the same number for the same value of the same type; -1: missing."""
    if isinstance(column, ObjectColumn):
        types = column.codes_of_types()
        if column.kind == "unsupported":
            return types
        codes, _ = column.categories()
        return np.where(codes < 0, -1, codes * (types.max(initial=0) + 1) + types)
    if column.kind == "unsupported":
        return np.where(np.arange(n_rows) < _FEW_ROWS, np.arange(n_rows), -1)
    return column.categories()[0]


# --- features of a partition


class Encoded(NamedTuple):
    """Rows that are features already: floats, codes of categories, NaN where missing."""

    values: np.ndarray


def totals_of(partition: Any, rows: slice | np.ndarray, *, encoder: Encoder) -> np.ndarray:
    """Return the total of the bits of the values of each row, as `value_totals` does."""
    return value_totals(encoder.features(partition, rows))


def values_of(partition: Any, rows: slice | np.ndarray, *, encoder: Encoder) -> np.ndarray:
    """Return the values of some rows as an array of floats, shape (n_rows, n_features)."""
    X = encoder.features(partition, rows)
    return value_array(X) if len(X) > 0 else np.empty(X.shape, X.dtype)


@np.errstate(all="ignore")
def scored(
    partition: Any,
    rows: slice | np.ndarray,
    raw_score: np.ndarray,
    *,
    encoder: Encoder,
    model: Model,
    trees: tuple[int, int],
) -> np.ndarray:
    """Return raw scores of some rows, shape (n_outputs, n_rows), with some trees added."""
    total = np.array(raw_score)  # what came from elsewhere is read-only
    with ThreadTeam(1) as team:
        add_trees(team, model, encoder.features(partition, rows), trees, total)
    return total
