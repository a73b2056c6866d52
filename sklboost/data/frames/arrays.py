"""Arrays of other dtypes than float32 and float64, masked arrays, and lists of lists."""

from collections.abc import Mapping

import numpy as np

from sklboost.data.frames.adapter import Column, FrameAdapter, may_be_rounded
from sklboost.data.frames.objects import column_of


class ArrayTable(FrameAdapter):
    """The columns of an array of two dimensions.

    Parameters
    ----------
    values : ndarray of any dtype, shape (n_rows, n_columns)
    marked : ndarray of bool, shape (n_rows, n_columns), optional
        Values that are missing.
    """

    def __init__(self, values: np.ndarray, marked: np.ndarray | None = None) -> None:
        super().__init__(None, *values.shape)
        self._values = values
        self._marked = marked

    def read_column(self, i: int) -> Column:
        """Give a view of a column."""
        return column_of(self._values[:, i], None if self._marked is None else self._marked[:, i])

    def matrix(self) -> np.ndarray | None:
        """Give the array itself if it is of floats."""
        return (
            self._values if self._marked is None and _is_float(self._values) else super().matrix()
        )


def array_adapter(X: np.ndarray) -> FrameAdapter | None:
    """Read an array of two dimensions; None for what is none, and for plain float arrays.

    Raises
    ------
    TypeError
        For arrays of records.
    """
    if X.dtype.names is not None:
        raise TypeError(
            f"X is an array of records with the fields {list(X.dtype.names)}: make a frame of it, "
            "pandas.DataFrame(X) say"
        )
    if X.ndim != 2 or isinstance(X, np.matrix):
        return None
    if isinstance(X, np.ma.MaskedArray):
        return ArrayTable(np.asarray(X), np.ma.getmaskarray(X))
    return None if _is_float(X) else ArrayTable(np.asarray(X))


def list_adapter(X: list | tuple) -> FrameAdapter | None:
    """Read a list of rows, each a list of values.

    All integers stay integers, and are exact. Anything else becomes float64 in a list of numbers;
    a list with text or None in it is read column by column.

    Returns
    -------
    FrameAdapter or None
        None for lists of another depth than two.

    Raises
    ------
    ValueError
        If the rows differ in length.
    TypeError
        If they are dicts.
    """
    if len(X) > 0 and isinstance(X[0], Mapping):
        raise TypeError(
            f"X[0] is a {type(X[0]).__name__}: make a frame of the rows, pandas.DataFrame(X) say"
        )
    try:
        array = np.asarray(X)
    except ValueError:  # NumPy's message has neither row nor length
        _check_lengths(X)
        raise
    if array.ndim != 2:
        return None
    if array.dtype.kind not in "biuf" or (array.dtype.kind == "f" and may_be_rounded(array)):
        # NumPy has made floats of large integers, or text of numbers
        array = np.array(X, dtype=object)
    return ArrayTable(array)


def _check_lengths(rows: list | tuple) -> None:
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


def _is_float(X: np.ndarray) -> bool:
    """Tell whether `X` has one of the two dtypes that are taken as they are."""
    return X.dtype == np.float64 or X.dtype == np.float32
