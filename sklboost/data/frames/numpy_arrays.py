"""Arrays of NumPy of any dtype, objects included, masked arrays, and lists of lists."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Integral, Real
from types import NoneType
from typing import Any

import numpy as np

from sklboost.data.frames.adapter import (
    ColumnAdapter,
    FrameAdapter,
    Kind,
    as_objects,
    distinct,
    first_value,
    is_missing,
    may_be_rounded,
)
from sklboost.data.table import LARGEST_EXACT
from sklboost.engine.cached import cached_property

_KINDS: dict[str, Kind] = dict.fromkeys("biuf", "number")
_KINDS |= {"M": "time", "m": "time", "U": "text"}
# Of these there is no number of days, hours or seconds. Instants in them are days, as are weeks.
_UNITS_OF_NO_LENGTH = ("Y", "M", "generic")
# Known by name, so that nobody has to import pandas; the last is of numpy.ma.masked.
_MISSING_VALUES = {"NAType", "NaTType", "MaskedConstant"}

PLAIN = (np.dtype(np.float64), np.dtype(np.float32))  # dtypes that are taken as they are

# --- tables


class ArrayTable(FrameAdapter):
    """The columns of a 2-D array of any dtype; `marked`, of the same shape, are missing."""

    def __init__(self, values: np.ndarray, marked: np.ndarray | None = None) -> None:
        super().__init__(None, *values.shape)
        self._values = values
        self._marked = marked

    def read_column(self, i: int) -> ColumnAdapter:
        return column_of(self._values[:, i], None if self._marked is None else self._marked[:, i])

    def matrix(self) -> np.ndarray | None:
        """Return the array itself if it is of floats."""
        if self._marked is None and self._values.dtype in PLAIN:
            return self._values
        return super().matrix()


def list_adapter(X: Sequence[Any]) -> FrameAdapter | None:
    """Read a list of rows, each a list of values; None for lists of another depth than two.

    All integers stay integers, and are exact. Anything else becomes float64 in a list of numbers;
    a list with text or None in it is read column by column.
    """
    if len(X) > 0 and isinstance(X[0], Mapping):
        raise TypeError(
            f"X[0] is of type {type(X[0]).__name__}: make a frame of the rows, "
            "pandas.DataFrame(X) say"
        )
    try:
        array = array_of_list(X)
    except ValueError:  # NumPy's message has neither row nor length
        _check_lengths(X)
        raise
    if array.ndim != 2:
        return None
    if array.dtype.kind not in "biufO":
        # row by row, since NumPy makes integers of dates in nanoseconds
        array = np.array([list(row) for row in X], dtype=object)
    is_masked = isinstance(array, np.ma.MaskedArray)
    return ArrayTable(np.asarray(array), np.ma.getmaskarray(array) if is_masked else None)


def array_of_list(given: Sequence[Any]) -> np.ndarray:
    """Return an array in which nothing is rounded, and no number or None has become text.

    It is masked if a part of the list is.
    """
    if any(isinstance(part, np.ma.MaskedArray) for part in given):
        parts = [np.ma.asanyarray(part) for part in given]
        if len({part.dtype for part in parts}) > 1:
            parts = [part.astype(object) for part in parts]
        return np.ma.stack(parts)
    array = np.asarray(given)
    if array.dtype.kind == "f" and may_be_rounded(array):
        exact = np.array(given, dtype=object)
        large = exact[np.abs(array) >= LARGEST_EXACT].tolist()
        return exact if any(isinstance(value, Integral) for value in large) else array
    text = {"U": str, "S": bytes}.get(array.dtype.kind)
    if text is not None and not all(isinstance(part, text) for part in given):
        return np.array(given, dtype=object)
    return array


def _check_lengths(rows: Sequence[Any]) -> None:
    """Raise ValueError for the first row that is not as long as the first, or holds lists."""
    lengths = [len(row) if hasattr(row, "__len__") else None for row in rows]
    for i, length in enumerate(lengths):
        if length != lengths[0]:
            raise ValueError(
                f"X[{i}] has {_counted(length)}, but X[0] has {_counted(lengths[0])}: give every "
                "row the same number of values, None where one is missing"
            )
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if isinstance(value, list | tuple | np.ndarray):
                raise ValueError(
                    f"X[{i}][{j}] is {value!r}: each row must be a list of values, and a value "
                    "cannot be a list itself"
                )


def _counted(length: int | None) -> str:
    if length is None:
        return "no length at all"
    return f"{length} value" if length == 1 else f"{length} values"


# --- columns


def column_of(
    values: np.ndarray, marked: np.ndarray | None = None, dtype_name: str = ""
) -> ColumnAdapter:
    """Read a column in an array of any dtype; `marked` are missing."""
    if values.dtype.kind in "OT":  # NumPy's text of any length may have missing values, too
        return ObjectColumn(values.astype(object, copy=False), marked)
    return NumpyColumn(values, marked, dtype_name)


class NumpyColumn(ColumnAdapter):
    """Values in a 1-D array of any dtype but object, and a mask of those that are missing."""

    def __init__(
        self,
        values: np.ndarray,
        missing: np.ndarray | None = None,
        dtype_name: str = "",  # in the user's library, if NumPy calls it otherwise
        timezone: str = "",
    ) -> None:
        self._values = values
        self._missing = missing
        self._dtype_name = dtype_name
        self.timezone = timezone

    @cached_property
    def kind(self) -> Kind:
        dtype = self._values.dtype
        if dtype.kind == "m" and np.datetime_data(dtype)[0] in _UNITS_OF_NO_LENGTH:
            return "unsupported"
        return _KINDS.get(dtype.kind, "unsupported")

    @property
    def dtype_name(self) -> str:  # type: ignore[override]
        return self._dtype_name or str(self._values.dtype)

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values in this machine's order of bytes; long doubles rounded to float64."""
        values = self._values
        wide = values.dtype.kind == "f" and values.dtype.itemsize > 8
        dtype = np.dtype(np.float64) if wide else values.dtype.newbyteorder("=")
        return values.astype(dtype, copy=False), self._missing

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Return times as they are stored, with their unit; but in days what is longer."""
        unit, _ = np.datetime_data(self._values.dtype)  # of "25s", the seconds
        unit = "D" if unit in ("W", *_UNITS_OF_NO_LENGTH) else unit
        dtype = np.dtype(f"{self._values.dtype.kind}8[{unit}]")
        values = self._values.astype(dtype, copy=False)
        return values.view(np.int64), is_missing(values, self._missing), str(dtype)

    def values(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the array itself; NaT is missing."""
        is_time = self._values.dtype.kind in "mM"
        return self._values, is_missing(self._values, self._missing) if is_time else self._missing

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        codes, values = distinct(self._values, self._missing)
        return codes, values.astype(object)

    def examples(self) -> list[Any]:
        return first_value(self._values, self._missing)


class ObjectColumn(ColumnAdapter):
    """Python objects in an array, some perhaps `marked` as missing: their types tell the kind."""

    dtype_name = "object"

    def __init__(self, values: np.ndarray, marked: np.ndarray | None = None) -> None:
        self._values = values
        self._marked = marked

    @cached_property
    def missing(self) -> np.ndarray:
        """Mask of the values that are None, NaN, NaT, pandas' NA, or masked."""
        values = self._values.tolist()
        types = set(map(type, values))
        absent = {t for t in types if t is NoneType or t.__name__ in _MISSING_VALUES}
        # of other types a comparison may be neither true nor false
        may_be_nan = {t for t in types if _is_number(t) and not issubclass(t, Integral | np.bool_)}
        may_be_nan |= types & {np.datetime64, np.timedelta64}
        missing = np.array(
            [type(v) in absent or (type(v) in may_be_nan and v != v) for v in values], dtype=bool
        )
        return missing if self._marked is None else missing | self._marked

    @cached_property
    def _present(self) -> list[Any]:
        return self._values[~self.missing].tolist()

    @cached_property
    def _types(self) -> list[type]:
        return list(dict.fromkeys(map(type, self._present)))

    @cached_property
    def kind(self) -> Kind:
        if all(map(_is_number, self._types)):
            return "number"
        if all(issubclass(t, str) for t in self._types):
            return "text"
        # what cannot be hashed are containers, and complex numbers have no order
        no_order = (complex, np.complexfloating)
        can_be_sorted = all(
            t.__hash__ is not None and not issubclass(t, no_order) for t in self._types
        )
        return "mixed" if can_be_sorted else "unsupported"

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return bool or integers if there is nothing else, exactly; float64 if there is."""
        if not self._types or not all(issubclass(t, Integral | np.bool_) for t in self._types):
            values = np.full(len(self._values), np.nan)
            values[~self.missing] = [float(v) for v in self._present]
            return values, None
        bools = all(issubclass(t, bool | np.bool_) for t in self._types)
        present = np.array(self._present, dtype=bool) if bools else as_integers(self._present)
        if len(present) == len(self._values):
            return present, None
        values = np.zeros(len(self._values), dtype=present.dtype)
        values[~self.missing] = present
        return values, self.missing

    def values(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return bool, integers or floats if all are of that type; else the objects themselves.

        So none is rounded: no decimal, no integer among floats, no integer beyond 64 bits.
        """
        are_bool = [issubclass(t, bool | np.bool_) for t in self._types]
        are_integers = [issubclass(t, Integral) for t in self._types]
        are_floats = [issubclass(t, float) for t in self._types]
        if all(are_bool) or all(are_floats) or (all(are_integers) and not any(are_bool)):
            with suppress(ValueError):
                return self.numbers()[0], self.missing
        return self._values, self.missing

    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values, of any kind, in the order in which they are met."""
        codes, values = self._labels()
        if self.kind == "number":  # of one dtype, as they are in any other column
            numbers, _ = ObjectColumn(values).numbers()
            is_rounded = numbers.dtype.kind == "f" and may_be_rounded(numbers)
            values = values if is_rounded else numbers
        return codes, values

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        codes = np.full(len(self._values), -1, dtype=np.int64)
        numbers: dict[Any, int] = {}
        codes[~self.missing] = [numbers.setdefault(v, len(numbers)) for v in self._present]
        return codes, as_objects(numbers)

    def examples(self) -> list[Any]:
        return list({type(v): v for v in reversed(self._present)}.values())[::-1]

    def codes_of_types(self) -> np.ndarray:
        """Return the number of each value's type, -1 where it is missing; shape (n_rows,)."""
        numbers = {type_: number for number, type_ in enumerate(self._types)}
        codes = np.full(len(self._values), -1)
        codes[~self.missing] = [numbers[type(v)] for v in self._present]
        return codes


def as_integers(values: list[Any]) -> np.ndarray:
    """Convert Python integers, at least one, to int64, or to uint64 if that is what holds them."""
    smallest, largest = min(values), max(values)
    is_unsigned = smallest >= 0 and largest > np.iinfo(np.int64).max
    dtype = np.dtype(np.uint64 if is_unsigned else np.int64)
    limits = np.iinfo(dtype)
    for value in (smallest, largest):
        if not limits.min <= value <= limits.max:
            raise ValueError(
                f"the integer {value} is among the values of X, and no type of 64 bits holds it "
                "and the others: convert its column to float"
            )
    return np.array(values, dtype=dtype)


def _is_number(type_: type) -> bool:
    # to NumPy a span of time is an integer
    return issubclass(type_, Real | np.bool_ | Decimal) and not issubclass(type_, np.timedelta64)
