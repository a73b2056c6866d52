"""A table with its columns in any order, any of them several times, each with its rows reordered.

This is how features get shadows, and how one of them is shuffled, whatever library the table is
from. Nothing is copied before it is read.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sklboost.data.frames.adapter import ColumnAdapter, FrameAdapter, Kind

# For each place the number of a column, and the order of its rows, ndarray of int, shape (n_rows,);
# None: as it is.
Arrangement = Sequence[tuple[int, np.ndarray | None]]


class ArrangedColumns(FrameAdapter):
    """The columns of another table as an arrangement has them, without names."""

    def __init__(self, source: FrameAdapter, arrangement: Arrangement) -> None:
        super().__init__(None, source.n_rows, len(arrangement))
        self._source = source
        self._arrangement = arrangement

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns: what scikit-learn asks a table for."""
        return self.n_rows, self.n_columns

    def read_column(self, i: int) -> ColumnAdapter:
        number, order = self._arrangement[i]
        column = self._source.column(number)
        return column if order is None else OrderedColumn(column, order)


class OrderedColumn(ColumnAdapter):
    """Another column with its rows in the order ``order``, ndarray of int of shape (n_rows,)."""

    def __init__(self, column: ColumnAdapter, order: np.ndarray) -> None:
        self._column = column
        self._order = order

    @property
    def kind(self) -> Kind:
        return self._column.kind

    @property
    def dtype_name(self) -> str:
        return self._column.dtype_name

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        values, missing = self._column.numbers()
        return values[self._order], self._ordered(missing)

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        values, missing, unit = self._column.times()
        return values[self._order], self._ordered(missing), unit

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        codes, values = self._column.categories()
        return codes[self._order], values

    def examples(self) -> list[Any]:
        return self._column.examples()

    def is_exact(self) -> bool:
        return self._column.is_exact()

    def _ordered(self, missing: np.ndarray | None) -> np.ndarray | None:
        return None if missing is None else missing[self._order]
