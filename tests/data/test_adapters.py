"""Tables of all libraries, column by column: the values that went in come out."""

import datetime as dt
import re
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from sklboost.data.frames import adapter_for
from tests.conftest import ROOT
from tests.kinds_of_tables import CASES, VALUES, with_missing

pytestmark = pytest.mark.interpreted


def first_column(X):
    return adapter_for(X).column(0)


def is_of_objects(case):
    return case.library == "pandas" and case.dtype.startswith("object")


def nanoseconds(value):
    """Count from 1970, or from midnight; exact integers, without any of the libraries."""
    if isinstance(value, dt.time):
        value = dt.timedelta(hours=value.hour, minutes=value.minute)
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day)
    if isinstance(value, dt.datetime):
        value -= dt.datetime(1970, 1, 1)
    return value // dt.timedelta(microseconds=1) * 1000


def as_list(values, missing):
    marked = np.zeros(len(values), bool) if missing is None else missing
    return [None if m or v != v else v for v, m in zip(values.tolist(), marked, strict=True)]


def decoded(codes, values):
    listed = values.tolist()
    return [None if code < 0 else listed[code] for code in codes.tolist()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_values_that_went_in_come_out(case):
    columns = VALUES[case.values]
    table = adapter_for(case.make(columns))
    if table is None:  # plain arrays
        assert case.dtype in ("float32", "float64")
        return
    names = None if case.library in ("NumPy", "list of lists") else list(columns)
    assert table.names == names
    assert (table.n_rows, table.n_columns) == (len(columns["a"]), 2)
    assert [table.column(i).kind for i in (0, 1)] == [case.kind] * 2
    assert table.column(0).dtype_name
    assert table.column(0).examples() == [columns["a"][0]] or case.kind == "time"
    check_values(case, table, columns)
    if case.missing:
        gaps = with_missing(columns)
        check_values(case, adapter_for(case.make(gaps)), gaps)


def check_values(case, table, columns):
    for i, expected in enumerate(columns.values()):
        codes, categories = table.column(i).categories()
        assert len(set(categories.tolist())) == len(categories)
        if case.kind == "time":
            check_times(table.column(i), expected)
            continue
        assert decoded(codes, categories) == expected
        if case.kind == "number":
            values, missing = table.column(i).numbers()
            assert values.dtype.kind in "biuf"
            assert values.dtype.isnative
            assert as_list(values, missing) == expected
        else:
            kind = {"words": "O", "integers": "i", "truths": "b"}[case.values]
            assert categories.dtype.kind == kind
    is_large = case.values.startswith(("large", "huge"))
    if case.kind != "number" or is_large or is_of_objects(case):
        assert table.matrix() is None
    else:
        expected = [[np.nan if v is None else v for v in values] for values in columns.values()]
        assert_array_equal(table.matrix(), np.array(expected, dtype=float).T)


def check_times(column, expected):
    values, missing, unit = column.times()
    assert values.dtype == np.int64
    size, unit_letters = np.datetime_data(np.dtype(unit))[::-1]
    step = {"D": 86400 * 10**9, "s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}[unit_letters]
    in_nanoseconds = [None if v is None else v * step * size for v in as_list(values, missing)]
    assert in_nanoseconds == [None if v is None else nanoseconds(v) for v in expected]
    known = next(value for value in expected if value is not None)
    assert np.dtype(unit).kind == ("M" if isinstance(known, dt.date) else "m")
    codes, categories = column.categories()
    assert categories.dtype == np.dtype(unit)
    assert decoded(codes, categories.view(np.int64)) == as_list(values, missing)


# --- what needs no reader -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((3, 2)),
        np.zeros(3, int),
        np.zeros((3, 2, 2), int),
        np.array(3),
        [1, 2, 3],
        [[[1], [2]]],
        [],
        pd.Series([1, 2]),
        pl.Series([1, 2]),
        pa.array([1, 2]),
        pa.chunked_array([[1, 2]]),
        None,
        scipy.sparse.dok_array((2, 2)),
    ],
    ids=lambda X: f"{type(X).__name__}{np.shape(X)}",
)
def test_what_is_no_table_or_needs_no_reader(X):
    assert adapter_for(X) is None


def test_dicts_of_rows_have_to_be_made_a_frame():
    words = r"^X\[0\] is of type dict: make a frame of the rows, pandas.Data"
    with pytest.raises(TypeError, match=words):
        adapter_for([{"a": 1}, {"a": 2}])


def test_arrays_in_another_order_of_bytes():
    table = adapter_for(np.array([[1.5, 2.5]], dtype=">f8"))
    assert table.column(1).numbers()[0].tolist() == [2.5]
    assert table.column(1).numbers()[0].dtype.isnative
    times = adapter_for(np.array([["2020-01-01"]], dtype=">M8[D]"))
    assert times.column(0).times()[0].tolist() == [18262]


def test_what_becomes_an_array():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            return np.array([[2**53 + 1, 2**53]])

    assert first_column(Tensor()).numbers()[0].tolist() == [2**53 + 1]


# --- memory ---------------------------------------------------------------------------------------

LENGTH = 1000
BASE = np.arange(2 * LENGTH, dtype=np.int64).reshape(2, LENGTH)


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize(
    ("X", "start"),
    [
        (BASE.T, address(BASE)),
        (pd.DataFrame(BASE.T, copy=False), address(BASE)),
        (pa.table({"a": BASE[0], "b": BASE[1]}), address(BASE)),
        (pa.table({"a": BASE[0], "b": BASE[1]}).slice(1), address(BASE) + 8),
        (pl.DataFrame({"a": BASE[0]}), None),
        (pd.DataFrame({"a": pd.array(BASE[0], dtype="Int64")}), None),
        (pd.DataFrame({"a": pd.array(BASE[0], dtype="int64[pyarrow]")}), None),
    ],
    ids=["array", "pandas", "Arrow", "part of Arrow", "polars", "nullable", "Arrow in pandas"],
)
def test_integers_are_not_copied(X, start):
    values, missing = first_column(X).numbers()
    assert missing is None
    if start is None:  # memory of its own, but the same at the next look
        assert address(values) == address(first_column(X).numbers()[0])
    else:
        assert address(values) == start


def test_arrow_is_not_copied_even_where_values_are_missing():
    array = pa.array([None, 5, 6, None, 7])
    for part, expected in ((array, [None, 5, 6, None, 7]), (array.slice(2), [6, None, 7])):
        values, missing = first_column(pa.table({"a": part})).numbers()
        assert as_list(values, missing) == expected
        assert address(values) == array.buffers()[1].address + 8 * part.offset


def test_a_pandas_frame_that_is_one_array_stays_one():
    values = np.random.default_rng(0).normal(size=(40_000, 3))
    frame = pd.DataFrame(values, copy=False)
    assert np.shares_memory(adapter_for(frame).matrix(), values)
    # of several arrays a large one would be copied, so it is not made at all; a small one is
    frame["d"] = 1.0
    assert adapter_for(frame).matrix() is None
    small = adapter_for(frame[:10]).matrix()
    assert small.dtype == np.float64
    assert_array_equal(small, frame[:10].to_numpy())
    assert adapter_for(frame[:10].astype(np.float32)).matrix().dtype == np.float32


def test_a_large_frame_of_polars_is_read_by_columns():
    frame = pl.DataFrame({"a": np.arange(70_000.0), "b": np.arange(70_000.0)})
    assert adapter_for(frame).matrix() is None
    assert_array_equal(adapter_for(frame[5:7]).matrix(), [[5.0, 5.0], [6.0, 6.0]])
    values, _ = first_column(frame).numbers()
    assert address(values) == address(frame["a"].to_numpy())


def test_mixed_numbers_of_a_small_frame_are_one_array():
    frame = pd.DataFrame(
        {
            "a": [1.5, np.nan],
            "b": pd.array([None, 2], dtype="Int64"),
            "c": [True, False],
            "d": pd.array([3, 4], dtype="int64[pyarrow]"),
            "e": pd.arrays.SparseArray([0, 5]),
        }
    )
    expected = [[1.5, np.nan, 1, 3, 0], [np.nan, 2, 0, 4, 5]]
    assert_array_equal(adapter_for(frame).matrix(), expected)
    for column in "bde":
        frame[column] = frame[column].astype("Int64") + 2**53
        assert adapter_for(frame).matrix() is None
        frame[column] -= 2**53


# --- objects --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        ([1, None, np.int8(3)], "number", "int64"),
        ([1, float("nan"), 2**53 + 1], "number", "int64"),
        ([1, pd.NA, 2.5], "number", "float64"),
        ([True, None, np.False_], "number", "bool"),
        ([True, 2], "number", "int64"),
        ([2**63, 1], "number", "uint64"),
        ([None, None], "number", "float64"),
        ([np.float32(1.5), pd.NaT], "number", "float64"),
        (["a", np.str_("b"), None], "text", None),
        (["a", 1], "mixed", None),
        ([dt.date(2020, 1, 1), None], "mixed", None),
        ([(1, 2), None], "mixed", None),
        ([1.0, {"b": 2}], "unsupported", None),
        ([1.0, 2j], "unsupported", None),
        ([[1], [2]], "unsupported", None),
        ([np.zeros(2), None], "unsupported", None),
    ],
    ids=str,
)
def test_kinds_of_objects(values, kind, dtype):
    column = np.empty((len(values), 1), dtype=object)
    column[:, 0] = values
    table = adapter_for(column)
    assert table.column(0).kind == kind
    if kind == "number":
        numbers, missing = table.column(0).numbers()
        assert numbers.dtype == dtype
        expected = [None if v is None or v is pd.NA or v is pd.NaT or v != v else v for v in values]
        assert as_list(numbers, missing) == expected
    elif kind == "mixed":
        assert decoded(*table.column(0).categories()) == values
    with pytest.raises(TypeError, match="has no times"):
        table.column(0).times()


# --- lists ----------------------------------------------------------------------------------------


def test_lists_of_numbers():
    assert adapter_for([[1, 2.5], [3, 4]]).matrix().tolist() == [[1, 2.5], [3, 4]]
    assert first_column([[1, 2], [3, 4]]).numbers()[0].dtype == np.int64
    assert adapter_for(((1, 2), (3, 4))).column(1).numbers()[0].tolist() == [2, 4]
    assert first_column([np.array([1, 2]), np.array([3, 4])]).numbers()[0].tolist() == [1, 3]
    # NumPy makes a float of one of these, and text of the number beside text
    found = first_column([[-1, 0.5], [2**63 - 1, 1]]).numbers()[0].tolist()
    assert found == [-1, 2**63 - 1]
    # floats are exact, however large
    assert adapter_for([[np.inf, np.nan], [1e300, np.nan]]).matrix().dtype == np.float64
    mixed = adapter_for([["a", 1], ["b", 2]])
    assert [mixed.column(0).kind, mixed.column(1).kind] == ["text", "number"]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, 2], 3], r"^X\[1\] has no length at all, but X\[0\] has 2 values"),
        ([[1, 2], [1, [2, 3]]], r"^X\[1\]\[1\] is \[2, 3\]: each row must be a list of values"),
    ],
)
def test_ragged_lists(X, message):
    with pytest.raises(ValueError, match=message):
        adapter_for(X)


@pytest.mark.parametrize(
    ("X", "value"), [([[2**64]], 2**64), ([[-1], [2**63]], 2**63), ([[-(2**63) - 1]], -(2**63) - 1)]
)
def test_integers_that_no_dtype_holds(X, value):
    with pytest.raises(ValueError, match=rf"^the integer {value} is among"):
        first_column(X).numbers()


# --- libraries ------------------------------------------------------------------------------------


def test_categories_of_intervals_and_of_mixed_values():
    cut = pd.cut(pd.Series([1.0, 5.0, np.nan, 9.0]), 3)
    frame = pd.DataFrame({"cut": cut, "mixed": pd.Categorical(["a", 1, None, "a"])})
    table = adapter_for(frame)
    assert [table.column(i).kind for i in (0, 1)] == ["category", "category"]
    codes, categories = table.column(0).categories()
    assert codes.tolist() == [0, 1, -1, 2]
    assert list(categories) == list(cut.cat.categories)
    assert decoded(*table.column(1).categories()) == ["a", 1, None, "a"]


def test_categories_of_times_with_zones():
    instants = pd.to_datetime(["2020-01-02", "2020-01-01"]).tz_localize("Europe/Berlin")
    codes, categories = first_column(pd.DataFrame({"a": pd.Categorical(instants)})).categories()
    assert categories.dtype.kind == "M"
    hours = categories.astype("datetime64[h]").astype(str)
    assert decoded(codes, hours) == ["2020-01-01T23", "2019-12-31T23"]


def test_a_dictionary_with_a_missing_category():
    encoded = pa.DictionaryArray.from_arrays([0, 1, 2, None, 2], ["x", None, "y"])
    found = decoded(*first_column(pa.table({"a": encoded})).categories())
    assert found == ["x", None, "y", None, "y"]
    numbers = pa.DictionaryArray.from_arrays([0, 1, 2, None], [5.5, None, 1.5])
    found = decoded(*first_column(pa.table({"a": numbers})).categories())
    assert found == [5.5, None, 1.5, None]


@pytest.mark.parametrize("type_", [pa.uint8(), pa.int8(), pa.uint32(), pa.int64()], ids=str)
def test_codes_of_a_dictionary_are_not_copied(type_):
    for listed in ([1, 0, 1], [1, None, 0]):
        indices = pa.array(listed, type=type_)
        encoded = pa.DictionaryArray.from_arrays(indices, ["x", "y"])
        codes, categories = first_column(pa.table({"a": encoded})).categories()
        assert decoded(codes, categories) == [None if i is None else "xy"[i] for i in listed]
        if None not in listed:
            assert address(codes) == indices.buffers()[1].address


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table], ids=["pandas", "arrow"])
@pytest.mark.parametrize("numeric", [False, True], ids=["text", "numbers"])
def test_of_many_levels_only_those_of_the_rows_are_read(make, numeric):
    names = list(range(1000)) if numeric else [f"{i:03}" for i in range(1000)]
    codes = np.array([7, -1, 900, 7], dtype=np.int16)
    if make is pd.DataFrame:
        column = pd.Categorical.from_codes(codes, names)
    else:
        column = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), pa.array(names))
    found, values = first_column(make({"x": column})).categories()
    assert values.tolist() == [names[7], names[900]]
    assert found.tolist() == [0, -1, 1, 0]


def test_a_small_frame_of_pandas_is_read_by_dtypes():
    frame = pd.DataFrame({f"c{i}": [i, -i] for i in range(12)})
    frame = frame.astype({"c1": "f4", "c5": "f4", "c6": "Int8", "c8": bool, "c9": str})
    frame["c11"] = frame["c11"].astype("category")
    table = adapter_for(frame)
    for i, dtype in enumerate(frame.dtypes.astype(str)):
        assert table.column(i).dtype_name == dtype
        if i not in (9, 11):
            values, missing = table.column(i).numbers()
            assert values.tolist() == frame.iloc[:, i].tolist()
            assert missing is None
    assert table.column(0).numbers()[0].base is table.column(2).numbers()[0].base  # read at once
    assert table.column(9).categories()[1].tolist() == ["9", "-9"]
    assert table.column(11).categories()[1].tolist() == [-11, 11]


@pytest.mark.parametrize("n_rows", [4, 1000])  # numbered here, or by the library
@pytest.mark.parametrize("dtype", ["pandas", pl.String, pl.Categorical, pl.Enum([*"qbac", ""])])
def test_text_of_few_rows_and_of_many(dtype, n_rows):
    text = (["b", None, "", "a", "b"] * 200)[:n_rows]
    is_pandas = dtype == "pandas"
    frame = (
        pd.DataFrame({"x": text})
        if is_pandas
        else pl.DataFrame({"x": pl.Series(text, dtype=dtype)})
    )
    codes, values = first_column(frame).categories()
    assert codes.dtype.kind == "i"
    assert values.dtype == object
    assert sorted(values) == ["", "a", "b"]
    assert decoded(codes, values) == text


def test_columns_without_any_value():
    frame = pd.DataFrame({"a": [np.nan] * 2, "b": pd.array([None] * 2, dtype="Int8")})
    frame = frame.assign(c=[None] * 2, d=pd.NaT, e=pd.Categorical([None] * 2))
    frame = frame.assign(f=pd.array([None] * 2, dtype="str"), g=pd.array([1, None], dtype="Int8"))
    frame = frame.assign(h=["", None], i=[np.nan, 1.0])
    for library in (pd.DataFrame, pl.from_pandas, pa.table):
        table = adapter_for(library(frame))
        found = [table.column(i).is_empty() for i in range(table.n_columns)]
        assert found == [True] * 6 + [False] * 3
    assert first_column(pl.DataFrame({"a": [float("nan"), None]})).is_empty()


@pytest.mark.parametrize(
    "X",
    [
        pl.DataFrame({"a": [[1], [2]]}),
        pl.DataFrame({"a": [{"b": 1}]}),
        pl.DataFrame({"a": [b"x"]}),
        pa.table({"a": [[1], [2]]}),
        pa.table({"a": [b"x"]}),
        pa.table({"a": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}),
        pd.DataFrame({"a": pd.Series([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))}),
        pd.DataFrame({"a": [1j]}),
        np.array([[b"x"]]),
        np.array([[1j]]),
    ],
    ids=lambda X: f"{type(X).__module__}-{first_column(X).dtype_name}",
)
def test_nested_binary_and_complex_columns(X):
    table = adapter_for(X)
    assert table.column(0).kind == "unsupported"
    assert table.column(0).examples()


def test_null_columns_are_missing_numbers():
    for X in (pl.DataFrame({"a": [None, None]}), pa.table({"a": [None, None]})):
        assert first_column(X).kind == "number"
        assert as_list(*first_column(X).numbers()) == [None, None]
        assert len(first_column(X).categories()[1]) == 0


def test_subclasses_are_read_as_what_they_are_made_from():
    mine = type("Mine", (pd.DataFrame,), {})
    assert first_column(mine({"a": [1, 2]})).numbers()[0].tolist() == [1, 2]


class Stream:
    """A table of an unknown library."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table({"a": [1, None, 3]}).__arrow_c_stream__(requested_schema)


def test_whatever_streams_arrow():
    table = adapter_for(Stream())
    assert table.names == ["a"]
    assert as_list(*table.column(0).numbers()) == [1, None, 3]


class Foreign:
    """A frame that narwhals knows and nobody else does."""

    columns = ("a",)

    def __narwhals_dataframe__(self):
        return nw.from_native(pl.DataFrame({"a": [1, None]}))._compliant_frame


class ForeignPlan:
    columns = ("a",)

    def __narwhals_lazyframe__(self):
        return nw.from_native(pl.DataFrame({"a": [1, None]}).lazy())._compliant_frame


class Unknown:
    columns = ("a",)


def test_what_narwhals_knows():
    table = adapter_for(Foreign())
    assert table.names == ["a"]
    assert as_list(*table.column(0).numbers()) == [1, None]
    assert adapter_for(Unknown()) is None


def test_frames_without_values_are_refused():
    with pytest.raises(TypeError, match=r"ForeignPlan, which has no values yet: compute"):
        adapter_for(ForeignPlan())


def test_a_library_that_is_needed_and_not_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(ImportError, match=r"Stream, which is read through pyarrow: pip install"):
        adapter_for(Stream())
    with pytest.raises(ImportError, match=r"Foreign, which is read through narwhals: pip install"):
        adapter_for(Foreign())


def test_only_readers_import_the_libraries():
    for path in (ROOT / "sklboost" / "data").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        imports = re.findall(r"^ *(?:import|from) (pandas|polars|pyarrow|narwhals)\b", text, re.M)
        readers = {"pandas_frame.py": "pandas", "polars_frame.py": "polars"}
        readers |= dict.fromkeys(["arrow_table.py", "parquet_files.py"], "pyarrow")
        readers["lazy_frames.py"] = "pyarrow"
        assert set(imports) == ({readers[path.name]} if path.name in readers else set())


def test_columns_by_the_public_way_of_pandas(monkeypatch):
    frame = pd.DataFrame({"a": [1.0, np.nan], "b": [True, False], "c": pd.Categorical(["x", "y"])})
    frame["d"] = pd.to_datetime(["2020-01-01", "2021-01-01"])
    quick = [adapter_for(frame).column(i) for i in range(4)]
    monkeypatch.delattr(pd.DataFrame, "_get_column_array")  # private: a pandas may come without
    slow = [adapter_for(frame).column(i) for i in range(4)]
    assert [column.kind for column in slow] == ["number", "number", "category", "time"]
    for one, other in zip(quick, slow, strict=True):
        assert one.dtype_name == other.dtype_name
        if one.kind != "category":
            assert_array_equal(
                getattr(one, f"{one.kind}s")()[0], getattr(other, f"{one.kind}s")()[0]
            )
    assert_array_equal(slow[2].categories()[0], [0, 1])
