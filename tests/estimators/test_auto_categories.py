"""``categorical_features="auto"``: columns become what they hold: categories, times, numbers."""

import datetime as dt
import enum
import pickle
import re
import uuid
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_score

from sklboost import (
    UnknownCategoryWarning,
    XGBClassifierLite,
    XGBRegressorLite,
    bin_features,
    bin_parquet,
    load_model,
)
from sklboost.data.dates import as_dates
from sklboost.data.frames.numpy_arrays import ObjectColumn

N_ROWS = 120
_rng = np.random.default_rng(0)
DAYS = [dt.date(2023, 11, 25) + dt.timedelta(days=int(k)) for k in _rng.integers(0, 99, N_ROWS)]
ISO_DAYS = [str(dt.date(2024, 1, 1) + dt.timedelta(days=k)) for k in range(N_ROWS)]
CITIES = _rng.choice(["Bonn", "Oslo", "Rome", None], N_ROWS).tolist()
SIZES = _rng.normal(size=N_ROWS).tolist()
OPEN = [bool(bit) for bit in _rng.integers(0, 2, N_ROWS)]
Y = np.array([len(city or "") for city in CITIES]) + np.array(SIZES) + np.array(OPEN)
Y += np.array([day.toordinal() % 30 for day in DAYS]) / 10

# As a file has them, and what they mean.
TEXT = {"city": CITIES, "day": [f"{day:%d/%m/%Y}" for day in DAYS], "open": OPEN, "size": SIZES}
MEANT = {"city": pd.Categorical(CITIES), "day": pd.to_datetime(DAYS), "open": pd.Categorical(OPEN)}
MEANT["size"] = SIZES

TABLES = {
    "pandas": pd.DataFrame(TEXT),
    "pandas, objects": pd.DataFrame(TEXT).astype({"city": object, "day": object, "open": object}),
    "pandas, Arrow": pd.DataFrame(TEXT).convert_dtypes(dtype_backend="pyarrow"),
    "pandas, nullable": pd.DataFrame(TEXT).astype({"city": "string", "open": "boolean"}),
    "polars": pl.DataFrame(TEXT),
    "Arrow": pa.table(TEXT),
    "dates": pd.DataFrame(TEXT | {"day": DAYS}),
    "times": pd.DataFrame(TEXT | {"day": [dt.datetime(*d.timetuple()[:3]) for d in DAYS]}),
    "ISO": pl.DataFrame(TEXT | {"day": [f"{day}T00:00:00" for day in DAYS]}),
    "declared": pd.DataFrame(MEANT),
}
SETTINGS = dict(n_estimators=6, max_depth=3)


def fitted(X, **parameters):
    return XGBRegressorLite(**SETTINGS, categorical_features="auto", **parameters).fit(X, Y)


@pytest.fixture(scope="module")
def expected():
    """What a fit on columns of the right dtypes predicts."""
    X = pd.DataFrame(MEANT)
    return XGBRegressorLite(**SETTINGS).fit(X, Y).predict(X)


@pytest.fixture(scope="module")
def model():
    return fitted(TABLES["pandas"])


@pytest.mark.parametrize("kind", TABLES)
def test_any_table_gives_the_model_of_the_right_dtypes(kind, model, expected):
    own = fitted(TABLES[kind])
    assert_array_equal(own.predict(TABLES[kind]), expected)
    assert_array_equal(model.predict(TABLES[kind]), expected)
    assert list(own.categories_) == ["city", "open"]
    assert list(own.feature_names_in_) == ["city", "day", "open", "size"]
    for other in TABLES.values() if kind == "pandas, Arrow" else ():
        assert_array_equal(own.predict(other), expected)


def test_an_array_and_a_list_have_columns_too(expected):
    rows = pd.DataFrame(TEXT).astype(object)
    for X in (rows.to_numpy(), rows.where(rows.notna(), None).to_numpy().tolist()):
        assert_array_equal(fitted(X).predict(X), expected)


def test_files_copies_searches_and_explanations(model, expected, tmp_path):
    X = TABLES["pandas"]
    model.save_model(tmp_path / "model.json", format="sklboost")
    for own in (load_model(tmp_path / "model.json"), pickle.loads(pickle.dumps(model))):
        assert_array_equal(own.predict(X), expected)
        assert own.get_params()["categorical_features"] == "auto"
    assert_array_equal(clone(model).fit(X, Y).predict(X), expected)
    assert model.get_score().keys() == set(X)
    values = model.shap_values(X)
    assert_array_equal(values, model.shap_values(pd.DataFrame(MEANT)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(model, {"max_depth": [1, 2]}, cv=3).fit(X, Y)
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    step = make_column_transformer(("passthrough", ["city", "day"]), remainder="passthrough")
    step.set_output(transform="pandas")
    renamed = step.fit_transform(X)
    assert_array_equal(clone(model).fit(renamed, Y).predict(renamed), expected)
    halves = model.fit(X, Y, X_val=TABLES["polars"], y_val=Y, verbose=False)
    assert_array_equal(halves.predict(X), expected)


def test_bins_and_files_of_parquet(expected, tmp_path):
    bins = bin_features(TABLES["polars"], categorical_features="auto")
    own = XGBRegressorLite(**SETTINGS).fit(bins, Y)
    assert_array_equal(own.predict(TABLES["pandas"]), expected)
    pq.write_table(pa.table(TEXT | {"y": Y}), tmp_path / "rows.parquet")
    bins, y = bin_parquet(tmp_path, target="y", categorical_features="auto")
    own = XGBRegressorLite(**SETTINGS).fit(bins, y)
    assert_array_equal(own.predict(TABLES["pandas"]), expected)


def test_a_preset_implies_it_unless_categories_are_given():
    X, target = TABLES["pandas"], np.median(Y) < Y
    settings = dict(n_estimators=3, max_depth=2, preset="auto", random_state=0, verbose=0)
    model = XGBClassifierLite(**settings).fit(X, target)
    assert list(model.categories_) == ["city", "open"]
    assert model.chosen_params_["categorical_features"] == "auto"
    again = clone(model).set_params(**model.chosen_params_, preset=None).fit(X, target)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for own in (["city"], "from_dtype"):  # what is set stays, also if it is the default
        with pytest.raises(ValueError, match="text is not a number: column"):
            XGBClassifierLite(**settings, categorical_features=own).fit(X, target)


# --- what becomes of a column


def column_read_as(values, dtype=None, **parameters):
    """Return what a column becomes: its kind, and what that has to say."""
    X = pd.DataFrame({"a": pd.Series(values, dtype=dtype)})
    (encoding,) = fitted(X.sample(N_ROWS, replace=True, random_state=0))._fitted.features.encodings
    return encoding.kind, encoding.unit or encoding.categories.tolist()


@pytest.mark.parametrize(
    ("values", "dtype", "kind", "meaning"),
    [
        (["07", "12"], None, "category", ["07", "12"]),  # numbers as text are text
        (["S", 38, None], object, "category", [38, "S"]),
        ([None, None], object, "category", []),
        ([None, None], "str", "category", []),
        ([True, None], object, "category", [True]),
        ([True, False], "boolean", "category", [False, True]),
        (["2024-01-31", "2024-02-29 06:00"], None, "time", "datetime64[h]"),
        (["2024-01-31", "soon", "late"], None, "category", ["2024-01-31", "late", "soon"]),
        (["31.1.2024", "1.2.2024"], None, "time", "datetime64[D]"),
        (["1/31/2024 9:30", "2/1/2024 19:30"], None, "time", "datetime64[m]"),
        ([dt.date(2024, 1, 31), None], object, "time", "datetime64[D]"),
        (["", "2024-01-31", "NaT"], None, "time", "datetime64[D]"),
        (["NaT", "", " "], None, "category", ["", " ", "NaT"]),
        ([dt.timedelta(hours=3), None, dt.timedelta(days=1)], object, "time", "timedelta64[h]"),
        ([pd.Timedelta("5ns"), dt.timedelta(1)], object, "time", "timedelta64[ns]"),
        ([dt.timedelta(hours=3), dt.timedelta(hours=5)], None, "time", "timedelta64[h]"),
        (["2024-01-31T12:00+02:00", "2024-01-31T10:00Z"], None, "time", "datetime64[h]"),
    ],
)
def test_what_a_column_becomes(values, dtype, kind, meaning):
    assert column_read_as(values, dtype) == (kind, meaning)


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ([*ISO_DAYS[:5], "soon"], "'soon'"),
        (["2024-02-30", "2024-02-28"], "'2024-02-30'"),
        (["soon", "late", "1.1.2024", "1.1.2024"], "'soon'"),  # half of the rows
        ([dt.date(2024, 1, 31), 7], "7"),
    ],
)
def test_a_fit_warns_of_dates_that_became_categories(values, first):
    with pytest.warns(UserWarning, match=f"column 'a': {first} is no date, and many other values"):
        model = fitted(pd.DataFrame({"a": values * (N_ROWS // len(values))}))
    assert "a" in model.categories_


def test_a_column_without_values_is_not_refused_as_categories():
    X = pd.DataFrame({"a": SIZES, "b": [None] * N_ROWS})
    for settings in (
        dict(grow_policy="symmetric"),
        dict(enable_categorical=False),
        dict(monotone_constraints={"b": 1}),
    ):
        of_objects = fitted(X, **settings)
        of_floats = fitted(X.astype(float), **settings)
        assert_array_equal(of_objects.predict(X), of_floats.predict(X.astype(float)))


def test_a_fit_warns_of_objects_that_no_file_can_hold(tmp_path):
    kinds = enum.Enum("Kind", "A B")
    with pytest.warns(UserWarning, match="column 'a': .* is of type Kind, .*save_model will ref"):
        model = fitted(pd.DataFrame({"a": list(kinds) * 60}))
    with pytest.raises(ValueError, match="is of type Kind"):
        model.save_model(tmp_path / "model.json")
    bins = pd.cut(np.arange(N_ROWS), 3)
    hours = [dt.time(k % 3) for k in range(N_ROWS)]
    X = pd.DataFrame({"a": bins, "b": hours, "c": [uuid.UUID(int=k % 3) for k in range(N_ROWS)]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(X)
        model.save_model(tmp_path / "model.json")
        assert_array_equal(load_model(tmp_path / "model.json").predict(X), model.predict(X))


def test_objects_that_are_numbers_and_plain_columns_stay_numbers():
    X = pd.DataFrame({"a": pd.Series([1, 2.5] * 60, dtype=object), "b": 0, "c": np.nan})
    assert fitted(X)._fitted.features.encodings is None


def test_dates_with_a_time_zone_are_instants():
    text = ["2024-01-31T12:00+02:00", "2024-01-31T12:00-03:30", "2024-01-31T10:00:00.25Z"]
    times, _, unit = as_dates(ObjectColumn(np.array(text, dtype=object))).times()
    told = [dt.datetime.fromisoformat(own).timestamp() * 1e6 for own in text]
    assert unit == "datetime64[us]"
    assert times.tolist() == told
    X = pd.DataFrame({"a": text * 40})
    model = fitted(X)
    for zone in ("UTC", "Europe/Berlin"):
        instants = pd.to_datetime(X["a"], format="ISO8601", utc=True).dt.tz_convert(zone)
        assert_array_equal(model.predict(instants.to_frame()), model.predict(X))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            [f"user {k}" for k in range(N_ROWS)],
            "column 'a' (str) has 120 distinct values among 120, such as 'user 0': categories",
        ),
        ([f"{k}.5" for k in range(N_ROWS)], "convert it to numbers, as pandas.to_numeric does"),
        ([None, *(f"user {k}" for k in range(30))] + 89 * [None], "30 distinct values among 30"),
        (["1/2/2024", "2/1/2024"] * 60, "column 'a': dates such as '1/2/2024' have the month or"),
        (["1/1/2024", "2/2/2024"] * 60, "column 'a': dates such as '1/1/2024' have the month or"),
        (["unknown", *map(str, DAYS[1:])], "column 'a': 'unknown' is no date, and nearly all oth"),
        (["unknown"] * 50 + ISO_DAYS[:70], "column 'a': 'unknown' is no date, and nearly all oth"),
        ([*map(str, DAYS[1:]), "2024-02-30"], "column 'a': '2024-02-30' is no date, and nearly"),
        ([dt.date(2024, 1, 31)] * 119 + ["soon"], "column 'a': 'soon' is no date"),
        (
            [dt.timedelta(days=200_000), pd.Timedelta("5ns")] * 60,
            "column 'a': datetime.timedelta(days=200000) is too long to be counted in 'ns'",
        ),
        (
            [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-01-31", tz="UTC")] * 60,
            "column 'a': Timestamp('2024-01-31 00:00:00') and others are dates with a time zone",
        ),
        ([[1], [2]] * 60, "column 'a' (object, such as [1])"),
    ],
)
def test_what_is_refused_by_name(values, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        fitted(pd.DataFrame({"a": values}))


def test_few_distinct_values_are_categories_in_small_tables_and_with_weights():
    X = pd.DataFrame({"a": [f"user {k}" for k in range(20)]})
    weight = np.arange(20) % 2 + 1.0
    model = XGBRegressorLite(n_estimators=2, categorical_features="auto")
    assert len(model.fit(X, Y[:20], sample_weight=weight).categories_["a"]) == 20
    X = pd.DataFrame({"a": [f"user {k // 2}" for k in range(N_ROWS)]})
    assert len(model.fit(X, Y, sample_weight=1e6 * np.ones(N_ROWS)).categories_["a"]) == 60


def test_no_categories_are_wanted():
    with pytest.raises(ValueError, match="enable_categorical=False, but there are categories: col"):
        fitted(TABLES["pandas"], enable_categorical=False)
    dates = TABLES["pandas"][["day", "size"]]
    assert fitted(dates, enable_categorical=False)._fitted.features.encodings[0].kind == "time"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"day": "30/2/2024"}, "column 'day' held dates at fit, and '30/2/2024' is no date: give"),
        ({"day": "2/30/2024"}, "'2/30/2024' is no date"),
        ({"day": "soon"}, "'soon' is no date"),
        ({"city": 3}, "column 'city' held categories at fit and holds numbers"),
        ({"size": "large"}, "column 'size' held numbers at fit and holds text"),
    ],
)
def test_other_values_at_predict_are_named(model, changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        model.predict(TABLES["pandas"].assign(**changes))


def test_what_is_missing_or_unknown_at_predict(model):
    X = TABLES["pandas"]
    for name in ("city", "day", "open"):
        missing = X.assign(**{name: None})
        assert_array_equal(model.predict(missing), model.predict(pl.from_pandas(missing)))
    with pytest.warns(UnknownCategoryWarning, match="column 'city': 120 row"):
        unknown = model.predict(X.assign(city="Paris"))
    assert_array_equal(unknown, model.predict(X.assign(city=None)))
    empty = fitted(X.assign(city=None))  # text may come where there was none
    with pytest.warns(UnknownCategoryWarning):
        assert_array_equal(empty.predict(X), empty.predict(X.assign(city=None)))
    for late in (True, 3, 2.5, dt.datetime(2024, 1, 31)):  # and bools, numbers and dates, likewise
        with pytest.warns(UnknownCategoryWarning, match="column 'city': 120 row"):
            assert_array_equal(
                empty.predict(X.assign(city=late)), empty.predict(X.assign(city=None))
            )


def test_dates_of_a_dtype_take_text_in_the_order_of_the_standard(expected):
    """As JSON has them, whatever categorical_features is."""
    meant = pd.DataFrame(MEANT)
    model = XGBRegressorLite(**SETTINGS).fit(meant, Y)
    assert_array_equal(model.predict(meant.assign(day=list(map(str, DAYS)))), expected)
    assert_array_equal(model.predict(meant.assign(day=pd.Series(DAYS, dtype=object))), expected)
    with pytest.raises(ValueError, match=r"'day' held dates at fit, and '.*' is no date"):
        model.predict(meant.assign(day=TEXT["day"]))


def test_durations_as_objects_are_those_of_the_dtype():
    spans = pd.Series([dt.timedelta(hours=k % 7) for k in range(N_ROWS)])
    X, as_objects = spans.to_frame("a"), spans.astype(object).to_frame("a")
    model = fitted(as_objects)
    for own in (X, as_objects):
        assert_array_equal(model.predict(own), fitted(X).predict(X))
    with pytest.raises(ValueError, match=r"column 'a' held durations at fit, and datetime\.date"):
        model.predict(pd.DataFrame({"a": DAYS}))
    mixed = [dt.timedelta(days=200_000), pd.Timedelta("5ns")]
    with pytest.raises(ValueError, match=r"column 'a': .*days=200000.* is too long"):
        model.predict(pd.DataFrame({"a": pd.Series(mixed, dtype=object)}))
    with pytest.raises(ValueError, match="column 'a' held durations at fit and holds text"):
        model.predict(pd.DataFrame({"a": CITIES}))


def test_cross_validation_keeps_to_the_rows_of_each_fold():
    model = XGBRegressorLite(**SETTINGS, categorical_features="auto")
    scores = cross_val_score(model, TABLES["pandas"], Y, cv=4)
    meant = cross_val_score(XGBRegressorLite(**SETTINGS), pd.DataFrame(MEANT), Y, cv=4)
    assert_array_equal(scores, meant)
