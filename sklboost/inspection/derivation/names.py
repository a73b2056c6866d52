"""Names in derivations: of features and their values, of outputs, of gradients and hessians."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding
from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.objectives.loss import Loss

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
