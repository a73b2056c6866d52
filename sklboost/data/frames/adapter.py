"""The base classes of tables and columns, whichever library they come from."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from sklboost.data.table import LARGEST_EXACT

# Up to here one array of float64 costs less than going on column by column.
SMALL = 2**16
# So many categories are read, needed or not, in the time it takes to find out which are.
_FEW_CATEGORIES = 256

# What is in a column.
# "number":      bool, integers or floats, decimals, or nothing but missing values
# "time":        dates, times, durations
# "category":    declared so by its dtype
# "text":        strings that are not declared to be categories
# "mixed":       Python objects that are neither all numbers nor all text
# "unsupported": complex numbers, nested and binary data
Kind = Literal["number", "time", "category", "text", "mixed", "unsupported"]


class ColumnAdapter(ABC):
    """One column of the user's table."""

    kind: Kind
    dtype_name: str  # as the user's library calls it, for messages
    timezone: str = ""  # of instants, as the user's library calls it; empty if there is none

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values of a column of numbers, and which of them are missing.

        Values are bool, integers or floats of any width, a view of the user's memory if possible.
        Where one is marked it has no meaning. NaN among floats need not be marked. None: none is.
        """
        raise TypeError(f"a column of kind {self.kind!r} has no numbers")

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Return times as int64, which of them are missing, or None, and their dtype in NumPy.

        Instants are in UTC where there is a time zone.
        """
        raise TypeError(f"a column of kind {self.kind!r} has no times")

    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Return a column of any kind but "unsupported" as integers, and what they stand for.

        -1: missing. Values are there once, in any order, also such as no row has. Text and mixed
        ones are objects; numbers, times and bools have a dtype of NumPy.
        """
        if self.kind == "number":
            return distinct(*self.numbers())
        if self.kind == "time":
            values, missing, unit = self.times()
            return distinct(values.view(unit), missing)
        return self._labels()

    def values(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values of a column of any kind, exactly, and which of them are missing.

        Numbers and times have a dtype of NumPy, text is Python objects. Where a value is missing,
        `values` have no meaning. NaN among floats need not be marked. None: nothing is marked.
        """
        if self.kind == "number":
            return self.numbers()
        if self.kind == "time":
            values, missing, unit = self.times()
            return values.view(unit), missing
        codes, found = self.categories()
        return np.append(found, np.zeros(1, found.dtype))[codes], codes < 0  # -1 is the last one

    @abstractmethod
    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return what `categories` returns for kinds other than "number" and "time"."""

    @abstractmethod
    def examples(self) -> list[Any]:
        """Return the first value that is not missing, one of each type if there are several."""

    def is_empty(self) -> bool:
        """Whether there is no value at all: then the column is as good as one of any kind."""
        if self.kind != "number":
            return not self.examples()
        values, missing = self.numbers()
        is_there = values == values  # and not NaN
        return not (is_there if missing is None else is_there & ~missing).any()

    def is_exact(self) -> bool:
        """Whether it is known, without reading the values, that float64 holds all of them."""
        return False


class NumericCategories(ColumnAdapter):
    """A column of categories that are numbers, as a column of these numbers."""

    def __init__(self, codes: np.ndarray, values: np.ndarray, dtype_name: str) -> None:
        self.kind, self.dtype_name = "number", dtype_name
        self._codes = codes
        self._values = values if len(values) > 0 else np.full(1, np.nan)

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        missing = self._codes < 0
        return self._values[self._codes], missing if missing.any() else None

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        return self._codes, self._values

    def examples(self) -> list[Any]:
        return first_value(*self.numbers())


class FrameAdapter(ABC):
    """The columns of a table, by number. Each library has a class that reads them."""

    def __init__(self, names: list[Any] | None, n_rows: int, n_columns: int) -> None:
        self.names = names  # as the user has them; None if there are none
        self.n_rows = n_rows
        self.n_columns = n_columns
        self._columns: dict[int, ColumnAdapter] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.n_rows, self.n_columns

    @abstractmethod
    def read_column(self, i: int) -> ColumnAdapter:
        """Read column number `i` of the user's table."""

    def column(self, i: int) -> ColumnAdapter:
        """Return column number `i`, read when it is first asked for."""
        if i not in self._columns:
            self._columns[i] = self.read_column(i)
        return self._columns[i]

    def read_as_numbers(self, i: int) -> bool:
        """Take the categories of column number `i` as the numbers they are.

        Whether it is a column of numbers then: False if the categories are of another type.
        """
        column = self.column(i)
        if column.kind == "category":
            codes, values = column.categories()
            if len(values) == 0 or values.dtype.kind in "biuf":
                self._columns[i] = column = NumericCategories(codes, values, column.dtype_name)
        return column.kind == "number"

    def label(self, i: int) -> str:
        """Name column number `i` in a message."""
        return f"column {i}" if self.names is None else f"column {self.names[i]!r}"

    def matrix(self) -> np.ndarray | None:
        """Return all values as one array of floats, if that is quicker than column by column.

        They are exactly as they are, NaN for missing ones: a view of the user's memory, or a small
        copy. None if a column is not of numbers, if float64 cannot hold them, or if it would take a
        copy of more than 65,536 values.
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


# --- numbers


def is_wide(dtype: np.dtype) -> bool:
    """Whether a dtype has integers that float64 does not hold."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def may_be_rounded(floats: np.ndarray) -> bool:
    """Whether there are floats so large that integers become other ones in float64."""
    return bool((np.abs(floats) >= LARGEST_EXACT).any())


# --- missing values


def is_missing(values: np.ndarray, marked: np.ndarray | None) -> np.ndarray | None:
    """Return a mask of the values that are marked, NaN or NaT; None if there are none."""
    absent = marked
    if values.dtype.kind in "fMm":
        absent = np.isnat(values) if values.dtype.kind in "Mm" else np.isnan(values)
        if marked is not None:
            absent = absent | marked
    return absent if absent is not None and absent.any() else None


def first_value(values: np.ndarray, marked: np.ndarray | None) -> list[Any]:
    """Return a list of the first value that is not missing, or an empty list."""
    missing = is_missing(values, marked)
    return (values if missing is None else values[~missing])[:1].tolist()


# --- codes of categories


def distinct(values: np.ndarray, marked: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return codes (-1: missing) and the distinct values in increasing order; of bools both."""
    missing = is_missing(values, marked)
    if values.dtype == np.bool_:  # nothing to be sorted
        codes = values.astype(np.int8)
        if missing is not None:
            codes[missing] = -1
        return codes, np.array([False, True])
    present = values if missing is None else values[~missing]
    found, codes_of_present = np.unique(present, return_inverse=True)
    if missing is None:
        return codes_of_present, found
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[~missing] = codes_of_present
    return codes, found


def number_text(values: Collection[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of a few strings, and the strings as they are met; -1 for all else."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(v, len(numbers)) if isinstance(v, str) else -1 for v in values]
    return np.array(codes, dtype=np.int64), as_objects(numbers)


def used_categories(codes: np.ndarray, n_categories: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Leave out categories that no row has, if there are many more categories than rows.

    Returns the codes of the categories that are left, -1 where missing, and which these are,
    increasing; None: all, and the codes are as they were.
    """
    if n_categories <= len(codes) + _FEW_CATEGORIES:
        return codes, None
    used = np.unique(codes[codes >= 0])
    return np.where(codes < 0, -1, np.searchsorted(used, codes)), used


def relabel(codes: np.ndarray, new_codes: np.ndarray) -> np.ndarray:
    """Replace each code k by ``new_codes[k]``, -1 by -1; the same array if nothing changes."""
    if np.array_equal(new_codes, np.arange(len(new_codes))):
        return codes
    return np.append(new_codes, -1)[codes]  # -1 is the last one


def as_objects(values: Collection[Any]) -> np.ndarray:
    """Return a one-dimensional array of objects, even if they are tuples."""
    return np.fromiter(values, dtype=object, count=len(values))


_MOST_NAMED = 10


def check_names(names: Iterable[Any]) -> None:
    """Raise ValueError if columns have the same name, or NaN for one; it lists the names."""
    counts = Counter(names)
    if any(isinstance(name, float) and name != name for name in counts):
        raise ValueError("X has a column of the name nan, which is not equal to itself: rename it")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"X has more than one column of the name {_listed(map(repr, twice))}: give each column "
            "a name of its own"
        )


def check_kinds(adapter: FrameAdapter, categorical: Collection[int]) -> None:
    """Raise an error if there are columns that cannot be features.

    `categorical` are the numbers of columns that the user has declared to be categories.
    """
    columns = [adapter.column(i) for i in range(adapter.n_columns)]
    for kind, message in (("unsupported", _unsupported), ("text", _text), ("mixed", _mixed)):
        refused = [i for i, column in enumerate(columns) if column.kind == kind]
        if kind != "unsupported":
            refused = [i for i in refused if i not in categorical and not columns[i].is_empty()]
        if refused:
            raise message(adapter, refused)


def _text(adapter: FrameAdapter, columns: list[int]) -> Exception:
    return ValueError(
        f'text is not a number: {_found(adapter, columns)}. Set categorical_features="auto", '
        "which reads text as categories or dates; or name such columns in it, give them a category "
        "dtype, turn them into numbers, or leave them out"
    )


def _mixed(adapter: FrameAdapter, columns: list[int]) -> Exception:
    return ValueError(
        f"neither all numbers nor all text: {_found(adapter, columns)}. Set categorical_features="
        '"auto", which reads objects as categories or dates; or give each column values of one '
        "type (and dates a dtype of dates), or name it in categorical_features"
    )


def _unsupported(adapter: FrameAdapter, columns: list[int]) -> Exception:
    found = _found(adapter, columns)
    examples = adapter.column(columns[0]).examples()
    for example in examples:
        if isinstance(example, complex):
            return ValueError(
                f"Complex data not supported: {found}. Pass the real and the imaginary part as "
                "columns of their own"
            )
    words = "a feature is a number, a time or a category"
    for example in examples:
        try:
            float(example)
        except TypeError as error:  # Python's own words
            words = str(error)
        except ValueError:  # bytes
            continue
    return TypeError(
        f"{words}: {found}. Make columns of numbers of what is in them, or leave them out"
    )


def kind_changed(label: str, was: str, now: str, dtype_name: str) -> str:
    """Return the text of an error: a column is of another kind than at fit.

    `was` and `now` are kinds, of times "datetime64" or "timedelta64"; `was` may be "code", of a
    category whose values are not known.
    """
    remedies = {
        "category": "give it values such as it had at fit",
        "number": "convert it to numbers",
        "code": "give it those numbers, as .cat.codes of pandas does in the order of the training",
        "datetime64": "give it a dtype of dates, as pandas.to_datetime does",
        "timedelta64": "give it a dtype of durations, as pandas.to_timedelta does",
    }
    return f"{label} held {_PLURALS[was]} at fit and holds {_PLURALS[now]} ({dtype_name}) now: " + (
        remedies.get(was, "pass values such as it had at fit")
    )


_PLURALS = {
    "number": "numbers",
    "code": "codes of categories",
    "datetime64": "dates",
    "timedelta64": "durations",
    "category": "categories",
    "text": "text",
    "mixed": "Python objects",
    "unsupported": "values that can be no feature",
}


def _found(adapter: FrameAdapter, columns: list[int]) -> str:
    """List columns with examples of what is in them."""
    return _listed(_with_examples(adapter, i) for i in columns)


def _with_examples(adapter: FrameAdapter, i: int) -> str:
    column, label = adapter.column(i), adapter.label(i)
    examples = column.examples()
    if len(examples) > 1:
        shown = " and ".join(f"{_short(value)} ({type(value).__name__})" for value in examples[:2])
    else:
        shown = "".join(map(_short, examples))
    return f"{label} ({column.dtype_name}, such as {shown})" if shown else label


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _listed(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = len(shown) - _MOST_NAMED
    return ", ".join(shown[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# For each place the number of a column, and the order of its rows, ndarray of int, shape (n_rows,);
# None: as it is.
Arrangement = Sequence[tuple[int, np.ndarray | None]]


class ArrangedColumns(FrameAdapter):
    """The columns of another table as an arrangement has them, without names."""

    def __init__(self, source: FrameAdapter, arrangement: Arrangement) -> None:
        super().__init__(None, source.n_rows, len(arrangement))
        self._source = source
        self._arrangement = arrangement

    def read_column(self, i: int) -> ColumnAdapter:
        number, order = self._arrangement[i]
        column = self._source.column(number)
        return column if order is None else OrderedColumn(column, order)


class OrderedColumn(ColumnAdapter):
    """Another column with its rows in the order ``order``, ndarray of int of shape (n_rows,)."""

    def __init__(self, column: ColumnAdapter, order: np.ndarray) -> None:
        self.kind, self.dtype_name = column.kind, column.dtype_name
        self._column = column
        self._order = order

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
