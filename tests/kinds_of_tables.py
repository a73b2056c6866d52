"""Every kind of table and dtype that is taken, in one place: tests and documentation read it.

A case makes a table from the same plain values: lists of Python numbers, text, dates, with None for
what is missing. What it stands for is known without any of the libraries.
"""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

N_ROWS = 60
_rng = np.random.default_rng(6)
_DAY = dt.date(2020, 1, 31)
_NOON = dt.datetime(2020, 1, 31, 12)


def _shuffled(values: list) -> list:
    return [values[i % len(values)] for i in _rng.permutation(N_ROWS)]


# Values that every dtype named below holds exactly: float16 and int8, for instance.
VALUES: dict[str, dict[str, list]] = {
    what: {name: _shuffled(distinct) for name in ("a", "b")}
    for what, distinct in {
        "fractions": [i / 8 for i in range(-20, 20)],
        "integers": list(range(-20, 20)),
        "counts": list(range(40)),
        # that float64 would make the same of
        "large integers": [2**53 + i for i in range(40)],
        "huge counts": [2**64 - 1 - i for i in range(40)],
        "truths": [True, False],
        "days": [_DAY + dt.timedelta(days=3 * i) for i in range(40)],
        "instants": [_NOON + dt.timedelta(hours=5 * i) for i in range(40)],
        "durations": [dt.timedelta(seconds=7 * i) for i in range(40)],
        "times of day": [dt.time(i // 2, 30 * (i % 2)) for i in range(40)],
        "words": ["red", "green", "blue", "Ä", ""],
    }.items()
}


def with_missing(columns: dict[str, list]) -> dict[str, list]:
    """Return the same values, every seventh row of them None."""
    return {
        name: [None if (row + shift) % 7 == 0 else value for row, value in enumerate(values)]
        for shift, (name, values) in enumerate(columns.items())
    }


class Case(NamedTuple):
    """A kind of table whose columns have a dtype."""

    library: str
    dtype: str  # as the documentation names it
    kind: str  # "number", "time", "category" or "text"
    values: str  # a key of VALUES
    make: Callable[[dict[str, list]], Any]
    missing: str = ""  # what stands for a missing value; empty: there can be none

    def __str__(self) -> str:
        return f"{self.library}-{self.dtype}-{self.values}".replace(" ", "_")


def _pandas(dtype: Any) -> Callable:
    return lambda columns: pd.DataFrame(
        {name: pd.Series(values, dtype=dtype) for name, values in columns.items()}
    )


def _polars(dtype: Any) -> Callable:
    return lambda columns: pl.DataFrame(
        {name: pl.Series(values, dtype=dtype) for name, values in columns.items()}
    )


def _arrow(type_: pa.DataType) -> Callable:
    return lambda columns: pa.table(
        {name: pa.array(values, type=type_) for name, values in columns.items()}
    )


def _array(dtype: Any) -> Callable:
    return lambda columns: np.array(list(columns.values()), dtype=dtype).T


def rows_of(columns: dict[str, list]) -> list[list]:
    return [list(row) for row in zip(*columns.values(), strict=True)]


def _nan(columns: dict[str, list]) -> dict[str, list]:
    return {name: [np.nan if v is None else v for v in vs] for name, vs in columns.items()}


_ANY_NULL = "None, NaN, pandas.NA"
_INTS = ["int8", "int16", "int32", "int64"]
_UINTS = ["uint8", "uint16", "uint32", "uint64"]
_UNITS = ["s", "ms", "us", "ns"]


def _array_cases() -> list[Case]:
    cases = [
        Case("NumPy", dtype, "number", "fractions", _array(dtype), "NaN")
        for dtype in ("float16", "float32", "float64", "longdouble")
    ]
    cases += [Case("NumPy", dtype, "number", "integers", _array(dtype)) for dtype in _INTS]
    cases += [Case("NumPy", dtype, "number", "counts", _array(dtype)) for dtype in _UINTS]
    cases += [
        Case("NumPy", "int64", "number", "large integers", _array("int64")),
        Case("NumPy", "uint64", "number", "huge counts", _array("uint64")),
        Case("NumPy", "bool", "number", "truths", _array(bool)),
        *(
            Case("NumPy", "object (numbers)", "number", what, _array(object), _ANY_NULL)
            for what in ("fractions", "integers", "large integers", "huge counts", "truths")
        ),
        Case("NumPy", "masked array", "number", "integers", _masked, "masked"),
        Case("NumPy", "datetime64", "time", "instants", _array("datetime64[us]"), "NaT"),
        Case("NumPy", "timedelta64", "time", "durations", _array("timedelta64[us]"), "NaT"),
        Case("NumPy", "object (text)", "text", "words", _array(object), _ANY_NULL),
        Case("NumPy", "str", "text", "words", _array(str)),
    ]
    cases += [
        Case("list of lists", "numbers", "number", what, rows_of, "None, NaN")
        for what in ("fractions", "integers", "large integers", "huge counts", "truths")
    ]
    return [
        *cases,
        Case("list of lists", "str", "text", "words", rows_of, "None, NaN"),
        Case("list of lists", "masked arrays", "number", "integers", _masked_rows, "masked"),
        Case("list of lists", "series (Int64)", "number", "large integers", _series_of_rows, "NA"),
    ]


def _masked(columns: dict[str, list]) -> np.ma.MaskedArray:
    values = _array(object)(columns)
    mask = values == None  # noqa: E711, element by element
    values[mask] = 77
    return np.ma.MaskedArray(values.astype(np.int64), mask)


def _masked_rows(columns: dict[str, list]) -> list:
    return list(_masked(columns))


def _series_of_rows(columns: dict[str, list]) -> list:
    return [pd.Series(row, dtype="Int64") for row in rows_of(columns)]


def _pandas_cases() -> list[Case]:
    cases = []
    for dtypes, what in ((["float32", "float64"], "fractions"), (_INTS, "integers")):
        nan = "NaN" if what == "fractions" else ""
        for dtype in dtypes:
            cases += [
                Case("pandas", dtype, "number", what, _pandas(dtype), nan),
                Case(
                    "pandas", dtype.capitalize(), "number", what, _pandas(dtype.capitalize()), "NA"
                ),
            ]
    for dtype in _UINTS:
        nullable = dtype.replace("ui", "UI")
        cases += [
            Case("pandas", dtype, "number", "counts", _pandas(dtype)),
            Case("pandas", nullable, "number", "counts", _pandas(nullable), "NA"),
        ]
    return [
        *cases,
        *_of_arrow_dtypes(),
        Case("pandas", "Int64", "number", "large integers", _pandas("Int64"), "NA"),
        Case("pandas", "UInt64", "number", "huge counts", _pandas("UInt64"), "NA"),
        Case("pandas", "bool", "number", "truths", _pandas(bool)),
        Case("pandas", "boolean", "number", "truths", _pandas("boolean"), "NA"),
        Case("pandas", "object (numbers)", "number", "integers", _pandas(object), "None, NaN, NA"),
        Case("pandas", "object (Decimal)", "number", "fractions", _decimals, "None, NaN, NA"),
        Case("pandas", "Sparse", "number", "fractions", _sparse, "NaN"),
        Case("pandas", "Sparse (uint64)", "number", "huge counts", _sparse_counts),
        *(
            Case("pandas", f"{what}64[{unit}]", "time", values, _pandas(f"{what}64[{unit}]"), "NaT")
            for what, values in (("datetime", "instants"), ("timedelta", "durations"))
            for unit in _UNITS
        ),
        Case("pandas", "datetime64 with a time zone", "time", "instants", _zoned, "NaT"),
        Case("pandas", "Period", "time", "days", _pandas("period[D]"), "NaT"),
        Case("pandas", "category", "category", "words", _pandas("category"), "NaN"),
        Case("pandas", "category", "category", "integers", _pandas("category"), "NaN"),
        Case("pandas", "category", "category", "truths", _pandas("category"), "NaN"),
        Case("pandas", "str", "text", "words", _pandas("str"), "NaN"),
        Case("pandas", "string", "text", "words", _pandas("string"), "NA"),
        Case("pandas", "string[python]", "text", "words", _pandas("string[python]"), "NA"),
        Case("pandas", "object (text)", "text", "words", _pandas(object), "None, NaN, NA"),
    ]


def _of_arrow_dtypes() -> list[Case]:
    return [
        Case("pandas", f"ArrowDtype ({name})", kind, what, _pandas(pd.ArrowDtype(type_)), "NA")
        for name, type_, kind, what in (
            ("double", pa.float64(), "number", "fractions"),
            ("int64", pa.int64(), "number", "large integers"),
            ("bool", pa.bool_(), "number", "truths"),
            ("timestamp", pa.timestamp("us"), "time", "instants"),
            ("dictionary", pa.dictionary(pa.int32(), pa.string()), "category", "words"),
            ("string", pa.string(), "text", "words"),
        )
    ]


def _decimals(columns: dict[str, list]) -> pd.DataFrame:
    made = {n: [None if v is None else Decimal(v) for v in vs] for n, vs in columns.items()}
    return _pandas(object)(made)


def _sparse(columns: dict[str, list]) -> pd.DataFrame:
    return _pandas("float64")(_nan(columns)).astype(pd.SparseDtype("float64", 0.0))


def _sparse_counts(columns: dict[str, list]) -> pd.DataFrame:
    return _pandas("uint64")(columns).astype(pd.SparseDtype("uint64", 2**64 - 1))


def _zoned(columns: dict[str, list]) -> pd.DataFrame:
    instants = _pandas("datetime64[us]")(columns)
    return instants.apply(lambda s: s.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin"))


def _polars_cases() -> list[Case]:
    number = [(name, "fractions") for name in ("Float32", "Float64")]
    number += [(name.capitalize(), "integers") for name in _INTS]
    number += [(name.replace("ui", "UI"), "counts") for name in _UINTS]
    number += [("Int64", "large integers"), ("UInt64", "huge counts"), ("Int128", "integers")]
    return [
        *(
            Case("polars", name, "number", what, _polars(getattr(pl, name)), "null, NaN")
            for name, what in number
        ),
        Case("polars", "Boolean", "number", "truths", _polars(pl.Boolean), "null"),
        Case("polars", "Decimal", "number", "fractions", _polars(pl.Decimal(10, 3)), "null"),
        Case("polars", "Object (numbers)", "number", "integers", _polars(pl.Object), "null"),
        Case("polars", "Date", "time", "days", _polars(pl.Date), "null"),
        *(
            Case("polars", "Datetime", "time", "instants", _polars(pl.Datetime(unit)), "null")
            for unit in _UNITS[1:]
        ),
        Case("polars", "Duration", "time", "durations", _polars(pl.Duration("us")), "null"),
        Case("polars", "Time", "time", "times of day", _polars(pl.Time), "null"),
        Case("polars", "Categorical", "category", "words", _polars(pl.Categorical), "null"),
        Case("polars", "Enum", "category", "words", _polars(pl.Enum(_WORDS)), "null"),
        Case("polars", "String", "text", "words", _polars(pl.String), "null"),
    ]


_DICTIONARY = pa.dictionary(pa.int8(), pa.string())
_WORDS = ["", "Ä", "red", "of no row", "green", "blue"]


def _arrow_cases() -> list[Case]:
    number = [(pa.float32(), "fractions"), (pa.float64(), "fractions")]
    number += [(getattr(pa, name)(), "integers") for name in _INTS]
    number += [(getattr(pa, name)(), "counts") for name in _UINTS]
    number += [(pa.int64(), "large integers"), (pa.uint64(), "huge counts"), (pa.bool_(), "truths")]
    time = [(pa.date32(), "days"), (pa.date64(), "days"), (pa.time32("s"), "times of day")]
    time += [(pa.time64("ns"), "times of day"), (pa.timestamp("us", "Europe/Berlin"), "instants")]
    time += [(pa.timestamp(unit), "instants") for unit in _UNITS]
    time += [(pa.duration(unit), "durations") for unit in _UNITS]
    text = [pa.string(), pa.large_string(), pa.string_view()]
    of = [(type_, "number", what) for type_, what in number]
    of += [(type_, "time", what) for type_, what in time]
    of += [(type_, "text", "words") for type_ in text]
    return [
        *(Case("Arrow", str(t), kind, what, _arrow(t), "null") for t, kind, what in of),
        Case("Arrow", "halffloat", "number", "fractions", _arrow_halves, "null"),
        Case("Arrow", "decimal", "number", "fractions", _arrow_decimals, "null"),
        Case("Arrow", "dictionary", "category", "words", _arrow(_DICTIONARY), "null"),
        Case("Arrow", "dictionary in pieces", "category", "words", _in_pieces, "null"),
        Case("Arrow", "RecordBatch", "number", "integers", _record_batch, "null"),
        Case("narwhals", "DataFrame", "number", "integers", _narwhals, "null"),
    ]


def _arrow_halves(columns: dict[str, list]) -> pa.Table:
    made = {n: [None if v is None else np.float16(v) for v in vs] for n, vs in columns.items()}
    return _arrow(pa.float16())(made)


def _arrow_decimals(columns: dict[str, list]) -> pa.Table:
    made = {n: [None if v is None else Decimal(v) for v in vs] for n, vs in columns.items()}
    return _arrow(pa.decimal128(10, 3))(made)


def _in_pieces(columns: dict[str, list]) -> pa.Table:
    """Make a table whose pieces have different dictionaries, and one of which is empty."""
    table = _arrow(pa.string())(columns)
    parts = [table.slice(0, 7), table.slice(7, 0), table.slice(7)]
    encoded = {
        name: pa.chunked_array(
            [part.column(name).combine_chunks().dictionary_encode() for part in parts]
        )
        for name in columns
    }
    return pa.table(encoded)


def _record_batch(columns: dict[str, list]) -> pa.RecordBatch:
    return pa.record_batch({name: pa.array(values) for name, values in columns.items()})


def _narwhals(columns: dict[str, list]) -> nw.DataFrame:
    return nw.from_native(_polars(pl.Int64)(columns))


CASES = [*_array_cases(), *_pandas_cases(), *_polars_cases(), *_arrow_cases()]


class Refusal(NamedTuple):
    """What is no table of features."""

    what: str  # as the documentation says it
    make: Callable[[], Any]


REFUSALS = [
    Refusal(
        "text that is not declared to be categories",
        lambda: pl.DataFrame({"age": [31, 45], "city": ["Paris", "Rome"]}),
    ),
    Refusal(
        "objects of several types",
        lambda: pd.DataFrame({"size": ["S", 38]}, dtype=object),
    ),
    Refusal("dates as Python objects", lambda: pd.DataFrame({"day": [_DAY] * 2}, dtype=object)),
    Refusal("complex numbers", lambda: np.array([[1 + 2j], [0.5]])),
    Refusal("nested columns", lambda: pl.DataFrame({"tags": [["a"], ["a", "b"]]})),
    Refusal("binary columns", lambda: pa.table({"key": [b"\x01", b"\x02"]})),
    Refusal("columns of the same name", lambda: pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])),
    Refusal("rows of different lengths", lambda: [[1, 2], [3, 4], [5]]),
    Refusal("dicts of columns", lambda: {"age": [31, 45]}),
    Refusal("arrays of records", lambda: np.zeros(2, dtype=[("age", int)])),
    Refusal("durations in months", lambda: np.zeros((2, 1), dtype="timedelta64[M]")),
    Refusal("integers that no dtype holds", lambda: [[2**64], [1]]),
    Refusal("frames that have not been computed", lambda: pl.DataFrame({"a": [1, 2]}).lazy()),
]
