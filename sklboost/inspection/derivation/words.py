"""What derivations call things: features and their values, outputs, gradients and hessians."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.objectives.loss import Loss

# Of the losses whose gradient is minus the residual: what their hessians add up to.
_COVERS = {
    "reg:squarederror": "h = 1, so H is the number of rows, weights counted",
    "binary:logistic": "h = p · (1 - p), p being the probability before this tree",
    "reg:logistic": "h = p · (1 - p), p being the prediction before this tree",
    "multi:softprob": "h = p · (1 - p) · K / (K - 1), p being the probability of the class before "
    "this tree and K the number of classes",
    "multi:onevsrest": "h = p · (1 - p), p being the probability of the class before this tree",
}
_MOST_LISTED = 12  # levels in a sentence


class Words(NamedTuple):
    """Names, and what numbers of the model mean.

    Attributes
    ----------
    features : sequence of str
    levels : sequence
        For each feature that is a category, for each of its codes the levels that have it; may be
        empty for all others.
    outputs : sequence of str
        Such as ``"class 'b'"``; of a single output may be empty.
    loss : Loss
    notes : tuple of str
        Sentences on all trees of the model.
    """

    features: Sequence[str]
    categories: Sequence[Sequence[Sequence[Any]]]
    outputs: Sequence[str]
    loss: Loss
    notes: tuple[str, ...] = ()


def has_residuals(words: Words) -> bool:
    """Tell whether gradients are residuals but for the sign."""
    return words.loss.name in _COVERS


def words_of_loss(words: Words) -> list[str]:
    """Say what G and H are sums of."""
    loss = words.loss
    if has_residuals(words):
        return [
            "Gradient of a row: g = prediction - y, minus its residual. So -G is the sum of "
            "residuals.",
            f"Hessian of a row: {_COVERS[loss.name]}.",
        ]
    lines = [f"Gradient g and hessian h of a row: first and second derivative of {loss.name}."]
    if loss.hessian_is_bound:
        lines[0] = (
            f"Gradient g of a row: first derivative of {loss.name}; h: a bound on the second, "
            "which says too little here."
        )
    if type(loss).unit is not Loss.unit:
        lines.append(
            "λ, α, γ and min_child_weight are the parameters times the hessian of a typical row."
        )
    return lines


def words_of_output(words: Words, output: int) -> str:
    """Give ``" of class 'b'"``, or nothing where there is one output only."""
    return f" of {words.outputs[output]}" if len(words.outputs) > 1 else ""


def condition(tree: GrownTree, node: int, words: Words) -> str:
    """Say which rows go left at a node."""
    split = tree.nodes[node]
    name = words.features[split.feature]
    if node in tree.categories:
        return f"{name} in {_listed(tree.categories[node], words.categories[split.feature])}"
    if split.threshold == -np.inf:
        return f"{name} is missing"
    return f"{name} < {split.threshold:.10g}"


def decision(tree: GrownTree, node: int, value: float, words: Words) -> str:
    """Say what the value of a row is at the split of a node."""
    split = tree.nodes[node]
    name = words.features[split.feature]
    if np.isnan(value):
        return f"{name} is missing"
    if node in tree.categories:
        by_code = words.categories[split.feature]
        is_in = "in" if value in tree.categories[node] else "not in"
        own = " or ".join(map(repr, by_code[int(value)]))
        return f"{name} = {own}, {is_in} {_listed(tree.categories[node], by_code)}"
    pair = (float(value), float(split.threshold))
    own, threshold = (f"{number:.10g}" for number in pair)
    if own == threshold:
        own, threshold = map(repr, pair)  # all digits, if it takes them to tell which is larger
    return f"{name} = {own} {'<' if value < split.threshold else '≥'} {threshold}"


def _listed(codes: np.ndarray, by_code: Sequence[Sequence[Any]]) -> str:
    categories = [repr(category) for code in codes.tolist() for category in by_code[code]]
    if len(categories) > _MOST_LISTED:
        categories[_MOST_LISTED:] = [f"... {len(categories) - _MOST_LISTED} more"]
    return f"{{{', '.join(categories)}}}"
