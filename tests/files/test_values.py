"""Values of parameters, labels and categories: what is written is read, and nothing else is."""

import datetime
import decimal
import math
import tracemalloc
import uuid

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklboost import ModelFileError
from sklboost.files.documents import parse_document, write_json, write_ubjson
from sklboost.files.sections import DocumentSection
from sklboost.files.values import NotStorableError, read_value, value_document


def read(document):
    return read_value(DocumentSection(document, "here"))


def check_round_trip(value):
    """It is the same by JSON and UBJSON, and so is its document."""
    for write in (write_json, write_ubjson):
        found = read(parse_document(write({"v": value_document(value)}), "")["v"])
        assert type(found) is type(value)
        assert repr(found) == repr(value)
        assert repr(value_document(found)) == repr(value_document(value))


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
_KEYS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | _TEXT
    | st.dates()
    | st.datetimes()
    | st.timedeltas(),
    lambda parts: st.lists(parts, max_size=4).map(tuple) | st.frozensets(parts, max_size=4),
    max_leaves=5,
)
_VALUES = st.recursive(
    _KEYS,
    lambda parts: (
        st.lists(parts) | st.dictionaries(_KEYS, parts, max_size=4) | st.sets(_KEYS, max_size=4)
    ),
    max_leaves=10,
)


@given(_VALUES)
def test_any_nested_value(value):
    for write in (write_json, write_ubjson):
        found = read(parse_document(write({"v": value_document(value)}), "")["v"])
        # sets have no order of their own
        assert value_document(found) == value_document(value) or "NaN" in repr(value)
        assert type(found) is type(value)


@pytest.mark.parametrize(
    "value",
    [
        np.float32(0.1),
        np.int8(-3),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.str_("ü"),
        np.datetime64("2020-01-01T00:00:00.000000001"),
        np.datetime64("NaT", "D"),
        np.timedelta64(5, "h"),
        np.array([0.1, np.nan, -np.inf, 5e-324]),
        np.array([[1, 2], [3, 4]], dtype=">i2"),
        np.array([2**63, 5], dtype=np.uint64),
        np.array([True, False]),
        np.array(["a", "", "bcd"]),
        np.array(["2020", "NaT"], dtype="M8[Y]"),
        np.array([None, 1, "a", (1, 2)], dtype=object),
        np.empty((0, 3)),
        np.empty(0, dtype="<U5"),
        np.array(0.5, dtype=np.float16),
        pd.Timestamp("2020-01-01 00:00:00.000000001"),
        pd.Timedelta("1ns"),
        pd.NaT.to_datetime64(),
        *pd.cut([0.5, 3.5], [0, 1.5, np.inf]),
        *pd.interval_range(pd.Timestamp("2020"), periods=2, closed="both"),
        datetime.time(23, 59, 59, 7),
        decimal.Decimal("1E+3"),
        uuid.UUID(int=5),
        b"\x00a\xff",
    ],
    ids=repr,
)
def test_values_of_numpy_and_pandas(value):
    check_round_trip(value)


def test_wide_text_becomes_objects():
    """A file of a few bytes would say that there are many megabytes."""
    for n_texts, width, kind in ((2, 400, "U"), (2, 10**5, "O"), (1000, 500, "O"), (1, 10**6, "O")):
        value = np.array(["a"] * n_texts, dtype=f"<U{width}")
        found = read(value_document(value))
        assert found.dtype.kind == kind
        assert found.tolist() == value.tolist()
    long = np.array(["a", "b" * 400])
    assert read(value_document(long)).dtype == long.dtype


class _Own:
    pass


@pytest.mark.parametrize(
    "value",
    [_Own, _Own(), print, 1j, np.array([1j]), np.dtype("f8"), [1, [_Own()]], range(3)]
    + [
        np.array([_Own()], dtype=object),
        pd.Interval(pd.Timestamp("2020", tz="UTC"), pd.Timestamp("2021", tz="UTC")),
    ]
    + [pd.Timestamp("2020", tz="UTC"), np.random.RandomState(0), np.array([b"a"])],
)
def test_what_has_no_place(value):
    with pytest.raises(NotStorableError, match="has no place in a model file"):
        value_document(value)


def _array(dtype, shape, values):
    return {"array": {"dtype": dtype, "shape": shape, "values": values}}


_COLLIDING = [{"int": str(2**64 + i * (2**61 - 1))} for i in range(200)]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({}, "must have one key"),
        ({"a": 1}, "must have one key"),
        ({"int": "1", "float": 1.0}, "must have one key"),
        ({"os.system": "ls"}, "must have one key"),
        ({"_own": 1}, "must have one key"),
        # integers and floats
        ({"int": 1}, "must be text"),
        ({"int": "1" * 4001}, "4000 at most"),
        ({"int": "1_000"}, "digits of an integer"),
        ({"int": " 1"}, "digits of an integer"),
        ({"int": "\uff11"}, "digits of an integer"),
        ({"int": "0x10"}, "digits of an integer"),
        ({"float": "nan"}, "must be a number"),
        ({"float": True}, "must be a number"),
        # containers
        ({"tuple": 1}, "must be a list"),
        ({"set": [[1]]}, "unhashable"),
        ({"frozenset": [{"dict": []}]}, "unhashable"),
        ({"dict": [[1]]}, "pairs of key and value"),
        ({"dict": [{"tuple": [1, 2]}]}, "pairs of key and value"),
        ({"dict": [[[1], 2]]}, "unhashable"),
        ({"dict": [[1, 2], [1, 3]]}, "a key occurs twice"),
        ({"dict": {"a": 1}}, "must have one key|pairs"),
        ({"set": _COLLIDING}, "more than 100 keys have the same hash"),
        ({"dict": [[key, 0] for key in _COLLIDING]}, "more than 100 keys have the same hash"),
        # times and decimals
        ({"date": "2020-13-01"}, "is no date"),
        ({"datetime": "now"}, "is no datetime"),
        ({"timedelta": [10**9, 0, 0]}, "is no timedelta"),
        ({"timedelta": [1, 2]}, "must have 3 elements"),
        ({"Decimal": "a"}, "is no Decimal"),
        ({"time": "24:00"}, "is no time"),
        ({"UUID": "5"}, "is no UUID"),
        ({"bytes": "0g"}, "is no bytes"),
        ({"set": [{"Decimal": "sNaN"}]}, "hash a signaling NaN"),
        ({"pandas.Timestamp": "now"}, "must be a scalar of times"),
        ({"pandas.Timestamp": _array("<f8", [1], [1.0])}, "must be a scalar of times"),
        ({"pandas.Interval": [0, 1]}, "is no pandas.Interval"),
        ({"pandas.Interval": [1, 0, "left"]}, "is no pandas.Interval"),
        ({"pandas.Interval": [0, 1, "centre"]}, "must be one of"),
        ({"pandas.Interval": ["a", "b", "left"]}, "is no pandas.Interval"),
        ({"pandas.DataFrame": []}, "must have one key"),
        # arrays
        (_array("<f8", [2], [1.0]), "must have 2 elements, and has 1"),
        (_array("<f8", [2, 2**62, 2**62], []), "must have .* elements"),
        (_array("<f8", [-1], [1.0]), "must be an integer from 0"),
        (_array("<f8", [10**18, 0], []), "without elements is too long"),
        (_array("<f8", [1] * 100, [1.0]), "is no array"),
        (_array("<f8", [1], ["a"]), "must be a list of numbers"),
        (_array("<f1", [1], [1.0]), "not understood|data type"),
        (_array("<c8", [1], [1.0]), "is no dtype"),
        (_array("|V8", [1], [1.0]), "is no dtype"),
        (_array("<M8", [1], [1]), "is no dtype"),
        (_array("f8,O", [1], [1]), "is no dtype"),
        (_array("<i1", [1], [128]), "is no array"),
        (_array("<i8", [1], [{"int": "9" * 30}]), "is no array"),
        (_array("<u8", [1], [-1]), "is no array"),
        (_array("<i8", [1], [1.5]), "must be integers"),
        (_array("<i8", [1], [True]), "must be integers"),
        (_array("<i8", [1], [{"tuple": []}]), "must be integers"),
        (_array("|b1", [1], [2]), "from 0 to 1"),
        (_array("<M8[D]", [1], [1.5]), "must be a list of integers"),
        (_array("<U2", [1], ["abc"]), "texts of at most 2 characters"),
        (_array("<U2", [1], [1]), "texts of at most 2 characters"),
        (_array("<U999999", [1], [""]), "is too wide"),
        (_array("<U9999", [100], [""] * 100), "is too wide"),
        ({"scalar": _array("<f4", [0], [])["array"]}, "of one element"),
        ({"scalar": _array("<f4", [2], [1, 2])["array"]}, "of one element"),
    ],
)
def test_damaged_values(document, problem):
    with pytest.raises(ModelFileError, match=rf"^here.*{problem}"):
        read(document)


def test_values_that_may_look_damaged():
    assert read({"Decimal": "1E+999999999"}) == decimal.Decimal("1E+999999999")
    days = [value_document(pd.Timestamp(day)) for day in ("2020-01-01", "2020-01-02")]
    found = read({"pandas.Interval": [*days, "both"]})
    assert found == pd.Interval(pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02"), "both")
    assert read({"set": [{"Decimal": "1E+999999999"}, 1]}) == {decimal.Decimal("1E+999999999"), 1}
    assert read({"datetime": "2020-01-01T00:00:00+00:00"}).utcoffset() == datetime.timedelta(0)
    with np.errstate(all="raise"):
        assert read(_array("<f4", [1], [1e300])).tolist() == [np.inf]


# --- memory and time


_NESTED = [[]]
for _ in range(60):
    _NESTED = [_NESTED]


@pytest.mark.parametrize(
    "document",
    [
        [[]] * 4_000,
        [[0, 0]] * 4_000,
        {"dict": [[i, 0] for i in range(4_000)]},
        {"set": list(range(4_000))},
        {"tuple": [{"tuple": []}] * 2_000},
        [_array("<U30", [1], ["a"])] * 400,
        [_array("|O", [1], [0])] * 400,
        [{"int": "9" * 4000}] * 20,
        [{"Decimal": "9" * 4000}] * 20,
        [_NESTED] * 100,
        "\U0001f600" * 10_000,
    ],
    ids=lambda document: str(document)[:30],
)
@pytest.mark.parametrize("write", [write_json, write_ubjson])
def test_memory_is_a_small_multiple_of_the_file(document, write):
    data = write({"v": document})
    limit, most = 50 * len(data) + 2**17, math.inf
    for _ in range(5):  # what other threads allocate meanwhile is counted, and only adds to it
        if most > limit:
            tracemalloc.start()
            try:
                read(parse_document(data, "")["v"])
                most = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
    assert most < limit
