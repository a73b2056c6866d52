"""Targets that are missing or no numbers: found before scikit-learn has a look."""

import re
import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.utils.multiclass import check_classification_targets

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features, survival_targets
from sklboost.estimators.input.rows import row_values
from sklboost.estimators.input.targets import (
    check_labels,
    distinct_labels,
    label_numbers,
    places_among,
)

X = np.arange(6.0)[:, np.newaxis]
TEXT = ["a", "b", None, "a", "b", None]
COUNTS = [1, 0, None, 1, 0, None]


@pytest.mark.parametrize(
    "y",
    [
        TEXT,
        np.array(TEXT, dtype=object),
        pd.Series(TEXT, dtype="category"),
        pd.DataFrame({"y": TEXT}),
        pl.Series(TEXT),
        pa.array(TEXT),
        COUNTS,
        pd.Series(COUNTS, dtype=object),
        np.array([np.datetime64("NaT") if v is None else v for v in COUNTS], dtype=object),
    ],
    ids=lambda y: type(y).__name__,
)
def test_labels_that_are_missing(y):
    words = r"^y has no value in 2 row\(s\), the first is row 2: leave out rows without a target$"
    with pytest.raises(ValueError, match=words):
        XGBClassifierLite(n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match=words.replace("^y", "^y of X_val")):
        XGBClassifierLite(n_estimators=1).fit(X, [0, 1] * 3, X_val=X, y_val=y)


def with_two(value, rows=(2, 4), dtype=np.float64):
    y = np.array([0, 1, 0, 1, 0, 1], dtype=dtype)
    y[list(rows)] = value
    return y


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBClassifierLite])
@pytest.mark.parametrize(
    "y",
    [
        with_two(np.nan, dtype=np.float32),
        with_two(np.nan)[:, np.newaxis],
        with_two(np.nan).tolist(),
        pd.Series(with_two(np.nan)),
    ],
    ids=lambda y: type(y).__name__,
)
def test_floats_that_are_missing(estimator, y):
    model = estimator(n_estimators=1)
    words = "contains NaN: there is no value in 2 row(s), the first is row 2; leave out rows witho"
    with pytest.raises(ValueError, match=re.escape(f"Input y {words}")):
        model.fit(X, y)
    with pytest.raises(ValueError, match=re.escape(f"Input y {words}")):
        model.fit(bin_features(X), y)
    with pytest.raises(ValueError, match=re.escape(f"Input y of X_val {words}")):
        model.fit(X, [0, 1] * 3, X_val=X, y_val=y)
    with pytest.raises(ValueError, match=re.escape(f"Input y of eval_set[1] {words}")):
        model.fit(X, [0, 1] * 3, eval_set=[(X, [0, 1] * 3), (X, y)])


@pytest.mark.parametrize(
    ("estimator", "value", "dtype"),
    [(XGBRegressorLite, np.inf, "float32"), (XGBClassifierLite, -np.inf, "float64")],
)
def test_floats_that_are_infinite(estimator, value, dtype):
    y = with_two(value, dtype=dtype)
    words = f"contains infinity or a value too large for dtype('{dtype}'): in 2 row(s), the first"
    with pytest.raises(ValueError, match=re.escape(f"Input y {words} is row 2;")):
        estimator(n_estimators=1).fit(X, y)
    with pytest.raises(ValueError, match=re.escape(f"Input y of X_val {words} is row 2;")):
        estimator(n_estimators=1).fit(X, [0, 1] * 3, X_val=X, y_val=y)


def test_numbers_that_are_missing_or_infinite_among_others():
    for y in (COUNTS, np.array(COUNTS, dtype=object)):
        with pytest.raises(
            ValueError, match=r"^y has no value in 2 row\(s\), the first is row 2: "
        ):
            XGBRegressorLite(n_estimators=1).fit(X, y)
    y = np.array([1, 2.5, float("-inf"), 4, 5, 6], dtype=object)
    with pytest.raises(ValueError, match=r"^Input y contains infinity .* row 2; targets are"):
        XGBRegressorLite(n_estimators=1).fit(X, y)
    y = np.column_stack([with_two(np.nan), with_two(np.inf, rows=[5])])
    words = "contains infinity or a value too large for dtype('float64'): in 1 row(s), the first is"
    with pytest.raises(ValueError, match=re.escape(f"Input y {words} row 5, column 1;")):
        XGBRegressorLite(n_estimators=1).fit(X, y)


def test_sums_of_targets_may_overflow():
    largest = np.full(6, 1e38, dtype=np.float32)
    with np.errstate(all="raise"), pytest.raises(ValueError, match="y contains 1e"):
        XGBRegressorLite(n_estimators=1).fit(X, np.full(6, 1e308))
    with pytest.raises(ValueError, match=r"y contains 1e\+38: targets beyond 1e\+30"):
        XGBRegressorLite(n_estimators=1).fit(X, largest)


DAYS = np.datetime64("2020-01-01") + np.arange(6)


@pytest.mark.parametrize(
    "y",
    [
        DAYS,
        DAYS - DAYS[0],
        [date(2020, 1, 1 + i) for i in range(6)],
        [timedelta(days=i) for i in range(6)],
        pd.Series(DAYS).dt.tz_localize("UTC"),
        pl.Series(DAYS),
    ],
    ids=lambda y: type(y).__name__,
)
def test_times_are_no_numbers(y):
    with pytest.raises(ValueError, match=r"^y holds times, such as .*: targets are numbers; subtr"):
        XGBRegressorLite(n_estimators=1).fit(X, y)
    XGBClassifierLite(n_estimators=1).fit(X, np.repeat(DAYS[:2], 3))  # but may be labels


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series, pa.array])
def test_text_is_for_classifiers(make):
    y = make(["low", "high"] * 3)
    with pytest.raises(
        ValueError, match=r"^y holds text, such as 'low': targets are numbers; labels are"
    ):
        XGBRegressorLite(n_estimators=1).fit(X, y)
    assert set(XGBClassifierLite(n_estimators=1).fit(X, y).classes_) == {"low", "high"}


def test_what_is_left_to_scikit_learn():
    for y in ([[1.0, np.nan]], np.zeros((3, 2)), ["1", "2"], [], csr_array(np.eye(2))):
        row_values(y, "y", "targets")


@pytest.mark.parametrize("form", [str, "S", object, np.dtypes.StringDType()], ids=str)
def test_written_numbers(form):
    def written(y):
        return np.array(y).astype(str).astype(form)

    y = [0.5, 1.25, -3.0, 0.0, 2.0, 7.0]
    plain, model = (
        XGBRegressorLite(n_estimators=2).fit(X, given, X_val=X, y_val=given)
        for given in (y, written(y))
    )
    assert model.predict(X).tolist() == plain.predict(X).tolist()
    assert model.evals_result_ == plain.evals_result_
    assert model.score(X, written(y)) == plain.score(X, y)
    times = survival_targets(event=[True] * 3, time=written(y[3:]))["time"]
    assert times.tolist() == y[3:]
    for wrong, words in (
        (np.nan, "Input y contains NaN: .* row 4;"),
        ("x", "y holds text, such as"),
    ):
        with pytest.raises(ValueError, match=f"^{words}"):
            model.fit(X, written([*y[:4], wrong, 1.0]))


RECORDS = np.array([(1.0, 2), (3.0, 4)], dtype=[("a", "f8"), ("b", "i8")])


@pytest.mark.parametrize(
    "given", [5.0, np.array(5.0), "text", {0: 1.0}, {1.0, 2.0}, iter([1.0]), {0: 1}.values()]
)
def test_what_has_no_entry_for_each_row(given):
    words = f"is .*, of type {type(given).__name__}: it must have an entry for each row; pass an "
    for numeric in (True, False):
        with pytest.raises(TypeError, match=f"^y of X_val {words}"):
            row_values(given, "y of X_val", "targets", numeric=numeric)
    with pytest.raises(TypeError, match=f"^y {words}"):
        XGBRegressorLite(n_estimators=1).fit(X, given)
    with pytest.raises(TypeError, match=f"^time {words}"):
        survival_targets(event=[True], time=given)


@pytest.mark.parametrize("given", [RECORDS, np.ma.array(RECORDS, mask=[(False, True)] * 2)])
def test_records_are_no_values(given):
    for model in (XGBRegressorLite(n_estimators=1), XGBClassifierLite(n_estimators=1)):
        with pytest.raises(
            TypeError, match=r"^y is an array of records with the fields \['a', 'b'"
        ):
            model.fit([[0.0], [1.0]], given)


def test_labels_among_classes_of_another_dtype():
    # float64 has only the first of these
    large = np.array([2**60, 2**60 + 1])
    assert places_among(large, np.array([2.0**60, 0.5])).tolist() == [0, -1]
    assert places_among(large, large[::-1].astype(np.uint64)).tolist() == [1, 0]
    days = np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]")
    hours = days[1:].astype("M8[ns]") + np.arange(2) * np.timedelta64(1, "h")
    assert places_among(days, hours).tolist() == [1, -1]
    # times are no numbers, though Python has numbers for those of nanoseconds
    numbers, times = hours.view(np.int64), hours
    for classes, labels in [(times, numbers), (numbers, times), (times, numbers.astype(object))]:
        assert places_among(classes, labels).tolist() == [-1, -1]
    # as the validation data of a fit
    model = XGBClassifierLite(n_estimators=1, eval_metric="error", min_child_weight=0)
    model.fit(X, large[[0, 1] * 3], X_val=X, y_val=np.full(6, 2.0**60))
    share = np.mean(model.predict(X) != 2**60)
    assert 0 < share == model.evals_result_["validation_0"]["error"][0]
    assert model.score(X, np.full(6, 2.0**60)) == 1 - share
    assert model.score(X, np.full((6, 1), 2.0**60 + 2**10)) == 0


def labels_of(kind, n_labels):
    numbers = np.arange(n_labels) - n_labels // 2
    if kind == "times":
        return np.datetime64("2026-01-01", "D") + numbers
    return numbers.astype(str).astype({"text": "U", "bytes": "S", "objects": "O"}.get(kind, kind))


@pytest.mark.parametrize(
    ("kind", "n_labels", "order"),
    [
        ("int64", 1, "mixed"),
        ("int64", 2, "late"),
        ("int16", 10, "mixed"),
        ("int16", 11, "late"),
        ("float", 3, "sorted"),
        ("text", 2, "mixed"),
        ("text", 300, "late"),
        ("bytes", 10, "sorted"),
        ("objects", 3, "late"),
        ("objects", 11, "mixed"),
        ("times", 300, "mixed"),
    ],
)
def test_labels_and_their_numbers(kind, n_labels, order):
    numbers = np.random.default_rng(0).integers(0, n_labels, 2**18 + 3000)
    if order == "late":  # in both blocks of rows, behind those that are sorted
        numbers %= max(1, n_labels - 1)
        numbers[[200_000, -3]] = n_labels - 1
    elif order == "sorted":
        numbers.sort()
    y = labels_of(kind, n_labels)[numbers]
    labels, expected = np.unique(y, return_inverse=True)
    found = distinct_labels(y)
    assert found.dtype == labels.dtype
    assert found.tolist() == labels.tolist()
    codes = label_numbers(y, found)
    assert codes.dtype == (np.uint8 if len(labels) <= 256 else np.int64)
    np.testing.assert_array_equal(codes, expected)
    assert distinct_labels(y[:0]).tolist() == []


def test_labels_of_another_dtype_have_the_same_numbers():
    labels = np.array([0, 1])
    for y in (
        np.array([False, True, True]),
        np.array([0, 1, 1], np.int8),
        np.array([0.0, 1.0, 1.0]),
    ):
        assert distinct_labels(y).tolist() == [0, 1]
        assert label_numbers(y, labels).tolist() == [0, 1, 1]
    words = np.array(["no", "yes"])
    y = np.array(["yes", "no"], dtype=object)
    assert label_numbers(y, words).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("kind", "n_labels"),  # of 15,000 rows: few, under half, over half
    [("int64", 9000), ("float", 7000), ("text", 9000), ("bytes", 7000), ("objects", 3)],
)
def test_labels_of_many_rows_pass_the_check_of_scikit_learn(kind, n_labels):
    y = labels_of(kind, n_labels)[np.arange(15_000) % n_labels]

    def outcome(check):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                check(y)
            except (TypeError, ValueError) as error:
                return str(error)
        return [str(warning.message) for warning in caught]

    assert outcome(check_labels) == outcome(check_classification_targets)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        check_labels(np.arange(15_000) / 2)
