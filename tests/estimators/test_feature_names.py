"""Columns by name: put in order, or an error that lists what does not fit."""

import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.estimators.input.feature_names import order_of_fit
from tests.small_models import features

pytestmark = pytest.mark.interpreted

# "select" and "columns" are attributes of a pandas frame that has such columns
NAMES = ["select", "b", "columns", "Ä"]
FITTED = np.array(NAMES, dtype=object)
VALUES = np.random.default_rng(0).normal(size=(30, 4))
FRAMES = {
    "pandas": lambda values, names: pd.DataFrame(values, columns=names),
    "polars": lambda values, names: pl.DataFrame(values, schema=names),
    "pyarrow": lambda values, names: pa.table(dict(zip(names, values.T, strict=True))),
}
ORDER = [2, 0, 3, 1]
YEARS = [2019, 2020, 2021, 2022]
HEADINGS = pd.MultiIndex.from_product([["a", "b"], ["x", "y"]])


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]


@pytest.fixture
def model(frame):
    return XGBRegressorLite(n_estimators=3).fit(frame(VALUES, NAMES), VALUES @ [1, 2, 4, 8])


def moved(frame, order=ORDER):
    return frame(VALUES[:, order], [NAMES[i] for i in order])


def test_columns_in_another_order_are_put_right(frame, model):
    assert list(model.feature_names_in_) == NAMES
    assert_array_equal(model.predict(moved(frame)), model.predict(frame(VALUES, NAMES)))
    assert_array_equal(model.apply(moved(frame)), model.apply(frame(VALUES, NAMES)))
    one_row = frame(VALUES[:1, ORDER], [NAMES[i] for i in ORDER])
    assert_array_equal(model.predict(one_row), model.predict(frame(VALUES[:1], NAMES)))
    # it was no accident: the order does matter
    with pytest.warns(UserWarning, match="valid feature names"):
        assert not np.array_equal(model.predict(VALUES[:, ORDER]), model.predict(moved(frame)))


def test_the_kind_of_frame_may_change(model):
    expected = model.predict(FRAMES["pandas"](VALUES, NAMES))
    for other in FRAMES.values():
        assert_array_equal(model.predict(moved(other)), expected)


@pytest.mark.parametrize("names", [YEARS, HEADINGS, [0, 1, 2, 3]], ids=["years", "two", "counted"])
def test_names_that_are_not_strings_are_names(names):
    X = pd.DataFrame(VALUES, columns=names)
    model = XGBRegressorLite(n_estimators=3).fit(X, VALUES @ [1, 2, 4, 8])
    expected = model.predict(X)
    assert not hasattr(model, "feature_names_in_")  # scikit-learn has strings there
    assert_array_equal(model.predict(X.iloc[:, ORDER]), expected)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X.iloc[:, ORDER]), expected)
    assert_array_equal(model.predict(VALUES), expected)
    assert_array_equal(model.predict(pd.DataFrame(VALUES)), expected)


def test_names_that_are_not_strings_have_to_be_those_of_the_fit():
    X = pd.DataFrame(VALUES, columns=YEARS)
    model = XGBRegressorLite(n_estimators=1).fit(X, VALUES[:, 0])
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- 2023\n.*now missing:\n- 2019\n"):
        model.predict(X.rename(columns={2019: 2023}))
    with pytest.raises(ValueError, match=r"^X has the features \[2022, .*continue with the same"):
        XGBRegressorLite(n_estimators=1).fit(X.iloc[:, ::-1], VALUES[:, 0], init_model=model)
    binned = XGBRegressorLite(n_estimators=1).fit(bin_features(X), VALUES[:, 0])
    assert bin_features(X).feature_names_in_ is None
    assert_array_equal(binned.predict(X.iloc[:, ORDER]), model.predict(X))
    # nothing is left of the names of an earlier fit
    model.fit(VALUES, VALUES[:, 0])
    assert_array_equal(model.predict(X.iloc[:, ::-1]), model.predict(VALUES[:, ::-1]))


# the categories of a column are not looked for in another: that would warn of them
@pytest.mark.filterwarnings("error")
def test_columns_in_another_order_are_named_before_they_are_read_as_others():
    kinds = {
        "number": VALUES[:, 0],
        "city": pd.Categorical(["Graz", "Oslo", "Graz", "Rome", "Oslo"] * 6),
        "code": pd.Categorical(["a", "b", "c", "b", "a"] * 6),
        "day": pd.date_range("2026-01-01", periods=len(VALUES)),
    }
    X = pd.DataFrame(kinds)
    model = XGBRegressorLite(n_estimators=1, warm_start=True).fit(X, VALUES[:, 0])
    for order in (["city", "number", "code", "day"], ["number", "code", "city", "day"]):
        words = r"^X has the features \['.*continue with the same features, in the same order$"
        for more, given in ((model, {}), (XGBRegressorLite(), {"init_model": model})):
            with pytest.raises(ValueError, match=words):
                more.fit(X[order], VALUES[:, 0], **given)


def test_no_values_are_copied():
    X = pd.DataFrame(VALUES, columns=NAMES)
    model = XGBRegressorLite(n_estimators=1).fit(X, VALUES[:, 0])
    memory, before = X.to_numpy(), X.copy()
    assert np.shares_memory(features(model, X), memory)
    # in pandas itself the order of columns cannot be changed without a copy
    model.feature_names_in_ = FITTED[ORDER]
    in_order = features(model, X)
    assert_array_equal(in_order.values(), VALUES[:, ORDER])
    assert all(np.shares_memory(column.values, memory) for column in in_order.columns)
    pd.testing.assert_frame_equal(X, before)  # the user's frame is left as it was


def test_missing_and_unseen_columns_are_all_listed(frame):
    names = [f"column {i:02}" for i in range(20)]
    values = np.tile(VALUES, 5)
    model = XGBRegressorLite(n_estimators=1).fit(frame(values, names), VALUES[:, 0])
    missing = "Feature names seen at fit time, yet now missing:\n" + "".join(
        f"- {name}\n" for name in names[:12]
    )
    unseen = "Feature names unseen at fit time:\n- new 0\n- new 1\n- new 2\n"
    for given, expected in [
        (names[12:], missing),
        ([*names, "new 2", "new 0", "new 1"], unseen),
        ([*names[:11:-1], "new 1", "new 2", "new 0"], unseen + missing),
    ]:
        head = "^The feature names should match those that were passed during fit.\n"
        with pytest.raises(ValueError, match=head + re.escape(expected) + "$"):
            model.predict(frame(np.zeros((2, len(given))), given))


def test_columns_of_the_same_name():
    twice = pd.DataFrame(VALUES, columns=list("abbc"))
    assert order_of_fit(twice, list("abbc")) == range(4)
    for fitted in ("babc", "abcc", "abc"):
        with pytest.raises(ValueError, match=r"^columns \['b'.*\] occur more than once"):
            order_of_fit(twice, list(fitted))
    for given in (twice, twice.set_axis([0, 1, 1, 2], axis=1)):
        with pytest.raises(ValueError, match=r"more than one column of the name ('b'|1): give"):
            XGBRegressorLite(n_estimators=1).fit(given, VALUES[:, 0])


def test_names_on_one_side_only_warn_as_scikit_learn_does(frame, model):
    expected = model.predict(frame(VALUES, NAMES))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but XGBRegressorL"):
        assert_array_equal(model.predict(VALUES), expected)
    check_one_warning(model, VALUES[:1])
    assert_array_equal(model.predict(VALUES, validate_features=False), expected)
    unnamed = XGBRegressorLite(n_estimators=3).fit(VALUES, VALUES @ [1, 2, 4, 8])
    named = pd.DataFrame(VALUES, columns=NAMES)
    with pytest.warns(UserWarning, match="X has feature names, but XGBRegressorLite was fitted wi"):
        assert_array_equal(unnamed.predict(named), expected)


def check_one_warning(model, rows):
    """It names this line of code, and is told once for it, as warnings are for users."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            model.predict(rows)
    assert [Path(warning.filename) for warning in caught] == [Path(__file__)]


@pytest.mark.parametrize(
    "rows",
    [
        VALUES[:1].tolist(),
        VALUES[:2].astype(int),
        VALUES[:3].astype(object),
        np.tile(VALUES, 2)[::2, ::2],
        VALUES[:1].astype(">f8"),
        csr_array(VALUES[:2]),
    ],
    ids=["list", "integers", "objects", "strided", "big-endian", "sparse"],
)
def test_every_form_without_names_warns_once_for_a_line(rows):
    named = pd.DataFrame(VALUES, columns=NAMES)
    model = XGBRegressorLite(n_estimators=1).fit(named, VALUES[:, 0])
    check_one_warning(model, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(rows, validate_features=False)


def test_errors_name_the_argument():
    frame = pd.DataFrame(VALUES, columns=NAMES)
    model = XGBRegressorLite(n_estimators=1).fit(frame, VALUES[:, 0])
    assert_array_equal(features(model, moved(FRAMES["pandas"]), "X_val").values(), VALUES)
    with pytest.raises(ValueError, match=r"^X_val: The feature names should .*\n.*\n- c\n"):
        features(model, frame.rename(columns={"b": "c"}), "X_val")
    with pytest.raises(TypeError, match=r"^eval_set\[0\]: Feature names are only supported"):
        features(model, pd.DataFrame(VALUES, columns=["select", "b", "columns", 4]), "eval_set[0]")
    with pytest.raises(ValueError, match=r"^X_val: <BinnedMatrix of 30 rows .* other cut points"):
        features(model, bin_features(VALUES), "X_val")
    unnamed = XGBClassifierLite(n_estimators=1).fit(VALUES, VALUES[:, 0] > 0)
    with pytest.raises(ValueError, match=r"^X_val: X has 2 features, but XGBClassifierLite is ex"):
        features(unnamed, VALUES[:, :2], "X_val")
    with pytest.raises(ValueError, match=r"^X has 2 features"):
        features(unnamed, VALUES[:, :2])
