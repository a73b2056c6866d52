"""The trees of a model as edges, in the order of a walk in depth, and how rows stand to them.

To SHAP values a leaf is a set of features with one condition each: that a row passes all the splits
on this feature on the way to the leaf. So an edge has the number of the one above it with the same
feature, and the share of the training rows that pass the feature's splits down to here. A row, be
it explained or a background row, which stands in for unknown features, has a state at each edge.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.model import CategoryBits, Model
from sklboost.engine.structs import records
from sklboost.tree.predict.category_bits import is_listed

# A node, and the edge from its parent to it. Nodes are counted from their tree's root, in the order
# of the walk.
EDGE_DTYPE = np.dtype(
    [
        ("threshold", np.float64),  # of the node's own split, as in NODE_DTYPE
        ("fraction", np.float64),  # of the parent's cover
        # the fractions of this edge and of all edges above it that have its feature, multiplied
        ("share", np.float64),
        ("reach", np.float64),  # the fractions of all edges from the root on, multiplied
        ("position", np.int64),  # of the node among those of the model
        ("column", np.int64),  # of the node's own split, see Edges.features; -1 for a leaf
        ("right", np.int64),  # the node's right child; the left one comes next
        ("default_left", np.int64),
        ("parent", np.int64),
        ("previous", np.int64),  # the edge above with this edge's feature; 0: there is none
        ("depth", np.int64),  # 0 for the root
        ("n_different", np.int64),  # features on the way from the root
    ],
    align=True,
)

# The state of a row at an edge, by the splits on the edge's feature, from the root on:
GONE = np.uint8(0)  # an earlier split sends the row elsewhere
LEAVES = np.uint8(1)  # the edge's split is the first that does
STAYS = np.uint8(2)  # no split does: the row meets the edge's condition


class Edges(NamedTuple):
    """The trees of a model, each in the order root, left branch, right branch."""

    edges: np.recarray  # the first of each tree is its root, to which no edge leads
    # int64, shape (n_trees + 1,): tree t owns ``edges[starts[t]:starts[t + 1]]``
    starts: np.ndarray
    # float64, shape (n_tree_outputs, n_nodes_of_all_trees): leaf values, in the model's order of
    # nodes
    values: np.ndarray
    bits: CategoryBits  # of the splits on categories, in the same order
    features: np.ndarray  # int64, shape (n_columns,): the features that occur


@np.errstate(all="ignore")
def lay_out_edges(model: Model) -> Edges:
    """Return the trees of a model in the order of a walk in depth."""
    nodes = model.nodes
    features = np.unique(nodes.feature[nodes.left >= 0]).astype(np.int64)
    column_of = np.full(model.n_features, -1, dtype=np.int64)
    column_of[features] = np.arange(len(features))
    edges = records(len(nodes), EDGE_DTYPE)
    places = np.empty(len(nodes), dtype=np.int64)
    place_nodes(model.constant, places)
    fill_edges(model.constant, column_of, places, edges)
    return Edges(edges, model.tree_starts, model.values, model.tops.bits, features)


@kernel
def place_nodes(model, places):
    """Fill the place of each node in a walk in depth through its tree."""
    nodes, starts = model.nodes, model.tree_starts
    for tree in range(len(starts) - 1):
        root = starts[tree]
        # first the sizes of branches, from below: children lie behind their parent
        for position in range(starts[tree + 1] - 1, root - 1, -1):
            node = nodes[position]
            places[position] = 1
            if node.left >= 0:
                places[position] += places[root + node.left] + places[root + node.right]
        places[root] = 0
        for position in range(root, starts[tree + 1]):
            node = nodes[position]
            if node.left >= 0:
                size_of_left = places[root + node.left]
                places[root + node.left] = places[position] + 1
                places[root + node.right] = places[position] + 1 + size_of_left


@kernel
def fill_edges(model, column_of, places, edges):
    """Fill `edges` from the nodes and their places."""
    nodes, starts = model.nodes, model.tree_starts
    for tree in range(len(starts) - 1):
        root = starts[tree]
        in_tree = edges[root : starts[tree + 1]]
        in_tree[0].fraction = in_tree[0].share = in_tree[0].reach = 1.0
        in_tree[0].parent = in_tree[0].previous = in_tree[0].depth = in_tree[0].n_different = 0
        for position in range(root, starts[tree + 1]):
            node, place = nodes[position], places[position]
            edge = in_tree[place]
            edge.position, edge.threshold = position, node.threshold
            edge.default_left = node.default_left
            edge.column = edge.right = -1
            if node.left >= 0:
                edge.column, edge.right = column_of[node.feature], places[root + node.right]
                previous = find_previous(in_tree, place)
                left, right = nodes[root + node.left].cover, nodes[root + node.right].cover
                # sampling can leave both without rows
                fraction = left / (left + right) if left + right > 0.0 else 0.5
                add_child(in_tree, place, place + 1, previous, fraction)
                add_child(in_tree, place, edge.right, previous, 1.0 - fraction)


@kernel
def find_previous(edges, node):
    """Return the last edge on the way to a node that has the feature of its split; 0: none."""
    column, edge = edges[node].column, np.int64(node)
    while edge > 0 and edges[edges[edge].parent].column != column:
        edge = edges[edge].parent
    return edge


@kernel
def add_child(edges, parent, child, previous, fraction):
    """Fill the fields of the edge from `parent` to `child` that follow from those above it."""
    edge = edges[child]
    edge.parent, edge.previous, edge.fraction = parent, previous, fraction
    edge.share = fraction * edges[previous].share
    edge.reach = fraction * edges[parent].reach
    edge.depth = edges[parent].depth + 1
    edge.n_different = edges[parent].n_different + (previous == 0)


@np.errstate(all="ignore")
def mean_scores(edges: Edges, trees: tuple[int, int], n_outputs: int) -> np.ndarray:
    """Return what trees ``[start, stop)`` add on average, by cover; float64, shape (n_outputs,)."""
    nodes = edges.edges[edges.starts[trees[0]] : edges.starts[trees[1]]].view(np.recarray)
    tree_of = np.repeat(np.arange(*trees), np.diff(edges.starts[trees[0] : trees[1] + 1]))
    is_leaf, n_tree_outputs = nodes.column < 0, len(edges.values)
    first_output = (tree_of * n_tree_outputs % n_outputs)[is_leaf]
    means = np.zeros(n_outputs)
    for index, values in enumerate(edges.values):
        added = nodes.reach[is_leaf] * values[nodes.position[is_leaf]]
        means += np.bincount(first_output + index, added, minlength=n_outputs)
    return means


@kernel
def fill_states(edges, tree, columns, rows, states):
    """Fill ``states[node, row]`` for the rows ``[start, stop)`` and the edges to a tree's nodes.

    `columns`, float64 of shape (n_columns, n_rows), are the values of the features that occur.
    """
    nodes = edges.edges[edges.starts[tree] : edges.starts[tree + 1]]
    states[0] = STAYS  # no edge leads to the root
    for node in range(len(nodes)):
        split = nodes[node]
        if split.column >= 0:
            values = columns[split.column, rows[0] : rows[1]]
            above = states[nodes[node + 1].previous]
            fill_children(split, values, edges.bits, above, states[node + 1], states[split.right])


@kernel
def fill_children(split, values, bits, above, left, right):
    """Fill the states at the edges to both children of a split.

    `above` are those at the last edge before it that has the same feature.
    """
    threshold, missing_right = split.threshold, split.default_left == 0
    if threshold == threshold:
        for row in range(len(values)):
            value = values[row]
            goes_right = (value >= threshold) | ((value != value) & missing_right)
            left[row] = state_below(above[row], not goes_right)
            right[row] = state_below(above[row], goes_right)
        return
    for row in range(len(values)):
        goes_right = missing_right
        if values[row] == values[row]:
            goes_right = not is_listed(np.int64(values[row]), bits, split.position)
        left[row] = state_below(above[row], not goes_right)
        right[row] = state_below(above[row], goes_right)


@inlined
def state_below(above, stays):
    """Return the state at an edge, from that at the previous edge of the feature."""
    here = STAYS if stays else LEAVES
    return here if above == STAYS else GONE
