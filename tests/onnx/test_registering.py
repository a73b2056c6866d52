"""What skl2onnx converts when the module is imported: estimators, alone and in others."""

import sys
from importlib import import_module

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingRegressor, StackingClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from xgboost import XGBRegressor

import sklboost.onnx
from sklboost import XGBClassifierLite, XGBRegressorLite, XGBSurvivalLite, survival_targets
from tests.onnx.running import check, feeds, run, start

N_ROWS = 300
SMALL = dict(n_estimators=5, max_depth=3)
NUMBERS, TEXTS = ["width", "height"], ["color", "shape"]


@pytest.fixture(scope="module")
def frame():
    random = np.random.default_rng(0)
    numbers = pd.DataFrame(random.normal(size=(N_ROWS, 2)), columns=NUMBERS)
    texts = {name: random.choice(["a", "b", "c"], N_ROWS) for name in TEXTS}
    return numbers.assign(**{name: values.astype(object) for name, values in texts.items()})


@pytest.fixture(scope="module")
def y(frame):
    return frame["width"] * (frame["color"] == "a") + (frame["shape"] == "b") + frame["height"]


@pytest.mark.parametrize(
    ("estimator", "encoder", "settings"),
    [
        (XGBClassifierLite, OneHotEncoder(handle_unknown="ignore"), {}),
        (XGBRegressorLite, OrdinalEncoder(), dict(categorical_features=[2, 3])),
    ],
)
def test_a_pipeline_is_converted_as_a_whole(frame, y, encoder, settings, estimator):
    columns = [("numbers", StandardScaler(), NUMBERS), ("texts", encoder, TEXTS)]
    pipeline = make_pipeline(ColumnTransformer(columns), estimator(**SMALL, **settings))
    is_classifier = estimator is XGBClassifierLite
    pipeline.fit(frame, np.where(y > 0, "yes", "no") if is_classifier else y)
    options = {"options": {estimator: {"zipmap": False}}} if is_classifier else {}
    session = start(pipeline, frame, **options)
    results = session.run(None, feeds(session, frame))
    wanted = pipeline.predict_proba(frame) if is_classifier else pipeline.predict(frame)
    assert_allclose(results[-1].squeeze(), wanted, rtol=1e-6, atol=1e-6)
    if is_classifier:
        assert results[0].tolist() == pipeline.predict(frame).tolist()


def test_a_search_and_a_stack(frame, y):
    X = frame[NUMBERS].to_numpy()
    search = GridSearchCV(XGBClassifierLite(**SMALL), {"max_depth": [1, 2]}, cv=2)
    search.fit(X, y > 0)
    _, rows = run(search, X, zipmap=True)
    found = [list(row.values()) for row in rows]
    for probabilities in (found, run(search, X, zipmap=False)[1]):
        assert_allclose(probabilities, search.predict_proba(X), atol=1e-6)
    parts = [("trees", XGBClassifierLite(**SMALL)), ("linear", LogisticRegression())]
    check(StackingClassifier(parts, cv=2).fit(X, np.digitize(y, [0, 1])), X)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm", "hist_gradient_boosting"])
def test_models_of_other_libraries(frame, y, library):
    X = frame.astype(dict.fromkeys(TEXTS, "category"))
    X.loc[::7, "width"] = np.nan
    theirs = {
        "xgboost": XGBRegressor(**SMALL, enable_categorical=True),
        "lightgbm": LGBMRegressor(**SMALL, min_data_per_group=1, verbose=-1),
        "hist_gradient_boosting": HistGradientBoostingRegressor(max_iter=5),
    }
    model = getattr(sklboost, f"from_{library}")(theirs[library].fit(X, y))
    check(model, X)


@pytest.mark.parametrize("objective", ["survival:cox", "survival:aft"])
def test_risk_scores(frame, y, objective):
    X, times = frame[NUMBERS].to_numpy(), np.exp(y)
    model = XGBSurvivalLite(objective=objective, **SMALL)
    check(model.fit(X, survival_targets(np.arange(len(y)) % 3 > 0, times)), X)


class Stumps(XGBRegressorLite):
    pass


def test_a_class_that_inherits_is_converted_when_it_is_registered(frame, y):
    X = frame[NUMBERS].to_numpy()
    model = Stumps(**SMALL).fit(X, y)
    with pytest.raises(RuntimeError, match="Unable to find a shape calculator"):
        start(model)
    sklboost.onnx.register(Stumps)
    check(model, X)
    with pytest.raises(TypeError, match="LinearRegression is no subclass of XGBClassifierLite"):
        sklboost.onnx.register(LinearRegression)


def test_older_versions_of_the_operators(frame, y):
    X = frame[NUMBERS].to_numpy()
    model = XGBClassifierLite(**SMALL).fit(X, np.digitize(y, [0, 1]))
    for opset in (12, 15, 18):
        target = {"": opset, "ai.onnx.ml": 3}
        session = start(model, X, target_opset=target, options={id(model): {"zipmap": False}})
        assert_allclose(session.run(None, {"X": X})[1], model.predict_proba(X), atol=1e-9)
    with pytest.raises(ValueError, match=r"'ai.onnx.ml': 1, .* pass target_opset="):
        start(model, target_opset={"": 15, "ai.onnx.ml": 1})  # has no trees of float64


def test_the_import_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sklboost.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(ImportError, match=r'pip install "sklboost\[onnx\]"'):
        import_module("sklboost.onnx")
