from itertools import pairwise

import numpy as np
import pytest

from sklboost.displays.tree import place_nodes

pytestmark = pytest.mark.interpreted

LEAF = (-1, -1)


def random_tree(random, n_splits):
    """Return the children of a tree that grows at a random leaf, so also long thin ones."""
    children, leaves = [LEAF], [0]
    for _ in range(n_splits):
        node = leaves.pop(random.integers(len(leaves)))
        children[node] = (len(children), len(children) + 1)
        leaves += children[node]
        children += [LEAF, LEAF]
    return children


def depths_of(children):
    depths = [0] * len(children)
    for node, pair in enumerate(children):
        for child in pair:
            if child >= 0:
                depths[child] = depths[node] + 1
    return depths


def test_a_single_node():
    assert place_nodes([LEAF], [10.0]) == ([5.0], 10.0)


def test_three_nodes_side_by_side():
    centres, width = place_nodes([(1, 2), LEAF, LEAF], [4.0, 10.0, 20.0], space=2.0)
    # from 0 to 10, and from 12 to 32; the root in the middle between the two centres
    assert centres == [13.5, 5.0, 22.0]
    assert width == 32.0


def test_a_wide_parent_reaches_beyond_its_children():
    centres, width = place_nodes([(1, 2), LEAF, LEAF], [40.0, 4.0, 4.0])
    assert centres == [20.0, 18.0, 22.0]
    assert width == 40.0


def test_subtrees_are_as_close_as_they_fit():
    # the right one is a single node: the deepest nodes of the left one pass below it
    children = [(1, 2), (3, 4), LEAF, LEAF, (5, 6), LEAF, LEAF]
    centres, width = place_nodes(children, [2.0] * 7)
    assert depths_of(children) == [0, 1, 1, 2, 2, 3, 3]
    assert centres[2] - centres[1] == 2.0
    assert width < 7.0


@pytest.mark.parametrize("seed", range(8))
def test_no_two_nodes_of_a_depth_overlap_and_parents_are_in_the_middle(seed):
    random = np.random.default_rng(seed)
    children = random_tree(random, int(random.integers(1, 60)))
    widths, space = random.uniform(1.0, 30.0, len(children)), 3.0
    centres, width = place_nodes(children, widths, space)
    centres, depths = np.array(centres), depths_of(children)
    assert (centres - widths / 2).min() == pytest.approx(0.0, abs=1e-9)
    assert (centres + widths / 2).max() == pytest.approx(width)
    for depth in set(depths):
        side_by_side = np.flatnonzero(np.array(depths) == depth)
        for left, right in pairwise(side_by_side[np.argsort(centres[side_by_side])]):
            free = (centres[right] - widths[right] / 2) - (centres[left] + widths[left] / 2)
            assert free >= space - 1e-9
    for node, (left, right) in enumerate(children):
        if left >= 0:
            assert centres[node] == pytest.approx((centres[left] + centres[right]) / 2)
            assert centres[left] < centres[right]
            assert depths[left] == depths[right] == depths[node] + 1
