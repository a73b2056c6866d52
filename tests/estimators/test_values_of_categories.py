"""Categories that are numbers, however they are held at fit and however they are sent later.

JSON has 7 or 7.0, a column with missing values becomes one of floats, an array has one dtype for
all: the value is what counts. Every kind at fit is tried with every kind at predict, for bits.
"""

import datetime as dt
import json
import pickle
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline

from sklboost import UnknownCategoryWarning, XGBClassifierLite, XGBRegressorLite, load_model

_rng = np.random.default_rng(0)
N_ROWS = 120
EFFECTS = {3: 1.0, 7: -2.0, 11: 4.0, 40: 0.5}
SHOPS = _rng.choice(list(EFFECTS), N_ROWS).tolist()
BITS = [bool(bit) for bit in _rng.integers(0, 2, N_ROWS)]
SIZES = _rng.normal(size=N_ROWS).round(3).tolist()
Y = np.array([EFFECTS[shop] for shop in SHOPS]) * np.where(BITS, 1, 3) + np.array(SIZES)


def some(values):
    """Leave every ninth value out."""
    return [None if row % 9 == 4 else value for row, value in enumerate(values)]


def category(dtype):
    return lambda values: pd.Series(pd.array(values, dtype=dtype)).astype("category")


def series(dtype):
    return lambda values: pd.Series(values, dtype=dtype)


def nan(values):
    return [np.nan if value is None else value for value in values]


# What is a category at fit: by its dtype, or declared.
AT_FIT = {
    "category of int": category("Int64"),
    "category of float": lambda values: pd.Series(pd.Categorical(np.array(nan(values), float))),
    "category of objects": lambda values: pd.Series(values, dtype=object).astype("category"),
    "category of int32": lambda values: pd.Series(
        pd.Categorical(values, pd.Index(sorted({*values} - {None})).astype("int32"))
    ),
    "Arrow dictionary": lambda values: pd.Series(
        values, dtype=pd.ArrowDtype(pa.dictionary(pa.int8(), pa.int64()))
    ),
    "int64, declared": series("Int64"),
    "float, declared": series(float),
    "object, declared": series(object),
}


def frame(column, of_bits):
    return lambda shops, bits: pd.DataFrame(
        {"shop": column(shops), "bit": of_bits(bits), "size": SIZES}
    )


def rows(shops, bits):
    return [list(row) for row in zip(shops, bits, SIZES, strict=True)]


def from_json(shops, bits):
    named = [dict(zip(("shop", "bit", "size"), row, strict=True)) for row in rows(shops, bits)]
    return pd.DataFrame(json.loads(json.dumps(named)))


def floats(shops, bits):
    return np.array([nan(shops), nan(bits), SIZES], dtype=float).T


AT_PREDICT = {
    "Int64": frame(series("Int64"), series("boolean")),
    "UInt8": frame(series("UInt8"), series("boolean")),
    "float": frame(series(float), series(float)),
    "float32": frame(series("float32"), series("float32")),
    "Float64": frame(series("Float64"), series("Int8")),
    "object": frame(series(object), series(object)),
    "category": frame(category("Int64"), category("boolean")),
    "category of floats": frame(category("Float64"), category("Float64")),
    "Arrow in pandas": frame(series(pd.ArrowDtype(pa.int32())), series(pd.ArrowDtype(pa.bool_()))),
    "Arrow": lambda shops, bits: pa.table({"shop": shops, "bit": bits, "size": SIZES}),
    "Arrow, floats": lambda shops, bits: pa.table(
        {"shop": pa.array(shops, pa.float64()), "bit": pa.array(bits, pa.bool_()), "size": SIZES}
    ),
    "polars": lambda shops, bits: pl.DataFrame({"shop": shops, "bit": bits, "size": SIZES}),
    "polars, floats": lambda shops, bits: pl.DataFrame(
        {"shop": pl.Series(shops, dtype=pl.Float64), "bit": bits, "size": SIZES}
    ),
    "list": rows,
    "array": floats,
    "array of float32": lambda shops, bits: floats(shops, bits).astype(np.float32),
    "array of objects": lambda shops, bits: np.array(rows(shops, bits), dtype=object),
    "masked array": lambda shops, bits: np.ma.masked_invalid(floats(shops, bits)),
    "JSON": from_json,
}

pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def fitted(at_fit, estimator=XGBRegressorLite, y=Y, **parameters):
    make = AT_FIT[at_fit]
    bits = category("boolean")
    if "declared" in at_fit:
        parameters["categorical_features"] = ["shop", "bit"]
        bits = series("boolean") if "int" in at_fit else make
    X = frame(make, bits)(some(SHOPS), some(BITS))
    return estimator(n_estimators=5, max_depth=3, **parameters).fit(X, y), X


@pytest.fixture(scope="module")
def models():
    return {at_fit: fitted(at_fit) for at_fit in AT_FIT}


@pytest.mark.parametrize("at_predict", AT_PREDICT)
def test_the_same_values_in_any_kind_are_the_same_categories(models, at_predict):
    given = AT_PREDICT[at_predict](some(SHOPS), some(BITS))
    model, X = models["category of int"]
    expected = model.predict(X)
    for at_fit, (model, X) in models.items():
        assert_array_equal(model.predict(X), expected, err_msg=at_fit)
        assert_array_equal(model.predict(given), expected, err_msg=f"{at_fit}, {at_predict}")


@pytest.mark.parametrize("at_fit", AT_FIT)
def test_one_row_of_json_is_the_row_of_the_frame(models, at_fit):
    """None, true and 7.0, as a service gets them: a column of one value has its type alone."""
    model, X = models[at_fit]
    expected = model.predict(X)
    for row in range(12):
        shop, bit, size = some(SHOPS)[row], some(BITS)[row], SIZES[row]
        for record in (
            {"shop": shop, "bit": bit, "size": size},
            {"shop": shop and float(shop), "bit": bit if bit is None else int(bit), "size": size},
        ):
            found = model.predict(pd.DataFrame([json.loads(json.dumps(record))]))
            assert_array_equal(found, expected[[row]], err_msg=str(record))
            assert_array_equal(model.predict([list(record.values())]), expected[[row]])


@pytest.mark.parametrize("at_fit", ["category of int", "object, declared"])
@pytest.mark.parametrize("strange", [2.5, "a", 8, -7, 1e300, np.inf, "7", dt.date(2024, 1, 31)])
def test_what_is_no_such_value_is_an_unknown_category(models, at_fit, strange):
    model, X = models[at_fit]
    expected = model.predict(X.assign(shop=[None, *some(SHOPS)[1:]]))
    for column in ([strange, *some(SHOPS)[1:]], [strange] * N_ROWS):
        given = X.assign(shop=pd.Series(column, dtype=object if column[-1] != strange else None))
        words = f"column 'shop': {column.count(strange)} row"
        with pytest.warns(UnknownCategoryWarning, match=re.escape(words)):
            found = model.predict(given)
        assert_array_equal(found[0], expected[0])
        if column[-1] != strange:
            assert_array_equal(found, expected)
        with pytest.raises(ValueError, match=re.escape(words)):
            clone(model).set_params(unknown_category="error").fit(X, Y).predict(given)


def test_neighbours_that_float64_does_not_tell_apart_stay_apart():
    large = [2**53, 2**53 + 1, 2**53 + 2]
    X = pd.DataFrame({"id": pd.Categorical(large * 20)})
    model = XGBRegressorLite(n_estimators=3).fit(X, [1.0, 5.0, 9.0] * 20)
    expected = model.predict(X)[:3]
    for column in (large, pd.array(large, "Int64"), pd.array(large, "object"), pa.array(large)):
        found = model.predict(pd.DataFrame({"id": pd.Series(column)}))
        assert_array_equal(found, expected)
    with pytest.warns(UnknownCategoryWarning):
        assert_array_equal(model.predict([*([value] for value in large), [2.5]])[:3], expected)


def test_times_of_a_category_come_without_its_dtype():
    days = pd.Series(pd.to_datetime(["2024-01-31", "2024-02-29", "2024-03-31"] * 20))
    X = pd.DataFrame({"day": days.astype("category")})
    model = XGBRegressorLite(n_estimators=3).fit(X, [1.0, 9.0, 5.0] * 20)
    for column in (days, days.astype("datetime64[s]"), days.astype("datetime64[ns]")):
        assert_array_equal(model.predict(pd.DataFrame({"day": column})), model.predict(X))
    for objects in (days.tolist(), days.dt.to_pydatetime().tolist()):  # of pandas and of Python
        column = pd.Series(objects, dtype=object)
        assert_array_equal(model.predict(pd.DataFrame({"day": column})), model.predict(X))
        of_objects = XGBRegressorLite(n_estimators=3, categorical_features=["day"])
        of_objects.fit(pd.DataFrame({"day": column}), [1.0, 9.0, 5.0] * 20)
        assert_array_equal(of_objects.predict(X), model.predict(X))
    of_old = pd.DataFrame({"day": pd.Series([dt.datetime(1, 1, 1)], dtype=object)})
    with pytest.warns(UserWarning, match=r"the first is datetime.datetime\(1, 1, 1"):
        model.predict(of_old)  # not in reach of nanoseconds
    with pytest.raises(ValueError, match="'day' held categories at fit and holds numbers"):
        model.predict(pd.DataFrame({"day": range(3)}))


def test_durations_of_a_category_come_as_objects():
    lengths = pd.Series(pd.to_timedelta([1, 2, 3] * 20, "ns"))
    X = pd.DataFrame({"length": lengths.astype("category")})
    model = XGBRegressorLite(n_estimators=3).fit(X, [1.0, 9.0, 5.0] * 20)
    column = pd.Series(lengths.tolist(), dtype=object)
    assert_array_equal(model.predict(pd.DataFrame({"length": column})), model.predict(X))
    rounded = pd.DataFrame({"length": pd.Series([dt.timedelta(0)], dtype=object)})
    with pytest.warns(UserWarning, match="no row of the training has"):
        model.predict(rounded)


# --- wherever a model takes features


def test_validation_rows_scores_and_explanations(models):
    """Rows of floats, where the fit had a dtype of categories."""
    model, X = models["category of int"]
    sent = AT_PREDICT["float"](some(SHOPS), some(BITS))
    for of in (model.shap_values, model.apply, lambda X: model.score(X, Y)):
        assert_array_equal(of(sent), of(X))
    settings = dict(n_estimators=4, max_depth=3)
    logs = []
    for held_out in (X, sent):
        judged = XGBRegressorLite(**settings).fit(X, Y, eval_set=[(held_out, Y)], verbose=False)
        continued = XGBRegressorLite(**settings).fit(held_out, Y, init_model=model)
        logs.append((judged.evals_result(), continued.predict(X).tolist()))
    assert logs[0] == logs[1]


def test_partial_dependence_goes_through_the_values(models):
    model, X = models["int64, declared"]
    X = X.assign(shop=SHOPS, bit=BITS)  # scikit-learn's grid takes no NA
    by_shop = partial_dependence(model, X, ["shop"], categorical_features=["shop"])
    sent = X.astype({"shop": float, "bit": object})
    found = partial_dependence(model, sent, ["shop"], categorical_features=["shop"])
    assert_array_equal(found["average"], by_shop["average"])
    means = [model.predict(X.assign(shop=shop)).mean() for shop in sorted(EFFECTS)]
    assert_array_equal(found["average"][0], means)


def test_models_from_files_pipelines_and_classifiers(tmp_path):
    model, X = fitted("category of int", XGBClassifierLite, np.median(Y) < Y)
    model.save_model(tmp_path / "model.json", format="sklboost")
    loaded = load_model(tmp_path / "model.json")
    for name, make in AT_PREDICT.items():
        given = make(some(SHOPS), some(BITS))
        for own in (loaded, pickle.loads(pickle.dumps(model))):
            assert_array_equal(own.predict_proba(given), model.predict_proba(X), err_msg=name)
    # imputing gives an array of floats to a model that had numbered categories in one at fit
    imputed = make_pipeline(SimpleImputer(strategy="most_frequent"), clone(model))
    imputed.set_params(xgbclassifierlite__categorical_features=[0, 1])
    X = X.astype({"shop": float, "bit": float})
    expected = imputed.fit(X, Y > 0.0).predict_proba(X)
    assert_array_equal(imputed.predict_proba(X.astype({"shop": object})), expected)


def test_an_array_of_objects_at_fit_and_one_of_floats_later(models):
    """As skforecast passes them; its earlier versions fit a frame, and predict an array, too."""
    X = np.array(rows(some(SHOPS), some(BITS)), dtype=object)
    model = XGBRegressorLite(n_estimators=5, max_depth=3, categorical_features=[0, 1]).fit(X, Y)
    in_frames, frame_of_fit = models["category of int"]
    expected = in_frames.predict(frame_of_fit)
    assert_array_equal(model.predict(floats(some(SHOPS), some(BITS))), expected)
