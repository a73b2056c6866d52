"""Survival times in the forms that users give them."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBSurvivalLite, survival_targets
from sklboost.estimators.input.survival_targets import SurvivalTargets, read_survival, with_fields
from sklboost.estimators.parameters.kinds import SurvivalParameters

pytestmark = pytest.mark.interpreted

EVENT, TIME = [True, False, True], [3.0, 5.0, 1.0]
Y = survival_targets(EVENT, TIME)
INF = np.inf


def check_is_y(records):
    assert records.dtype.names == ("lower", "upper", "entry_time")
    assert_array_equal(records["lower"], TIME)
    assert_array_equal(records["upper"], [3.0, INF, 1.0])
    assert_array_equal(records["entry_time"], [-INF] * 3)


@pytest.mark.parametrize(
    "y",
    [
        Y,
        np.array(list(zip(EVENT, TIME, strict=True)), [("died", "?"), ("days", "i4")]),
        Y.view(np.recarray),
        pd.DataFrame({"died": EVENT, "days": TIME}),
        pl.DataFrame({"died": EVENT, "days": TIME}),
        survival_targets(np.array([1, 0, 1]), [3, 5, 1]),
        survival_targets(lower=TIME, upper=[3, INF, 1]),
        np.column_stack([TIME, [3, INF, 1]]),
        [3, -5, 1],
        np.array([3, -5, 1], dtype=np.int8),
        ["3", "-5", "1"],
    ],
    ids=lambda y: type(y).__name__,
)
def test_forms(y):
    check_is_y(read_survival(y, "y", "XGBSurvivalLite"))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_columns_that_say_what_they_are_have_any_order(frame):
    flags = np.array(EVENT)
    forms = [
        {"event": flags.astype(int), "time": TIME},
        {"time": TIME, "event": flags.astype(float)},
        {"days": TIME, "died": flags},  # bool
        {"tte": TIME, "Status": flags.astype(np.uint8)},
        {"upper": [3.0, INF, 1.0], "lower": TIME},
    ]
    for columns in forms:
        check_is_y(read_survival(frame(columns), "y", "XGBSurvivalLite"))
        record = np.rec.fromarrays([*map(np.asarray, columns.values())], names=[*columns])
        check_is_y(read_survival(record, "y", "XGBSurvivalLite"))
    y = read_survival(frame({"stratum": ["a", "b", "a"], **forms[1]}), "y")
    assert y["stratum"].tolist() == ["a", "b", "a"]


def test_a_column_of_numbers():
    with pytest.warns(UserWarning, match="column-vector y was passed"):
        check_is_y(read_survival(np.array([[3.0], [-5.0], [1.0]]), "y", "XGBSurvivalLite"))


def test_bounds():
    y = read_survival(survival_targets(lower=[-INF, 0, 2], upper=[3, 4, 2]), "y")
    assert_array_equal(y["lower"], [0, 0, 2])


def test_entry_times_and_strata():
    y = survival_targets(EVENT, TIME, entry_time=[0, 2, -1], strata=["a", "b", "a"])
    assert y.dtype.names == ("event", "time", "entry_time", "stratum")
    assert_array_equal(y["stratum"], ["a", "b", "a"])
    joined = with_fields(read_survival(Y, "y"), [0, 2, -1], ["a", "b", "a"])
    assert_array_equal(read_survival(y, "y"), joined)
    for given in (dict(entry_time=[0, 2, 0], strata=None), dict(entry_time=None, strata=[1, 2, 1])):
        with pytest.raises(ValueError, match=r"is given, and y has the field .*: give it once"):
            with_fields(joined, **given)
    with pytest.raises(ValueError, match=r"strata has shape \(2,\): it must be 1-D, one for each"):
        with_fields(read_survival(Y, "y"), None, [1, 2])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        ([1, 0, 2], r"y\[1\]=0: 0 is neither positive, .* nor negative"),
        ([1.0, np.nan], "y contains NaN"),
        ([1.0, INF], "y contains infinity"),
        (["a", "b"], "holds text, such as 'a'"),
        (
            np.array([[1, 3.0], [0, 5.0]]),
            "nothing but 0 and 1: if these are events, pass sklboost.s",
        ),
        (np.ones((2, 3)), r"y has shape \(2, 3\): targets are a frame or a structured"),
        (np.array([[3.0, 2.0]]), "upper bound of y.0.=2: it is below the lower bound"),
        (np.array([[3.0, np.nan]]), "upper bound of y.0.=nan: leave out rows"),
        (np.array([[-3.0, 2.0]]), "lower bound of y.0.=-3: times are finite and >= 0"),
        (np.array([[INF, INF]]), "lower bound of y.0.=inf: times are finite"),
        (
            np.array([(True, -1.0)], [("a", "?"), ("b", "f8")]),
            "^b of y.0.=-1: times are finite and",
        ),
        (
            pd.DataFrame({"time": TIME, "Censored": EVENT}),
            r"field 'Censored', and True is an event here: .*event=~y\['Censored'\], time=y",
        ),
        (np.array([(True, np.nan)], [("a", "?"), ("b", "f8")]), "b of y.0.=nan: times are finite"),
        (np.array([(False, INF)], [("a", "?"), ("b", "f8")]), "b of y.0.=inf: times are finite"),
        (np.array([(True, "x")], [("a", "?"), ("b", "U1")]), "b of y .*(text|dtype)"),
        (
            np.array([(1, 3.0)], [("a", "i8"), ("b", "f8")]),
            "'b'.* not clear which .* if it is 'a', ",
        ),
        (np.array([(1, True)], [("event", "i8"), ("time", "?")]), "not clear which of them is the"),
        (
            np.array([(True, True)], [("event", "?"), ("other", "?")]),
            "other of y has dtype bool: ti",
        ),
        (
            [[3.0, 1], [5.0, 0]],
            r"y\[:, 1\] has nothing but 0 and 1: .*event=y\[:, 1\], time=y\[:, 0",
        ),
        (
            pd.DataFrame({"status": [1, 2], "time": [3, 4]}),
            r"status of y\[1\]=2: it must be True, .* 1 is censored and 2 an event.*event == 2",
        ),
        (
            np.array([(True, 1.0, 2)], [("a", "?"), ("b", "f8"), ("c", "i8")]),
            r"fields \['c'\]: bes",
        ),
        (
            np.array([(True, 1.0, 1.0)], [("a", "?"), ("b", "f8"), ("entry_time", "f8")]),
            r"entry_time of y\[0\]=1: a row is observed from before its time on",
        ),
    ],
    ids=str,
)
def test_what_is_no_target(y, message):
    with pytest.raises(ValueError, match=message):
        read_survival(y, "y", "XGBSurvivalLite")
    with pytest.raises(ValueError, match=message):
        XGBSurvivalLite().fit(np.zeros((len(y) if y is not None else 1, 1)), y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"survival_targets got \[\]: give event and time, or lower and upper"),
        (dict(event=[True], lower=[1]), r"got \['event', 'lower'\]: give"),
        (dict(event=[2], time=[1.0]), "it must be True, or 1, for an event, else False or 0"),
        (dict(event=["yes"], time=[1.0]), "^event holds text, such as 'yes': events are True or"),
        (dict(event=[1, 0, 7] * 99, time=np.ones(297)), r"^event\[2\]=7: it must be True"),
        (dict(event=[True], time=[-1.0]), "=-1: times are finite and >= 0"),
        (dict(event=[True], time=[1.0, 2.0]), "inconsistent numbers of samples"),
        (dict(event=[[True]], time=[1.0]), r"event of survival_targets has shape \(1, 1\)"),
        (dict(event=pd.array([True, None]), time=[1.0, 2.0]), r"^event has no value in 1 row"),
        (dict(lower=[2], upper=[1]), "it is below the lower bound"),
        (
            dict(event=[True, True], time=[1.0, 2.0], strata=[1.0, np.nan]),
            r"^strata has no value in 1 row\(s\), the first is row 1: every row needs the label",
        ),
        (dict(event=[True], time=[1.0], strata=[None]), "^strata has no value .* row 0: every"),
        (
            dict(event=[True, True], time=[1.0, 2.0], strata=np.array([1, "a"], object)),
            "strata: labels must have an order",
        ),
        (dict(event=[True], time=[1.0], entry_time=[np.nan]), "^entry_time has no value in 1"),
    ],
)
def test_what_survival_targets_refuses(given, message):
    with pytest.raises(ValueError, match=message):
        survival_targets(**given)


def learn(y):
    return SurvivalTargets.learn(read_survival(y, "y"), np.empty(0), SurvivalParameters())


def test_encoded_and_decoded():
    y = survival_targets(EVENT, TIME, entry_time=[0, 2, -1], strata=["b", "a", "b"])
    targets = learn(y)
    code = targets.encode(read_survival(y, "y"), "y")
    assert_array_equal(code, [[3, 3, 0, 1], [5, INF, 2, 0], [1, 1, -1, 1]])
    assert_array_equal(targets.decode(code), y)
    assert_array_equal(targets.times, [1, 3, 5])
    bounds = survival_targets(lower=[1, 2], upper=[2, INF])
    assert_array_equal(
        learn(bounds).decode(learn(bounds).encode(read_survival(bounds, "y"), "y")), bounds
    )
    assert_array_equal(learn(Y).decode(learn(Y).encode(read_survival(Y, "y"), "y")), Y)


def test_strata_are_those_of_the_fit():
    with_strata = survival_targets(EVENT, TIME, strata=[1, 2, 1])
    with pytest.raises(ValueError, match="y has no strata, and y of the fit some: give both, or"):
        learn(with_strata).encode(read_survival(Y, "y"), "y")
    with pytest.raises(ValueError, match="y has strata, and y of the fit none"):
        learn(Y).encode(read_survival(with_strata, "y"), "y")
    others = read_survival(survival_targets(EVENT, TIME, strata=[1, 3, 1]), "y")
    with pytest.raises(ValueError, match=r"no rows of, 3: they .*; the strata are \[1, 2\]"):
        learn(with_strata).encode(others, "y")
