import numpy as np
import pytest

from sklboost.tree.core.frontier import add_open, can_be_split, has_slots, next_open, remove_open
from sklboost.tree.core.workspace import allocate_workspace, max_nodes
from tests.tree.growth import binned, params

pytestmark = pytest.mark.interpreted


def make_workspace(settings=None, n_rows=40):
    """Return a workspace in which all slots are free and no node is open."""
    matrix = binned(np.arange(float(n_rows))[:, np.newaxis])
    workspace = allocate_workspace(matrix, settings or params(max_depth=4), 1, 1)
    counts, pool = workspace.tree.counts[0], workspace.pool
    counts.n_free = len(pool.free_slots)
    pool.free_slots[:] = np.arange(counts.n_free)
    counts.first_open = counts.stop_open = counts.n_frontier = 0
    counts.n_nodes = counts.n_leaves = 1
    workspace.tree.growth.slot[:] = -1
    return workspace


OF_ONE_DEPTH = [(3, 2, 5.0), (4, 2, 9.0), (5, 2, 9.0), (6, 2, 1.0)]


def open_some(workspace, settings, *nodes):
    """Open nodes given as (number, depth, gain)."""
    for node, depth, gain in nodes:
        workspace.tree.growth[node].depth = depth
        workspace.tree.splits[node].gain = gain
        add_open(node, settings, workspace.tree)


# --- slots ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_free", "own", "n_reserved", "expected"),
    [
        (1, True, 0, True),  # the parent's becomes the larger child's
        (1, False, 0, False),  # nobody else has one to give
        (2, False, 0, True),
        (2, False, 1, False),
        (2, True, 1, True),
        (2, True, 2, False),
        (0, True, 0, False),
    ],
)
def test_whether_children_can_have_histograms(n_free, own, n_reserved, expected):
    workspace = make_workspace()
    open_some(workspace, params(), (3, 2, 1.0))
    workspace.tree.growth[3].slot = 0 if own else -1
    workspace.tree.counts[0].n_free = n_free
    assert has_slots(3, n_reserved, workspace.tree, workspace.pool) == expected


def test_the_last_to_be_split_give_up_their_slots():
    workspace = make_workspace()
    tree, counts = workspace.tree, workspace.tree.counts[0]
    open_some(workspace, params(), *OF_ONE_DEPTH)
    for slot, (node, *_) in enumerate(OF_ONE_DEPTH):
        tree.growth[node].slot = slot
    counts.n_free = 0
    assert not has_slots(4, np.int64(1), tree, workspace.pool)  # not for a second one's sake
    assert has_slots(3, np.int64(0), tree, workspace.pool)
    assert [int(tree.growth[node].slot) for node, *_ in OF_ONE_DEPTH] == [0, 1, 2, -1]
    counts.n_free = 0
    assert has_slots(5, np.int64(0), tree, workspace.pool)
    assert [int(tree.growth[node].slot) for node, *_ in OF_ONE_DEPTH] == [0, -1, 2, -1]
    assert workspace.pool.free_slots[0] == 1


@pytest.mark.parametrize(
    ("n_rows", "limits", "expected"),
    [
        (1000, dict(max_depth=3), 15),
        (5, dict(max_depth=3), 9),  # a leaf for each row
        (1, dict(max_depth=3), 1),
        (1000, dict(max_depth=0, max_leaves=7), 13),
        (1000, dict(max_depth=2, max_leaves=7), 7),
        (1000, dict(max_depth=0), 1999),
        (1000, dict(max_depth=40), 1999),
    ],
)
def test_largest_number_of_nodes(n_rows, limits, expected):
    assert max_nodes(n_rows, params(**limits)) == expected


# --- which open node comes next: a queue by depth, or a heap of gains ----------------------------


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


@pytest.mark.parametrize(("budget", "expected"), [(1, [4]), (2, [4, 5]), (3, [4, 5, 3])])
def test_of_a_depth_that_does_not_fit_the_largest_gains(budget, expected):
    assert order_of(params(max_leaves=4 + budget), 4, *OF_ONE_DEPTH) == expected


def test_a_depth_that_fits_goes_before_larger_gains_of_the_next():
    nodes = [(3, 2, 5.0), (4, 2, 1.0), (7, 3, 99.0), (8, 3, 50.0), (9, 3, 70.0)]
    assert order_of(params(max_leaves=6), 4, *nodes) == [3, 4]
    assert order_of(params(max_leaves=7), 4, *nodes) == [3, 4, 7]
    assert order_of(params(max_leaves=8), 4, *nodes) == [3, 4, 7, 9]


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


# --- making a split ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cover", "n_rows", "least", "expected"),
    [
        (4.0, 2, 0.0, True),
        (4.0, 1, 0.0, False),  # a single row
        (4.0, 5, 2.0, True),
        (4.0, 5, 2.1, False),
    ],
)
def test_can_be_split(cover, n_rows, least, expected):
    settings = params(min_child_weight=least, max_depth=1)
    tree = allocate_workspace(binned(np.zeros((9, 1))), settings, 1, 1).tree
    tree.nodes[0].cover, tree.growth[0].n_rows = cover, n_rows
    assert can_be_split(0, settings, tree) == expected
