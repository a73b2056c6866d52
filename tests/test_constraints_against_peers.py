"""Constraints, smoothing and draws beside XGBoost and LightGBM, where the algorithms coincide."""

import lightgbm
import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose

from sklboost import XGBRegressorLite
from tests.test_against_peers import DATA, diabetes, fit_pair, raw_scores

SIGNS = {"diabetes": (0, 1, 1, -1, 1, 0, -1, 0, 1, 0), "breast cancer": 15 * (1, -1)}


@pytest.mark.parametrize("settings", [{}, dict(max_depth=3, learning_rate=0.1, reg_lambda=5.0)])
@pytest.mark.parametrize("name", DATA)
def test_monotone_constraints_of_xgboost(name, settings):
    own, peer, X = fit_pair(name, 50, monotone_constraints=SIGNS[name], **settings)
    assert_allclose(raw_scores(own, X), raw_scores(peer, X), rtol=1e-6, atol=1e-3)
    free, _, _ = fit_pair(name, 50, **settings)
    assert np.abs(raw_scores(free, X) - raw_scores(own, X)).max() > 1.0


@pytest.mark.parametrize("groups", [[[0, 1, 2], [3, 4, 5, 6]], [[0, 8], [8, 3, 2]]])
def test_interaction_constraints_of_xgboost(groups):
    X, y = diabetes()
    common = dict(n_estimators=20, base_score=150.0, n_jobs=1)
    own = XGBRegressorLite(interaction_constraints=groups, **common).fit(X, y)
    peer = xgboost.XGBRegressor(interaction_constraints=str(groups), tree_method="exact", **common)
    assert_allclose(own.predict(X), peer.fit(X, y).predict(X), rtol=1e-6, atol=1e-3)


def fit_beside_lightgbm(own, peer, n_estimators=20):
    """Fit both with parameters of their own, all splits of positive gain being made.

    To a depth, not best first: LightGBM has another gain, in which the node that is split is
    smoothed twice, and not bounded.
    """
    X, y = diabetes()
    common = dict(learning_rate=0.1, max_depth=3, reg_lambda=0.0, n_jobs=1)
    exact = dict(num_leaves=8, min_child_samples=2, min_child_weight=0.0, min_data_in_bin=1)
    common |= dict(n_estimators=n_estimators)
    model = lightgbm.LGBMRegressor(max_bin=300, verbose=-1, **exact, **common, **peer)
    return (
        XGBRegressorLite(min_child_weight=2.0, **common, **own).fit(X, y).predict(X),
        model.fit(X, y).predict(X),
    )


@pytest.mark.parametrize("path_smooth", [1.0, 5.0, 50.0])
def test_smoothing_of_lightgbm(path_smooth):
    smoothed = dict(path_smooth=path_smooth)
    own, peer = fit_beside_lightgbm(smoothed, smoothed)
    assert_allclose(own, peer, rtol=1e-6)
    assert np.abs(fit_beside_lightgbm({}, {})[0] - own).max() > 0.1


def test_feature_weights_of_xgboost():
    random = np.random.default_rng(0)
    X, weights, n_trees = random.normal(size=(200, 3)), np.array([1.0, 2.0, 5.0]), 1500
    y = X.sum(axis=1)
    common = dict(n_estimators=n_trees, max_depth=1, learning_rate=1e-6, random_state=0, n_jobs=1)
    common |= dict(colsample_bytree=0.4, feature_weights=weights)  # one of three features a tree
    for estimator in (XGBRegressorLite, xgboost.XGBRegressor):
        model = estimator(**common).fit(X, y)
        frame = getattr(model, "get_booster", lambda own=model: own)().trees_to_dataframe()
        for feature, weight in enumerate(weights):
            chance = weight / weights.sum()
            share = (frame["Feature"] == f"f{feature}").sum() / n_trees
            assert abs(share - chance) < 4.5 * np.sqrt(chance * (1 - chance) / n_trees)
