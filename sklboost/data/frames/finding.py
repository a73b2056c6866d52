"""Which reader a table needs. No library is imported but the one that the table comes from."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.frames.arrays import array_adapter, list_adapter
from sklboost.data.frames.other_frames import other_adapter


def adapter(X: Any) -> FrameAdapter | None:
    """Give the columns of a table.

    Parameters
    ----------
    X : frame, array, list of lists, or anything
        A frame of pandas, polars, Arrow or another library, an array of any dtype, a list of lists;
        or what has its reader already.

    Returns
    -------
    FrameAdapter or None
        None for plain 2-D arrays of float32 or float64, which need no reader, and for what is not a
        table of two dimensions.

    Raises
    ------
    ValueError
        For lists of lists that differ in length.
    TypeError
        For a frame that has not been computed yet; for dicts and structured arrays, of which a
        frame has to be made.
    ImportError
        For a frame of another library, if what reads it is not installed.
    """
    if isinstance(X, FrameAdapter):
        return X
    if isinstance(X, np.ndarray):
        return array_adapter(X)
    if isinstance(X, list | tuple):
        return list_adapter(X)
    if isinstance(X, Mapping) and not issparse(X):  # one of scipy's maps places to values
        raise TypeError(
            f"X is a {type(X).__name__}: make a frame of it, pandas.DataFrame(X) of columns, say, "
            "or pandas.DataFrame([X]) of one row"
        )
    # subclasses, such as geopandas', are read as what they are made from
    bases = [(base.__module__.partition(".")[0], base.__name__) for base in type(X).__mro__]
    if ("pandas", "DataFrame") in bases:
        from sklboost.data.frames.pandas_frame import PandasFrame

        return PandasFrame(X)
    if ("polars", "DataFrame") in bases:
        from sklboost.data.frames.polars_frame import PolarsFrame

        return PolarsFrame(X)
    if ("pyarrow", "Table") in bases or ("pyarrow", "RecordBatch") in bases:
        from sklboost.data.frames.arrow_table import ArrowTable

        return ArrowTable(X)
    if ("narwhals", "DataFrame") in bases:
        return adapter(X.to_native())
    if _is_one_column(bases):
        return None
    found = other_adapter(X)
    if found is None and hasattr(X, "__array__"):
        return array_adapter(np.asarray(X))
    return found


def _is_one_column(bases: list[tuple[str, str]]) -> bool:
    libraries = ("pandas", "polars", "pyarrow", "narwhals")
    columns = ("Series", "Index", "ExtensionArray", "Array", "ChunkedArray")
    return any(library in libraries and name in columns for library, name in bases)
