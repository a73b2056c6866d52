"""Frames of any other library: turned into an Arrow table, by themselves or through narwhals."""

from importlib import import_module
from types import ModuleType
from typing import Any

from sklboost.data.frames.adapter import FrameAdapter


def other_adapter(X: Any) -> FrameAdapter | None:
    """Read what gives its data as an Arrow stream, or is a frame that narwhals knows.

    Returns
    -------
    FrameAdapter or None
        None for what is no frame at all.

    Raises
    ------
    TypeError
        For frames that have not been computed yet.
    ImportError
        If pyarrow or narwhals is needed and not there.
    """
    if type(X).__name__ == "LazyFrame":
        raise TypeError(f"X is a {_name(X)}, which has no values yet: pass X.collect()")
    if hasattr(type(X), "__arrow_c_stream__"):
        return _arrow_table(_needed("pyarrow", X).table(X))
    if not (hasattr(type(X), "__dataframe__") or hasattr(type(X), "columns")):
        return None
    narwhals = _needed("narwhals", X)
    frame = narwhals.from_native(X, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        raise TypeError(f"X is a {_name(X)}, which has no values yet: compute or collect it first")
    if not isinstance(frame, narwhals.DataFrame):
        return None
    _needed("pyarrow", X)
    return _arrow_table(frame.to_arrow())


def _arrow_table(table: Any) -> FrameAdapter:
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
