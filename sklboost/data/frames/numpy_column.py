"""A column in a NumPy array of any dtype but object."""

from typing import Any

import numpy as np

from sklboost.data.frames.adapter import Column

_KINDS = {"b": "number", "i": "number", "u": "number", "f": "number", "M": "time", "m": "time"}
_KINDS["U"] = "text"
# So many levels are read, needed or not, in the time it takes to find out which are.
_FEW_CATEGORIES = 256
# Of these there is no number of days, hours or seconds. Instants in them are days, as are weeks.
_UNITS_OF_NO_LENGTH = ("Y", "M", "generic")


class NumpyColumn:
    """Values in a NumPy array, and which of them are missing.

    Parameters
    ----------
    values : ndarray of any dtype but object, shape (n_rows,)
    missing : ndarray of bool, shape (n_rows,), optional
    dtype_name : str, optional
        What the user's library calls the dtype, if NumPy calls it otherwise.
    """

    def __init__(
        self, values: np.ndarray, missing: np.ndarray | None = None, dtype_name: str = ""
    ) -> None:
        self._values = values
        self._missing = missing
        self._dtype_name = dtype_name
        self.kind = _KINDS.get(values.dtype.kind, "unsupported")
        if values.dtype.kind == "m" and np.datetime_data(values.dtype)[0] in _UNITS_OF_NO_LENGTH:
            self.kind = "unsupported"

    @property
    def dtype_name(self) -> str:
        """Name the dtype as the user's library does."""
        return self._dtype_name or str(self._values.dtype)

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Give the values; long doubles rounded to float64, in the order of this machine's bytes.

        The methods are those of :class:`~sklboost.data.frames.adapter.Column`.
        """
        values = self._values
        wide = values.dtype.kind == "f" and values.dtype.itemsize > 8
        dtype = np.dtype(np.float64) if wide else values.dtype.newbyteorder("=")
        return values.astype(dtype, copy=False), self._missing

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Give times as they are stored, with their unit; but in days what is longer."""
        unit, _ = np.datetime_data(self._values.dtype)  # of "25s", the seconds
        unit = "D" if unit in ("W", *_UNITS_OF_NO_LENGTH) else unit
        dtype = np.dtype(f"{self._values.dtype.kind}8[{unit}]")
        values = self._values.astype(dtype, copy=False)
        return values.view(np.int64), is_missing(values, self._missing), str(dtype)

    def categories(self) -> tuple[np.ndarray, np.ndarray]:
        """Number the distinct values in their order."""
        if self.kind != "text":
            return categories_in_order(self)
        codes, values = distinct(self._values, self._missing)
        return codes, values.astype(object)

    def examples(self) -> list[Any]:
        """Give the first value that is there."""
        return first_value(self._values, self._missing)


def is_missing(values: np.ndarray, marked: np.ndarray | None) -> np.ndarray | None:
    """Tell which values are missing: those marked, NaN and NaT; None if none are."""
    absent = marked
    if values.dtype.kind in "fMm":
        absent = np.isnat(values) if values.dtype.kind in "Mm" else np.isnan(values)
        if marked is not None:
            absent = absent | marked
    return absent if absent is not None and absent.any() else None


def categories_in_order(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Give what `levels` gives of a column of numbers or times: distinct values in their order."""
    if column.kind == "number":
        return distinct(*column.numbers())
    values, missing, unit = column.times()
    return distinct(values.view(unit), missing)


def distinct(values: np.ndarray, marked: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Number the distinct values of an array in their order; -1 where there is none."""
    missing = is_missing(values, marked)
    present = values if missing is None else values[~missing]
    found, codes_of_present = np.unique(present, return_inverse=True)
    if missing is None:
        return codes_of_present, found
    codes = np.full(len(values), -1, dtype=np.int64)
    codes[~missing] = codes_of_present
    return codes, found


def first_value(values: np.ndarray, marked: np.ndarray | None) -> list[Any]:
    """Give a list of the first value that is not missing, or of nothing."""
    missing = is_missing(values, marked)
    return (values if missing is None else values[~missing])[:1].tolist()


def used_categories(codes: np.ndarray, n_categories: int) -> tuple[np.ndarray, np.ndarray | None]:
    """Find out which levels are needed if there are many more of them than rows.

    Returns
    -------
    codes : ndarray of int, shape (n_rows,)
        Of the levels that are needed; -1: missing.
    used : ndarray of int, or None
        Which those are, increasing. None: all, and `codes` are as they were.
    """
    if n_categories <= len(codes) + _FEW_CATEGORIES:
        return codes, None
    used = np.unique(codes[codes >= 0])
    return np.where(codes < 0, -1, np.searchsorted(used, codes)), used


def relabel(codes: np.ndarray, codes_of_categories: np.ndarray) -> np.ndarray:
    """Give codes of levels whose codes have become others, or -1; the same array if none has."""
    if np.array_equal(codes_of_categories, np.arange(len(codes_of_categories))):
        return codes
    return np.append(codes_of_categories, -1)[codes]  # -1 is the last one
