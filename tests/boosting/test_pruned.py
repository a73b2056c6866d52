"""The model remembers on request which splits pruning removed."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite

pytestmark = pytest.mark.interpreted

DOSAGE = np.array([[10.0], [20.0], [25.0], [35.0]])
EFFECT = np.array([-10.0, 7.0, 8.0, -7.0])


GROWING = dict(n_estimators=1, max_depth=2, reg_lambda=0, base_score=0.5, learning_rate=1)


def fitted(X=DOSAGE, y=EFFECT, **settings):
    return XGBRegressorLite(**(GROWING | settings)).fit(X, y)


def test_the_whole_tree_is_remembered():
    whole, pruned = fitted(), fitted(gamma=150.0, keep_pruned=True)
    assert len(pruned.model_.nodes) == 1
    assert pruned.model_.unpruned.nodes.tobytes() == whole.model_.nodes.tobytes()
    assert fitted(gamma=150.0).model_.unpruned is None


def make_data(n_rows=200):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 3))
    X[random.random(X.shape) < 0.1] = np.nan
    categories = random.integers(0, 9, n_rows)
    y = np.nan_to_num(X[:, 0]) + 0.3 * categories + random.normal(size=n_rows)
    return np.column_stack([X, categories]), y


SETTINGS = {
    "gamma": dict(gamma=2.0),
    "weakest links": dict(ccp_alpha=0.005),
    "full": dict(gamma=1.0, pruning="full", grow_policy="lossguide", max_leaves=20),
    "categories": dict(gamma=2.0, categorical_features=[3]),
    "vectors": dict(gamma=30.0, multi_strategy="multi_output_tree"),
    "dart": dict(gamma=2.0, booster="dart", rate_drop=0.4, random_state=0),
    "quantiles": dict(gamma=0.5, objective="reg:absoluteerror"),
    "linear": dict(gamma=2.0, linear_tree=True),
    "forest": dict(gamma=2.0, num_parallel_tree=3, subsample=0.7, random_state=0),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_model_is_the_same_bits(name):
    X, y = make_data()
    y = np.column_stack([y, y**2]) if name == "vectors" else y
    settings = dict(n_estimators=5, max_depth=4) | SETTINGS[name]
    plain, kept = (
        XGBRegressorLite(keep_pruned=keep, **settings).fit(X, y) for keep in (False, True)
    )
    one, other = plain.model_, kept.model_
    assert one.n_pruned.sum() > 0
    for field in ("nodes", "outputs", "values", "n_pruned", "tree_starts"):
        assert getattr(one, field).tobytes() == getattr(other, field).tobytes()
    assert_array_equal(kept.predict(X), plain.predict(X))
    assert_array_equal(kept.apply(X), plain.apply(X))
    # as many splits more as were pruned, of which nothing was pruned
    assert not other.unpruned.n_pruned.any()
    sizes = np.diff(other.unpruned.starts)
    assert_array_equal(sizes, np.diff(other.tree_starts) + 2 * other.n_pruned)


def test_continued_and_early_stopped_models_remember_too():
    X, y = make_data()
    settings = dict(n_estimators=4, max_depth=3, gamma=2.0)
    first = XGBRegressorLite(**settings).fit(X, y)
    more = XGBRegressorLite(**settings, keep_pruned=True).fit(X, y, init_model=first)
    sizes = np.diff(more.model_.unpruned.starts) - np.diff(more.model_.tree_starts)
    assert_array_equal(sizes[:4], 0)  # what nobody remembered
    assert_array_equal(sizes[4:], 2 * more.model_.n_pruned[4:])
    assert sizes[4:].sum() > 0
    again = XGBRegressorLite(**settings).fit(X, y, init_model=more)
    assert_array_equal(
        np.diff(again.model_.unpruned.starts)[:8] - sizes, np.diff(more.model_.tree_starts)
    )
    early = XGBRegressorLite(
        n_estimators=40, gamma=2.0, keep_pruned=True, early_stopping_rounds=2, refit=True
    ).fit(X, y, X_val=X[::3], y_val=-y[::3])
    assert len(early.model_.unpruned.n_pruned) == early.model_.n_trees < 40
