"""Columns of different kinds as one table of features, which become floats a block at a time.

The columns are 1-D arrays as users hold them: booleans, integers, floats of any width, codes of
categories. Nothing is converted before it is needed: choosing rows copies row numbers at most, and
of the values as floats there is never more than a block.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import FeatureRows, row_blocks

# A block of 8 MB of float64: enough work for a team, and a small part of a large table.
BLOCK_VALUES = 2**20
# Up to here float64 has all integers, and not the next.
LARGEST_EXACT = 2**53
# Types whose values float32 holds exactly.
_SHORT_TYPES = (np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.float16, np.float32)


class Column(NamedTuple):
    """One feature, as it is held."""

    values: np.ndarray  # any bool, integer or float dtype, shape (n_rows,): naN is a missing value
    # bool, shape (n_rows,), or None: which further values are missing; None: no others
    missing: np.ndarray | None = None
    # float64, shape (n_codes + 1,), or None: the number that each code stands for, and for code -1
    # the last. None: values are numbers.
    translation: np.ndarray | None = None

    @property
    def is_short(self) -> bool:
        """Whether float32 holds every value exactly: by the type, no value is looked at."""
        if self.translation is not None:
            known = self.translation[~np.isnan(self.translation)]
            return bool((known.astype(np.float32) == known).all())
        return self.values.dtype.newbyteorder("=").type in _SHORT_TYPES

    def take(self, rows: slice | np.ndarray) -> "Column":
        """Choose rows: by a slice without a copy."""
        missing = None if self.missing is None else self.missing[rows]
        return Column(self.values[rows], missing, self.translation)

    def fill(self, floats: np.ndarray) -> None:
        """Fill `floats`, shape (n_rows,), with the values; NaN where they are missing."""
        if self.translation is not None:
            floats[:] = self.translation[self.values]
        elif self.values.dtype.kind in "iu" and self.values.dtype.itemsize == 8:
            floats[:] = floats_below(self.values)
        else:
            floats[:] = self.values
        if self.missing is not None:
            floats[self.missing] = np.nan


def floats_below(values: np.ndarray) -> np.ndarray:
    """Return for each integer the largest float64 that is not above it.

    So ``x < threshold`` has the same answer for the integer and for the float, whatever float64 the
    threshold is. Rounding to nearest can carry a large integer up to the threshold that it lies
    below. `values` are int64 or uint64.
    """
    floats = values.astype(np.float64)
    if len(values) == 0 or np.abs(floats).max() <= LARGEST_EXACT:
        return floats
    # one beyond the largest integer is itself a float64, and would not fit back
    floats = np.minimum(floats, np.nextafter(float(np.iinfo(values.dtype).max), 0.0))
    is_above = floats.astype(values.dtype) > values
    floats[is_above] = np.nextafter(floats[is_above], -np.inf)
    return floats


class Table(FeatureRows):
    """Features in columns, of which rows can be chosen as of a 2-D array.

    Its `dtype` is float32 where that holds all values exactly, else float64.
    """

    __slots__ = ("_rows", "columns", "dtype", "n_categories")

    def __init__(
        self,
        columns: Sequence[Column],  # at least one, all of the same length
        # int64: 0 for numbers; k for categories, whose values are the codes 0 to k - 1
        n_categories: np.ndarray,
        rows: np.ndarray | None = None,  # numbers of the chosen rows of the columns; None: all
    ):
        self.columns = columns
        self.n_categories = n_categories
        self._rows = rows
        is_short = all(column.is_short for column in columns)
        self.dtype = np.dtype(np.float32 if is_short else np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        rows = self.columns[0].values if self._rows is None else self._rows
        return len(rows), len(self.columns)

    def __getitem__(self, key: slice | np.ndarray) -> "Table":
        """Choose rows by a slice, by their numbers or by a mask; no values are copied."""
        if self._rows is not None:
            return Table(self.columns, self.n_categories, self._rows[key])
        if isinstance(key, slice):
            return Table([column.take(key) for column in self.columns], self.n_categories)
        return Table(self.columns, self.n_categories, np.arange(len(self))[key])

    def column(self, feature: int) -> np.ndarray:
        """Return all values of one feature, shape (n_rows,), as floats."""
        values = np.empty(len(self), dtype=self.dtype)
        self._chosen(feature, slice(None)).fill(values)
        return values

    def column_blocks(self, feature: int) -> Iterator[np.ndarray]:
        """Yield the values of one feature, shape (n_rows,), some rows after others."""
        for rows in row_blocks(len(self)):
            values = np.empty(rows.stop - rows.start, dtype=self.dtype)
            self._chosen(feature, rows).fill(values)
            yield values

    def blocks(self, n_rows: int | None = None) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield ranges of rows and their values, which the next block overwrites, in Fortran order.

        By default a block has as many rows as have a million values.
        """
        n_features = len(self.columns)
        step = n_rows or max(1, BLOCK_VALUES // n_features)
        memory = np.empty(n_features * min(step, len(self)), dtype=self.dtype)
        for start in range(0, len(self), step):
            rows = slice(start, min(start + step, len(self)))
            n_in_block = rows.stop - start
            values = memory[: n_features * n_in_block].reshape(n_features, n_in_block)
            # a few rows are one block: not to choose them takes half the time
            is_all = self._rows is None and n_in_block == len(self)
            for feature, floats in enumerate(values):
                (self.columns[feature] if is_all else self._chosen(feature, rows)).fill(floats)
            yield rows, values.T

    def values(self) -> np.ndarray:
        """Return all values as floats, shape (n_rows, n_features): a copy of the whole table."""
        ((_, values),) = self.blocks(max(1, len(self)))
        return values

    def _chosen(self, feature: int, rows: slice) -> Column:
        return self.columns[feature].take(rows if self._rows is None else self._rows[rows])


def join_tables(table: Table, other: Table) -> Table:
    """Return the rows of both tables, which have the same features: a copy."""
    columns = []
    for feature in range(table.shape[1]):
        parts = [each._chosen(feature, slice(None)) for each in (table, other)]
        has_codes = any(part.translation is not None for part in parts)
        if has_codes or parts[0].values.dtype != parts[1].values.dtype:
            # codes may stand for other numbers, and types may have no common one: as floats
            parts = [Column(each.column(feature)) for each in (table, other)]
        masks = [
            np.broadcast_to(False, len(part.values)) if part.missing is None else part.missing
            for part in parts
        ]
        is_any = any(part.missing is not None for part in parts)
        missing = np.concatenate(masks) if is_any else None
        columns.append(Column(np.concatenate([part.values for part in parts]), missing))
    return Table(columns, table.n_categories)
