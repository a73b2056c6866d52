"""From grown trees to a model: the nodes once more, laid out for prediction.

In: the nodes of each tree. Out: a :class:`~sklboost.structs.Model`.
"""

from collections.abc import Sequence

import numpy as np

from sklboost.compiling import kernel
from sklboost.structs import (
    ALL_ROWS,
    NODE_DTYPE,
    ROUTE_DTYPE,
    TOP_LEVELS,
    TOP_SPLIT_DTYPE,
    Model,
    TreeParams,
    TreeTops,
    records,
)


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
    depth = np.zeros(len(nodes), dtype=np.int64)
    fill_routes(nodes, tree_starts, routes, depth)
    return Model(
        nodes=nodes,
        tree_starts=tree_starts,
        routes=routes,
        values=nodes.value.copy(),
        tops=_tree_tops(nodes, tree_starts, depth),
        depths=np.maximum.reduceat(depth, tree_starts[:-1]),
        n_pruned=np.array(n_pruned, dtype=np.int64),
        base_score=base_score,
        params=params,
        n_features=n_features,
    )


@kernel
def fill_routes(nodes, tree_starts, routes, depth):
    """Fill the routes and the depth of every node; `depth` must be all 0."""
    for tree in range(len(tree_starts) - 1):
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


def _tree_tops(nodes: np.recarray, tree_starts: np.ndarray, depth: np.ndarray) -> TreeTops:
    is_top = (nodes.left >= 0) & (depth < TOP_LEVELS)
    n_splits, n_trees = int(is_top.sum()), len(tree_starts) - 1
    tops = TreeTops(
        splits=records(n_splits, TOP_SPLIT_DTYPE),
        thresholds=np.empty(n_splits),
        thresholds32=np.empty(n_splits, dtype=np.float32),
        starts=np.empty(n_trees + 1, dtype=np.int64),
        landings=np.empty((n_trees, 2**TOP_LEVELS), dtype=np.int32),
        values=np.empty((n_trees, 2**TOP_LEVELS)),
        features=np.unique(nodes.feature[is_top]).astype(np.int64),
    )
    place = np.zeros(len(nodes), dtype=np.int64)
    fill_tops(nodes, tree_starts, depth, place, tops)
    tops.splits.column[:] = np.searchsorted(tops.features, tops.splits.column)
    tops.thresholds32[:] = _rounded_up(tops.thresholds)
    tops.values[:] = nodes.value[tops.landings]
    return tops


@kernel
def fill_tops(nodes, tree_starts, depth, place, tops):
    """Fill the first levels of all trees, the features as ``splits.column``; `place` is scratch."""
    n_splits = 0
    for tree in range(len(tree_starts) - 1):
        root = tree_starts[tree]
        place[root] = 1
        tops.starts[tree] = n_splits
        for position in range(root, tree_starts[tree + 1]):
            node, level = nodes[position], depth[position]
            if level > TOP_LEVELS:
                continue
            if node.left < 0 or level == TOP_LEVELS:
                width = 1 << (TOP_LEVELS - level)
                first = place[position] * width - (1 << TOP_LEVELS)
                tops.landings[tree, first : first + width] = position
                continue
            split = tops.splits[n_splits]
            split.level, split.column, split.place = level, node.feature, place[position]
            split.missing_right = ALL_ROWS if node.default_left == 0 else np.uint64(0)
            tops.thresholds[n_splits] = node.threshold
            place[root + node.left] = 2 * place[position]
            place[root + node.right] = 2 * place[position] + 1
            n_splits += 1
    tops.starts[-1] = n_splits


def _rounded_up(thresholds: np.ndarray) -> np.ndarray:
    """Give the smallest float32 that is not below each threshold."""
    with np.errstate(over="ignore"):  # beyond float32 lies infinity, which is right
        nearest = thresholds.astype(np.float32)
    return np.where(nearest < thresholds, np.nextafter(nearest, np.float32(np.inf)), nearest)
