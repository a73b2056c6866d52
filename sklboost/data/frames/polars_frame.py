"""Frames of polars."""

from typing import Any

import numpy as np
import polars as pl

from sklboost.data.frames.adapter import (
    SMALL,
    ColumnAdapter,
    FrameAdapter,
    Kind,
    as_objects,
    number_text,
)
from sklboost.data.frames.numpy_arrays import ObjectColumn

_INTEGERS = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
# So many strings are numbered by Python in less time than it takes to ask polars for it.
_FEW_ROWS = 256
# Of types that are not numeric to polars.
_KINDS: dict[Any, Kind] = {pl.Boolean: "number", pl.Null: "number", pl.String: "text"}
_KINDS |= {pl.Categorical: "category", pl.Enum: "category"}
_KINDS |= dict.fromkeys((pl.Date, pl.Datetime, pl.Duration, pl.Time), "time")


class PolarsFrame(FrameAdapter):
    """The columns of a polars frame."""

    def __init__(self, frame: pl.DataFrame) -> None:
        super().__init__(frame.columns, *frame.shape)
        self._frame = frame

    def read_column(self, i: int) -> ColumnAdapter:
        return polars_column(self._frame.to_series(i))

    def matrix(self) -> np.ndarray | None:
        """Return the array that polars makes of a small frame of one dtype."""
        dtypes = set(self._frame.dtypes)
        if len(dtypes) == 1 and dtypes <= {pl.Float32(), pl.Float64()}:
            return self._frame.to_numpy() if self.n_rows * self.n_columns <= SMALL else None
        return super().matrix()


def polars_column(series: pl.Series) -> ColumnAdapter:
    """Read a series of any dtype."""
    if series.dtype == pl.Object:
        return ObjectColumn(as_objects(series.to_list()))
    return PolarsColumn(series)


class PolarsColumn(ColumnAdapter):
    """A series of polars, of any dtype but objects."""

    def __init__(self, series: pl.Series) -> None:
        self._series, dtype = series, series.dtype
        self.kind = "number"
        if not dtype.is_numeric():
            self.kind = _KINDS.get(dtype.base_type(), "unsupported")
        self.dtype_name = str(dtype)
        self.timezone = getattr(dtype, "time_zone", "") or ""

    def numbers(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the values; no copy if nothing is missing and polars has them in one piece."""
        series = self._series
        if series.dtype in (pl.Decimal, pl.Null):
            series = series.cast(pl.Float64)
        elif series.dtype.is_integer() and series.dtype not in _INTEGERS:
            series = series.cast(pl.Int64)  # of 128 bits; raises an error for what does not fit
        return _filled(series)

    def times(self) -> tuple[np.ndarray, np.ndarray | None, str]:
        dtype = self._series.dtype
        values, missing = _filled(self._series.to_physical())
        what = "datetime64" if dtype in (pl.Date, pl.Datetime) else "timedelta64"
        unit = "D" if dtype == pl.Date else getattr(dtype, "time_unit", "ns")
        return values.astype(np.int64, copy=False), missing, f"{what}[{unit}]"

    def values(self) -> tuple[np.ndarray, np.ndarray | None]:
        if self.kind == "text" and self._series.null_count() == 0:
            return np.asarray(self._series), None  # text of fixed width, as scikit-learn has it
        dtype = self._series.dtype
        is_wide = dtype.is_integer() and dtype not in _INTEGERS
        if self.kind == "unsupported" or dtype == pl.Decimal or is_wide:
            return ObjectColumn(as_objects(self._series.to_list())).values()
        return super().values()

    def _labels(self) -> tuple[np.ndarray, np.ndarray]:
        """Return codes by what polars has instead of strings."""
        if len(self._series) <= _FEW_ROWS:
            return number_text(self._series.to_list())
        series = self._series.cast(pl.Categorical) if self.kind == "text" else self._series
        found = series.drop_nulls().unique()
        # what stands for a string may depend on all that polars has read before
        physical = found.to_physical().to_numpy()
        order = np.argsort(physical)
        values, missing = _filled(series.to_physical())
        codes = np.searchsorted(physical[order], values)
        if missing is not None:
            codes[missing] = -1
        return codes, np.array(found.cast(pl.String).to_list(), dtype=object)[order]

    def examples(self) -> list[Any]:
        return self._series.drop_nulls().head(1).to_list()


def _filled(series: pl.Series) -> tuple[np.ndarray, np.ndarray | None]:
    """Return values and which are missing: polars itself would make floats of integers then."""
    if series.null_count() == 0:
        return series.to_numpy(), None
    missing = series.is_null().to_numpy()
    return series.fill_null(False if series.dtype == pl.Boolean else 0).to_numpy(), missing
