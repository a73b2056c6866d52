"""A tree as derivations see it, with the splits that pruning removed, and what its numbers mean.

Nodes of the model keep their numbers, and the removed ones, as far as they are kept, are numbered
after them.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.engine.model import Model
from sklboost.engine.structs import TreeParams
from sklboost.objectives.loss import Loss
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


# --- names of features and their values, of outputs, of gradients and hessians


# Of the losses whose gradient is minus the residual: what their hessians add up to.
_HESSIANS = {
    "reg:squarederror": "h = 1, so H is the number of rows, or the sum of their weights",
    "binary:logistic": "h = p · (1 - p), p being the probability before this tree",
    "reg:logistic": "h = p · (1 - p), p being the prediction before this tree",
    "multi:softprob": "h = p · (1 - p) · K / (K - 1), p being the probability of the class before "
    "this tree and K the number of classes",
    "multi:onevsrest": "h = p · (1 - p), p being the probability of the class before this tree",
}
_MOST_LISTED = 12  # categories in a sentence
_PLAIN = Encoding()


class ModelNames(NamedTuple):
    """Names, and what the numbers of a model mean."""

    features: Sequence[str]
    # for each feature that is a category, for each of its codes the categories that have it; may be
    # empty for all others
    categories: Sequence[Sequence[Sequence[Any]]]
    outputs: Sequence[str]  # such as ``"class 'b'"``; of a single output may be empty
    loss: Loss
    notes: tuple[str, ...] = ()  # sentences on all trees of the model
    # how the values of each feature became numbers. None: they are numbers.
    encodings: Sequence[Encoding] | None = None
    is_foreign: bool = False  # whether another library has trained the model, by rules of its own

    @property
    def has_residuals(self) -> bool:
        """Whether gradients are negative residuals."""
        return self.loss.name in _HESSIANS

    def of_output(self, output: int) -> str:
        """Return ``" of class 'b'"``, or nothing if there is one output only."""
        return f" of {self.outputs[output]}" if len(self.outputs) > 1 else ""

    def about_sums(self) -> list[str]:
        """Sentences on what G and H are sums of."""
        loss = self.loss
        if self.is_foreign:
            return [
                f"Another library has trained the model: G and H are its sums of the first and the "
                f"second derivative of {loss.name}, as it computes them."
            ]
        if self.has_residuals:
            return [
                "Gradient of a row: g = prediction - y, the negative residual. So -G is the sum of "
                "residuals.",
                f"Hessian of a row: {_HESSIANS[loss.name]}.",
            ]
        lines = [f"Gradient g and hessian h of a row: first and second derivative of {loss.name}."]
        if loss.hessian_is_bound:
            lines[0] = (
                f"Gradient g of a row: first derivative of {loss.name}; h: an upper bound on the "
                "second, which is of no use here."
            )
        if type(loss).unit is not Loss.unit:
            lines.append(
                "λ, α, γ and min_child_weight are the parameters times the hessian of a typical "
                "row."
            )
        return lines

    def encoding(self, feature: int) -> Encoding:
        """How the values of a feature became numbers."""
        return _PLAIN if self.encodings is None else self.encodings[feature]

    def value_text(self, feature: int, value: float) -> str:
        """Return the value of a row as its user has it."""
        if np.isnan(value):
            return "missing"
        if feature < len(self.categories) and len(self.categories[feature]) > 0:
            return " or ".join(self._category_texts(feature, [int(value)])) or "another category"
        return self.encoding(feature).text_of_number(value)

    def threshold_text(self, feature: int, threshold: float) -> str:
        """Return a threshold in the unit of the feature: a date, say."""
        encoding = self.encoding(feature)
        return encoding.text(encoding.threshold(threshold))

    def _category_texts(self, feature: int, codes: list[int]) -> list[str]:
        encoding = self.encoding(feature)
        found = [category for code in codes for category in self.categories[feature][code]]
        are_times = encoding.categories.dtype.kind in "mM"
        return [encoding.text(own) if are_times else repr(own) for own in found]

    def _listed(self, tree: GrownTree, node: int) -> str:
        """The categories that go left at a node, within braces."""
        texts = self._category_texts(int(tree.nodes[node].feature), tree.categories[node].tolist())
        if len(texts) > _MOST_LISTED:
            texts[_MOST_LISTED:] = [f"... {len(texts) - _MOST_LISTED} more"]
        return f"{{{', '.join(texts)}}}"

    def condition(self, tree: GrownTree, node: int) -> str:
        """Which rows go left at a node."""
        split = tree.nodes[node]
        name = self.features[split.feature]
        if node in tree.categories:
            return f"{name} in {self._listed(tree, node)}"
        if split.threshold == -np.inf:
            return f"{name} is missing"
        return f"{name} < {self.threshold_text(int(split.feature), float(split.threshold))}"

    def decision(self, tree: GrownTree, node: int, value: float) -> str:
        """How the value of a row compares with the split of a node."""
        split = tree.nodes[node]
        name = self.features[split.feature]
        if np.isnan(value):
            return f"{name} is missing"
        if node in tree.categories:
            is_in = "in" if value in tree.categories[node] else "not in"
            category = self.value_text(int(split.feature), value)
            return f"{name} = {category}, {is_in} {self._listed(tree, node)}"
        pair, feature = (float(value), float(split.threshold)), int(split.feature)
        shown, threshold = self.value_text(feature, value), self.threshold_text(feature, pair[1])
        if shown == threshold == f"{split.threshold:.10g}":
            shown, threshold = map(repr, pair)  # all digits, if it takes them to tell them apart
        return f"{name} = {shown} {'<' if value < split.threshold else '≥'} {threshold}"
