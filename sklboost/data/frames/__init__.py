"""Tables of any library, read column by column.

Each library has a file with a :class:`~sklboost.data.frames.adapter.FrameAdapter`, and
:func:`adapter_for` chooses among them. No library is imported but the one that the table comes
from.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.frames.numpy_arrays import array_adapter, list_adapter


def adapter_for(X: Any) -> FrameAdapter | None:  # noqa: C901, a line or two a library
    """Return the columns of a frame of any library, an array of any dtype or a list of lists.

    None for plain 2-D arrays of float32 or float64, which need no adapter, and for what is not a
    table of two dimensions.

    Raises
    ------
    ValueError
        For lists of lists that differ in length.
    TypeError
        For what has not been computed yet; for dicts and structured arrays, of which a
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
    if dask_kind(X):
        raise TypeError(f"X is a dask.{dask_kind(X)}, which has no values yet: pass X.compute()")
    # subclasses, such as geopandas', are read as what they are made from
    bases = [(base.__module__.partition(".")[0], base.__name__) for base in type(X).__mro__]
    if ("pandas", "DataFrame") in bases:
        from sklboost.data.frames.pandas_frame import PandasFrame

        return PandasFrame(X)
    if ("polars", "DataFrame") in bases:
        from sklboost.data.frames.polars_frame import PolarsFrame

        return PolarsFrame(X)
    if ("pyarrow", "Table") in bases or ("pyarrow", "RecordBatch") in bases:
        return _arrow_adapter(X)
    if ("narwhals", "DataFrame") in bases:
        return adapter_for(X.to_native())
    if _is_one_column(bases):
        return None
    found = _other_adapter(X)
    if found is None and hasattr(X, "__array__"):
        return array_adapter(np.asarray(X))
    return found


def dask_kind(X: Any) -> str:
    """Return the class of a Dask collection, such as "Array" or "DataFrame"; "" if it is none."""
    if not hasattr(type(X), "__dask_graph__"):
        return ""
    # subclasses count as what they are made from; arrays of xarray, which have a graph, too, do not
    names = (base.__name__ for base in type(X).__mro__ if base.__module__.startswith("dask."))
    return next(names, "")


def _is_one_column(bases: list[tuple[str, str]]) -> bool:
    libraries = ("pandas", "polars", "pyarrow", "narwhals")
    columns = ("Series", "Index", "ExtensionArray", "Array", "ChunkedArray")
    return any(library in libraries and name in columns for library, name in bases)


def _other_adapter(X: Any) -> FrameAdapter | None:
    """Read a frame of any other library as an Arrow table; None for what is no frame.

    It gives its data as an Arrow stream, or narwhals knows it.
    """
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"X is a {_name(X)}, which has no values yet: pass X.collect()")
    if hasattr(type(X), "__arrow_c_stream__"):
        return _arrow_adapter(_needed("pyarrow", X).table(X))
    if not (hasattr(type(X), "__dataframe__") or hasattr(type(X), "columns")):
        return None
    narwhals = _needed("narwhals", X)
    frame = narwhals.from_native(X, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        raise TypeError(f"X is a {_name(X)}, which has no values yet: compute or collect it first")
    if not isinstance(frame, narwhals.DataFrame):
        return None
    _needed("pyarrow", X)
    return _arrow_adapter(frame.to_arrow())


def _arrow_adapter(table: Any) -> FrameAdapter:
    from sklboost.data.frames.arrow_table import ArrowTable

    return ArrowTable(table)


def _needed(library: str, X: Any) -> ModuleType:
    try:
        return import_module(library)
    except ImportError as error:
        raise ImportError(
            f"X is a {_name(X)}, which is read through {library}: pip install {library}, or pass a "
            "frame of pandas or polars, an Arrow table or an array"
        ) from error


def _name(X: Any) -> str:
    return f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
