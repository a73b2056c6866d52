import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeRegressor

from sklboost.engine.model import NODE_DTYPE
from sklboost.engine.structs import records
from sklboost.inspection.nested_subtrees import pruning_path
from tests.tree.growth import make_nodes, params


def as_nodes(tree):
    """Return the nodes of one of scikit-learn's trees as this package has them."""
    nodes = records(tree.node_count, NODE_DTYPE)
    nodes.left, nodes.right = tree.children_left, tree.children_right
    return nodes


def both_paths(X, y):
    """Return scikit-learn's path and ours, for scikit-learn's tree."""
    peer = DecisionTreeRegressor(random_state=0).fit(X, y)
    one = np.ones(len(y))
    own = pruning_path(as_nodes(peer.tree_), peer.apply(X), y.mean() - y, one, params())
    return own, peer.cost_complexity_pruning_path(X, y)


def test_worked_example_root_before_its_branch():
    # dosages 10 to 35: the gains are 120.33 and below 140.17, so both splits together gain less
    # for each of their leaves than the lower one alone
    y = np.array([-10.0, 7.0, 8.0, -7.0])
    nodes = make_nodes(dict(left=1, right=2), {}, dict(left=3, right=4), {}, {})
    leaf, one = np.array([1, 3, 3, 4]), np.ones(4)
    alphas, impurities = pruning_path(nodes, leaf, y.mean() - y, one, params())
    assert_allclose(alphas, [0, (120 + 1 / 3 + 140 + 1 / 6) / 2 / 4], rtol=1e-14)
    assert_allclose(impurities, [0.5 / 4, (0.5 + 260.5) / 4], rtol=1e-14)


def test_equal_links_go_one_by_one_in_order():
    # both pairs of leaves gain 8, and the left one of two pairs below another 2: numbers whose
    # sums are exact, so that ties are
    X = np.arange(16.0).reshape(-1, 1)
    y = np.repeat([0.0, 4.0, 40.0, 44.0, 100.0, 104.0, 140.0, 144.0], 2)
    own, expected = both_paths(X, y)
    assert_array_equal(own[0], expected.ccp_alphas)
    assert_array_equal(own[1], expected.impurities)
    assert_array_equal(own[0], [0, 1, 1, 1, 1, 200, 200, 2500])


def test_a_single_leaf():
    nodes, one = make_nodes({}), np.ones(3)
    own = pruning_path(nodes, np.zeros(3, dtype=int), np.array([-1.0, 0, 1]), one, params())
    assert_array_equal(own[0], [0])
    assert_allclose(own[1], [2 / 3])


def test_lambda_shrinks_leaves_and_counts_as_impurity():
    nodes, y = make_nodes(dict(left=1, right=2), {}, {}), np.array([-10.0, 7.0, 8.0])
    own = pruning_path(nodes, np.array([1, 2, 2]), -y, np.ones(3), params(reg_lambda=1.0))

    def cost(values):
        leaf_weight = sum(values) / (len(values) + 1)
        return sum((v - leaf_weight) ** 2 for v in values) + leaf_weight**2

    apart, together = cost([-10]) + cost([7, 8]), cost([-10, 7, 8])
    assert_allclose(own[1], [apart / 3, together / 3])
    assert_allclose(own[0], [0, (together - apart) / 3])


@pytest.mark.parametrize("n_rows", [3_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_many_leaves_take_no_time(n_rows):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(n_rows, 2)), random.normal(size=n_rows)
    own, expected = both_paths(X, y)
    assert_allclose(own[0], expected.ccp_alphas, rtol=1e-9, atol=1e-14)
    assert_allclose(own[1], expected.impurities, rtol=1e-9, atol=1e-14)
