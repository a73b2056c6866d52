"""Trees as the attributes of ONNX's TreeEnsembleRegressor.

A threshold is a node as ours, ``x < threshold``, in float64. A set of categories is a chain of
nodes, one for each category that goes left: ``x == category`` leads to the left child, else on to
the next node of the chain, and from the last one to the right child. So the left child has several
parents, which onnxruntime takes, and makes one step of such a chain where it can.

Source: https://onnx.ai/onnx/operators/onnx_aionnxml_TreeEnsembleRegressor.html, version 3.
"""

from typing import Any

import numpy as np
from onnx.numpy_helper import from_array

from sklboost.engine.model import Model
from sklboost.onnx.features import FIRST_CODE
from sklboost.onnx.graph import Graph
from sklboost.tree.predict.category_bits import listed_categories

# Sums are given as float32. Leaf values in two parts make them nearly as exact as float64.
_N_PARTS = 2
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
    return graph.add("Add", *parts)


def _attributes(model: Model) -> dict[str, Any]:
    nodes = _with_chains(model, _nodes(model))
    leaves = np.flatnonzero(model.nodes.left < 0)
    trees = _trees_of_nodes(model)[leaves]
    parts = _parts(model.values[:, leaves], trees)
    # output o has the targets o and n_outputs + o
    first_outputs = trees * len(model.values) % model.n_outputs
    outputs = first_outputs + np.arange(len(model.values))[:, np.newaxis]
    targets = outputs + model.n_outputs * np.arange(_N_PARTS)[:, np.newaxis, np.newaxis]
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
        target_treeids=np.broadcast_to(trees, parts.shape).ravel().tolist(),
        target_nodeids=np.broadcast_to(leaves - model.tree_starts[trees], parts.shape)
        .ravel()
        .tolist(),
        target_ids=targets.ravel().tolist(),
        target_weights_as_tensor=from_array(parts.ravel(), "target_weights"),
    )


def _parts(values: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """Return leaf values as two numbers each, whose sums lose next to nothing as float32.

    The first is a multiple of a power of two such that sums of it are float32 numbers, the second
    is the rest. Both have the shape of `values`, (n_tree_outputs, n_leaves).
    """
    largest = np.zeros(trees[-1] + 1)
    np.maximum.at(largest, trees, np.abs(values).max(axis=0))
    # no sum is 2^exponent or more; beyond 2^-100 float32 soon ends
    exponent = max(-100, np.frexp(largest.sum())[1])
    step = np.ldexp(1.0, exponent - _DIGITS_OF_FLOAT32)
    coarse = np.rint(values / step) * step
    return np.stack([coarse, values - coarse])


def _trees_of_nodes(model: Model) -> np.ndarray:
    """Return the tree of each node, shape (n_nodes_of_all_trees,)."""
    return np.repeat(np.arange(model.n_trees), np.diff(model.tree_starts))


def _nodes(model: Model) -> np.ndarray:
    """Return all nodes; those with a set of categories are as for the number NaN."""
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
        codes = listed_categories(model.tops.bits, position)
        if len(codes) == 0:  # missing values alone go left
            codes = np.array([-1])
        chain = nodes[position].repeat(len(codes))
        chain["mode"], chain["value"] = "BRANCH_EQ", codes + FIRST_CODE
        tree = chain["tree"][0]
        chain["node"][1:] = n_nodes[tree] + np.arange(len(codes) - 1)
        chain["false"][:-1] = chain["node"][1:]
        n_nodes[tree] += len(codes) - 1
        nodes[position] = chain[0]
        links.append(chain[1:])
    if not links:
        return nodes
    nodes = np.concatenate([nodes, *links])
    return nodes[np.lexsort([nodes["node"], nodes["tree"]])]  # the root of each tree comes first
