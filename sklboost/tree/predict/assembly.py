"""From grown trees to a model: the nodes once more, laid out for prediction.

In: trees. Out: a :class:`~sklboost.engine.model.Model`.
"""

from collections.abc import Sequence

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.model import (
    ALL_ROWS,
    LINEAR_TERM_DTYPE,
    NO_BITS,
    NODE_DTYPE,
    OUTPUT_DTYPE,
    ROUTE_DTYPE,
    TOP_DEPTH,
    TOP_SPLIT_DTYPE,
    LinearLeaves,
    Model,
    Trees,
    TreeTops,
)
from sklboost.engine.structs import PARAMS_DTYPE, records
from sklboost.tree.options.category_bits import first_bits, join_bits

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


def no_trees() -> Trees:
    """Give an empty row of trees."""
    return Trees(
        records(0, NODE_DTYPE),
        np.zeros(1, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        records(0, PARAMS_DTYPE),
        records((0, 0), OUTPUT_DTYPE),
        NO_BITS,
    )


def first_trees(trees: Trees, n_trees: int) -> Trees:
    """Give the first of some trees."""
    n_nodes = int(trees.starts[n_trees])
    return Trees(
        trees.nodes[:n_nodes],
        trees.starts[: n_trees + 1],
        trees.n_pruned[:n_trees],
        trees.params[:n_trees],
        trees.outputs[:n_nodes],
        first_bits(trees.bits, n_nodes),
        None if trees.linear is None else first_linear(trees.linear, n_nodes),
        None if trees.unpruned is None else first_trees(trees.unpruned, n_trees),
    )


def trees_of(model: Model) -> Trees:
    """Give the trees of a model."""
    return Trees(
        *(model.nodes, model.tree_starts, model.n_pruned, model.params),
        *(model.outputs, model.tops.bits, model.linear, model.unpruned),
    )


def join_trees(parts: Sequence[Trees]) -> Trees:
    """Put trees behind one another; all that are not empty have values for as many outputs."""
    sizes = [np.diff(part.starts) for part in parts]
    return Trees(
        np.concatenate([part.nodes for part in parts], dtype=NODE_DTYPE),
        np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64),
        np.concatenate([part.n_pruned for part in parts]),
        np.concatenate([part.params for part in parts], dtype=PARAMS_DTYPE),
        # an empty row of trees does not know for how many outputs it has values
        np.concatenate(
            [part.outputs for part in parts if len(part.nodes) > 0] or [parts[0].outputs]
        ),
        join_bits([(part.bits, len(part.nodes)) for part in parts]),
        join_linear([(part.linear, len(part.nodes)) for part in parts]),
        _join_unpruned(parts),
    )


def _join_unpruned(parts: Sequence[Trees]) -> Trees | None:
    """Put trees before pruning behind one another; as they are where that is not remembered."""
    if all(part.unpruned is None for part in parts):
        return None
    return join_trees([part.unpruned or part._replace(linear=None) for part in parts])


def first_linear(linear: LinearLeaves, n_nodes: int) -> LinearLeaves:
    """Give the linear leaves among the first nodes."""
    starts = linear.starts[: n_nodes + 1]
    terms = linear.terms[: starts[-1]].view(np.recarray)
    return LinearLeaves(starts, linear.shifts[:n_nodes], linear.limits[:n_nodes], terms)


def join_linear(parts: Sequence[tuple[LinearLeaves | None, int]]) -> LinearLeaves | None:
    """Put linear leaves behind one another, given with their numbers of nodes; None if all are."""
    if all(linear is None for linear, _ in parts):
        return None
    whole = [linear or _constant_leaves(n_nodes) for linear, n_nodes in parts]
    counts = [np.diff(linear.starts) for linear in whole]
    return LinearLeaves(
        np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64),
        np.concatenate([linear.shifts for linear in whole]),
        np.concatenate([linear.limits for linear in whole]),
        np.concatenate([linear.terms for linear in whole]).view(np.recarray),
    )


def _constant_leaves(n_nodes: int) -> LinearLeaves:
    starts = np.zeros(n_nodes + 1, dtype=np.int64)
    limits = np.zeros((n_nodes, 2))
    return LinearLeaves(starts, np.zeros(n_nodes), limits, records(0, LINEAR_TERM_DTYPE))


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
            node, level = nodes[position], depth[position]
            if level > TOP_DEPTH:
                continue
            if node.left < 0 or level == TOP_DEPTH:
                width = 1 << (TOP_DEPTH - level)
                first = place[position] * width - (1 << TOP_DEPTH)
                tops.landings[tree, first : first + width] = position
                for output in range(len(values)):
                    tops.values[tree, output, first : first + width] = values[output, position]
                continue
            split = tops.splits[n_splits]
            split.level, split.column, split.place = level, node.feature, place[position]
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
