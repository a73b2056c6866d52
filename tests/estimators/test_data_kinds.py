"""Every kind of table and dtype, with missing values or without: the same values, the same model.

And of what is given beside features, row by row: targets, weights, margins, queries, groups.

Each kind is fitted in one of the two ways, on complete columns or on those with missing values; all
kinds of all columns are read in tests/data/test_adapters.py.
"""

from functools import cache

import dask.dataframe as dd
import matplotlib.pyplot as plt
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from sklboost import (
    XGBClassifierLite,
    XGBDistributionLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    bin_features,
    check_loss,
    survival_targets,
)
from sklboost.data.frames.adapter import as_objects
from sklboost.displays import CalibrationDisplay
from tests.accepted_data import message
from tests.kinds_of_tables import CASES, REFUSALS, VALUES, rows_of, with_missing
from tests.small_models import small

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


# --- what is given beside features ---------------------------------------------------------------

N = 40
ROWS = np.random.default_rng(0).normal(size=(N, 3))
IS_HIGH = ROWS[:, 0] > 0.0
NUMBERS = np.round(ROWS[:, 0] + ROWS[:, 1], 2)
COUNTS = 1 + np.arange(N) % 4
WEIGHTS = COUNTS / 2
LARGE = 2**60 + IS_HIGH.astype(np.int64)  # two numbers that float64 makes one of
HUGE = 2**63 + IS_HIGH.astype(np.uint64)
TEXT = np.where(IS_HIGH, "high", "low").astype(object)
QUERIES = 2**60 + np.arange(N) // 10
BATCHES = np.array(["d", "a", "c", "b"], dtype=object)[np.arange(N) // 10]


def masked(values):
    is_missing = np.array([v is None for v in values])
    first = next(v for v in values if v is not None)
    return np.ma.MaskedArray([first if v is None else v for v in values], is_missing)


def scalar(value):
    return None if value is None else np.array(value)[()]


class Maker:
    """An array of a library that nobody knows."""

    def __init__(self, made):
        self.made = made

    def __array__(self, dtype=None, copy=None):
        return self.made


def nullable(values):
    dtype = "string" if any(isinstance(v, str) for v in values) else None
    return pd.Series(pd.array(values, dtype=dtype))


def arrow(values):
    is_huge = any(isinstance(v, int) and v >= 2**63 for v in values)
    return pa.array(values, pa.uint64() if is_huge else None)


def arrow_dtype(values):
    return pd.Series(pd.array(arrow(values), dtype=pd.ArrowDtype(arrow(values).type)))


# What each makes of Python values, None where there is none.
CONTAINERS = {
    "list": list,
    "objects": lambda values: np.array(values, dtype=object),
    "objects of NumPy": lambda values: as_objects([scalar(value) for value in values]),
    "objects, masked": lambda values: as_objects(
        [np.ma.masked if v is None else v for v in values]
    ),
    "masked": masked,
    "list of masked": lambda values: [np.ma.array(scalar(v), mask=v is None) for v in values],
    "what makes a masked array": lambda values: Maker(masked(values)),
    "pandas objects": lambda values: pd.Series(values, dtype=object),
    "pandas nullable": nullable,
    "pandas array": lambda values: nullable(values).array,
    "pandas Arrow": arrow_dtype,
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "polars": pl.Series,
    "narwhals": lambda values: nw.from_native(pl.Series(values), series_only=True),
    "Arrow": arrow,
    "Arrow in pieces": lambda values: pa.chunked_array([arrow(values[:7]), arrow(values[7:])]),
    "Dask": lambda values: dd.from_pandas(nullable(values), npartitions=3),
}


def learnt(kind, y=NUMBERS, X=ROWS, **arguments):
    """Return all that a fit learns, and what it measures on validation rows."""
    settings = {"early_stopping_rounds": 3, "random_state": 0} if "groups" in arguments else {}
    if kind is XGBRankerLite:
        arguments = {"qid": QUERIES, **arguments}
    model = kind(n_estimators=4, max_depth=2, n_jobs=1, **settings).fit(X, y, **arguments)
    classes = getattr(model, "classes_", np.empty(0))
    return [bits(model), model.evals_result_, classes.tolist(), classes.dtype.kind == "f"]


def validated(kind, y=NUMBERS, **arguments):
    """Return the same of rows that are their own validation rows, given in one way or the other."""
    if "eval_set" in arguments:
        arguments["eval_set"] = [(ROWS, arguments["eval_set"])]
    if any(name.endswith("_val") for name in arguments):
        arguments = {"X_val": ROWS, "y_val": y, **arguments}
    return learnt(kind, y, **arguments)


@cache
def fitted_to(kind, name):
    """Return a model to be asked, fitted to plain values of that name."""
    y = {"LARGE": LARGE, "NUMBERS": NUMBERS, "TEXT": TEXT, "EVENTS": EVENTS}[name]
    return kind(n_estimators=3, max_depth=2, n_jobs=1).fit(ROWS, y)


EVENTS = survival_targets(IS_HIGH, COUNTS, strata=BATCHES)
REGRESSOR, CLASSIFIER, SURVIVAL = XGBRegressorLite, XGBClassifierLite, XGBSurvivalLite
DISTRIBUTION = XGBDistributionLite


def calibration(y=NUMBERS, weight=None):
    plt.close()
    model = fitted_to(DISTRIBUTION, "NUMBERS")
    return CalibrationDisplay.from_estimator(model, ROWS, y, sample_weight=weight).coverage_


def shadows(**given):
    given = {"y": NUMBERS, "y_val": NUMBERS, **given}
    model = REGRESSOR(n_estimators=2, random_state=0)
    return model.validation_importances(ROWS, X_val=ROWS, n_repeats=1, **given).importances_mean


def explained(y=NUMBERS, **given):
    return str(fitted_to(REGRESSOR, "NUMBERS").explain_split(0, 0, ROWS, y, **given))


# Argument: plain values, what is made of them, the name in errors.
ARGUMENTS = {
    "numbers": (NUMBERS, lambda y: learnt(REGRESSOR, y), "y"),
    "large numbers": (LARGE, lambda y: learnt(REGRESSOR, y), "y"),
    "large labels": (LARGE, lambda y: learnt(CLASSIFIER, y), "y"),
    "huge labels": (HUGE, lambda y: learnt(CLASSIFIER, y), "y"),
    "truths": (IS_HIGH, lambda y: learnt(CLASSIFIER, y), "y"),
    "text": (TEXT, lambda y: learnt(CLASSIFIER, y), "y"),
    "y_val": (LARGE, lambda y: validated(CLASSIFIER, LARGE, y_val=y), "y of X_val"),
    "eval_set": (LARGE, lambda y: validated(CLASSIFIER, LARGE, eval_set=y), r"y of eval_set\[0\]"),
    "weights": (COUNTS, lambda w: learnt(REGRESSOR, sample_weight=w), "sample_weight"),
    "weights of validation rows": (
        WEIGHTS,
        lambda w: validated(REGRESSOR, sample_weight_val=w),
        "sample_weight of X_val",
    ),
    "margins": (NUMBERS, lambda m: learnt(REGRESSOR, base_margin=m), "base_margin"),
    "margins of validation rows": (
        NUMBERS,
        lambda m: validated(REGRESSOR, base_margin=NUMBERS, base_margin_val=m),
        "base_margin of X_val",
    ),
    "groups": (QUERIES, lambda g: learnt(REGRESSOR, groups=g), "groups"),
    "groups of text": (BATCHES, lambda g: learnt(REGRESSOR, groups=g), "groups"),
    "relevances": (COUNTS, lambda y: learnt(XGBRankerLite, y), "y"),
    "queries": (QUERIES, lambda q: learnt(XGBRankerLite, COUNTS, qid=q), "qid"),
    "queries of text": (BATCHES, lambda q: learnt(XGBRankerLite, COUNTS, qid=q), "qid"),
    "queries of validation rows": (
        QUERIES,
        lambda q: validated(XGBRankerLite, COUNTS, qid_val=q),
        "qid_val",
    ),
    "sizes of queries": (
        np.full(8, 5),
        lambda s: learnt(XGBRankerLite, COUNTS, qid=None, group=s),
        "group",
    ),
    "weights of queries": (
        np.repeat([1, 3, 2, 4], 10),
        lambda w: learnt(XGBRankerLite, COUNTS, sample_weight=w),
        "sample_weight",
    ),
    "signed times": (COUNTS * np.where(IS_HIGH, 1, -1), lambda y: learnt(SURVIVAL, y), "y"),
    "events": (IS_HIGH, lambda e: survival_targets(e, COUNTS).tolist(), "event"),
    "times": (COUNTS, lambda t: survival_targets(IS_HIGH, t).tolist(), "time"),
    "bounds": (COUNTS, lambda u: survival_targets(lower=COUNTS, upper=u).tolist(), "upper"),
    "entry times": (
        COUNTS - 1,
        lambda t: learnt(SURVIVAL, survival_targets(IS_HIGH, COUNTS), entry_time=t),
        "entry_time",
    ),
    "strata": (
        BATCHES,
        lambda s: learnt(SURVIVAL, survival_targets(IS_HIGH, COUNTS), strata=s),
        "strata",
    ),
    "weights of bins": (WEIGHTS, lambda w: bin_features(ROWS, 4, w).bins, "sample_weight"),
    "margins at prediction": (
        NUMBERS,
        lambda m: fitted_to(REGRESSOR, "NUMBERS").predict(ROWS, base_margin=m),
        "base_margin",
    ),
    "strata at prediction": (
        BATCHES,
        lambda s: fitted_to(SURVIVAL, "EVENTS").predict_survival_function(ROWS, True, strata=s),
        "strata",
    ),
    "score of labels": (LARGE, lambda y: fitted_to(CLASSIFIER, "LARGE").score(ROWS, y), "y"),
    "score of text": (TEXT, lambda y: fitted_to(CLASSIFIER, "TEXT").score(ROWS, y), "y"),
    "score of numbers": (NUMBERS, lambda y: fitted_to(REGRESSOR, "NUMBERS").score(ROWS, y), "y"),
    "score by weights": (
        COUNTS,
        lambda w: fitted_to(CLASSIFIER, "LARGE").score(ROWS, LARGE, w),
        "sample_weight",
    ),
    "score of regression by weights": (
        COUNTS,
        lambda w: fitted_to(REGRESSOR, "NUMBERS").score(ROWS, NUMBERS, w),
        "sample_weight",
    ),
    "score of distributions": (
        NUMBERS,
        lambda y: fitted_to(DISTRIBUTION, "NUMBERS").score(ROWS, y),
        "y",
    ),
    "pruning path": (
        NUMBERS,
        lambda y: REGRESSOR(max_depth=2).cost_complexity_pruning_path(ROWS, y).ccp_alphas,
        "y",
    ),
    "explained targets": (NUMBERS, lambda y: explained(y), "y of X"),
    "explained weights": (WEIGHTS, lambda w: explained(sample_weight=w), "sample_weight of X"),
    "checked targets": (NUMBERS, lambda y: check_loss("reg:squarederror", y), "y"),
    "calibrated targets": (NUMBERS, lambda y: calibration(y), "y"),
    "calibrated weights": (WEIGHTS, lambda w: calibration(weight=w), "sample_weight"),
    "shadows": (NUMBERS, lambda y: shadows(y_val=y), "y_val"),
    "shadows by weights": (WEIGHTS, lambda w: shadows(sample_weight_val=w), "sample_weight_val"),
}


@pytest.mark.parametrize("argument", ARGUMENTS)
def test_every_container_of_an_argument_is_as_good_as_an_array(argument):
    values, outcome, name = ARGUMENTS[argument]
    expected = outcome(values)
    gaps = values.tolist()
    gaps[1] = gaps[4] = None
    for kind, make in CONTAINERS.items():
        found = outcome(make(values.tolist()))
        np.testing.assert_equal(found, expected, kind)
        words = rf"^{name} has no value in 2 row\(s\), the first is row 1: "
        with pytest.raises(ValueError, match=words):
            outcome(make(gaps))


TWO = {"a": NUMBERS.tolist(), "b": [2 * int(high) for high in IS_HIGH]}
TABLES = {
    "lists": rows_of,
    "objects": lambda columns: np.array(rows_of(columns), dtype=object),
    "masked": lambda columns: np.ma.stack([masked(values) for values in columns.values()], axis=1),
    "masked rows": lambda columns: tuple(TABLES["masked"](columns)),
    "pandas": lambda columns: pd.DataFrame({k: nullable(v) for k, v in columns.items()}),
    "pandas Arrow": lambda columns: pd.DataFrame({k: arrow_dtype(v) for k, v in columns.items()}),
    "polars": pl.DataFrame,
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
    "Arrow": pa.table,
    "Dask": lambda columns: dd.from_pandas(TABLES["pandas"](columns), npartitions=3),
}


@pytest.mark.parametrize("kind", TABLES)
def test_several_columns_of_every_container(kind):
    make, regressor = TABLES[kind], XGBRegressorLite(n_estimators=4, n_jobs=1)
    gaps = {name: [None, *values[1:]] if name == "a" else values for name, values in TWO.items()}
    for columns in (TWO, gaps):
        y = np.array([[np.nan if v is None else v for v in row] for row in rows_of(columns)])
        given = make(columns)
        plain = regressor.fit(ROWS, y, X_val=ROWS, y_val=y)
        expected = [bits(plain), plain.evals_result_, plain.score(ROWS, y)]
        model = regressor.fit(ROWS, given, X_val=ROWS, y_val=given)
        assert [bits(model), model.evals_result_, model.score(ROWS, given)] == expected
    labels = {"a": IS_HIGH.tolist(), "b": (NUMBERS > 0.5).tolist()}
    y = np.array(rows_of(labels))
    plain, model = (small(XGBClassifierLite).fit(ROWS, given) for given in (y, make(labels)))
    assert_array_equal(model.predict(ROWS), plain.predict(ROWS))
    assert model.predict(ROWS).dtype == bool
    assert model.score(ROWS, make(labels)) == plain.score(ROWS, y)
    # each row has its raw scores
    plain = regressor.fit(ROWS, y, base_margin=np.array(rows_of(TWO)))
    expected = bits(plain), plain.predict(ROWS, base_margin=np.array(rows_of(TWO))).tolist()
    model = regressor.fit(ROWS, y, base_margin=make(TWO))
    assert (bits(model), model.predict(ROWS, base_margin=make(TWO)).tolist()) == expected
    if kind == "lists":
        return
    with pytest.raises(ValueError, match=r"^base_margin has no value in 1 row\(s\), .* column 0: "):
        regressor.fit(ROWS, y, base_margin=make(gaps))
    # and times of events have columns by their names
    if hasattr(type(make(TWO)), "columns"):
        events = {"event": IS_HIGH.tolist(), "time": COUNTS.tolist(), "stratum": BATCHES.tolist()}
        expected = learnt(XGBSurvivalLite, survival_targets(IS_HIGH, COUNTS, strata=BATCHES))
        assert learnt(XGBSurvivalLite, make(events)) == expected
        events["time"] = [None, *events["time"][1:]]
        with pytest.raises(ValueError, match=r"^time of y has no value in 1 row\(s\), .* row 0: "):
            learnt(XGBSurvivalLite, make(events))
