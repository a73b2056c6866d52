"""One tree with the splits that pruning removed, as far as they are kept.

Nodes of the model keep their numbers, and the removed ones are numbered after them.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.engine.model import Model
from sklboost.engine.structs import TreeParams
from sklboost.tree.predict.category_bits import listed_categories


class GrownTree(NamedTuple):
    """A tree before pruning, and what pruning left of it."""

    number: int  # number of the tree in its model
    params: TreeParams
    nodes: np.recarray  # parents before their children
    # float64, shape (n_nodes, n_tree_outputs, 3): leaf value as the tree was grown, G and H
    sums: np.ndarray
    values: np.ndarray  # float64, shape (n_nodes, n_tree_outputs): leaf values, after renewal
    parents: np.ndarray  # int64, shape (n_nodes,): -1 for the root
    depths: list[int]  # number of splits above each node
    is_split: np.ndarray  # bool, shape (n_nodes,): whether the node has a split in the model
    n_kept: int  # number of nodes of the model, which come first
    n_forgotten: int  # number of splits that pruning removed and that are not kept
    goes_by_gamma: np.ndarray  # bool, shape (n_nodes,): whether gamma removes the split
    # dict of int to ndarray of int64: the codes that go left where a node is split on a category
    categories: dict[int, np.ndarray]
    known: dict[Any, Any]  # results of derivations of nodes, which other nodes use again

    @property
    def n_outputs(self) -> int:
        """Number of outputs that a node has values of; more than 1 in a vector tree."""
        return self.sums.shape[1]

    def children(self, node: int) -> tuple[int, int]:
        """Left and right child of a split."""
        return int(self.nodes.left[node]), int(self.nodes.right[node])

    def goes_left(self, node: int, values: np.ndarray) -> np.ndarray:
        """Which values of its feature, float64, go left at a split; bool."""
        split = self.nodes[node]
        left = (
            np.isin(values, self.categories[node])
            if node in self.categories
            else values < split.threshold
        )
        return np.where(np.isnan(values), split.default_left == 1, left)

    def path(self, node: int) -> list[int]:
        """Nodes from the root to this one."""
        path = [node]
        while self.parents[path[-1]] >= 0:
            path.append(int(self.parents[path[-1]]))
        return path[::-1]


def grown_tree(model: Model, number: int) -> GrownTree:
    """Tree of a model, by its number over all rounds and outputs."""
    start, stop = model.tree_starts[number : number + 2].tolist()
    kept = model.nodes[start:stop].view(np.recarray)
    n_kept, n_outputs = len(kept), max(1, model.outputs.shape[1])
    if model.unpruned is None:
        grown, begin, bits = kept, start, model.tops.bits
        outputs = model.outputs[start:stop]
    else:
        whole = model.unpruned
        begin, end = whole.starts[number : number + 2].tolist()
        grown, bits = whole.nodes[begin:end].view(np.recarray), whole.bits
        outputs = whole.outputs[begin:end]
    order = _kept_first(kept, grown)
    nodes = _renumbered(grown, order)
    sums = np.stack([nodes.value, nodes.gradient, nodes.cover], axis=1)[:, np.newaxis]
    if n_outputs > 1:
        sums = np.stack([outputs[order][name] for name in ("value", "gradient", "hessian")], axis=2)
    values = sums[:, :, 0].copy()
    values[:n_kept] = model.values[:, start:stop].T
    splits = np.flatnonzero(nodes.left >= 0)
    parents = np.full(len(nodes), -1)
    parents[nodes.left[splits]] = parents[nodes.right[splits]] = splits
    depths = [0]
    for above in parents[1:].tolist():  # parents come first
        depths.append(depths[above] + 1)
    is_split = np.zeros(len(nodes), bool)
    is_split[:n_kept] = kept.left >= 0
    n_forgotten = int(model.n_pruned[number]) - (len(nodes) - n_kept) // 2
    categories = {
        node: listed_categories(bits, begin + int(order[node]))
        for node in splits[np.isnan(nodes.threshold[splits])].tolist()
    }
    params = model.params_of(number)
    return GrownTree(
        *(number, params, nodes, sums, values, parents, depths, is_split, n_kept, n_forgotten),
        _pruned_by_gamma(nodes, params.prune_gain) & ~is_split,
        categories,
        {},
    )


def _kept_first(kept: np.recarray, grown: np.recarray) -> np.ndarray:
    """For each new number, the node in the order of growth."""
    if len(kept) == len(grown):
        return np.arange(len(grown))
    order = np.zeros(len(kept), dtype=np.int64)
    for node in np.flatnonzero(kept.left >= 0).tolist():  # parents come first
        order[kept.left[node]] = grown.left[order[node]]
        order[kept.right[node]] = grown.right[order[node]]
    is_removed = np.ones(len(grown), bool)
    is_removed[order] = False
    return np.concatenate([order, np.flatnonzero(is_removed)])


def _pruned_by_gamma(nodes: np.recarray, gamma: float) -> np.ndarray:
    """Which splits gamma removes, from the bottom up, as in ``tree/core/growing.py``."""
    left, right, is_leaf = nodes.left, nodes.right, nodes.left < 0
    pruned = np.zeros(len(nodes), bool)
    # children come before their parents
    for node in np.flatnonzero(~is_leaf & (nodes.gain < gamma))[::-1].tolist():
        pruned[node] = is_leaf[node] = is_leaf[left[node]] and is_leaf[right[node]]
    return pruned


def _renumbered(grown: np.recarray, order: np.ndarray) -> np.recarray:
    nodes = grown[order].view(np.recarray)  # a copy
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order))
    splits = nodes.left >= 0
    for side in ("left", "right"):
        nodes[side][splits] = numbers[nodes[side][splits]]
    return nodes
