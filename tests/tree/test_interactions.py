import numpy as np
import pytest

from sklboost.boosting.settings import feature_rules
from sklboost.tree.core.workspace import allocate_workspace
from sklboost.tree.options.column_sampling import (
    allocate_column_sample,
    keep_allowed,
    list_node_features,
)
from tests.tree.growth import binned, params

pytestmark = pytest.mark.interpreted

N_FEATURES = 6


def make_path(*features):
    """Return a tree of one path, split on one feature after the other, and its last node."""
    tree = allocate_workspace(binned(np.zeros((50, 1))), params(max_depth=10), 1, 1).tree
    for node, feature in enumerate([*features, -1]):
        tree.growth[node].parent, tree.growth[node].depth = node - 1, node
        tree.nodes[node].feature = feature
    return tree, np.int64(len(features))


def allowed(groups, *path):
    tree, node = make_path(*path)
    rules, features = feature_rules(N_FEATURES, groups=groups), np.arange(N_FEATURES)
    scratch = np.empty(rules.groups.shape[1], dtype=np.uint64)
    return list(features[: keep_allowed(features, node, tree, rules, scratch)])


@pytest.mark.parametrize(
    ("groups", "path", "expected"),
    [
        ([[0, 1], [2, 3, 4]], [], [0, 1, 2, 3, 4, 5]),
        ([[0, 1], [2, 3, 4]], [0], [0, 1]),
        ([[0, 1], [2, 3, 4]], [0, 0, 1], [0, 1]),
        ([[0, 1], [2, 3, 4]], [4], [2, 3, 4]),
        ([[0, 1], [2, 3, 4]], [5], [5]),  # of no group
        ([[0, 1], [1, 2, 3]], [1], [0, 1, 2, 3]),  # of two
        ([[0, 1], [1, 2, 3]], [1, 3], [1, 2, 3]),
        ([[0, 1], [1, 2, 3]], [1, 0], [0, 1]),
        ([], [2, 2], [2]),
        ("no_interactions", [], [0, 1, 2, 3, 4, 5]),
        ("no_interactions", [2], [2]),
        ("pairwise", [2], [0, 1, 2, 3, 4, 5]),
        ("pairwise", [2, 2, 2], [0, 1, 2, 3, 4, 5]),
        ("pairwise", [2, 5, 2], [2, 5]),
    ],
)
def test_what_may_follow(groups, path, expected):
    assert allowed(groups, *path) == expected


@pytest.mark.parametrize("n_groups", [63, 64, 65, 200])
def test_any_number_of_groups(n_groups):
    groups = [[0, 1]] * (n_groups - 1) + [[1, 2, 3]]
    assert allowed(groups, 2) == [1, 2, 3]
    assert allowed(groups, 1) == [0, 1, 2, 3]
    assert allowed(groups, 1, 0) == [0, 1]


def test_a_node_draws_from_what_is_allowed():
    tree, node = make_path(0)
    sample = allocate_column_sample(feature_rules(N_FEATURES, groups=[[0, 4]]), N_FEATURES, 1)
    settings = params(colsample_bynode=0.5)
    assert list_node_features(node, 0, tree, settings, sample) == 1
    assert sample.of_node[0, 0] in (0, 4)
    sample.of_tree[:1], sample.n_of_tree[0] = 3, 1  # the tree was dealt others
    assert list_node_features(node, 0, tree, settings, sample) == 0
