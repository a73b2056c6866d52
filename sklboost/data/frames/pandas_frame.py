"""Frames of pandas: columns of NumPy, nullable and Arrow dtypes, of text and of categories."""

from typing import Any

import numpy as np
import pandas as pd

from sklboost.data.frames.adapter import (
    SMALL,
    ColumnAdapter,
    FrameAdapter,
    first_value,
    is_wide,
    may_be_rounded,
    number_text,
    relabel,
    used_categories,
)
from sklboost.data.frames.numpy_arrays import NumpyColumn, column_of
from sklboost.engine.cached import cached_property

# So many strings are numbered by Python in less time than it takes to ask pandas for it.
_FEW_ROWS = 16


class PandasFrame(FrameAdapter):
    """The columns of a pandas frame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__(frame.columns.tolist(), *frame.shape)
        self._frame = frame

    @cached_property
    def _dtypes(self) -> list[Any]:
        return self._frame.dtypes.tolist()

    def read_column(self, i: int) -> ColumnAdapter:
        return pandas_column(_array(self._frame, i))

    def matrix(self) -> np.ndarray | None:
        """Return the array of a frame of one dtype, which may be one array already."""
        if not all(dtype.kind in "biuf" for dtype in self._dtypes):
            return None
        dtypes = set(self._dtypes)
        if dtypes <= {np.dtype(np.float32)} or dtypes <= {np.dtype(np.float64)}:
            if self._frame.size <= SMALL:
                return self._frame.to_numpy()
            owners = [np.asarray(_array(self._frame, i)).base for i in range(self.n_columns)]
            is_one_array = owners[0] is not None and all(owner is owners[0] for owner in owners)
            return self._frame.to_numpy() if is_one_array else None
        if self._frame.size > SMALL:
            return None
        values = self._frame.to_numpy(np.float64, na_value=np.nan)
        # NumPy's dtypes of the values, where the dtypes are pandas'
        plain = (getattr(own, "numpy_dtype", getattr(own, "subtype", own)) for own in dtypes)
        are_wide = any(map(is_wide, map(np.dtype, plain)))
        return None if are_wide and may_be_rounded(values) else values


def _array(frame: pd.DataFrame, i: int) -> Any:
    """Return a column as pandas stores it: an array of NumPy, or an extension array.

    By number rather than by name, which may occur twice. The public ways make a series first, which
    takes twenty times as long and, for a row with a few dozen columns, longer than all the rest.
    """
    if hasattr(frame, "_get_column_array"):
        return frame._get_column_array(i)
    return stored(frame.iloc[:, i])


def stored(values: Any) -> Any:
    """Return the array that a series or an index holds; an extension array is one itself."""
    is_plain = isinstance(values.dtype, np.dtype)
    return values.to_numpy() if is_plain else getattr(values, "array", values)


def pandas_column(values: Any) -> ColumnAdapter:
    """Read an array, of NumPy or an extension array, according to its dtype."""
    dtype = values.dtype
    if isinstance(dtype, np.dtype):
        return column_of(np.asarray(values))
    name = str(dtype)
    if isinstance(dtype, pd.SparseDtype):
        # NumPy would make floats of unsigned integers
        dense = np.asarray(values) if pd.isna(dtype.fill_value) else values.to_dense()
        return column_of(dense, dtype_name=name)
    if isinstance(dtype, pd.ArrowDtype):
        # pandas has imported pyarrow by then
        from sklboost.data.frames.arrow_table import ArrowColumn

        return ArrowColumn(values.__arrow_array__(), name)
    if isinstance(dtype, pd.CategoricalDtype | pd.StringDtype):
        return PandasLabels(values)
    if isinstance(dtype, pd.DatetimeTZDtype):
        times = values.to_numpy(f"datetime64[{dtype.unit}]")
        return NumpyColumn(times, None, name, str(dtype.tz))
    if isinstance(dtype, pd.PeriodDtype):  # is as good as its start
        return NumpyColumn(values.to_timestamp().to_numpy(), dtype_name=name)
    if hasattr(dtype, "numpy_dtype"):  # nullable
        missing = values.isna()
        numbers = values.to_numpy(dtype.numpy_dtype, na_value=0)  # a view if nothing is missing
        return NumpyColumn(numbers, missing if missing.any() else None, name)
    return column_of(values.to_numpy(object))


class PandasLabels(ColumnAdapter):
    """An extension array of strings, or of categories of any type."""

    def __init__(self, values: Any) -> None:
        self._values, self.kind, self.dtype_name = values, "text", str(values.dtype)
        if isinstance(values.dtype, pd.CategoricalDtype):
            self.kind = "category"
            self.timezone = str(getattr(values.categories.dtype, "tz", ""))

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the codes that pandas has; text is numbered in the order in which it is met."""
        if self.kind == "text":
            if len(self._values) <= _FEW_ROWS:
                return number_text(self._values.to_numpy(object))
            codes, values = pd.factorize(self._values)
            return codes, values.to_numpy(object)
        categories = self._values.categories
        codes, used = used_categories(self._values.codes, len(categories))
        if used is not None:
            categories = categories.take(used)
        if isinstance(categories.dtype, pd.StringDtype):
            return codes, categories.to_numpy(object)
        new_codes, values = pandas_column(stored(categories)).categories()
        return relabel(codes, new_codes), values

    def examples(self) -> list[Any]:
        return first_value(self._values.to_numpy(object), self._values.isna())
