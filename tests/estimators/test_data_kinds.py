"""Every kind of table and dtype, with missing values or without: the same values, the same model.

Each kind is fitted in one of the two ways, on complete columns or on those with missing values; all
kinds of all columns are read in tests/data/test_adapters.py.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite, bin_features
from tests.accepted_data import message
from tests.kinds_of_tables import CASES, REFUSALS, VALUES, with_missing

SETTINGS = {"n_estimators": 3, "max_depth": 4, "min_child_weight": 0, "n_jobs": 1}
NODE_FIELDS = ["feature", "left", "right", "default_left", "gain", "cover", "value"]


def columns_of(what, missing):
    return with_missing(VALUES[what]) if missing else VALUES[what]


def as_ranks(columns):
    """Return the place of each value among the distinct ones of both columns; NaN: missing."""
    distinct = sorted({v for values in columns.values() for v in values if v is not None})
    places = {value: float(i) for i, value in enumerate(distinct)}
    return np.array([[places.get(v, np.nan) for v in values] for values in columns.values()]).T


def target(columns):
    """Depend on the order of both columns' values, and not smoothly."""
    a, b = np.nan_to_num(as_ranks(columns), nan=-9.5).T
    return 1.5 * a + 10.0 * (b % 2) + 7.0 * (a > 3) * (b > 2)


def is_category(case):
    return case.kind in ("category", "text")


def fitted(case, missing):
    columns = columns_of(case.values, missing)
    X = case.make(columns)
    declared = {"categorical_features": [0, 1]} if case.kind == "text" else {}
    return XGBRegressorLite(**SETTINGS, **declared).fit(X, target(columns)), X


@cache
def fitted_first(what, as_category, missing):
    """Fit the first case with these values: all others are to be as it is."""
    able = [case for case in CASES if case.missing or not missing]
    like_this = (c for c in able if c.values == what and is_category(c) == as_category)
    return fitted(next(like_this), missing)


@cache
def fitted_array(what, missing):
    """Fit ranks of the values, or the values themselves if float64 holds them, in a plain array."""
    columns = columns_of(what, missing)
    X = as_ranks(columns)
    if what in ("fractions", "integers", "counts", "truths"):
        values = [[np.nan if v is None else v for v in values] for values in columns.values()]
        X = np.array(values, dtype=float).T
    return XGBRegressorLite(**SETTINGS).fit(X, target(columns)), X


def bits(model, *further_fields):
    nodes = model.model_.nodes
    return [nodes[name].tobytes() for name in [*NODE_FIELDS, *further_fields]]


EACH_ONCE = [(case, bool(case.missing) and i % 2 == 0) for i, case in enumerate(CASES)]


@pytest.mark.parametrize(
    ("case", "missing"),
    EACH_ONCE,
    ids=[f"{case}-missing" if missing else str(case) for case, missing in EACH_ONCE],
)
def test_the_same_values_give_the_same_model(case, missing):
    model, X = fitted(case, missing)
    prediction = model.predict(X)
    first, X_of_first = fitted_first(case.values, is_category(case), missing)
    # thresholds between times are in their unit
    fields = [] if case.kind == "time" else ["threshold"]
    assert bits(model, *fields) == bits(first, *fields)
    if not is_category(case):
        plain, X_of_plain = fitted_array(case.values, missing)
        assert bits(model) == bits(plain)
        assert_array_equal(prediction, plain.predict(X_of_plain))
    # the one model predicts what the other was fitted on
    if isinstance(X_of_first, pd.DataFrame) or not hasattr(model, "feature_names_in_"):
        assert_array_equal(model.predict(X_of_first), prediction)
    # single rows and bins predict the same
    for i in (0, 7, 8):
        row = X.iloc[i : i + 1] if isinstance(X, pd.DataFrame) else X[i : i + 1]
        assert_array_equal(model.predict(row), prediction[i : i + 1])
    declared = {"categorical_features": [0, 1]} if case.kind == "text" else {}
    B = bin_features(X, **declared)
    binned = XGBRegressorLite(**SETTINGS).fit(B, target(columns_of(case.values, missing)))
    assert bits(binned, "threshold") == bits(model, "threshold")
    assert_array_equal(binned.predict(B), prediction)
    assert_array_equal(binned.predict(X), prediction)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.what)
def test_what_is_refused(refusal):
    X = refusal.make()
    words = message(refusal.make).partition(": ")[2]
    with pytest.raises((TypeError, ValueError)) as at_fit:
        XGBRegressorLite(**SETTINGS).fit(X, [1.0, 2.0])
    assert str(at_fit.value) == words
    with pytest.raises((TypeError, ValueError)) as of_bins:
        bin_features(X)
    assert str(of_bins.value) == words
