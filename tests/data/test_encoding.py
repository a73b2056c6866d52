"""What values become numbers by: learnt from one column, used for others."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal

from sklboost.data import encoding as module
from sklboost.data.cuts import exact_weights
from sklboost.data.encoding import Encoding, encode, fit_encoding
from sklboost.data.frames import adapter_for
from sklboost.data.frames.numpy_arrays import ArrayTable
from sklboost.data.table import Column

pytestmark = pytest.mark.interpreted

nan = np.nan


def floats_of(column):
    floats = np.empty(len(column.values))
    column.fill(floats)
    return floats


def table_of(values):
    """Return an adapter of one column."""
    if isinstance(values, np.ndarray):
        return ArrayTable(values[:, np.newaxis])
    if isinstance(values, pd.Series | pd.Categorical):
        return adapter_for(pd.DataFrame({"x": values}))
    return adapter_for(pl.DataFrame({"x": values}))


def learn(values, weight=None, missing=nan, is_declared=False):
    columns = table_of(values)
    weight = np.ones(columns.n_rows) if weight is None else np.array(weight, dtype=float)
    return fit_encoding(columns, 0, weight, missing, is_declared)


def numbers(encoding, values, missing=nan):
    """Encode a column; give the numbers, and what is unknown."""
    column, unknown = encode(table_of(values), 0, encoding, missing)
    return floats_of(column).tolist(), unknown


# --- categories


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical(["b", "a", None, "c", "b"], categories=["c", "q", "b", "a"]),
        pl.Series(["b", "a", None, "c", "b"], dtype=pl.Enum(["q", "c", "a", "b"])),
        np.array(["b", "a", None, "c", "b"], dtype=object),
        pd.Series(["b", "a", None, "c", "b"]),
    ],
    ids=["pandas", "polars", "objects", "text"],
)
def test_levels_are_numbered_in_their_own_order(values):
    encoding = learn(values, is_declared=True)
    assert encoding.kind == "category"
    assert list(encoding.categories) == ["a", "b", "c"]  # and not q, which no row has
    assert encoding.n_categories == 3
    found, unknown = numbers(encoding, values)
    assert_array_equal(found, [1, 0, nan, 2, 1])
    assert unknown is None


def test_levels_of_rows_without_weight_are_not_known():
    values = pd.Categorical(["a", "b", "c", "b"])
    encoding = learn(values, weight=[1, 0, 2, 0])
    assert list(encoding.categories) == ["a", "c"]
    found, unknown = numbers(encoding, values)
    assert_array_equal(found, [0, nan, 1, nan])
    assert (unknown.rows.tolist(), unknown.first) == ([1, 3], "b")


def test_unknown_levels_are_missing_and_listed():
    encoding = learn(pd.Categorical(["a", "b"]))
    found, unknown = numbers(encoding, pd.Categorical(["y", "b", None, "z", "y"]))
    assert_array_equal(found, [nan, 1, nan, nan, nan])
    assert (unknown.rows.tolist(), unknown.first) == ([0, 3, 4], "y")
    # a category that no row has is not missed
    found, unknown = numbers(encoding, pd.Categorical(["b"], categories=["z", "b"]))
    assert found == [1]
    assert unknown is None


@pytest.mark.parametrize(
    "values",
    [
        np.array([2, 1, 3]),
        np.array([2.0, 1.0, 3.0]),
        np.array([2, 1, 3], dtype=np.uint8),
        pd.Categorical([2, 1, 3]),
        np.array([2, True, 3.0], dtype=object),
    ],
)
def test_levels_that_are_numbers_are_matched_by_value(values):
    encoding = learn(np.array([3, 2, 1, 5]), is_declared=True)
    assert list(encoding.categories) == [1, 2, 3, 5]
    assert numbers(encoding, values) == ([1, 0, 2], None)
    assert_array_equal(learn(values, is_declared=True).categories.astype(float), [1, 2, 3])


def test_levels_that_floats_cannot_tell_apart():
    ids = np.array([2**63 + 5, 1, 2**63, 2**53 + 1], dtype=np.uint64)
    encoding = learn(ids, is_declared=True)
    assert encoding.categories.tolist() == [1, 2**53 + 1, 2**63, 2**63 + 5]
    assert numbers(encoding, ids) == ([3, 0, 2, 1], None)


def test_levels_of_times_are_matched_by_value():
    days = np.array(["2020-01-02", "NaT", "2020-01-01"], dtype="datetime64[D]")
    encoding = learn(days, is_declared=True)
    found, _ = numbers(encoding, days.astype("datetime64[us]"))
    assert_array_equal(found, [1, nan, 0])


def test_levels_of_several_types_have_an_order():
    values = np.array(["b", 10, "a", 9.5, (1, 2), None], dtype=object)
    assert list(learn(values, is_declared=True).categories) == [9.5, 10, "a", "b", (1, 2)]

    class Thing:
        """Has no order, but a name."""

        def __init__(self, name):
            self.name = name

        def __repr__(self):
            return self.name

    things = [Thing("y"), Thing("x")]
    assert list(learn(np.array(things), is_declared=True).categories) == things[::-1]


def test_a_value_that_counts_as_missing_is_no_level():
    encoding = learn(np.array([-9, 1, 2, -9]), missing=-9, is_declared=True)
    assert list(encoding.categories) == [1, 2]
    found, unknown = numbers(encoding, np.array([2, -9]), missing=-9.0)
    assert_array_equal(found, [1, nan])
    assert unknown is None


def test_rare_categories_share_a_code(monkeypatch):
    monkeypatch.setattr(module, "MOST_CATEGORIES", 3)
    values = np.array(list("abcdeccd"), dtype=object)
    encoding = learn(values, weight=[1, 2, 1, 1, 2, 1, 1, 1], is_declared=True)
    # c has the weight 3, of b, d and e with 2 the first; the code 2 is for all others
    assert encoding.codes.tolist() == [2, 0, 1, 2, 2]
    assert encoding.n_categories == 3
    assert numbers(encoding, values)[0] == [2, 0, 1, 2, 2, 1, 1, 2]
    # a factor of the weights, which rounds them, changes nothing
    for factor in np.exp(np.random.default_rng(0).uniform(-9, 9, 20)):
        weight = exact_weights(factor * np.array([3.0, 1, 2, 9, 1]))
        scaled = learn(np.array(list("bddca"), dtype=object), weight, is_declared=True)
        assert scaled.codes.tolist() == [2, 0, 1, 2]
    # as many as there may be
    assert learn(np.array(["c", "a", "b"], dtype=object), is_declared=True).n_categories == 3
    assert module.encode(table_of(values), 0, encoding, nan)[0].is_short


def test_nothing_but_missing_values():
    encoding = learn(pd.Categorical([None, None]))
    assert encoding.kind == "category"
    assert encoding.n_categories == 0
    assert_array_equal(numbers(encoding, pd.Categorical([None]))[0], [nan])


# --- numbers


@pytest.mark.parametrize("dtype", ["?", "i1", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_numbers_are_as_they_are(dtype):
    values = np.array([1, 0, 1], dtype=dtype)
    encoding = learn(values)
    assert encoding.is_plain
    column, unknown = encode(table_of(values), 0, encoding, nan)
    assert np.shares_memory(column.values, values)
    assert column.missing is None
    assert unknown is None


def test_a_value_can_count_as_missing():
    values = np.array([4, -1, 5, -1])
    encoding = learn(values, missing=-1)
    assert encoding.is_plain
    assert_array_equal(numbers(encoding, values, missing=-1)[0], [4, nan, 5, nan])
    floats = np.array([nan, 1.5, -1.0])
    assert_array_equal(numbers(encoding, floats, missing=-1)[0], [nan, 1.5, nan])
    nullable = pd.Series([4, None, -1], dtype="Int8")
    assert_array_equal(numbers(encoding, nullable, missing=-1)[0], [4, nan, nan])


LARGE = 2**60


def test_integers_beyond_float64_become_ranks():
    values = np.array([LARGE + 2, LARGE, LARGE + 1, LARGE + 5])
    encoding = learn(values)
    assert not encoding.is_plain
    assert encoding.n_categories == 0
    assert numbers(encoding, values)[0] == [2, 0, 1, 3]
    others = np.array([LARGE - 1, LARGE + 3, LARGE + 4, LARGE + 6, 0])
    assert numbers(encoding, others)[0] == [-0.5, 2.5, 2.5, 3.5, -0.5]
    assert numbers(encoding, others.astype(np.uint64))[0] == [-0.5, 2.5, 2.5, 3.5, -0.5]
    assert_array_equal(numbers(encoding, np.array([2.0**60, nan, 2e60]))[0], [0, nan, 3.5])
    assert numbers(encoding, np.array([True, False]))[0] == [-0.5, -0.5]
    # float64 holds these, and those of no weight are not asked
    assert learn(values[1:2]).is_plain
    assert learn(values, weight=[0, 1, 0, 0]).is_plain
    masked = pd.Series([LARGE, None, 5], dtype="Int64")
    assert learn(masked).is_plain


def test_the_largest_integers_become_ranks():
    values = np.array([2**64 - 1, 2**64 - 2, 3], dtype=np.uint64)
    encoding = learn(values)
    assert numbers(encoding, values)[0] == [2, 1, 0]
    assert numbers(encoding, np.array([3, -1]))[0] == [0, -0.5]
    lowest = np.array([-(2**63), -(2**63) + 1])
    assert numbers(learn(lowest), lowest)[0] == [0, 1]


# --- times


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_is_the_coarsest_that_holds_all(unit):
    days = np.array(["2020-01-03", "1969-12-30", "NaT"], dtype="datetime64[D]")
    encoding = learn(days.astype(f"datetime64[{unit}]"))
    assert encoding.unit == learn(days).unit == "datetime64[D]"
    column, _ = encode(table_of(days.astype(f"datetime64[{unit}]")), 0, encoding, nan)
    assert_array_equal(floats_of(column), [18264, -2, nan])
    ends = days.astype(f"datetime64[{unit}]") + np.timedelta64(3, unit)
    assert learn(ends).unit == f"datetime64[{unit}]"
    # rows without weight have no say
    assert learn(ends, weight=[0, 0, 1]).unit == "datetime64[D]"
    waits = (days - days[0]).astype(f"timedelta64[{unit}]")
    assert learn(waits).unit == "timedelta64[D]"


def test_times_are_counted_in_the_unit_of_the_fit():
    hours = np.array(["2020-01-01T05", "NaT", "2020-01-01T07"], dtype="datetime64[h]")
    encoding = learn(hours)
    assert (encoding.kind, encoding.unit) == ("time", "datetime64[h]")
    first = int(hours[0].astype(int))
    expected = [first, nan, first + 2]
    for unit in ("h", "m", "s", "ns"):
        assert_array_equal(numbers(encoding, hours.astype(f"datetime64[{unit}]"))[0], expected)
    half = hours.astype("datetime64[m]") + np.timedelta64(30, "m")
    assert_array_equal(numbers(encoding, half)[0], [first + 0.5, nan, first + 2.5])
    days = np.array(["2020-01-01"], dtype="datetime64[D]")
    assert numbers(encoding, days)[0] == [first - 5]


MOST = 2.0**63 - 1024  # that 64 bits can say
OF_A_DAY = dict(ms=8.64e7, us=8.64e10, ns=8.64e13, ps=8.64e16, fs=MOST, D=1, h=24, m=1440)
OF_A_DAY |= {"as": MOST, "s": 86_400}


@pytest.mark.parametrize(
    ("unit", "known_as", "length", "of_a_day"),
    [
        *((unit, unit, 1, n) for unit, n in OF_A_DAY.items()),
        ("25s", "s", 25, 86_400),
        ("W", "D", 7, 1),
    ],
)
def test_durations_in_every_unit_of_numpy(unit, known_as, length, of_a_day):
    counts = np.array([0, 4, -2, 3])
    durations = counts.astype(f"timedelta64[{unit}]")
    encoding = learn(durations)
    assert encoding.unit == f"timedelta64[{known_as}]"
    assert numbers(encoding, durations)[0] == (counts * length).tolist()
    days = np.array([0, 1]).astype("timedelta64[D]")
    assert numbers(encoding, days)[0] == [0, of_a_day]


@pytest.mark.parametrize("unit", ["Y", "M", "D"])
def test_years_and_months_are_days(unit):
    years = np.array(["2020", "NaT", "1969"], dtype="datetime64[Y]").astype(f"datetime64[{unit}]")
    encoding = learn(years)
    assert encoding.unit == "datetime64[D]"
    assert_array_equal(numbers(encoding, years)[0], [18262, nan, -365])
    assert learn(np.array(["NaT"], dtype="datetime64")).unit == "datetime64[D]"


def test_times_that_nanoseconds_cannot_tell_apart_are_no_categories():
    far = np.array(["9999-12-31", "2020-01-01"], dtype="datetime64[D]")
    with pytest.raises(ValueError, match=r"^9999-12-31 is a value of a category: times as cat"):
        learn(far, is_declared=True)
    assert numbers(learn(far), far)[0] == [2932896, 18262]


def test_times_far_away_stay_far_away():
    encoding = learn(np.array(["2020-01-01T00:00:00.000000512"], dtype="datetime64[ns]"))
    far = np.array(["9999-01-01", "0001-01-01"], dtype="datetime64[s]")
    late, early = numbers(encoding, far)[0]
    assert late > 9.2e18
    assert early < -9.2e18


def test_times_beyond_float64_become_ranks():
    first = np.datetime64("2020-01-01T00:00:00.000000001")
    values = first + np.arange(4).astype("timedelta64[ns]")
    encoding = learn(values)
    assert numbers(encoding, values)[0] == [0, 1, 2, 3]
    second = np.array(["2020-01-01T00:00:01", "2020-01-01"], dtype="datetime64[s]")
    assert numbers(encoding, second)[0] == [3.5, -0.5]
    # of finer times some lie between two ranks
    late = np.datetime64("2260-01-01T00:00:00.000001") + np.arange(2).astype("timedelta64[us]")
    encoding = learn(late)
    assert len(encoding.ranks) == 2
    finer = late[1:].astype("datetime64[ns]")
    assert numbers(encoding, np.concatenate([finer, finer + 1, finer - 1]))[0] == [1, 1.5, 0.5]


# --- and back

DAY = np.array(["2020-01-01", "2020-01-04", "2020-01-07"], dtype="datetime64[ns]")
LOW, HIGH = np.iinfo(np.int64).min, np.iinfo(np.uint64).max
KNOWN = {
    "ids": LARGE + np.array([0, 10, 30]),
    "the lowest and small ones": np.array([LOW, LOW + 1, 3, 5]),
    "unsigned": np.array([0, HIGH - 9, HIGH - 2], dtype=np.uint64),
    "days": DAY,
    "seconds": DAY + np.array([0, 1, 30]) * np.timedelta64(1, "s"),
    "microseconds": DAY + np.array([0, 1, 30]) * np.timedelta64(1, "us"),
    "nanoseconds": DAY[0] + np.array([1, 4, 9]) * np.timedelta64(1, "ns"),
    "hours": np.array([-5, 4, 9], dtype="timedelta64[h]").astype("timedelta64[ns]"),
    "spans of nanoseconds": (2**53 + np.array([0, 4, 5])).view("timedelta64[ns]"),
    "beyond nanoseconds": np.array(["3000-01-01", "3000-01-02"], dtype="datetime64[s]"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_thresholds_divide_values_as_they_divide_numbers(name):
    known = KNOWN[name]
    encoding = learn(known)
    places = np.array(numbers(encoding, known)[0])
    for threshold in np.concatenate([(places[1:] + places[:-1]) / 2.0, places[1:]]):
        value = encoding.threshold(float(threshold))
        # also for what no row of the fit has: next to the threshold, and halfway to it
        if isinstance(value, int):
            others = [value - 1, value, min(value + 1, np.iinfo(known.dtype).max)]
            rows = np.array([*known.tolist(), *others], dtype=known.dtype)
            expected = [row < value for row in rows.tolist()]
        else:
            step = np.timedelta64(1, "s" if "beyond" in name else "ns")
            near = value + step * np.array([-(10**9), -100, -1, 0, 1, 100, 10**9])
            rows = np.concatenate([known.astype(near.dtype), near])
            expected = rows < value
        assert_array_equal(np.array(numbers(encoding, rows)[0]) < threshold, expected)


def test_texts_of_times_are_in_their_zone_and_unit():
    zone = learn(pd.Series(DAY).dt.tz_localize("Europe/Berlin"))
    assert zone.timezone == "Europe/Berlin"
    assert [zone.text_of_number(18262.0 * 24 + own) for own in (-1, 0.5)] == [
        *("2020-01-01T00:00+01:00", "2020-01-01T01:30+01:00")
    ]
    summer = zone.threshold(18444.0 * 24)  # 1 July 2020, 0 h in UTC
    assert zone.text(summer) == "2020-07-01T02:00+02:00"
    shifted = learn(pd.Series(DAY).dt.tz_localize("UTC-03:30"))
    assert shifted.text_of_number(numbers(shifted, DAY[:1])[0][0]) == "2019-12-31T20:30-03:30"
    assert learn(KNOWN["hours"]).text_of_number(4.5) == "4.5 hours"
    # what is read of files cannot ask for anything but a zone
    odd = Encoding("time", "datetime64[h]", timezone="../../etc/passwd")
    assert odd.text_of_number(0.0) == "1970-01-01T00:00+00:00"
    ids = learn(KNOWN["ids"])
    assert ids.text_of_number(0.5) == f"between {LARGE} and {LARGE + 10}"
    assert (ids.text_of_number(-0.5), ids.text_of_number(2.5)) == (
        *(f"below {LARGE}", f"above {LARGE + 30}"),
    )
    assert Encoding().text(20240101123456.5) == "20240101123456.5"


# --- which columns fit


def test_kinds_that_fit():
    number, time = Encoding(), Encoding("time", "datetime64[ns]")
    category, declared = Encoding("category"), Encoding("category", is_declared=True)
    text = Encoding("category", categories=np.array(["a"], dtype=object), codes=np.array([0]))
    assert number.fits("number", "")
    assert not number.fits("category", "")
    assert time.fits("time", "datetime64[s]")
    assert not time.fits("time", "timedelta64[s]")
    assert text.fits("category", "")
    assert not text.fits("number", "")
    for any_values in (declared, category):  # none that is known: all are unknown
        for kind in ("number", "text", "mixed", "category", "time"):
            assert any_values.fits(kind, "")
        assert not any_values.fits("unsupported", "")


def test_categories_are_matched_by_value_in_columns_of_the_kinds_that_values_have():
    for categories, kinds in (
        (["b", None, "a"], {"text", "mixed"}),
        ([None, None], {"text", "mixed", "number", "time"}),
        ([1, 2], {"text", "mixed", "number"}),
        ([0.5, None], {"text", "mixed", "number"}),
        ([True, False], {"text", "mixed", "number"}),
        (["b", 1], {"text", "mixed", "number"}),
        (pd.to_datetime(["2024-01-31"]), {"text", "mixed", "time"}),
    ):
        known = learn(pd.Categorical(categories))
        every = ("text", "mixed", "number", "time", "unsupported")
        assert {kind for kind in every if known.fits(kind, "")} == kinds
    assert not learn(np.array([1.0])).fits("text", "")


def test_a_column_without_any_value_is_missing_whatever_its_dtype():
    nothing = pd.Series([None, None], dtype="str")
    plain = learn(nothing)
    assert plain.is_plain
    for encoding in (plain, learn(np.array(["2020-01-01"], dtype="M8[D]"))):
        for values in (nothing, pd.Categorical([None, None]), pd.Series([pd.NaT] * 2)):
            assert_array_equal(numbers(encoding, values)[0], [nan, nan])


def test_copies_and_words():
    encoding = learn(np.array(["b", "a"], dtype=object), is_declared=True)
    copied = pickle.loads(pickle.dumps(encoding))
    assert repr(copied) == repr(encoding)
    assert numbers(copied, np.array(["a", "b"], dtype=object)) == ([0, 1], None)
    assert repr(learn(np.array(["b", "c"], dtype=object), is_declared=True)) != repr(encoding)
    assert repr(Encoding()) != repr(Encoding("time", "datetime64[ns]"))
    assert isinstance(encode(table_of(np.ones(2)), 0, Encoding(), nan)[0], Column)
