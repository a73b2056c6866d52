"""Tables of any library, read column by column.

Each library has a file with a :class:`~sklboost.data.frames.adapter.FrameAdapter`, and
:func:`adapter_for` chooses among them. No library is imported but the one that the table comes
from.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sklboost.data.frames.adapter import ColumnAdapter, FrameAdapter
from sklboost.data.frames.numpy_arrays import (
    PLAIN,
    ArrayTable,
    array_of_list,
    column_of,
    list_adapter,
)


def adapter_for(X: Any) -> FrameAdapter | None:
    """Return the columns of a frame of any library, an array of any dtype or a list of lists.

    None for plain 2-D arrays of float32 or float64, which need no adapter, and for what is not a
    table of two dimensions. ValueError for lists of lists that differ in length; TypeError for what
    has not been computed yet, and for dicts and structured arrays, of which a frame has to be made;
    ImportError for a frame of another library, if what reads it is not installed.
    """
    if isinstance(X, FrameAdapter):
        return X
    if isinstance(X, np.ndarray):
        if X.dtype.names is not None:
            raise TypeError(
                f"X is an array of records with the fields {list(X.dtype.names)}: make a frame of "
                "it, pandas.DataFrame(X) say"
            )
        if X.ndim != 2 or isinstance(X, np.matrix):
            return None
        if isinstance(X, np.ma.MaskedArray):
            return ArrayTable(np.asarray(X), np.ma.getmaskarray(X))
        return None if X.dtype in PLAIN else ArrayTable(np.asarray(X))
    if _is_list(X):
        return list_adapter(_parts(X))
    if isinstance(X, Mapping) and not issparse(X):  # one of scipy's maps places to values
        raise TypeError(
            f"X is of type {type(X).__name__}: make a frame of it, pandas.DataFrame(X) of columns, "
            "say, or pandas.DataFrame([X]) of one row"
        )
    if dask_kind(X):
        raise TypeError(f"X is a dask.{dask_kind(X)}, which has no values yet: pass X.compute()")
    bases = _bases(X)
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
    if _library_of_column(bases):
        return None
    found = _other_adapter(X)
    if found is None and hasattr(X, "__array__"):
        return adapter_for(np.asanyarray(X))
    return found


def dask_kind(X: Any) -> str:
    """Return the class of a Dask collection, such as "Array" or "DataFrame"; "" if it is none."""
    if not hasattr(type(X), "__dask_graph__"):
        return ""
    # subclasses count as what they are made from; arrays of xarray, which have a graph, too, do not
    names = (base.__name__ for base in type(X).__mro__ if base.__module__.startswith("dask."))
    return next(names, "")


def read_values(given: Any) -> tuple[Any, np.ndarray | None]:
    """Read a column, or a table, of any library as one array: what is given besides features.

    It has exactly what was given, in its dtype of NumPy: text is objects, but in lists, arrays and
    series of polars, and what is of several types is, and decimals. Columns of a table have the
    dtype that NumPy promotes theirs to. What is no data is returned as it is. Missing values are
    marked as by `ColumnAdapter.values`.
    """
    if isinstance(given, ColumnAdapter):
        return given.values()
    if isinstance(given, np.ndarray):
        is_masked = isinstance(given, np.ma.MaskedArray)
        if given.dtype.names is not None or not (is_masked or given.dtype.kind in "OTmM"):
            return given, None
        marked = np.ma.getmaskarray(given).ravel() if is_masked else None
        values, missing = column_of(np.asarray(given).ravel(), marked).values()
        missing = None if missing is None else missing.reshape(given.shape)
        return values.reshape(given.shape), missing
    if _is_list(given):
        return read_values(array_of_list(_parts(given)))
    library = _library_of_column(_bases(given))
    if library:
        return _column(given, library).values()
    table = adapter_for(given) if is_frame(given) else None
    if table is not None:
        return _stacked(table)
    array = np.asanyarray(given)
    return (given, None) if array.ndim == 0 else read_values(array)


def is_frame(given: Any) -> bool:
    """Whether something has columns, as tables of all libraries have but arrays."""
    return any(hasattr(type(given), n) for n in ("columns", "column_names", "__dataframe__"))


def _is_list(given: Any) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str | bytes | memoryview)


def _parts(given: Sequence[Any]) -> Sequence[Any]:
    """Return masked arrays in place of what is in a list, if that has series or the like in it.

    NumPy would round their integers where values are missing.
    """
    examples = {type(part): part for part in given}.values()
    if not any(_library_of_column(_bases(part)) for part in examples):
        return given
    read = map(read_values, given)
    return [np.ma.array(values, mask=False if none is None else none) for values, none in read]


def _column(values: Any, library: str) -> ColumnAdapter:
    if library == "pandas":
        from sklboost.data.frames.pandas_frame import pandas_column, stored

        return pandas_column(stored(values))
    if library == "polars":
        from sklboost.data.frames.polars_frame import polars_column

        return polars_column(values)
    if library == "narwhals":
        native = values.to_native()
        return _column(native, _library_of_column(_bases(native)))
    from sklboost.data.frames.arrow_table import ArrowColumn

    return ArrowColumn(values)


def _stacked(table: FrameAdapter) -> tuple[np.ndarray, np.ndarray | None]:
    """Return all columns in one array of their common dtype, of objects if there is none."""
    columns = [table.column(i).values() for i in range(table.n_columns)]
    dtypes = [values.dtype for values, _ in columns]
    try:
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
    except TypeError:  # times and numbers
        dtype = np.dtype(object)
    stacked = np.empty(table.shape, dtype)
    missing = np.zeros(table.shape, dtype=bool)
    for i, (values, absent) in enumerate(columns):
        stacked[:, i] = values
        missing[:, i] = False if absent is None else absent
    return stacked, missing


def _bases(X: Any) -> list[tuple[str, str]]:
    """Return the libraries and names of an object's classes.

    Subclasses, such as geopandas', are read as what they are made from.
    """
    return [(base.__module__.partition(".")[0], base.__name__) for base in type(X).__mro__]


def _library_of_column(bases: list[tuple[str, str]]) -> str:
    """Return the library of a series, an index or an array of Arrow; "" if it is none of these."""
    libraries = ("pandas", "polars", "pyarrow", "narwhals")
    columns = ("Series", "Index", "ExtensionArray", "Array", "ChunkedArray")
    found = (library for library, name in bases if library in libraries and name in columns)
    return next(found, "")


def refuse_lazy(X: Any) -> None:
    """Raise TypeError for a lazy frame, before anything is asked that it would have to compute."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"X is of type {_name(X)}, which has no values yet: pass X.collect()")


def _other_adapter(X: Any) -> FrameAdapter | None:
    """Read a frame of any other library as an Arrow table; None for what is no frame.

    It gives its data as an Arrow stream, or narwhals knows it.
    """
    refuse_lazy(X)
    if hasattr(type(X), "__arrow_c_stream__"):
        return _arrow_adapter(_needed("pyarrow", X).table(X))
    if not (hasattr(type(X), "__dataframe__") or hasattr(type(X), "columns")):
        return None
    narwhals = _needed("narwhals", X)
    frame = narwhals.from_native(X, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        raise TypeError(
            f"X is of type {_name(X)}, which has no values yet: compute or collect it first"
        )
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
            f"X is of type {_name(X)}, which is read through {library}: pip install {library}, or "
            "pass a frame of pandas or polars, an Arrow table or an array"
        ) from error


def _name(X: Any) -> str:
    return f"{type(X).__module__.partition('.')[0]}.{type(X).__name__}"
