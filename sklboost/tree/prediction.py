"""Prediction: from raw feature values to raw scores or leaves.

In: a model and raw values. Out: the sum of the leaf values for each row, or the leaf each row
reaches in each tree.

The one idea: rows go down a tree in blocks, all one step at a time. A step has no branch that could
be mispredicted, and while memory answers for one row the processor works on the next; a third of
the time of one row after the other. A tree's nodes stay in the cache while the block passes
through it, and the block's values while the trees pass over them.
"""

from collections.abc import Sequence

import numpy as np

from sklboost.compiling import kernel
from sklboost.parallel import next_task
from sklboost.structs import NODE_DTYPE, ROUTE_DTYPE, Model, TreeParams, records

_BLOCK_ROWS = 64


def assemble_model(
    trees: Sequence[np.ndarray],
    n_pruned: Sequence[int],
    base_score: np.ndarray,
    params: TreeParams,
    n_features: int,
) -> Model:
    """Put finished trees together with what prediction needs."""
    nodes = np.concatenate(trees, dtype=NODE_DTYPE).view(np.recarray)
    tree_starts = np.cumsum([0, *map(len, trees)])
    routes = records(len(nodes), ROUTE_DTYPE)
    depths = np.zeros(len(trees), dtype=np.int64)
    fill_routes(nodes, tree_starts, routes, np.zeros(len(nodes), dtype=np.int64), depths)
    pruned = np.array(n_pruned, dtype=np.int64)
    return Model(nodes, tree_starts, routes, depths, pruned, base_score, params, n_features)


@kernel
def fill_routes(nodes, tree_starts, routes, depth, depths):
    """Fill the routes and the trees' `depths` from the nodes; `depth`, of each node, is all 0."""
    for tree in range(len(depths)):
        root = tree_starts[tree]
        for position in range(root, tree_starts[tree + 1]):
            node, route = nodes[position], routes[position]
            is_leaf = node.left < 0
            route.threshold = node.threshold
            route.feature = 0 if is_leaf else node.feature
            route.left = position if is_leaf else root + node.left
            route.default_left = 1 if is_leaf else node.default_left
            if not is_leaf:  # children lie behind their parent, so this comes in time
                depth[root + node.left] = depth[position] + 1
                depth[root + node.right] = depth[position] + 1
            depths[tree] = max(depths[tree], depth[position])


@kernel
def walk_tree(model, tree, raw, first_row, positions):
    """Fill `positions` with the leaves, in ``model.routes``, of the rows from `first_row` on."""
    positions[:] = model.tree_starts[tree]
    for _ in range(model.depths[tree]):
        for index in range(len(positions)):
            route = model.routes[np.uint64(positions[index])]
            row = (first_row + index) * raw.row_step
            value = raw.values[np.uint64(row + route.feature * raw.feature_step)]
            goes_right = (value >= route.threshold) | ((value != value) & (route.default_left == 0))
            positions[index] = route.left + goes_right


@kernel
def add_trees(team, model, raw, trees, scratch, raw_score):
    """Add the leaf values of some trees to the raw scores; every member takes blocks of rows.

    Parameters
    ----------
    team : Team
    model : Model
    raw : RawMatrix
    trees : tuple of int
        Start and stop.
    scratch : ndarray of int64, shape (n_threads, _BLOCK_ROWS)
        Overwritten.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Added to in place, tree after tree, so in the same order for any number of threads.
    """
    n_outputs = raw_score.shape[0]
    start = next_task(team, 0) * _BLOCK_ROWS
    while start < raw.n_samples:
        positions = scratch[team.rank, : min(_BLOCK_ROWS, raw.n_samples - start)]
        for tree in range(trees[0], trees[1]):
            walk_tree(model, tree, raw, start, positions)
            scores = raw_score[tree % n_outputs]
            for index in range(len(positions)):
                scores[start + index] += model.nodes[positions[index]].value
        start = next_task(team, 0) * _BLOCK_ROWS


@kernel
def find_leaves(team, model, raw, scratch, leaves):
    """Fill ``leaves[row, tree]`` with the number of the leaf, counted from the tree's root."""
    start = next_task(team, 0) * _BLOCK_ROWS
    while start < raw.n_samples:
        positions = scratch[team.rank, : min(_BLOCK_ROWS, raw.n_samples - start)]
        for tree in range(leaves.shape[1]):
            walk_tree(model, tree, raw, start, positions)
            for index in range(len(positions)):
                leaves[start + index, tree] = positions[index] - model.tree_starts[tree]
        start = next_task(team, 0) * _BLOCK_ROWS


def allocate_scratch(n_threads: int) -> np.ndarray:
    """Make the scratch array of the two kernels above."""
    return np.empty((n_threads, _BLOCK_ROWS), dtype=np.int64)
