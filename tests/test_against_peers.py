"""XGBoost and scikit-learn's trees: the same results where the algorithms coincide.

XGBoost's ``exact`` looks at every distinct value, as the histograms here do where a feature has no
more of them than `max_bin`.
"""

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.tree import DecisionTreeRegressor

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


def splits_and_values(frame):
    """A frame's trees as nested tuples and its leaf values, whatever the node numbers are."""
    frame = frame.set_index("ID")

    def walk(node_id, values):
        node = frame.loc[node_id]
        if node["Feature"] == "Leaf":
            values.append(node["Gain"])
            return "leaf"
        children = walk(node["Yes"], values), walk(node["No"], values)
        return node["Feature"], float(node["Split"]), *children

    values = []
    return walk("0-0", values), values


def raw_scores(model, X):
    if isinstance(model, XGBRegressorLite):
        return model.predict(X)
    if isinstance(model, XGBClassifierLite):
        return model.decision_function(X)
    return model.predict(X, output_margin=True)


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", DATA)
def test_same_first_tree_as_xgboost(name, parameters):
    own, peer, _ = fit_pair(name, 1, **PARAMETERS[parameters])
    own_tree, own_values = splits_and_values(own.trees_to_dataframe())
    peer_tree, peer_values = splits_and_values(peer.get_booster().trees_to_dataframe())
    assert own_tree == peer_tree
    assert len(own_values) >= 4
    assert_allclose(own_values, peer_values, rtol=1e-5, atol=1e-5)


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


def test_same_multiclass_probabilities_as_xgboost():
    X, y = load_wine(return_X_y=True)
    X, weight = on_a_grid(X), np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    # weights break ties between different groups of rows of equal composition; XGBoost's softmax
    # starts at equal probabilities
    common = dict(n_estimators=10, max_depth=3, base_score=0.5, n_jobs=1)
    own = XGBClassifierLite(**common).fit(X, y, sample_weight=weight)
    # XGBoost's hessian is 2 p (1 - p), ours 3/2 p (1 - p) for three classes: multiplied by 4/3,
    # these three parameters give the same steps
    same_step = dict(learning_rate=0.3 * 4 / 3, reg_lambda=4 / 3, min_child_weight=4 / 3)
    peer = xgboost.XGBClassifier(tree_method="exact", **common, **same_step)
    peer.fit(X, y, sample_weight=weight)
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


def test_pruning_follows_xgboost_exact_where_hist_stops_at_the_root():
    X, y = np.array([[10.0], [20.0], [25.0], [35.0]]), np.array([-10.0, 7.0, 8.0, -7.0])
    common = dict(
        n_estimators=1, max_depth=2, reg_lambda=0, min_child_weight=0, gamma=130, base_score=0.5
    )

    def n_leaves(model):
        model.fit(X, y)
        frame = getattr(model, "get_booster", lambda: model)().trees_to_dataframe()
        return (frame["Feature"] == "Leaf").sum()

    assert n_leaves(xgboost.XGBRegressor(tree_method="exact", **common)) == 3
    assert n_leaves(xgboost.XGBRegressor(tree_method="hist", **common)) == 1
    assert n_leaves(XGBRegressorLite(**common)) == 3
    assert n_leaves(XGBRegressorLite(pruning="pre", **common)) == 1


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("max_depth", [1, 2, 4])
def test_same_tree_as_scikit_learn(name, max_depth):
    X, y = DATA[name]()
    train, test = slice(0, None, 2), slice(1, None, 2)
    peer = DecisionTreeRegressor(max_depth=max_depth, random_state=0).fit(X[train], y[train])
    own = XGBRegressorLite(
        n_estimators=1, learning_rate=1.0, reg_lambda=0.0, max_depth=max_depth, base_score=0.0
    ).fit(X[train], y[train])
    assert_allclose(own.predict(X[train]), peer.predict(X[train]), rtol=1e-6, atol=1e-6)
    if name == "diabetes" and max_depth <= 2:  # deeper down features tie, and differ on new rows
        assert_allclose(own.predict(X[test]), peer.predict(X[test]), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("max_leaves", [2, 7, 20])
def test_same_best_first_tree_as_scikit_learn(max_leaves):
    X, y = diabetes()
    peer = DecisionTreeRegressor(max_leaf_nodes=max_leaves, random_state=0).fit(X, y)
    own = XGBRegressorLite(
        n_estimators=1,
        learning_rate=1.0,
        reg_lambda=0.0,
        max_depth=0,
        max_leaves=max_leaves,
        grow_policy="lossguide",
    ).fit(X, y)
    assert_allclose(own.predict(X), peer.predict(X), rtol=1e-6, atol=1e-6)
