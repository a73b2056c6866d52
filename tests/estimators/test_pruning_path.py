import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from sklboost import EarlyStopping, XGBClassifierLite, XGBRegressorLite

CART = dict(n_estimators=1, learning_rate=1.0, reg_lambda=0.0, min_child_weight=0.0, max_bin=1000)


def make_data(n_rows=300, seed=0):
    """Return values that are exact in float32, as scikit-learn's trees have them, and no ties."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4)).astype(np.float32).astype(float)
    y = 10 * X[:, 0] + 5 * X[:, 1] ** 2 + random.normal(size=n_rows)
    return X, y, random.uniform(0.5, 2.0, n_rows)


def assert_same_path(own, peer, factor=1.0):
    """Compare the last subtree of each alpha: rounding decides the order of equally weak links."""
    last = [
        np.append(np.diff(path.ccp_alphas) > 1e-9 * path.ccp_alphas[-1], True)
        for path in (own, peer)
    ]
    scale = peer.impurities[-1]
    for name in ("ccp_alphas", "impurities"):
        values, peers = (path[name][of] for path, of in zip((own, peer), last, strict=True))
        assert_allclose(factor * values, peers, rtol=1e-10, atol=1e-12 * scale)


@pytest.mark.parametrize(
    ("max_depth", "weighted"), [(3, False), (6, True), (None, False), (None, True)]
)
def test_regression_as_scikit_learn(max_depth, weighted):
    X, y, weight = make_data()
    weight = weight if weighted else None
    peer = DecisionTreeRegressor(random_state=0, max_depth=max_depth)
    own = XGBRegressorLite(max_depth=max_depth or 0, **CART)
    path = own.cost_complexity_pruning_path(X, y, weight)
    assert_same_path(path, peer.cost_complexity_pruning_path(X, y, weight))
    assert len(path.ccp_alphas) > 5
    assert not hasattr(own, "model_")  # nothing is fitted


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_are_gini_times_a_constant(weighted):
    X, y, weight = make_data(seed=1)
    y, weight = np.where(y > 6, "yes", "no"), weight if weighted else np.ones(len(y))
    share = np.average(y == "yes", weights=weight)
    peer = DecisionTreeClassifier(random_state=0, max_depth=5)
    own = XGBClassifierLite(max_depth=5, **CART).cost_complexity_pruning_path(X, y, weight)
    expected = peer.cost_complexity_pruning_path(X, y, weight)
    assert_same_path(own, expected, factor=2 * (share * (1 - share)) ** 2)


def test_alphas_between_those_of_the_path_leave_its_subtrees():
    X, y, weight = make_data()
    path = XGBRegressorLite(**CART).cost_complexity_pruning_path(X, y, weight)
    alphas = path.ccp_alphas
    regions = []
    for subtree in range(len(alphas)):
        alpha = 0.5 * (alphas[subtree] + np.append(alphas, alphas[-1] + 1)[subtree + 1])
        model = XGBRegressorLite(ccp_alpha=alpha, **CART).fit(X, y, weight)
        error = np.average((model.predict(X) - y) ** 2, weights=weight)
        assert_allclose(error, path.impurities[subtree], rtol=1e-6)
        regions.append(model.predict(X))
    for finer, coarser in itertools.pairwise(regions):
        # nested: rows that are together stay so
        pairs = np.unique(np.column_stack([finer, coarser]), axis=0)
        assert len(pairs) == len(np.unique(finer)) > len(np.unique(coarser))
    assert len(np.unique(regions[-1])) == 1


def test_weight_2_is_the_row_twice_and_0_none():
    X, y, _ = make_data(60)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    estimator = XGBRegressorLite(**CART)
    one = estimator.cost_complexity_pruning_path(X, y, weight)
    other = estimator.cost_complexity_pruning_path(X[rows], y[rows])
    assert_allclose(one.ccp_alphas, other.ccp_alphas, atol=1e-12)
    assert_allclose(one.impurities, other.impurities, atol=1e-12)


def test_missing_values_and_lambda():
    X, y, _ = make_data(100)
    X[::3, 0] = np.nan
    settings = CART | dict(reg_lambda=2.0, base_score=1.0)
    path = XGBRegressorLite(**settings).cost_complexity_pruning_path(X, y)
    model = XGBRegressorLite(**settings).fit(X, y)
    weights = model.model_.values[0, model.model_.nodes.left < 0]
    cost = ((model.predict(X) - y) ** 2).sum() + 2.0 * (weights**2).sum()
    assert_allclose(path.impurities[0], cost / 100, rtol=1e-6)
    root = (y - 1.0).sum() / 102
    assert_allclose(path.impurities[-1], (((y - 1 - root) ** 2).sum() + 2 * root**2) / 100)


def test_only_the_tree_is_asked_for(regression):
    X, y = regression
    plain = XGBRegressorLite(max_depth=4)
    busy = XGBRegressorLite(
        max_depth=4,
        n_estimators=50,
        learning_rate=0.1,
        ccp_alpha=3.0,
        subsample=0.5,
        early_stopping_rounds=3,
        callbacks=[EarlyStopping(2)],
        warm_start=True,
        refit=True,
    )
    one, other = (own.cost_complexity_pruning_path(X, y) for own in (plain, busy))
    assert_array_equal(one.ccp_alphas, other.ccp_alphas)
    assert_array_equal(one.impurities, other.impurities)


def test_several_classes_have_several_trees(multiclass):
    with pytest.raises(ValueError, match=r"tree for each of 3 outputs.*OneVsRestClassifier"):
        XGBClassifierLite().cost_complexity_pruning_path(*multiclass)
