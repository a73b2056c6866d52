"""Which open node comes next: a queue by depth, or a heap of gains."""

import numpy as np
import pytest

from sklboost.tree.core.open_nodes import add_open, next_open, remove_open
from sklboost.tree.core.workspace import allocate_workspace
from tests.tree.growth import binned, params

pytestmark = pytest.mark.interpreted


def make_workspace(settings):
    """Return a workspace in which no node is open."""
    matrix = binned(np.arange(40.0)[:, np.newaxis])
    workspace = allocate_workspace(matrix, settings, 1, 1)
    counts = workspace.tree.counts[0]
    counts.first_open = counts.stop_open = 0
    return workspace


def open_some(workspace, settings, *nodes):
    """Open nodes given as (number, depth, gain)."""
    for node, depth, gain in nodes:
        workspace.tree.growth[node].depth = depth
        workspace.tree.splits[node].gain = gain
        add_open(node, settings, workspace.tree)


OF_ONE_DEPTH = [(3, 2, 5.0), (4, 2, 9.0), (5, 2, 9.0), (6, 2, 1.0)]


def order_of(settings, n_leaves, *nodes):
    """Return the nodes in the order in which they are split, each making one leaf more."""
    workspace = make_workspace(settings)
    tree, counts = workspace.tree, workspace.tree.counts[0]
    open_some(workspace, settings, *nodes)
    counts.n_leaves = n_leaves
    order = []
    while counts.first_open < counts.stop_open and counts.n_leaves < settings.max_leaves:
        position = next_open(settings, tree)
        order.append(int(tree.open_nodes[position]))
        remove_open(position, settings, tree)
        counts.n_leaves += 1
    return order


def test_nodes_of_one_depth_are_split_in_order():
    assert order_of(params(max_leaves=8), 4, *OF_ONE_DEPTH) == [3, 4, 5, 6]
    assert order_of(params(), 4, *OF_ONE_DEPTH) == [3, 4, 5, 6]


@pytest.mark.parametrize(("budget", "expected"), [(1, [4]), (2, [4, 5]), (3, [4, 5, 3])])
def test_of_a_depth_that_does_not_fit_the_largest_gains(budget, expected):
    assert order_of(params(max_leaves=4 + budget), 4, *OF_ONE_DEPTH) == expected


def test_a_depth_that_fits_goes_before_larger_gains_of_the_next():
    nodes = [(3, 2, 5.0), (4, 2, 1.0), (7, 3, 99.0), (8, 3, 50.0), (9, 3, 70.0)]
    assert order_of(params(max_leaves=6), 4, *nodes) == [3, 4]
    assert order_of(params(max_leaves=7), 4, *nodes) == [3, 4, 7]
    assert order_of(params(max_leaves=8), 4, *nodes) == [3, 4, 7, 9]


def test_best_first():
    settings = params(grow_policy="lossguide", max_leaves=8)
    assert order_of(settings, 4, *OF_ONE_DEPTH) == [4, 5, 3, 6]  # of equal ones the lower number
    backwards = OF_ONE_DEPTH[::-1]  # whatever their order in the list
    assert order_of(settings, 4, *backwards) == [4, 5, 3, 6]
    deeper = [*OF_ONE_DEPTH, (9, 5, 9.5)]
    assert order_of(settings, 4, *deeper) == [9, 4, 5, 3]


def test_a_node_is_taken_out_and_the_others_keep_their_order():
    workspace = make_workspace(params())
    settings = params()
    open_some(workspace, settings, *OF_ONE_DEPTH)
    remove_open(2, settings, workspace.tree)
    counts = workspace.tree.counts[0]
    left = workspace.tree.open_nodes[counts.first_open : counts.stop_open]
    assert list(left) == [3, 4, 6]
    remove_open(counts.first_open, settings, workspace.tree)
    left = workspace.tree.open_nodes[counts.first_open : counts.stop_open]
    assert list(left) == [4, 6]


def test_a_heap_gives_the_nodes_in_order_of_gain_whenever_they_come():
    settings = params(grow_policy="lossguide", max_depth=0, max_leaves=40)
    workspace = make_workspace(settings)
    tree, counts = workspace.tree, workspace.tree.counts[0]
    counts.n_leaves = 1
    random = np.random.default_rng(0)
    gains = random.integers(0, 8, size=70).astype(float)  # many ties
    present = []
    for node, gain in enumerate(gains):
        open_some(workspace, settings, (node, 1, gain))
        present.append((-gain, node))
        for _ in range(random.integers(0, 3)):
            if present:
                first = min(present)
                position = next_open(settings, tree)
                assert tree.open_nodes[position] == first[1]
                remove_open(position, settings, tree)
                present.remove(first)
        assert counts.stop_open - counts.first_open == len(present)
