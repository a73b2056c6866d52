"""Frames of pandas: columns of NumPy, nullable and Arrow dtypes, of text and of categories."""

from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from sklboost.data.frames.carrier import SMALL, Carrier, Column, is_wide, may_be_rounded
from sklboost.data.frames.numpy_column import NumpyColumn, first_value, relabel, used_levels
from sklboost.data.frames.objects import column_of, number_text

# From so many columns on, pandas gives them sooner as one array than one by one.
_A_FEW = 4
# So many strings are numbered by Python in less time than it takes to ask pandas for it.
_FEW_ROWS = 16


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
    def _dtypes(self) -> list[Any]:
        return self._frame.dtypes.tolist()

    @cached_property
    def _all_series(self) -> list[pd.Series]:
        # by number rather than by name, which may occur twice; `iloc` takes twice the time
        return [series for _, series in self._frame.items()]

    @cached_property
    def _quick_columns(self) -> dict[int, Column]:
        """Columns of a small frame that pandas gives at once, in a fifth of the time."""
        columns: dict[int, Column] = {}
        for places in _of_one_dtype(self._dtypes):
            values = self._frame.take(places, axis=1).to_numpy()
            columns |= zip(places, map(NumpyColumn, values.T), strict=True)
        return columns

    def read_column(self, i: int) -> Column:
        """Read a series."""
        if self.n_rows * self.n_columns > SMALL:
            return pandas_column(self._all_series[i])
        if i in self._quick_columns:
            return self._quick_columns[i]
        frame, names = self._frame, self.names or []
        # by name in half the time, if names are of one column each
        return pandas_column(frame[names[i]] if frame.columns.is_unique else frame.iloc[:, i])

    def matrix(self) -> np.ndarray | None:
        """Give what pandas gives at once: a frame of one dtype may be a single array already."""
        if not all(dtype.kind in "biuf" for dtype in self._dtypes):
            return None
        dtypes = set(self._dtypes)
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


def _of_one_dtype(dtypes: list[Any]) -> list[list[int]]:
    """Give the places of NumPy's numbers of one dtype, where there are a few."""
    places: dict[Any, list[int]] = {}
    for i, dtype in enumerate(dtypes):
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            places.setdefault(dtype, []).append(i)
    return [own for own in places.values() if len(own) >= _A_FEW]


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
        if len(self._series) <= _FEW_ROWS:
            return number_text(self._series.to_numpy(object))
        codes, values = pd.factorize(self._series)
        return codes, values.to_numpy(object)


class PandasCategories(_Discrete):
    """A column of categories, of any type themselves."""

    kind = "category"

    def levels(self) -> tuple[np.ndarray, np.ndarray]:
        """Give the codes that pandas has, and its categories."""
        coded = self._series.array
        categories = coded.categories
        codes, used = used_levels(coded.codes, len(categories))
        if used is not None:
            categories = categories.take(used)
        if isinstance(categories.dtype, pd.StringDtype):
            return codes, categories.to_numpy(object)
        codes_of_levels, values = pandas_column(categories.to_series()).levels()
        return relabel(codes, codes_of_levels), values
