"""Categories in fits and predictions: declared or by dtype, levels by value, what changed since."""

import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from sklboost import (
    UnknownCategoryWarning,
    XGBClassifierLite,
    XGBRegressorLite,
    bin_features,
)
from tests.small_models import features

N = 300
SEED = np.random.default_rng(0)
NUMBERS = SEED.normal(size=N)
CITIES = SEED.choice(["Oslo", "Rome", "Bonn", "Bern"], N)
COUNTS = SEED.integers(0, 5, N)
DAYS = np.datetime64("2020-01-01") + SEED.integers(0, 900, N)
Y = NUMBERS + np.isin(CITIES, ["Oslo", "Bern"]) * 3 + COUNTS % 2


def make_frame(text=False):
    city = CITIES if text else pd.Categorical(CITIES)
    return pd.DataFrame({"x": NUMBERS, "city": city, "count": COUNTS, "day": DAYS})


def fitted(X, y=Y, **parameters):
    return XGBRegressorLite(n_estimators=5, n_jobs=1, **parameters).fit(X, y)


@pytest.fixture
def frame():
    return make_frame()


@pytest.fixture
def model(frame):
    return fitted(frame)


def test_levels_are_kept(model):
    assert list(model.categories_) == ["city"]
    assert list(model.categories_["city"]) == ["Bern", "Bonn", "Oslo", "Rome"]
    assert model.score(make_frame(), Y) > 0.8
    assert not hasattr(fitted(NUMBERS[:, np.newaxis]), "categories_")
    # of an earlier fit nothing is left
    assert not hasattr(model.fit(NUMBERS[:, np.newaxis], Y), "categories_")


def test_the_frame_s_own_codes_do_not_matter(frame, model):
    expected = model.predict(frame)
    for categories in (
        ["Rome", "Oslo", "Bern", "Bonn"],
        ["Aachen", "Rome", "Bonn", "Bern", "Oslo"],
    ):
        moved = frame.assign(city=frame["city"].cat.set_categories(categories))
        assert_array_equal(model.predict(moved), expected)
        assert_array_equal(fitted(moved).predict(frame), expected)
    assert_array_equal(model.predict(frame[["day", "city", "x", "count"]]), expected)
    assert_array_equal(model.predict(frame[5:6]), expected[5:6])


@pytest.mark.parametrize(
    "declared",
    [
        *(["count", "city"], pd.Index(["city", "count"]), {1, "count"}, [1, 2], np.array([2, 1])),
        [False, True, True, False],
    ],
)
def test_features_are_declared_by_name_number_or_mask(declared, frame):
    model = fitted(frame, categorical_features=declared)
    assert list(model.categories_) == ["city", "count"]
    assert list(model.categories_["count"]) == [0, 1, 2, 3, 4]


def test_columns_of_an_array_can_be_categories():
    X = np.column_stack([NUMBERS, COUNTS])
    model = fitted(X, categorical_features=[1])
    assert list(model.categories_) == [1]
    for other in (X.tolist(), X.astype(np.float32), X.astype(object), pd.DataFrame(X)):
        again = fitted(other, categorical_features=[1])
        assert_array_equal(again.predict(other), model.predict(other))
    with pytest.warns(UnknownCategoryWarning, match=r"column 1: 2 row\(s\), the first is 7"):
        model.predict([[0.0, 7.0], [0.0, 8.5], [0.0, 1.0]])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        (dict(enable_categorical=False), "^enable_categorical=False, .* column 'city' (category)"),
        (dict(categorical_features=None), "^categorical_features does not list .* column 'city'"),
        (dict(categorical_features=["count"]), "^categorical_features does not list .*'city'"),
        (
            dict(categorical_features=["town"]),
            "^categorical_features has 'town', .*: it has 'x', 'city', 'c",
        ),
        (dict(categorical_features=[4]), "^categorical_features has feature 4, .* 0 to 3"),
        (dict(categorical_features=[True]), "^categorical_features is a mask of 1, but X has 4"),
        (dict(monotone_constraints={"city": 1}), "^monotone_constraints has ['city'], but categor"),
    ],
)
def test_errors_of_the_parameters(parameters, words, frame):
    words = re.escape(words).replace(r"\^", "^").replace(r"\.\*", ".*")
    with pytest.raises(ValueError, match=words):
        fitted(frame, **parameters)


# --- unknown levels


def test_unknown_levels_count_as_missing(frame, model):
    city = frame["city"].astype(object)
    city[:3] = ["Paris", "Kiel", "Paris"]
    missing = frame.assign(city=pd.Categorical(city.where(city.index > 2, None)))
    expected = model.predict(missing)
    frame["city"] = pd.Categorical(city)
    words = r"^X has categories that .* column 'city': 3 row\(s\), the first is 'Paris' \(unknown"
    for method in (model.predict, model.apply, lambda X: model.score(X, Y)):
        with pytest.warns(UnknownCategoryWarning, match=words):
            method(frame)
    with pytest.warns(UnknownCategoryWarning) as caught:
        assert_array_equal(model.predict(frame), expected)
    assert caught[0].filename == __file__
    model.set_params(unknown_category="error")
    with pytest.raises(ValueError, match=r"^X has categories .*'Paris'. Leave these rows out, or"):
        model.predict(frame)
    with pytest.raises(ValueError, match=r"^X_val: X_val has categories that"):
        model.fit(make_frame(), Y, X_val=frame, y_val=Y)


def test_levels_of_rows_that_are_left_out_change_nothing(frame, model):
    weight = np.ones(N + 1)
    weight[-1] = 0
    more = pd.concat([frame.astype({"city": object}), frame[:1].assign(city="Paris")])
    with pytest.warns(UnknownCategoryWarning):  # though it is of no account
        other = fitted_with_weight(more.astype({"city": "category"}), weight)
    assert_array_equal(other.predict(frame), model.predict(frame))
    assert list(other.categories_["city"]) == list(model.categories_["city"])


def fitted_with_weight(X, weight):
    model = XGBRegressorLite(n_estimators=5, n_jobs=1)
    return model.fit(X, np.append(Y, 0.0), sample_weight=weight)


# --- categories that are not listed


FEW = SEED.integers(0, 4, N)
WITHOUT_DTYPE = pd.DataFrame({"A": FEW, "B": COUNTS, "x": NUMBERS})
WITH_DTYPE = WITHOUT_DTYPE.astype({"A": "category", "B": "category"})


@pytest.mark.parametrize("carried", [pd.DataFrame, pa.Table.from_pandas], ids=["pandas", "arrow"])
def test_categories_that_are_not_listed_are_numbers(carried):
    expected = fitted(WITHOUT_DTYPE, categorical_features=["A"])
    own = fitted(carried(WITH_DTYPE), categorical_features=["A"])
    assert list(own.categories_) == ["A"]
    for frame in (WITH_DTYPE, WITHOUT_DTYPE):
        assert_array_equal(own.predict(carried(frame)), expected.predict(WITHOUT_DTYPE))
    # by value, not by code
    turned = WITH_DTYPE.assign(B=WITH_DTYPE["B"].cat.reorder_categories([4, 3, 2, 1, 0]))
    assert_array_equal(own.predict(turned), expected.predict(WITHOUT_DTYPE))


@pytest.mark.parametrize("listed", [None, []])
def test_no_feature_is_a_category(listed):
    own = fitted(WITH_DTYPE, categorical_features=listed, early_stopping_rounds=2, random_state=0)
    plain = fitted(WITHOUT_DTYPE, early_stopping_rounds=2, random_state=0)
    assert not hasattr(own, "categories_")
    assert own.evals_result_ == plain.evals_result_
    assert_array_equal(own.predict(WITH_DTYPE), plain.predict(WITHOUT_DTYPE))


@pytest.mark.parametrize(
    "column", [COUNTS + 0.5, COUNTS > 2, np.where(COUNTS == 3, np.nan, COUNTS), COUNTS + 2**60]
)
def test_all_kinds_of_numbers_as_categories(column):
    plain = WITHOUT_DTYPE.assign(B=column)
    own = fitted(plain.astype({"B": "category"}), categorical_features=["A"])
    expected = fitted(plain, categorical_features=["A"])
    assert_array_equal(own.predict(plain.astype({"B": "category"})), expected.predict(plain))
    assert_array_equal(own.apply(plain), expected.apply(plain))


@pytest.mark.parametrize("column", [CITIES, pd.Categorical(CITIES, ordered=True), DAYS])
def test_text_that_is_not_listed_has_no_numbers(column):
    frame = WITH_DTYPE.assign(B=column).astype({"B": "category"})
    message = "does not list columns whose categories are not numbers: column 'B' .*List them, turn"
    with pytest.raises(ValueError, match=message):
        fitted(frame, categorical_features=["A"])
    with pytest.raises(ValueError, match="'B' held numbers at fit and holds categories"):
        fitted(WITH_DTYPE, categorical_features=["A"]).predict(frame)


def test_no_names_to_choose_from():
    message = "'A', but X has 3 features, f0 to f2: give these names, or the numbers 0 to 2"
    for parameters in (
        dict(categorical_features=["A"]),
        dict(monotone_constraints={"A": 1}),
        dict(interaction_constraints=[["A", "B"]]),
        dict(feature_weights={"A": 2.0}),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(WITHOUT_DTYPE.to_numpy(), **parameters)


# --- parameters that change after the fit


@pytest.mark.parametrize(
    "parameters",
    [
        dict(enable_categorical=False),
        dict(categorical_features=None),
        dict(categorical_features=["no such feature"]),
        dict(missing=3.0),
        dict(max_bin=3),
    ],
)
def test_what_a_fit_has_learnt_stays(parameters):
    for frame in (WITH_DTYPE, WITHOUT_DTYPE, WITHOUT_DTYPE.to_numpy()):
        model = fitted(frame)
        expected = model.predict(frame), model.shap_values(frame), model.apply(frame)
        model.set_params(**parameters)
        found = model.predict(frame), model.shap_values(frame), model.apply(frame)
        for ours, before in zip(found, expected, strict=True):
            assert_array_equal(ours, before)


# --- what changed since the fit


CHANGES = [
    (dict(city=COUNTS), ["'city' held categories at fit and holds numbers (int64)"]),
    (dict(x=pd.Categorical(CITIES)), ["'x' held numbers at fit and holds categories (category)"]),
    (dict(x=CITIES), ["'x' held numbers at fit and holds text"]),
    (dict(x=DAYS), ["'x' held numbers at fit and holds dates (datetime64"]),
    (dict(day=COUNTS), ["'day' held dates at fit and holds numbers (int64)"]),
    (dict(day=DAYS - DAYS[0]), ["'day' held dates at fit and holds durations (timedelta64"]),
    (
        dict(city=COUNTS, day=NUMBERS),
        ["'city' held categories", "'day' held dates at fit and holds numbers"],
    ),
]


@pytest.mark.parametrize(("changes", "words"), CHANGES)
def test_columns_of_another_kind_are_named(changes, words, frame, model):
    changed = frame.assign(**changes)
    words = "\n".join(f"column {re.escape(own)}.*" for own in words)
    with pytest.raises(ValueError, match=f"^{words}$"):
        model.predict(changed)
    with pytest.raises(ValueError, match=f"^X_val: {words}$"):
        XGBRegressorLite(n_estimators=1).fit(frame, Y, X_val=changed, y_val=Y)
    with pytest.raises(ValueError, match=f"^{words}$"):
        XGBRegressorLite(n_estimators=1).fit(changed, Y, init_model=model)


def test_text_is_matched_with_a_category_of_text(frame, model):
    """A frame read from a file once more has text where fit had categories."""
    expected = model.predict(frame)
    text = frame.assign(city=CITIES)
    assert_array_equal(model.predict(text), expected)
    assert_array_equal(model.predict(pd.DataFrame(frame[:1].to_dict("records"))), expected[:1])
    with pytest.warns(UnknownCategoryWarning, match=r"'city': 1 row\(s\), the first is 'nowhere'"):
        model.predict(text[:1].assign(city="nowhere"))


def test_of_many_changes_the_first_are_listed():
    X = pd.DataFrame(np.zeros((4, 13)), columns=[f"c{i}" for i in range(13)])
    model = XGBRegressorLite(n_estimators=1).fit(X, [1, 2, 3, 4])
    with pytest.raises(ValueError, match=r"^column 'c0' held numbers") as caught:
        model.predict(X.astype(str))
    lines = str(caught.value).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 3 more columns"


def test_a_column_without_any_value_has_no_kind(frame, model):
    text = pd.array([None] * 3, dtype="str")
    categories = pd.Categorical([None] * 3)
    for nothing in ([None] * 3, [np.nan] * 3, [pd.NaT] * 3, text, categories):
        few = frame[:3].assign(city=nothing, day=nothing)
        assert np.isfinite(model.predict(few)).all()


# --- the ways of a fit


def test_bins_of_a_frame(frame, model):
    B = bin_features(frame)
    from_bins = fitted(B)
    assert list(from_bins.categories_["city"]) == list(model.categories_["city"])
    for X in (frame, B, frame[::-1]):
        X_raw = frame if X is B else X
        assert_array_equal(from_bins.predict(X), model.predict(X_raw))
    declared = bin_features(make_frame(text=True), categorical_features=["city"])
    assert_array_equal(fitted(declared).predict(frame), model.predict(frame))
    assert B.binning.digest == bin_features(frame).binning.digest
    others = (
        bin_features(frame[:20]),
        bin_features(frame, categorical_features=["city", "count"]),
        bin_features(frame.assign(city=frame["city"].cat.rename_categories({"Oslo": "Moss"}))),
    )
    for other in others:
        with pytest.raises(ValueError, match="other cut points"):
            from_bins.predict(other)


def test_bins_and_parameters_must_agree(frame):
    B = bin_features(frame)
    for wrong in (
        dict(categorical_features=None),
        dict(categorical_features=["count"]),
        dict(enable_categorical=False),
    ):
        with pytest.raises(ValueError, match=r"binned with the categories \['city'\]"):
            fitted(B, **wrong)
    assert_array_equal(fitted(B, categorical_features=[1]).predict(B), fitted(B).predict(B))
    with pytest.raises(ValueError, match=r"^missing=-1, but X was binned with missing=nan"):
        fitted(B, missing=-1)
    marked = bin_features(frame, missing=-1)
    with pytest.raises(ValueError, match=r"^missing=nan, but X was binned with missing=-1"):
        fitted(marked)
    fitted(marked, missing=-1.0)


def test_holding_out_and_training_again(frame):
    y = (Y > 1).astype(int)
    settings = dict(early_stopping_rounds=2, subsample=0.7, refit=True, random_state=0)
    model, other = (
        XGBClassifierLite(n_estimators=30, **settings).fit(X, y)
        for X in (frame, pl.from_pandas(frame))
    )
    assert_array_equal(other.predict_proba(frame), model.predict_proba(frame))
    assert model.score(frame, y) > 0.85


def test_a_continued_model_keeps_its_levels(frame, model):
    few = frame["city"].isin(["Rome", "Oslo"]).to_numpy()
    more = XGBRegressorLite(n_estimators=3).fit(frame[few], Y[few], init_model=model)
    assert list(more.categories_["city"]) == list(model.categories_["city"])
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownCategoryWarning)
        more.predict(frame)
    first = more.predict(frame, iteration_range=(0, 5))
    assert_array_equal(first, model.predict(frame))
    with pytest.raises(ValueError, match="numbers its categories in another way"):
        XGBRegressorLite(n_estimators=3).fit(bin_features(frame[few]), Y[few], init_model=model)


# --- numbers that need an encoding, and values that count as missing


def test_missing_is_a_value_of_the_user_s():
    X = np.column_stack([NUMBERS, COUNTS])
    X[::7, 0] = X[::5, 1] = -999
    cleared = np.where(X == -999, np.nan, X)
    expected = fitted(cleared).predict(cleared)
    for own in (X, pd.DataFrame(X), X.tolist(), bin_features(X, missing=-999)):
        model = fitted(own, missing=-999)
        for rows in (own, X, cleared):
            assert_array_equal(model.predict(rows), expected)
    model.set_params(missing=np.nan)  # what the fit was told stays
    assert_array_equal(model.predict(X), expected)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)


def test_large_frames_are_not_copied(monkeypatch):
    X = pd.DataFrame({f"c{i}": np.zeros(70_000, np.float32) for i in range(2)})
    X["n"] = np.zeros(70_000, np.int8)
    model = XGBRegressorLite(n_estimators=1).fit(X[:50], np.arange(50))
    table = features(model, X[["n", "c1", "c0"]])
    assert table.dtype == np.float32
    assert [column.values.dtype for column in table.columns] == ["f4", "f4", "i1"]
