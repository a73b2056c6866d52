"""XGBoost: the same trees, predictions and SHAP values where the algorithms coincide.

XGBoost's ``exact`` looks at every distinct value, as the histograms here do where a feature has no
more of them than `max_bin`.
"""

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.inspection.importances import IMPORTANCE_TYPES


def on_a_grid(X, n_values=200):
    """Round every feature to at most `n_values` whole numbers, exact in float32."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.round((X - low) / (high - low) * (n_values - 1))


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return on_a_grid(X), y


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return on_a_grid(X), y


DATA = {"diabetes": diabetes, "breast cancer": breast_cancer}
PARAMETERS = {
    "defaults": {},
    "slow and shallow": dict(learning_rate=0.1, max_depth=3, reg_lambda=5.0),
    "regularised": dict(max_depth=4, reg_alpha=0.5, gamma=2.0, min_child_weight=5.0),
    # a step of 0.5, exact in XGBoost's float32 sums too
    "clipped": dict(max_depth=4, max_delta_step=1.0, learning_rate=0.5),
}


def fit_pair(name, n_estimators, missing=False, **parameters):
    """Fit the package and XGBoost's exact method with the same parameters."""
    X, y = DATA[name]()
    if missing:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    is_regression = name == "diabetes"
    own, peer = (
        (XGBRegressorLite, xgboost.XGBRegressor)
        if is_regression
        else (XGBClassifierLite, xgboost.XGBClassifier)
    )
    # given, since XGBoost guesses the start of the log loss by one Newton step
    common = dict(n_estimators=n_estimators, base_score=float(y.mean()), n_jobs=1) | parameters
    return own(**common).fit(X, y), peer(tree_method="exact", **common).fit(X, y), X


def raw_scores(model, X):
    if isinstance(model, XGBRegressorLite):
        return model.predict(X)
    if isinstance(model, XGBClassifierLite):
        return model.decision_function(X)
    return model.predict(X, output_margin=True)


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", DATA)
def test_same_leaves_as_xgboost_with_missing_values(name, parameters):
    # not the same thresholds: where missing values part from all others, XGBoost writes a threshold
    # above all values, and the missing on the right
    own, peer, X = fit_pair(name, 1, missing=True, **PARAMETERS[parameters])
    own_leaves, peer_leaves = own.apply(X)[:, 0], peer.apply(X).astype(int).ravel()
    pairs = set(zip(own_leaves.tolist(), peer_leaves.tolist(), strict=True))
    assert len(pairs) == len(set(own_leaves)) == len(set(peer_leaves))
    assert len(pairs) >= 4
    assert_allclose(raw_scores(own, X), raw_scores(peer, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", DATA)
def test_same_predictions_as_xgboost_after_50_rounds(name, parameters):
    own, peer, X = fit_pair(name, 50, **PARAMETERS[parameters])
    if name == "breast cancer":
        assert_allclose(own.predict_proba(X), peer.predict_proba(X), atol=1e-4)
    assert_allclose(raw_scores(own, X), raw_scores(peer, X), rtol=1e-6, atol=1e-4)


def test_same_frame_as_xgboost():
    own, peer, _ = fit_pair("diabetes", 3, max_depth=4)
    own, peer = own.trees_to_dataframe(), peer.get_booster().trees_to_dataframe()
    assert list(own.columns) == [*peer.columns, "Similarity", "Output"]
    own, peer = (frame.sort_values(["Tree", "Node"]) for frame in (own, peer))
    for name in ("Tree", "Node", "ID", "Feature"):
        assert list(own[name]) == list(peer[name])
    for name in ("Split", "Gain", "Cover"):
        assert_allclose(own[name], peer[name], rtol=1e-4)
    is_split = own["Feature"].to_numpy() != "Leaf"
    for name in ("Yes", "No"):
        assert list(own[name][is_split]) == list(peer[name][is_split])


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("importance_type", IMPORTANCE_TYPES)
def test_same_feature_importances_as_xgboost(name, importance_type):
    own, peer, _ = fit_pair(name, 10, importance_type=importance_type)
    assert_allclose(own.feature_importances_, peer.feature_importances_, rtol=1e-3, atol=1e-6)
    assert own.feature_importances_.sum() == pytest.approx(1.0)
    expected = peer.get_booster().get_score(importance_type=importance_type)
    assert own.get_score(importance_type) == pytest.approx(expected, rel=1e-3)
    assert own.get_score() == peer.get_booster().get_score()


def fit_pair_of_classes(n_estimators):
    """Fit both on three classes, with parameters that give the same steps."""
    X, y = load_wine(return_X_y=True)
    X, weight = on_a_grid(X), np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    # weights break ties between different groups of rows of equal composition; XGBoost's softmax
    # starts at equal probabilities
    common = dict(n_estimators=n_estimators, max_depth=3, base_score=0.5, n_jobs=1)
    own = XGBClassifierLite(**common).fit(X, y, sample_weight=weight)
    # XGBoost's hessian is 2 p (1 - p), ours 3/2 p (1 - p) for three classes: multiplied by 4/3,
    # these three parameters give the same steps
    same_step = dict(learning_rate=0.3 * 4 / 3, reg_lambda=4 / 3, min_child_weight=4 / 3)
    peer = xgboost.XGBClassifier(tree_method="exact", **common, **same_step)
    return own, peer.fit(X, y, sample_weight=weight), X


def test_same_multiclass_probabilities_as_xgboost():
    own, peer, X = fit_pair_of_classes(n_estimators=10)
    assert_allclose(own.predict_proba(X), peer.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_predictions_as_xgboost_with_more_than_256_distinct_values(dtype):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32).astype(dtype)  # XGBoost would round float64
    assert max(len(np.unique(column)) for column in X.T) > 256
    common = dict(n_estimators=20, max_depth=4, base_score=100.0, n_jobs=1)
    own = XGBRegressorLite(max_bin=512, **common).fit(X, y)
    peer = xgboost.XGBRegressor(tree_method="exact", **common).fit(X, y)
    assert_allclose(own.predict(X), peer.predict(X), rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize(
    "growth",
    [
        dict(grow_policy="depthwise", max_depth=5),
        dict(grow_policy="lossguide", max_depth=5),
        dict(grow_policy="lossguide", max_depth=0, max_leaves=12),
    ],
)
def test_same_predictions_as_xgboost_hist_where_nothing_is_pruned(growth):
    X, y = diabetes()
    common = dict(n_estimators=10, base_score=150.0, n_jobs=1, **growth)
    own = XGBRegressorLite(**common).fit(X, y)
    peer = xgboost.XGBRegressor(tree_method="hist", max_bin=256, **common).fit(X, y)
    assert_allclose(own.predict(X), peer.predict(X), rtol=1e-6, atol=1e-3)


def test_missing_values_that_training_never_saw_go_where_xgboost_hist_sends_them():
    random = np.random.default_rng(0)
    X = random.normal(size=(250, 3))  # each value a bin of its own, so both have all thresholds
    y = X[:, 0] + X[:, 1] ** 2 + 0.1 * random.normal(size=250)
    common = dict(n_estimators=3, base_score=0.0, n_jobs=1, max_depth=4)
    own = XGBRegressorLite(**common).fit(X, y)
    peer = xgboost.XGBRegressor(tree_method="hist", max_bin=256, **common).fit(X, y)
    rows = np.where(random.random(X.shape) < 0.4, np.nan, X)
    assert_allclose(own.predict(rows), peer.predict(rows), rtol=1e-4, atol=1e-4)


def category_pair(n_rows, reg_lambda, **parameters):
    """Fit both on two categories of 12 levels, some missing, and a number."""
    random = np.random.default_rng(5)
    codes = random.integers(0, 12, (n_rows, 2))
    number = random.normal(size=n_rows).round(1)
    y = random.normal(size=12)[codes[:, 0]] * number + random.normal(size=12)[codes[:, 1]]
    frame = pd.DataFrame({"number": number})
    for index, name in enumerate(("one", "two")):
        values = np.where(random.random(n_rows) < 0.05, None, [f"l{c:02}" for c in codes[:, index]])
        frame[name] = pd.Categorical(values, categories=[f"l{c:02}" for c in range(12)])
    common = dict(base_score=0.0, n_jobs=1, reg_lambda=reg_lambda, **parameters)
    # XGBoost sorts levels by G / (H + lambda)
    own = XGBRegressorLite(cat_smooth=reg_lambda, **common).fit(frame, y)
    peer = xgboost.XGBRegressor(tree_method="hist", enable_categorical=True, **common)
    return own, peer.fit(frame, y), frame


@pytest.mark.parametrize("max_cat_to_onehot", [4, 100])
def test_same_predictions_as_xgboost_with_its_categories(max_cat_to_onehot):
    # all levels in every node, and none of them rare: XGBoost has other rules for these
    own, peer, frame = category_pair(
        4000, 1.0, n_estimators=4, max_depth=2, max_cat_to_onehot=max_cat_to_onehot
    )
    assert_allclose(own.predict(frame), peer.predict(frame), rtol=1e-5, atol=1e-4)


# --- SHAP values, which XGBoost computes in float32 ----------------------------------------------


def assert_same_shap_values(own, peer, X):
    matrix = xgboost.DMatrix(X, enable_categorical=True)
    for name in ("pred_contribs", "pred_interactions"):
        values = own.predict(X, **{name: True})
        others = peer.get_booster().predict(matrix, **{name: True})
        assert values.shape == others.shape
        assert np.ptp(others) > 0.1
        assert_allclose(values, others, rtol=1e-3, atol=2e-4 * np.ptp(others))


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", DATA)
def test_shap_values_of_numbers(name, parameters):
    own, peer, X = fit_pair(name, 10, **PARAMETERS[parameters])
    assert_same_shap_values(own, peer, X[:50])


@pytest.mark.parametrize("name", DATA)
def test_shap_values_with_missing_values(name):
    # deeper down features tie, and rows without them show which was taken
    own, peer, X = fit_pair(name, 1, missing=True, max_depth=3)
    assert_same_shap_values(own, peer, X[:50])


def test_shap_values_of_categories():
    own, peer, frame = category_pair(4000, 1.0, n_estimators=4, max_depth=2)
    assert_same_shap_values(own, peer, frame[:200])


def test_shap_values_of_classes():
    own, peer, X = fit_pair_of_classes(n_estimators=5)
    rounds = dict(pred_contribs=True, iteration_range=(0, 4))
    values = own.predict(X, **rounds)
    others = peer.get_booster().predict(xgboost.DMatrix(X), **rounds)
    # raw scores of classes may start anywhere, as long as they start together
    values[..., -1] -= values[..., -1].mean(axis=1, keepdims=True)
    others[..., -1] -= others[..., -1].mean(axis=1, keepdims=True)
    assert_allclose(values, others, rtol=1e-3, atol=1e-4)
