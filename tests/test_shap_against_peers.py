"""SHAP values and interaction values as XGBoost computes them on the same trees, in float32."""

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose
from sklearn.datasets import load_wine

from sklboost import XGBClassifierLite
from tests.test_against_peers import DATA, PARAMETERS, category_pair, fit_pair, on_a_grid


def assert_same(own, peer, X):
    matrix = xgboost.DMatrix(X, enable_categorical=True)
    for name in ("pred_contribs", "pred_interactions"):
        values = own.predict(X, **{name: True})
        others = peer.get_booster().predict(matrix, **{name: True})
        assert values.shape == others.shape
        assert np.ptp(others) > 0.1
        assert_allclose(values, others, rtol=1e-3, atol=2e-4 * np.ptp(others))


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("name", DATA)
def test_numbers(name, parameters):
    own, peer, X = fit_pair(name, 10, **PARAMETERS[parameters])
    assert_same(own, peer, X[:50])


@pytest.mark.parametrize("name", DATA)
def test_missing_values(name):
    # deeper down features tie, and rows without them show which was taken
    own, peer, X = fit_pair(name, 1, missing=True, max_depth=3)
    assert_same(own, peer, X[:50])


def test_some_rounds():
    own, peer, X = fit_pair("diabetes", 10)
    values = own.predict(X[:9], pred_contribs=True, iteration_range=(0, 4))
    matrix = xgboost.DMatrix(X[:9])
    others = peer.get_booster().predict(matrix, pred_contribs=True, iteration_range=(0, 4))
    assert_allclose(values, others, rtol=1e-3, atol=1e-3)


def test_categories():
    own, peer, frame = category_pair(4000, 1.0, n_estimators=4, max_depth=2)
    assert_same(own, peer, frame[:200])


def test_classes():
    X, y = load_wine(return_X_y=True)
    X, weight = on_a_grid(X), np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    # the same trees, see test_against_peers
    common = dict(n_estimators=5, max_depth=3, base_score=0.5, n_jobs=1)
    own = XGBClassifierLite(**common).fit(X, y, sample_weight=weight)
    same_step = dict(learning_rate=0.3 * 4 / 3, reg_lambda=4 / 3, min_child_weight=4 / 3)
    peer = xgboost.XGBClassifier(tree_method="exact", **common, **same_step)
    peer.fit(X, y, sample_weight=weight)
    values = own.predict(X, pred_contribs=True)
    others = peer.get_booster().predict(xgboost.DMatrix(X), pred_contribs=True)
    # raw scores of classes may start anywhere, as long as they start together
    values[..., -1] -= values[..., -1].mean(axis=1, keepdims=True)
    others[..., -1] -= others[..., -1].mean(axis=1, keepdims=True)
    assert_allclose(values, others, rtol=1e-3, atol=1e-4)
