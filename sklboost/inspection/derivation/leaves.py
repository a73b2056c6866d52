"""The output of a node: what it would add as a leaf, and what that is worth.

In: G and H of a node and one output. Out: steps to its leaf weight, its similarity, its value.
"""

import math
from typing import NamedTuple

from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.steps import Step, given
from sklboost.inspection.derivation.words import Words
from sklboost.tree.core.formulas import leaf_weight, similarity_at, smooth, soft_threshold

# Learning rates are multiplied and divided again: a few units in the last place.
_SAME = dict(rel_tol=1e-9, abs_tol=1e-300)


class Side(NamedTuple):
    """A node in the derivation of a split, and one output of it.

    Attributes
    ----------
    node : int
    name : str
        "this node", "the left child" or "the right child".
    output : int
    suffix : str
        Of its symbols, such as ``"_L"`` or with several outputs ``"_L,1"``.
    """

    node: int
    name: str
    output: int
    suffix: str

    def symbol(self, letter: str) -> str:
        """Give the symbol of one of its numbers."""
        return letter + self.suffix

    @property
    def with_output(self) -> str:
        """The name, with the number of the output where there are several."""
        is_several = "," in self.suffix or self.suffix[1:].isdigit()
        return f"{self.name}, output {self.output}" if is_several else self.name


def sum_steps(tree: GrownTree, side: Side) -> list[Step | str]:
    """Give G and H."""
    _, gradient, hessian = tree.sums[side.node, side.output].tolist()
    return [
        given(f"sum of gradients of {side.with_output}", side.symbol("G"), gradient),
        given(f"sum of hessians of {side.with_output}", side.symbol("H"), hessian),
    ]


def searched_weight(tree: GrownTree, side: Side, words: Words) -> float:
    """Give the leaf weight that the node had when splits were compared."""
    value, gradient, hessian = tree.sums[side.node, side.output].tolist()
    if hessian == 0.0:
        return 0.0
    best = leaf_weight(gradient, hessian, tree.params)
    above = int(tree.parents[side.node])
    if above >= 0 and tree.params.path_smooth > 0.0:
        weight_above = searched_weight(tree, side._replace(node=above), words)
        best = smooth(best, hessian, weight_above, tree.params.path_smooth)
    # of renewed leaves that weight is stored only where pruned splits are remembered
    was_renewed = len(words.loss.renewal) > 0 and value == tree.values[side.node, side.output]
    if was_renewed and side.node < tree.n_kept and tree.nodes[side.node].left < 0:
        return float(best)
    used = value / tree.params.learning_rate
    return float(best if math.isclose(best, used, **_SAME) else used)


def is_plain(tree: GrownTree, side: Side, words: Words) -> bool:
    """Tell whether nothing but lambda and alpha has a say in the leaf weight."""
    best = _best(tree, side)
    return best is not None and math.isclose(best, searched_weight(tree, side, words), **_SAME)


def _best(tree: GrownTree, side: Side) -> float | None:
    _, gradient, hessian = tree.sums[side.node, side.output].tolist()
    if hessian + tree.params.reg_lambda == 0.0:
        return None
    free = tree.params._replace(max_delta_step=math.inf)
    return float(leaf_weight(gradient, hessian, free))


def similarity_steps(tree: GrownTree, side: Side, words: Words) -> list[Step | str]:
    """Give what a leaf would remove from the loss, twice."""
    _, gradient, hessian = tree.sums[side.node, side.output].tolist()
    params, weight = tree.params, searched_weight(tree, side, words)
    G, H, S, w = (side.symbol(letter) for letter in "GHSw")
    values = {G: gradient, H: hessian, "λ": params.reg_lambda}
    formula = f"{G}² / ({H} + λ)"
    if is_plain(tree, side, words):
        if params.reg_alpha > 0.0:
            T = side.symbol("T")
            values = {T: float(soft_threshold(gradient, params.reg_alpha)), **values}
            formula = f"{T}² / ({H} + λ)"
    else:
        formula = f"-(2 · {G} · {w} + ({H} + λ) · {w}²)"
        values[w] = weight
        if params.reg_alpha > 0.0:
            formula = f"-(2 · {G} · {w} + ({H} + λ) · {w}² + 2 · α · |{w}|)"
            values["α"] = params.reg_alpha
    result = float(similarity_at(gradient, hessian, weight, params)) + 0.0
    return [Step(f"similarity of {side.with_output}", S, formula, values, result)]


def weight_steps(tree: GrownTree, side: Side, words: Words) -> list[Step | str]:
    """Give the leaf weight: the best one, and whatever holds it back."""
    _, gradient, hessian = tree.sums[side.node, side.output].tolist()
    params, G, H, w, T = tree.params, *(side.symbol(letter) for letter in "GHwT")
    best = _best(tree, side)
    if hessian == 0.0 or best is None:
        return [f"No rows were drawn for {side.with_output}: it adds nothing."]
    lines: list[Step | str] = []
    top, top_value = G, gradient
    if params.reg_alpha > 0.0:
        values = {G: gradient, "α": params.reg_alpha}
        top, top_value = T, float(soft_threshold(gradient, params.reg_alpha))
        formula = f"max({G} - α, 0) + min({G} + α, 0)"
        name = f"G of {side.with_output}, moved towards 0 by alpha"
        lines.append(Step(name, T, formula, values, top_value))
    values = {top: top_value, H: hessian, "λ": params.reg_lambda}
    formula = f"-{top} / ({H} + λ)"
    lines.append(Step(f"output of {side.with_output}", w, formula, values, best + 0.0))
    return lines + _constraint_steps(tree, side, best, words)


def _constraint_steps(tree: GrownTree, side: Side, best: float, words: Words) -> list[Step | str]:
    """Give what moves the best leaf weight to the one that was used."""
    params, H, w = tree.params, side.symbol("H"), side.symbol("w")
    hessian, above = float(tree.sums[side.node, side.output, 2]), int(tree.parents[side.node])
    lines: list[Step | str] = []
    weight, step = best, params.max_delta_step
    if abs(weight) > step:
        weight = math.copysign(step, weight)
        name = f"output of {side.with_output} within ±Δ (max_delta_step, or the loss's own limit)"
        lines.append(Step(name, w, f"max(-Δ, min({w}, Δ))", {w: best, "Δ": step}, weight))
    if params.path_smooth > 0.0 and above >= 0:
        weight_above = searched_weight(tree, side._replace(node=above), words)
        values = {H: hessian, "c": params.path_smooth}
        share = hessian / (hessian + params.path_smooth)
        name = f"share of {side.with_output} in its output, c being path_smooth"
        lines.append(Step(name, "s", f"{H} / ({H} + c)", values, share))
        values = {"s": share, w: weight, "w_above": weight_above}
        weight = float(smooth(weight, hessian, weight_above, params.path_smooth))
        name = f"output of {side.with_output}, leaning on that of the node above"
        lines.append(Step(name, w, f"s · {w} + (1 - s) · w_above", values, weight))
    used = searched_weight(tree, side, words)
    if not math.isclose(weight, used, **_SAME):
        name = f"output of {side.with_output} within the bounds of monotone constraints"
        lines.append(given(name, w, used))
    return lines


def value_steps(tree: GrownTree, side: Side, words: Words) -> list[Step | str]:
    """Give what a leaf adds to the raw scores of its rows."""
    value, params = float(tree.values[side.node, side.output]), tree.params
    w, v, lines = side.symbol("w"), side.symbol("v"), list[Step | str]()
    weight = value / params.learning_rate
    searched = searched_weight(tree, side, words)
    if math.isclose(weight, searched, **_SAME):
        weight = searched
    is_removed, is_split = side.node >= tree.n_kept, tree.is_split[side.node]
    is_leaf = not is_removed and not is_split
    if is_leaf and len(words.loss.renewal) > 0:
        alpha = float(words.loss.renewal[_output_of_model(tree, side, words)])
        what = "median" if alpha == 0.5 else f"{alpha:g} quantile"
        what = f"output of {side.with_output}, renewed: the {what} of its rows' residuals"
        lines.append(given(what, w, weight))
    name = f"leaf value of {side.with_output}: learning rate times output"
    if is_split:
        name = f"value of {side.with_output}, if it were no split"
    elif is_removed:
        name = f"value of {side.with_output}, if pruning had left it"
    lines.append(Step(name, v, f"η · {w}", {"η": params.learning_rate, w: weight}, value + 0.0))
    return lines


def _output_of_model(tree: GrownTree, side: Side, words: Words) -> int:
    is_vector = tree.sums.shape[1] > 1
    return side.output if is_vector else tree.number % len(words.loss.renewal)
