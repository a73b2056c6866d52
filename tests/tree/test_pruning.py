import numpy as np
import pytest

from sklboost.tree.core.pruning import close_gaps, name_final_leaves, prune, prune_weakest_links
from tests.tree.growth import binned, grow, growing_tree, make_nodes, params

pytestmark = pytest.mark.interpreted


def make_tree(*nodes):
    """Return a tree of (parent, gain) pairs in the order of growth; children come in pairs."""
    table = make_nodes(*[dict(gain=gain, value=float(10 + i)) for i, (_, gain) in enumerate(nodes)])
    tree = growing_tree(table)
    tree.outputs.value[:, 0] = table.value
    for node, (parent, _) in enumerate(nodes):
        tree.growth[node].parent = parent
        if parent >= 0:
            side = "right" if table[parent].left >= 0 else "left"
            setattr(table[parent], side, node)
            table[parent].feature, table[parent].threshold = 0, 0.5
            table[parent].default_left = 1
    return tree


def pruned(gamma, *nodes):
    tree = make_tree(*nodes)
    prune(tree, params(gamma=gamma))
    name_final_leaves(tree)
    return tree


def links(tree):
    n_nodes = tree.counts[0].n_nodes
    return list(zip(tree.nodes.left[:n_nodes], tree.nodes.right[:n_nodes], strict=True))


#       0            gains: node 0 120.3, node 2 140.2
#     1   2
#        3 4
WORKED = [(-1, 120.3), (0, 0.0), (0, 140.2), (2, 0.0), (2, 0.0)]


def test_a_single_leaf():
    tree = pruned(5.0, (-1, 0.0))
    close_gaps(tree)
    assert links(tree) == [(-1, -1)]
    assert list(tree.growth.final) == [0]


#          0
#      1       2
#    3   4   5   6
#   7 8          9 10
PARENTS = [-1, 0, 0, 1, 1, 2, 2, 3, 3, 6, 6]
TWO_SIDES = list(zip(PARENTS, [1, 1, 9, 1, 0, 0, 9, 0, 0, 0, 0], strict=True))


def test_a_weak_branch_goes_from_the_bottom_up():
    tree = pruned(5.0, *TWO_SIDES)
    # the splits of 3 and 1 go; 0 stays for the sake of 2 and 6, although its gain is as small
    assert list(tree.growth.final) == [0, 1, 2, 1, 1, 5, 6, 1, 1, 9, 10]
    assert tree.counts[0].n_pruned == 2
    assert tree.counts[0].n_leaves == 4
    for node in (1, 3):  # nothing of a split is left in them
        leaf = tree.nodes[node]
        assert (leaf.left, leaf.right, leaf.feature, leaf.default_left) == (-1, -1, -1, 0)
        assert leaf.gain == 0.0
        assert np.isnan(leaf.threshold)
    close_gaps(tree)
    assert links(tree) == [(1, 2), (-1, -1), (3, 4), (-1, -1), (5, 6), (-1, -1), (-1, -1)]
    assert list(tree.nodes.value[:7]) == [10, 11, 12, 15, 16, 19, 20]
    assert list(tree.outputs.value[:7, 0]) == [10, 11, 12, 15, 16, 19, 20]
    assert list(tree.nodes.gain[:7]) == [1, 0, 9, 0, 9, 0, 0]


def plain_prune(nodes, node, gamma):
    """Return the nested tuples of what is left below a node."""
    if nodes[node]["left"] < 0:
        return nodes[node]["value"]
    children = [plain_prune(nodes, nodes[node][side], gamma) for side in ("left", "right")]
    if not any(isinstance(child, tuple) for child in children) and nodes[node]["gain"] < gamma:
        return nodes[node]["value"]
    return (nodes[node]["gain"], *children)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("gamma", [0.0, 0.3, 2.0])
def test_pruning_of_random_trees(seed, gamma):
    random = np.random.default_rng(seed)
    X, gradient = random.normal(size=(50, 2)).round(1), random.normal(size=50).astype(np.float32)
    matrix, hessian = binned(X), np.ones(50, dtype=np.float32)
    full = params(max_depth=5, pruning="full", reg_lambda=1.0)
    whole = grow(matrix, gradient, hessian, full._replace(prune_gain=-np.inf))
    cut = grow(matrix, gradient, hessian, full._replace(prune_gain=gamma))
    expected = plain_prune(whole.nodes, 0, gamma)
    assert plain_prune(cut.nodes, 0, -np.inf) == expected
    assert gamma < 2.0 or len(cut.nodes) < len(whole.nodes)
    counts = cut.workspace.tree.counts[0]
    assert len(whole.nodes) - len(cut.nodes) == 2 * counts.n_pruned
    assert counts.n_leaves == (len(cut.nodes) + 1) // 2


# --- cost-complexity pruning


def test_a_branch_goes_though_its_last_split_gains_enough():
    # the worked example: 120.3 and 140.2 are 130.25 a split, of 4 rows
    tree = make_tree(*WORKED)
    tree.nodes[0].cover = 4.0
    prune_weakest_links(tree, params(ccp_alpha=32.5))
    name_final_leaves(tree)
    assert tree.counts[0].n_pruned == 0
    prune_weakest_links(tree, params(ccp_alpha=32.6))
    name_final_leaves(tree)
    assert (tree.counts[0].n_pruned, tree.counts[0].n_leaves) == (2, 1)


def test_a_branch_worth_nothing_goes():
    tree = make_tree((-1, 4.0), (0, 0), (0, 0))
    tree.nodes[0].cover = 8.0
    prune_weakest_links(tree, params(ccp_alpha=0.5))
    name_final_leaves(tree)
    assert tree.counts[0].n_leaves == 1


def cheapest(nodes, node, alpha):
    """Return the least cost of a subtree, and its leaves; of equal ones the smaller."""
    if nodes[node].left < 0:
        return 0.0, [node]
    kept, leaves = -nodes[node].gain + alpha, []
    for side in (nodes[node].left, nodes[node].right):
        cost, below = cheapest(nodes, side, alpha)
        kept, leaves = kept + cost, leaves + below
    return (kept, leaves) if kept < 0.0 else (0.0, [node])


@pytest.mark.parametrize("seed", range(3))
def test_least_cost_of_all_subtrees(seed):
    random = np.random.default_rng(seed)
    X, gradient = random.normal(size=(60, 2)).round(1), random.normal(size=60).astype(np.float32)
    matrix, hessian = binned(X), np.ones(60, dtype=np.float32)
    settings = params(max_depth=6)
    whole, n_leaves = grow(matrix, gradient, hessian, settings), []
    for alpha in (0.005, 0.01, 0.015, 0.02, 0.5):
        cut = grow(matrix, gradient, hessian, settings._replace(ccp_alpha=alpha))
        _, leaves = cheapest(whole.nodes.view(np.recarray), 0, alpha * 60)
        is_leaf = cut.nodes["left"] < 0
        assert sorted(cut.nodes["value"][is_leaf]) == sorted(whole.nodes["value"][leaves])
        # rows have the values of these leaves
        assert sorted(set(cut.raw_score)) == sorted(set(whole.nodes["value"][leaves]))
        counts = cut.workspace.tree.counts[0]
        assert len(whole.nodes) - len(cut.nodes) == 2 * counts.n_pruned
        assert counts.n_leaves == is_leaf.sum()
        n_leaves.append(is_leaf.sum())
    assert n_leaves[0] > n_leaves[2] > n_leaves[-1] == 1
