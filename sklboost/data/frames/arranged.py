"""Columns of a table in any order, any of them several times, each with its rows in its own order.

In: a table and an arrangement. Out: another table, of which nothing is copied before it is read.
It is how features get shadows, and how one of them is shuffled, whatever library the table is from.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklboost.data.frames.adapter import Column, FrameAdapter

# The number of a column, and the order of its rows, ndarray of int, shape (n_rows,); None: as it is
Arrangement = Sequence[tuple[int, np.ndarray | None]]


class ArrangedColumns(FrameAdapter):
    """Columns of a table as an arrangement has them, without names.

    Parameters
    ----------
    source : FrameAdapter
    arrangement : sequence of (int, ndarray of int or None)
    """

    def __init__(self, source: FrameAdapter, arrangement: Arrangement) -> None:
        super().__init__(None, source.n_rows, len(arrangement))
        self._source = source
        self._arrangement = arrangement

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns: what scikit-learn asks a table for."""
        return self.n_rows, self.n_columns

    def read_column(self, i: int) -> Column:
        """Give the column that stands at place `i`."""
        number, order = self._arrangement[i]
        column = self._source.column(number)
        return column if order is None else OrderedColumn(column, order)

    def is_exact(self, i: int) -> bool:
        """Tell whether it is known that float64 holds all the column has."""
        return self._source.is_exact(self._arrangement[i][0])


class OrderedColumn:
    """A column with its rows in another order.

    Parameters
    ----------
    column : Column
    order : ndarray of int, shape (n_rows,)
        The row that stands at each place.
    """

    def __init__(self, column: Column, order: np.ndarray) -> None:
        self._column = column
        self._order = order

    @property
    def kind(self) -> str:
        """Tell what is in the column. The methods are those of :class:`Column`."""
        return self._column.kind

    @property
    def dtype_name(self) -> str:
        """Give its dtype as the user's library calls it."""
        return self._column.dtype_name

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Give the values, and which of them are missing."""
        values, missing = self._column.numbers()
        return values[self._order], self._ordered(missing)

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Give times as integers, which of them are missing, and what they count."""
        values, missing, unit = self._column.times()
        return values[self._order], self._ordered(missing), unit

    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Give codes and the values that they stand for."""
        codes, values = self._column.categories()
        return codes[self._order], values

    def examples(self) -> list[Any]:
        """Give the first value that is not missing, one of each type, as the column had them."""
        return self._column.examples()

    def _ordered(self, missing: np.ndarray | None) -> np.ndarray | None:
        return None if missing is None else missing[self._order]
