"""Frames of pandas: columns of NumPy, nullable and Arrow dtypes, of text and of categories."""

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from sklboost.data.frames.carrier import SMALL, Carrier, Column, is_wide, may_be_rounded
from sklboost.data.frames.numpy_column import NumpyColumn, first_value, relabel
from sklboost.data.frames.objects import column_of


class PandasFrame(Carrier):
    """The columns of a pandas frame.

    Parameters
    ----------
    frame : DataFrame
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__(frame.columns.tolist(), *frame.shape)
        self._frame = frame

    @cached_property
    def _all_series(self) -> list[pd.Series]:
        # by number rather than by name, which may occur twice; `iloc` takes twice the time
        return [series for _, series in self._frame.items()]

    def read_column(self, i: int) -> Column:
        """Read a series."""
        return pandas_column(self._all_series[i])

    def matrix(self) -> np.ndarray | None:
        """Give what pandas gives at once: a frame of one dtype may be a single array already."""
        dtypes = set(self._frame.dtypes.tolist())
        if not all(dtype.kind in "biuf" for dtype in dtypes):
            return None
        if dtypes <= {np.dtype(np.float32)} or dtypes <= {np.dtype(np.float64)}:
            is_quick = self._frame.size <= SMALL or self._is_one_array()
            return self._frame.to_numpy() if is_quick else None
        if self._frame.size > SMALL:
            return None
        values = self._frame.to_numpy(np.float64, na_value=np.nan)
        return None if any(map(_is_wide, dtypes)) and may_be_rounded(values) else values

    def _is_one_array(self) -> bool:
        owners = [series.to_numpy().base for series in self._all_series]
        return owners[0] is not None and all(owner is owners[0] for owner in owners)


def _is_wide(dtype: Any) -> bool:
    """As `is_wide`, for dtypes of pandas too."""
    return is_wide(np.dtype(getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))))


def pandas_column(series: pd.Series) -> Column:
    """Read a series according to its dtype."""
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        return column_of(series.to_numpy())
    name = str(dtype)
    if isinstance(dtype, pd.SparseDtype):
        return column_of(series.to_numpy(), dtype_name=name)
    if isinstance(dtype, pd.ArrowDtype):
        # pandas has imported pyarrow by then
        from sklboost.data.frames.arrow_table import ArrowColumn

        return ArrowColumn(series.array.__arrow_array__(), name)
    if isinstance(dtype, pd.CategoricalDtype):
        return PandasCategories(series)
    if isinstance(dtype, pd.StringDtype):
        return PandasText(series)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return NumpyColumn(series.to_numpy(f"datetime64[{dtype.unit}]"), dtype_name=name)
    if isinstance(dtype, pd.PeriodDtype):  # is as good as its start
        return NumpyColumn(series.dt.to_timestamp().to_numpy(), dtype_name=name)
    if hasattr(dtype, "numpy_dtype"):  # nullable
        missing = series.array.isna()
        values = series.to_numpy(dtype.numpy_dtype, na_value=0)  # a view if nothing is missing
        return NumpyColumn(values, missing if missing.any() else None, name)
    return column_of(series.to_numpy(object))


class _Discrete:
    """What columns of text and of categories have in common: they are levels, never numbers."""

    kind: str

    def __init__(self, series: pd.Series) -> None:
        self._series = series

    @property
    def dtype_name(self) -> str:
        """Name the dtype as pandas does."""
        return str(self._series.dtype)

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Raise TypeError."""
        raise TypeError(f"a column of kind {self.kind!r} has no numbers")

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        """Raise TypeError."""
        raise TypeError(f"a column of kind {self.kind!r} has no times")

    def examples(self) -> list[Any]:
        """Give the first value that is there."""
        return first_value(self._series.to_numpy(object), self._series.isna().to_numpy())


class PandasText(_Discrete):
    """A column of strings, whoever holds them."""

    kind = "text"

    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Number the strings in the order in which they are met."""
        codes, values = pd.factorize(self._series)
        return codes, values.to_numpy(object)


class PandasCategories(_Discrete):
    """A column of categories, of any type themselves."""

    kind = "category"

    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the codes that pandas has, and its categories."""
        coded = self._series.array
        if isinstance(coded.categories.dtype, pd.StringDtype):
            return coded.codes, coded.categories.to_numpy(object)
        codes_of_levels, values = pandas_column(coded.categories.to_series()).levels()
        return relabel(coded.codes, codes_of_levels), values
