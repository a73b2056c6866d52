"""From grown trees to a model: the nodes once more, laid out for prediction.

In: trees. Out: a :class:`~sklboost.engine.model.Model`.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.model import (
    ALL_ROWS,
    NO_BITS,
    ROUTE_DTYPE,
    TOP_DEPTH,
    TOP_SPLIT_DTYPE,
    Model,
    Trees,
    TreeTops,
)
from sklboost.engine.structs import records

# Beyond, a float64 is no finite float32.
_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)


def assemble_model(trees: Trees, base_score: np.ndarray, n_features: int) -> Model:
    """Put finished trees together with what prediction needs."""
    nodes, starts = trees.nodes.view(np.recarray), trees.starts
    depth = np.zeros(len(nodes), dtype=np.int64)
    routes = records(len(nodes), ROUTE_DTYPE)
    fill_routes(nodes, starts, routes, depth)
    is_top = (nodes.left >= 0) & (depth < TOP_DEPTH)
    outputs = trees.outputs.view(np.recarray)
    values = np.empty((max(1, outputs.shape[1]), len(nodes)))
    fill_node_values(nodes, outputs, values)
    features = np.unique(nodes.feature[is_top])
    tops = allocate_tops(int(is_top.sum()), len(starts) - 1, len(values), features)
    tops = tops._replace(bits=trees.bits)
    fill_tops(nodes, starts, values, depth, np.zeros(len(nodes), dtype=np.int64), tops)
    # prediction copies the columns of the features that occur, and no others
    tops.splits.column[:] = np.searchsorted(tops.features, tops.splits.column)
    return Model(
        nodes=nodes,
        tree_starts=starts,
        routes=routes,
        values=values,
        tops=tops,
        depths=np.maximum.reduceat(depth, starts[:-1]),
        n_pruned=trees.n_pruned,
        base_score=base_score,
        params=trees.params.view(np.recarray),
        n_features=n_features,
        outputs=outputs,
        linear=trees.linear,
        unpruned=trees.unpruned,
    )


def allocate_tops(
    n_splits: int, n_trees: int, n_tree_outputs: int, features: np.ndarray
) -> TreeTops:
    """Make room for the first levels of so many trees, each with values for so many outputs."""
    return TreeTops(
        splits=records(n_splits, TOP_SPLIT_DTYPE),
        thresholds=np.empty(n_splits),
        thresholds32=np.empty(n_splits, dtype=np.float32),
        starts=np.empty(n_trees + 1, dtype=np.int64),
        landings=np.empty((n_trees, 2**TOP_DEPTH), dtype=np.int32),
        values=np.empty((n_trees, n_tree_outputs, 2**TOP_DEPTH)),
        features=features.astype(np.int64),
        bits=NO_BITS,
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
            route.has_categories = 0 if is_leaf else np.isnan(node.threshold)
            if not is_leaf:  # children lie behind their parent, so this comes in time
                depth[root + node.left] = depth[position] + 1
                depth[root + node.right] = depth[position] + 1


@kernel
def fill_node_values(nodes, outputs, values):
    """Fill ``values[output, node]``; `outputs` is empty unless the trees have several."""
    for position in range(len(nodes)):
        values[0, position] = nodes[position].value
        for output in range(1, outputs.shape[1]):
            values[output, position] = outputs[position, output].value


@kernel
def fill_tops(nodes, tree_starts, values, depth, place, tops):
    """Fill the first levels of all trees, the features as ``splits.column``; `place` is scratch."""
    n_splits = 0
    for tree in range(len(tree_starts) - 1):
        root = tree_starts[tree]
        place[root] = 1
        tops.starts[tree] = n_splits
        for position in range(root, tree_starts[tree + 1]):
            node, node_depth = nodes[position], depth[position]
            if node_depth > TOP_DEPTH:
                continue
            if node.left < 0 or node_depth == TOP_DEPTH:
                width = 1 << (TOP_DEPTH - node_depth)
                first = place[position] * width - (1 << TOP_DEPTH)
                tops.landings[tree, first : first + width] = position
                for output in range(len(values)):
                    tops.values[tree, output, first : first + width] = values[output, position]
                continue
            split = tops.splits[n_splits]
            split.depth, split.column, split.place = node_depth, node.feature, place[position]
            split.missing_right = ALL_ROWS if node.default_left == 0 else np.uint64(0)
            split.cuts_bin = 0
            split.node = position if np.isnan(node.threshold) else -1
            tops.thresholds[n_splits] = node.threshold
            tops.thresholds32[n_splits] = round_up(node.threshold)
            place[root + node.left] = 2 * place[position]
            place[root + node.right] = 2 * place[position] + 1
            n_splits += 1
    tops.starts[len(tree_starts) - 1] = n_splits


@inlined
def round_up(threshold):
    """Give the smallest float32 that is not below a float64."""
    if threshold > _LARGEST_FLOAT32:
        return np.float32(np.inf)
    if -np.inf < threshold < -_LARGEST_FLOAT32:
        return np.float32(-_LARGEST_FLOAT32)
    nearest = np.float32(threshold)
    if np.float64(nearest) < threshold:
        return np.nextafter(nearest, np.float32(np.inf))
    return nearest
