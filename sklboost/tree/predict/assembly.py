"""From grown trees to a model: the nodes once more, laid out for prediction.

Routes are all nodes as single rows walk through them; tops are the splits above `TOP_DEPTH`, which
512 rows pass together (see :mod:`sklboost.tree.predict.walking`).
"""

import numpy as np

from sklboost.data.binning import rounded_up
from sklboost.engine.compiling import kernel
from sklboost.engine.model import (
    ALL_ROWS,
    N_LANDINGS,
    NO_BITS,
    ROUTE_DTYPE,
    TOP_DEPTH,
    TOP_SPLIT_DTYPE,
    Model,
    Trees,
    TreeTops,
)
from sklboost.engine.structs import records


def assemble_model(trees: Trees, base_score: np.ndarray, n_features: int) -> Model:
    """Return the model that finished trees and the scores before the first tree make."""
    model = allocate_model(trees, base_score, n_features)
    depth, first = np.empty((2, len(trees.nodes)), dtype=np.int64)
    lay_out(model, model.n_trees, depth, first)
    tops, n_splits = model.tops, model.tops.starts[-1]
    splits = tops.splits[:n_splits].copy().view(np.recarray)
    # prediction copies the columns of the features that occur, and no others
    features, columns = np.unique(splits.column, return_inverse=True)
    splits.column[:] = columns
    thresholds = tops.thresholds[:n_splits].copy()
    tops = tops._replace(
        splits=splits,
        thresholds=thresholds,
        thresholds32=rounded_up(thresholds),
        features=features.astype(np.int64),
    )
    return model._replace(tops=tops, linear=trees.linear, unpruned=trees.unpruned)


def allocate_model(trees: Trees, base_score: np.ndarray, n_features: int) -> Model:
    """Allocate what :func:`lay_out` fills for trees that are, or will be, in `trees`.

    ``tops.features`` and ``tops.thresholds32`` are left empty.
    """
    n_nodes, n_trees = len(trees.nodes), len(trees.n_pruned)
    n_tree_outputs = max(1, trees.outputs.shape[1])
    n_splits = min(n_nodes // 2, n_trees * (N_LANDINGS - 1))
    tops = TreeTops(
        splits=records(n_splits, TOP_SPLIT_DTYPE),
        thresholds=np.empty(n_splits),
        thresholds32=np.empty(0, dtype=np.float32),
        starts=np.zeros(n_trees + 1, dtype=np.int64),
        landings=np.empty((n_trees, N_LANDINGS), dtype=np.int32),
        values=np.empty((n_trees, n_tree_outputs, N_LANDINGS)),
        features=np.empty(0, dtype=np.int64),
        bits=trees.bits if len(trees.bits.starts) > 0 else NO_BITS,
    )
    return Model(
        nodes=trees.nodes.view(np.recarray),
        tree_starts=trees.starts,
        routes=records(n_nodes, ROUTE_DTYPE),
        values=np.empty((n_tree_outputs, n_nodes)),
        tops=tops,
        depths=np.empty(n_trees, dtype=np.int64),
        n_pruned=trees.n_pruned,
        base_score=base_score,
        params=trees.params.view(np.recarray),
        n_features=n_features,
        outputs=trees.outputs.view(np.recarray),
    )


@kernel
def lay_out(model, n_trees, depth, first):
    """Fill routes, values, depths and tops of the first `n_trees` trees of a model.

    ``tops.splits.column`` is the feature. `depth` and `first`, int64 of shape (n_nodes,), are
    scratch.
    """
    for tree in range(n_trees):
        fill_routes(model, tree, depth)
        fill_top(model, tree, depth, first)


@kernel
def fill_routes(model, tree, depth):
    """Fill the routes, values and depths of the nodes of a tree."""
    root, stop = model.tree_starts[tree], model.tree_starts[tree + 1]
    depth[root] = 0
    most = np.int64(0)
    for position in range(root, stop):
        node, route = model.nodes[position], model.routes[position]
        is_leaf = node.left < 0
        route.threshold = node.threshold
        route.feature = 0 if is_leaf else node.feature
        route.left = position if is_leaf else root + node.left
        route.default_left = 1 if is_leaf else node.default_left
        route.has_categories = 0 if is_leaf else np.isnan(node.threshold)
        model.values[0, position] = node.value
        for output in range(1, len(model.values)):
            model.values[output, position] = model.outputs[position, output].value
        most = max(most, depth[position])
        if not is_leaf:  # children lie behind their parent, so this comes in time
            depth[root + node.left] = depth[position] + 1
            depth[root + node.right] = depth[position] + 1
    model.depths[tree] = most


@kernel
def fill_top(model, tree, depth, first):
    """Fill the splits of a tree above `TOP_DEPTH`, behind the splits of the trees before it.

    `first` becomes the first landing of each node.
    """
    tops, root = model.tops, model.tree_starts[tree]
    n_splits = tops.starts[tree]  # 0 for the first tree
    first[root] = 0
    for position in range(root, model.tree_starts[tree + 1]):
        node, node_depth = model.nodes[position], depth[position]
        if node_depth > TOP_DEPTH:
            continue
        start, width = first[position], 1 << (TOP_DEPTH - node_depth)
        if node.left < 0 or node_depth == TOP_DEPTH:
            tops.landings[tree, start : start + width] = position
            for output in range(len(model.values)):
                value = model.values[output, position]
                tops.values[tree, output, start : start + width] = value
            continue
        split = tops.splits[n_splits]
        split.column, split.place = node.feature, start + width // 2
        split.missing_right = ALL_ROWS if node.default_left == 0 else np.uint64(0)
        split.cuts_bin = 0
        split.node = position if np.isnan(node.threshold) else -1
        tops.thresholds[n_splits] = node.threshold
        first[root + node.left] = start
        first[root + node.right] = start + width // 2
        n_splits += 1
    tops.starts[tree + 1] = n_splits
