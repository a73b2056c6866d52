"""A column of Python objects: what it holds is known from the types of all its values."""

from collections.abc import Collection
from decimal import Decimal
from functools import cached_property
from numbers import Integral, Real
from types import NoneType
from typing import Any

import numpy as np

from sklboost.data.frames.adapter import Column
from sklboost.data.frames.numpy_column import NumpyColumn

# Known by name, so that nobody has to import pandas.
_MISSING_OF_PANDAS = {"NAType", "NaTType"}


class ObjectColumn:
    """Python objects in an array.

    Parameters
    ----------
    values : ndarray of object, shape (n_rows,)
    marked : ndarray of bool, shape (n_rows,), optional
        Values that are missing whatever they are.
    """

    dtype_name = "object"

    def __init__(self, values: np.ndarray, marked: np.ndarray | None = None) -> None:
        self._values = values
        self._marked = marked

    @cached_property
    def missing(self) -> np.ndarray:
        """Tell which values are None, NaN, NaT, pandas' NA, or marked."""
        values = self._values.tolist()
        types = set(map(type, values))
        absent = {t for t in types if t is NoneType or t.__name__ in _MISSING_OF_PANDAS}
        # of other types a comparison may be neither true nor false
        may_be_nan = {t for t in types if _is_number(t) and not issubclass(t, Integral | np.bool_)}
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
    def kind(self) -> str:
        """Tell what the objects are, by their types."""
        if all(map(_is_number, self._types)):
            return "number"
        if all(issubclass(t, str) for t in self._types):
            return "text"
        if all(map(_may_be_category, self._types)):
            return "mixed"
        return "unsupported"

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Give bool or integers if there is nothing else, exactly; float64 if there is.

        The methods are those of :class:`~sklboost.data.frames.adapter.Column`.

        Raises
        ------
        ValueError
            For integers beyond the 64 bits of any dtype.
        """
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

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Raise TypeError: no objects are of that kind."""
        raise TypeError("a column of Python objects is never of kind 'time'")

    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Number the values in the order in which they are met."""
        codes = np.full(len(self._values), -1, dtype=np.int64)
        numbers: dict[Any, int] = {}
        codes[~self.missing] = [numbers.setdefault(v, len(numbers)) for v in self._present]
        if self.kind == "number":  # of one dtype, as they are in any other column
            values, _ = ObjectColumn(as_objects(numbers)).numbers()
        else:
            values = as_objects(numbers)
        return codes, values

    def examples(self) -> list[Any]:
        """Give the first value of each type."""
        return list({type(v): v for v in reversed(self._present)}.values())[::-1]


def column_of(values: np.ndarray, marked: np.ndarray | None = None, dtype_name: str = "") -> Column:
    """Read a column in an array of any dtype; `marked` are missing."""
    if values.dtype.kind in "OT":  # NumPy's text of any length may have missing values, too
        return ObjectColumn(values.astype(object, copy=False), marked)
    return NumpyColumn(values, marked, dtype_name)


def number_text(values: Collection[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Number a few strings as they are met, -1 for all else: what `levels` gives of text."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(v, len(numbers)) if isinstance(v, str) else -1 for v in values]
    return np.array(codes, dtype=np.int64), as_objects(numbers)


def as_integers(values: list[Any]) -> np.ndarray:
    """Give Python integers, at least one, as int64, or uint64 if that is what holds them.

    Raises
    ------
    ValueError
        If neither does; it names one that is too large.
    """
    smallest, largest = min(values), max(values)
    is_unsigned = smallest >= 0 and largest > np.iinfo(np.int64).max
    dtype: np.dtype = np.dtype(np.uint64 if is_unsigned else np.int64)
    limits = np.iinfo(dtype)
    for value in (smallest, largest):
        if not limits.min <= value <= limits.max:
            raise ValueError(
                f"the integer {value} is among the values of X, and 64 bits do not hold it beside "
                "the others: convert its column to float"
            )
    return np.array(values, dtype=dtype)


def _is_number(type_: type) -> bool:
    return issubclass(type_, Real | np.bool_ | Decimal)


def _may_be_category(type_: type) -> bool:
    # what cannot be hashed are containers, and complex numbers have no order
    return type_.__hash__ is not None and not issubclass(type_, complex | np.complexfloating)


def as_objects(values: Collection[Any]) -> np.ndarray:
    """Give an array of objects of one dimension, even if they are tuples."""
    return np.fromiter(values, dtype=object, count=len(values))
