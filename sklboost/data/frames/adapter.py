"""What a table is to this package, whichever library it comes from: columns that are asked for.

In: how a library gives its columns. Out: :class:`FrameAdapter`, which the rest of the package
reads.

The one idea: a column says of which kind it is without its values being read (Python objects have
to be looked at), and gives them as NumPy arrays only when it is asked, as views of the user's
memory wherever that memory is one array.
"""

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from sklboost.data.table import LARGEST_EXACT

# Up to here one array of float64 costs less than going on column by column.
SMALL = 2**16


class Column(Protocol):
    """One column of the user's table."""

    @property
    def kind(self) -> str:
        """Tell what is in the column.

        - "number": bool, integers or floats, decimals, or nothing but missing values.
        - "time": dates, times, durations.
        - "category": declared so by its dtype.
        - "text": strings that are not declared to be categories.
        - "mixed": Python objects that are neither all numbers nor all text.
        - "unsupported": complex numbers, nested and binary data.
        """

    @property
    def dtype_name(self) -> str:
        """Give the dtype as the user's library calls it, for messages."""

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Give the values, and which of them are missing.

        Returns
        -------
        values : ndarray of bool, int, uint or float of any width, shape (n_rows,)
            A view of the user's memory where that is possible.
        missing : ndarray of bool, shape (n_rows,), or None
            What stands in `values` there has no meaning. NaN among floats is missing, too, and need
            not be marked. None: nothing is marked.
        """

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Give times as integers, which of them are missing, and what they count.

        Returns
        -------
        values : ndarray of int64, shape (n_rows,)
            Instants in UTC where there is a time zone.
        missing : ndarray of bool, shape (n_rows,), or None
        unit : str
            A dtype of NumPy: "datetime64[ns]" or "timedelta64[us]", for instance.
        """

    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Give a column of any kind but "unsupported" as categories.

        Returns
        -------
        codes : ndarray of any int, shape (n_rows,)
            -1: missing.
        values : ndarray, shape (n_categories,)
            What the codes stand for, each once, in any order, also such as no row has. Text and
            mixed values are objects; numbers, times and bools have a dtype of NumPy.
        """

    def examples(self) -> list[Any]:
        """Give the first value that is not missing, one of each type if there are several."""


class FrameAdapter(ABC):
    """The columns of a table, by number. Each library has a class that says how it gives them.

    Parameters
    ----------
    names : list or None
        Of the columns, as the user has them; None if there are none.
    n_rows, n_columns : int
    """

    def __init__(self, names: list[Any] | None, n_rows: int, n_columns: int) -> None:
        self.names = names
        self.n_rows = n_rows
        self.n_columns = n_columns
        self._columns: dict[int, Column] = {}

    @abstractmethod
    def read_column(self, i: int) -> Column:
        """Give column number `i` of the user's table."""

    def column(self, i: int) -> Column:
        """Give column number `i`, read when it is first asked for."""
        if i not in self._columns:
            self._columns[i] = self.read_column(i)
        return self._columns[i]

    def label(self, i: int) -> str:
        """Name column number `i` in a message."""
        return f"column {i}" if self.names is None else f"column {self.names[i]!r}"

    def kind(self, i: int) -> str:
        """Give the kind of a column, see :class:`Column`, as the methods below."""
        return self.column(i).kind

    def dtype_name(self, i: int) -> str:
        """Give the dtype of a column, as the user's library calls it."""
        return self.column(i).dtype_name

    def numbers(self, i: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Give the values of a column, and which of them are missing."""
        return self.column(i).numbers()

    def times(self, i: int) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Give times as integers, which of them are missing, and what they count."""
        return self.column(i).times()

    def categories(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Give a column as codes and the values that they stand for."""
        return self.column(i).categories()

    def examples(self, i: int) -> list[Any]:
        """Give the first value of a column that is not missing, one of each type."""
        return self.column(i).examples()

    def is_empty(self, i: int) -> bool:
        """Tell whether a column has no value at all: then it is as good as one of any kind."""
        if self.kind(i) != "number":
            return not self.examples(i)
        values, missing = self.numbers(i)
        is_there = values == values  # and not NaN
        return not (is_there if missing is None else is_there & ~missing).any()

    def is_exact(self, i: int) -> bool:
        """Tell whether it is known without reading a column that float64 holds all it has."""
        return False

    def matrix(self) -> np.ndarray | None:
        """Give all values as one array, if that is quick: it saves the way column by column.

        Returns
        -------
        ndarray of float32 or float64, shape (n_rows, n_columns), or None
            The values exactly as they are, NaN for missing ones; a view of the user's memory, or a
            small copy. None if a column is not of numbers, if float64 cannot hold them, or if it
            would take a copy of more than 65,536 values.
        """
        if self.n_rows * self.n_columns > SMALL:
            return None
        matrix = np.empty((self.n_rows, self.n_columns), order="F")
        any_wide = False
        for i in range(self.n_columns):
            column = self.column(i)
            if column.kind != "number":
                return None
            values, missing = column.numbers()
            matrix[:, i] = values
            if missing is not None:
                matrix[missing, i] = np.nan
            any_wide |= is_wide(values.dtype)
        return None if any_wide and may_be_rounded(matrix) else matrix


def is_wide(dtype: np.dtype) -> bool:
    """Tell whether a dtype has integers that float64 does not hold."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def may_be_rounded(floats: np.ndarray) -> bool:
    """Tell whether there are floats so large that integers become other ones in float64."""
    return bool((np.abs(floats) >= LARGEST_EXACT).any())
