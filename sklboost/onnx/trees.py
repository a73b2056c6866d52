"""Trees as the attributes of ONNX's TreeEnsembleRegressor.

All nodes compare as ours do, ``x < threshold``, in float64. A set of categories is a chain of such
nodes, one for each place between two codes of which one is listed and the other is not: codes below
the place lead to the left or to the right child of the split, all others to the next place. So
children have several parents, which onnxruntime takes as long as it meets them on the side of "no"
first. It has no fast and correct way for chains of ``x == code``: versions that make one step of
several nodes may join splits that are not the same, as they compare one number of a leaf.

Source: https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html, version 3.
"""

from typing import Any

import numpy as np
from onnx.numpy_helper import from_array

from sklboost.engine.model import Model
from sklboost.onnx.graph import Graph
from sklboost.tree.predict.category_bits import listed_categories

# Sums are given as float32. Leaf values in parts make them as exact as float64.
_N_PARTS = 3
_DIGITS_OF_FLOAT32 = 23  # one less, for the rounding of each tree's values
_NODE_DTYPE = np.dtype(
    [
        ("tree", np.int64),
        ("node", np.int64),  # counted from the tree's root
        ("feature", np.int64),
        ("mode", "U9"),
        ("value", np.float64),
        ("true", np.int64),
        ("false", np.int64),
        ("missing_true", np.int64),
    ]
)


def add_sums(graph: Graph, features: str, model: Model) -> str:
    """Add the sums of the leaf values of all trees, shape (n_samples, n_outputs), as float64."""
    sums = graph.add("TreeEnsembleRegressor", features, **_attributes(model))
    targets = np.arange(_N_PARTS * model.n_outputs).reshape(_N_PARTS, -1)
    exact = graph.cast(sums, np.float64)
    parts = [graph.add("Gather", exact, graph.constant(part), axis=1) for part in targets]
    return graph.add("Sum", *reversed(parts))  # the smallest first


def _attributes(model: Model) -> dict[str, Any]:
    nodes = _with_chains(model, _nodes(model))
    leaves = np.flatnonzero(model.nodes.left < 0)
    trees = _trees_of_nodes(model)[leaves]
    parts = _parts(model.values[:, leaves], trees)
    # output o has the targets o, n_outputs + o, ...
    first_outputs = trees * len(model.values) % model.n_outputs
    outputs = first_outputs + np.arange(len(model.values))[:, np.newaxis]
    targets = outputs + model.n_outputs * np.arange(_N_PARTS)[:, np.newaxis, np.newaxis]
    n_values = parts.size // len(leaves)  # of a leaf
    return dict(
        n_targets=_N_PARTS * model.n_outputs,
        nodes_treeids=nodes["tree"].tolist(),
        nodes_nodeids=nodes["node"].tolist(),
        nodes_featureids=nodes["feature"].tolist(),
        nodes_modes=nodes["mode"].tolist(),
        nodes_values_as_tensor=from_array(nodes["value"].copy(), "nodes_values"),
        nodes_truenodeids=nodes["true"].tolist(),
        nodes_falsenodeids=nodes["false"].tolist(),
        nodes_missing_value_tracks_true=nodes["missing_true"].tolist(),
        target_treeids=np.tile(trees, n_values).tolist(),
        target_nodeids=np.tile(leaves - model.tree_starts[trees], n_values).tolist(),
        target_ids=targets.ravel().tolist(),
        target_weights_as_tensor=from_array(parts.ravel(), "target_weights"),
    )


def _parts(values: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """Return leaf values as several numbers each, of which float32 holds the sums.

    Each part but the last is rounded to a power of two such that all sums of it are float32
    numbers; the last is the rest. All have the shape of `values`, (n_tree_outputs, n_leaves).
    """
    parts = []
    for _ in range(_N_PARTS - 1):
        largest = np.zeros(trees[-1] + 1)
        np.maximum.at(largest, trees, np.abs(values).max(axis=0))
        # no sum is 2^exponent or more; beyond 2^-100 float32 soon ends
        exponent = max(-100, np.frexp(largest.sum())[1])
        step = np.ldexp(1.0, exponent - _DIGITS_OF_FLOAT32)
        parts.append(np.rint(values / step) * step)
        values = values - parts[-1]
    return np.stack([*parts, values])


def _trees_of_nodes(model: Model) -> np.ndarray:
    """Return the tree of each node, shape (n_nodes_of_all_trees,)."""
    return np.repeat(np.arange(model.n_trees), np.diff(model.tree_starts))


def _nodes(model: Model) -> np.ndarray:
    """Return all nodes; those with a set of categories have the threshold NaN."""
    nodes = np.zeros(len(model.nodes), dtype=_NODE_DTYPE)
    is_split = model.nodes.left >= 0
    nodes["tree"] = _trees_of_nodes(model)
    nodes["node"] = np.arange(len(nodes)) - model.tree_starts[nodes["tree"]]
    nodes["mode"] = np.where(is_split, "BRANCH_LT", "LEAF")
    for name, values in (
        ("feature", model.nodes.feature),
        ("value", model.nodes.threshold),
        ("true", model.nodes.left),
        ("false", model.nodes.right),
        ("missing_true", model.nodes.default_left),
    ):
        nodes[name] = np.where(is_split, values, 0)
    return nodes


def _with_chains(model: Model, nodes: np.ndarray) -> np.ndarray:
    """Return the nodes with a chain of them for each set of categories."""
    links = []
    n_nodes = np.diff(model.tree_starts)
    for position in np.flatnonzero(np.isnan(nodes["value"])).tolist():
        chain = _chain(nodes[position], listed_categories(model.tops.bits, position))
        tree, n_more = chain["tree"][0], len(chain) - 1
        chain["node"][1:] = n_nodes[tree] + np.arange(n_more)
        chain["false"][:-1] = chain["node"][1:]
        n_nodes[tree] += n_more
        nodes[position] = chain[0]
        links.append(chain[1:])
    if not links:
        return nodes
    nodes = np.concatenate([nodes, *links])
    return nodes[np.lexsort([nodes["node"], nodes["tree"]])]  # the root of each tree comes first


def _chain(split: np.void, codes: np.ndarray) -> np.ndarray:
    """Return a node for each place between codes that go left and codes that go right.

    Codes below the first place go right, those up to the second one left, and so on; missing values
    pass all nodes but the first that leads to the left. The nodes have no links to one another yet.
    """
    starts, stops = np.setdiff1d(codes, codes + 1), np.setdiff1d(codes + 1, codes)
    # without any code, missing values alone go left
    places = np.stack([starts, stops], axis=1).ravel() if len(codes) > 0 else np.zeros(2)
    chain = split.repeat(len(places))
    chain["value"] = places
    chain["true"][::2] = split["false"]
    chain["missing_true"] = 0
    chain["missing_true"][1] = split["missing_true"]
    return chain
