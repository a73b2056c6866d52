"""Inputs of graphs: categories, missing values, columns of frames."""

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose
from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

import sklboost.onnx
from sklboost import XGBClassifierLite, XGBRegressorLite, from_xgboost
from tests.onnx.running import check, feeds, run, start

N_ROWS = 400
CITY = "city (of birth)"  # skl2onnx gives the input another name
# in a graph, too, unknown categories count as missing
pytestmark = pytest.mark.filterwarnings("ignore::sklboost.UnknownCategoryWarning")


def types_of(names, kind=DoubleTensorType):
    return [(name, kind([None, 1])) for name in names]


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            CITY: random.choice(["Bonn", "Graz", "", "Ä b"], N_ROWS).astype(object),
            "size": random.normal(size=N_ROWS),
            "code": random.choice([3.0, -7.0, 2.0**40, 11.0], N_ROWS),
            "known": random.random(N_ROWS) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def model(frame):
    y = frame["size"] + (frame[CITY] == "Graz") * 2.0 + (frame["code"] == 3.0) * 1.5
    y += frame["known"] * (frame[CITY] == "")
    categories = [CITY, "code", "known"]
    return XGBRegressorLite(n_estimators=9, categorical_features=categories).fit(frame, y)


def test_known_and_unknown_categories_and_missing_values(model, frame):
    check(model, frame)
    frame = frame.astype({"known": float})
    frame.loc[::3, CITY] = "nowhere"
    for i, value in enumerate([3.5, np.nan, np.inf, -1e300, 4.0]):
        frame.loc[i::7, "code"] = value
    frame.loc[::5, "known"] = np.nan
    frame.loc[::11, "size"] = np.nan
    check(model, frame)


def test_text_that_is_missing_is_an_unknown_category(model, frame):
    missing = frame.copy()
    missing.loc[::3, CITY] = None
    session = start(model)
    given = feeds(session, missing.fillna("no category"))
    assert_allclose(session.run(None, given)[0][:, 0], model.predict(missing), rtol=1e-9)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)])
def test_inputs_are_matched_by_name(model, frame, order):
    """As `predict` does, and of whatever types skl2onnx makes of a frame."""
    frame = frame[frame.columns[order]]
    session = start(model, frame)
    types = [given.type for given in session.get_inputs()]
    assert sorted(types) == ["tensor(bool)", "tensor(double)", "tensor(double)", "tensor(string)"]
    given = feeds(session, frame)
    given["known"] = given["known"].astype(bool)
    assert_allclose(session.run(None, given)[0][:, 0], model.predict(frame), rtol=1e-9)


@pytest.mark.parametrize(
    ("n_categories", "dtype"),
    [(3, np.float64), (64, np.float32), (65, np.int64), (500, np.float64), (500, np.float32)],
)
def test_a_table_with_categories(dtype, n_categories):
    random = np.random.default_rng(n_categories)
    X = random.integers(0, n_categories, (3000, 3)).astype(dtype)
    effects = random.normal(size=(2, n_categories))
    y = effects[0, X[:, 0].astype(int)] * effects[1, X[:, 2].astype(int)] + X[:, 1] / n_categories
    settings = dict(n_estimators=6, categorical_features=[0, 2], max_cat_threshold=100)
    model = XGBRegressorLite(**settings, min_child_weight=0).fit(X[:2000], y[:2000])
    (predictions,) = run(model, X)
    assert_allclose(predictions[:, 0], model.predict(X), rtol=1e-6, atol=1e-6)


def test_splits_on_single_categories_whose_leaves_differ_in_some_outputs():
    """onnxruntime joins splits ``x == code`` whose leaves it takes for the same."""
    X = np.arange(9.0).repeat(20)[:, np.newaxis]
    y = np.column_stack([X[:, 0] == 4.0, X[:, 0]]).astype(float)
    settings = dict(n_estimators=2, multi_strategy="multi_output_tree", max_cat_to_onehot=100)
    model = XGBRegressorLite(**settings, categorical_features=[0], max_depth=9)
    check(model.fit(X, y), X)


def test_a_split_between_all_categories_and_missing_values():
    X = np.array([[0.0], [1.0], [np.nan]]).repeat(20, axis=0)
    y = np.isnan(X[:, 0]).astype(float)
    model = XGBRegressorLite(n_estimators=2, categorical_features=[0], max_depth=1).fit(X, y)
    check(model, X)


@pytest.mark.parametrize("kind", [StringTensorType, DoubleTensorType])
def test_a_category_without_any_value_in_the_training(kind):
    X = pd.DataFrame({"a": pd.Categorical([None] * 40), "b": np.arange(40.0)})
    model = XGBRegressorLite(n_estimators=2).fit(X, X["b"])
    session = start(model, initial_types=[*types_of("a", kind), *types_of("b")])
    given = np.full((40, 1), "x", dtype=object) if kind is StringTensorType else np.ones((40, 1))
    (predictions,) = session.run(None, {"a": given, "b": X[["b"]].to_numpy()})
    assert_allclose(predictions[:, 0], model.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("marker", "dtype"),
    [(-999.0, np.float64), (0.1, np.float64), (0.1, np.float32), (0.0, np.float32)]
    + [(np.inf, np.float64), (np.inf, np.float32)],
)
def test_a_further_value_that_is_missing(marker, dtype):
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 2))
    y = X[:, 0] + X[:, 1]
    X[random.random(X.shape) < 0.3] = marker
    X[::9] = np.nan
    X = X.astype(dtype)
    model = XGBRegressorLite(n_estimators=5, missing=marker).fit(X, y)
    check(model, X, rtol=1e-9 if dtype == np.float64 else 1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("onehot", "missing", "dtype"),
    [(1, np.nan, np.float64), (1, 2.0, np.float32), (8, np.nan, np.float32), (8, 2.0, np.float64)],
)
def test_codes_of_xgboost(dtype, missing, onehot):
    """All other numbers go right, and missing values where XGBoost sends them."""
    random = np.random.default_rng(0)
    X = np.column_stack([random.integers(0, 6, N_ROWS), random.normal(size=N_ROWS)])
    X[::4, 0] = missing
    y = np.where(X[:, 0] != X[:, 0], -3.0, 4.0 * np.isin(X[:, 0], [1, 4])) - 3 * (X[:, 0] == 2)
    settings = dict(n_estimators=5, max_depth=3, max_cat_to_onehot=onehot, n_jobs=1)
    theirs = xgboost.XGBRegressor(
        enable_categorical=True, feature_types=["c", "q"], missing=missing, **settings
    )
    model = from_xgboost(theirs.fit(X, y))
    others = [6, 7, 40, np.nan, 1.5, 5.5, -1, -0.5, 1e300, np.inf, -np.inf]
    X = np.vstack([X, np.column_stack([others, np.zeros(11)])])
    with np.errstate(over="ignore"):
        check(model, X.astype(dtype), rtol=1e-6)


def test_the_further_value_is_no_category():
    X = np.array([[0.0, 5.0], [1.0, 6.0], [-1.0, -1.0]]).repeat(20, axis=0)
    model = XGBClassifierLite(n_estimators=3, categorical_features=[0], missing=-1)
    check(model.fit(X, X[:, 0] > 0), X)


# --- what is refused -----------------------------------------------------------------------------


def test_inputs_that_do_not_fit_are_refused(model, frame):
    with pytest.raises(ValueError, match=r"\['size'\] have 1 columns, and the model has 4"):
        start(model, initial_types=types_of(["size"]))
    with pytest.raises(ValueError, match=r"'height'.* give the inputs these names"):
        start(model, initial_types=types_of(["height", *list(frame)[1:]]))
    with pytest.raises(ValueError, match=r"'size' is text, and the feature 'size' .* numbers"):
        start(model, initial_types=types_of(frame, StringTensorType))
    with pytest.raises(ValueError, match=r"DoubleTensorType, and the categories .* are text"):
        start(model, initial_types=types_of(frame))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pd.Categorical([0.5, 1.5] * 10), "the category 0.5"),
        (pd.Categorical(["a", 1] * 10), "the category 'a'"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"] * 10), "holds times"),
        (np.array([2**60, 2**60 + 1] * 10), "holds integers beyond"),
    ],
)
def test_values_that_onnx_cannot_compare_are_refused(values, words):
    X = pd.DataFrame({"x": values})
    model = XGBRegressorLite(n_estimators=1).fit(X, np.arange(20.0))
    with pytest.raises(ValueError, match=f"'x' .*{words}|'x' {words}"):
        sklboost.onnx.input_types(model)
    with pytest.raises(ValueError, match=f"'x' .*{words}|'x' {words}"):
        start(model, initial_types=types_of(["x"]))


def test_categories_beyond_2_to_the_53():
    X = pd.DataFrame({"x": pd.Categorical([2**60, 2**60 + 1] * 20)})
    model = XGBRegressorLite(n_estimators=2).fit(X, np.arange(40.0) % 2)
    ((name, kind),) = sklboost.onnx.input_types(model)
    assert isinstance(kind, Int64TensorType)
    (predictions,) = start(model).run(None, {name: X.to_numpy(dtype=np.int64)})
    assert_allclose(predictions[:, 0], model.predict(X), rtol=1e-6)
    with pytest.raises(ValueError, match="declare the input 'x' as Int64TensorType"):
        start(model, initial_types=types_of(["x"]))
