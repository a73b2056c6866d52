import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.boosting.settings import feature_rules
from sklboost.tree.core.pruning import name_final_leaves
from sklboost.tree.options.constrained_weights import narrow_bounds, order_renewed_leaves
from tests.tree.growth import growing_tree, make_nodes, params

pytestmark = pytest.mark.interpreted

inf = np.inf


def make_tree(weights, *nodes):
    """Return a tree of these nodes, children after their parents, with leaf weights."""
    tree = growing_tree(make_nodes(*nodes))
    tree.outputs.weight[:, 0] = weights
    growth = tree.growth
    growth.parent[:] = 0
    growth.parent[0] = -1
    for node, own in enumerate(nodes):
        if "left" in own:
            growth.parent[own["left"] : own["left"] + 2] = node
    name_final_leaves(tree)
    return tree


def split(left, threshold=0.0, feature=0):
    return dict(left=left, right=left + 1, threshold=threshold, feature=feature)


def bounds(tree):
    return [(own.lower, own.upper) for own in tree.outputs[:, 0]]


@pytest.mark.parametrize(
    ("sign", "threshold", "expected"),
    [
        (1, 0.0, [(-5.0, 2.0), (2.0, 9.0)]),
        (-1, 0.0, [(2.0, 9.0), (-5.0, 2.0)]),
        (0, 0.0, [(-5.0, 9.0), (-5.0, 9.0)]),
        (1, -inf, [(-5.0, 9.0), (-5.0, 9.0)]),  # missing values alone
    ],
)
def test_halfway(sign, threshold, expected):
    tree = make_tree([0.0, 1.0, 3.0], split(1, threshold), {}, {})
    tree.outputs.lower[0], tree.outputs.upper[0] = -5.0, 9.0
    narrow_bounds(0, tree, feature_rules(1, signs=[sign]))
    assert bounds(tree)[1:] == expected


def renewed(signs, weights, *nodes):
    """Return the values of the leaves, in the order of their numbers, at a learning rate of 0.5."""
    tree = make_tree(weights, *nodes)
    order_renewed_leaves(tree, feature_rules(2, signs=signs), params(learning_rate=0.5))
    return list(tree.nodes.value[tree.nodes.left < 0])


#      0          covers 1, 2, 3 and 2
#    1   2
#   3 4 5 6
LEAVES = [dict(cover=1.0), dict(cover=2.0), dict(cover=3.0), dict(cover=2.0)]
FOUR = (split(1), split(3, feature=1) | dict(cover=3.0), split(5, feature=1) | dict(cover=5.0))


def test_leaves_that_are_free_keep_their_weights():
    weights = [0.0, 0.0, 0.0, 80.0, -60.0, 10.0, -20.0]
    assert renewed([0, 0], weights, *FOUR, *LEAVES) == [40.0, -30.0, 5.0, -10.0]


def test_bounds_are_drawn_anew():
    # means: 30 on the left, 20 on the right, so 25 is the bound
    weights = [0.0, 0.0, 0.0, 10.0, 40.0, 8.0, 38.0]
    assert renewed([1, 0], weights, *FOUR, *LEAVES) == [5.0, 12.5, 12.5, 19.0]
    assert renewed([-1, 0], weights, *FOUR, *LEAVES) == [12.5, 20.0, 4.0, 12.5]


def test_a_leaf_that_pruning_left():
    #      0
    #    1   2, pruned: its children 3 and 4 are nobody's any more
    nodes = (split(1), dict(cover=1.0), dict(cover=2.0), dict(cover=1.0), dict(cover=1.0))
    tree = make_tree([0.0, 6.0, 2.0, 50.0, -50.0], *nodes)
    tree.growth.parent[3:] = 2
    name_final_leaves(tree)
    order_renewed_leaves(tree, feature_rules(1, signs=[1]), params())
    assert_array_equal(tree.nodes.value[:3], [0.0, 4.0, 4.0])
