"""A node as a leaf: steps from its G and H to its leaf weight, similarity and leaf value."""

import math
from typing import NamedTuple

from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.names import ModelNames
from sklboost.inspection.derivation.steps import Line, Step, given
from sklboost.tree.core.formulas import leaf_weight, similarity_at, soft_threshold
from sklboost.tree.options.inherited_weights import smooth

# Learning rates are multiplied and divided again: a few units in the last place.
_SAME = dict(rel_tol=1e-9, abs_tol=1e-300)


class KnownOutput(NamedTuple):
    """What is known of one output of a node."""

    # G and H
    gradient: float
    hessian: float
    best: float | None  # leaf weight from G, H, lambda and alpha alone; None if it is 0 / 0
    weight: float  # leaf weight that the node had when splits were compared
    similarity: float  # twice what a leaf of that weight would remove from the loss
    is_plain: bool  # whether nothing but lambda and alpha has an influence on the leaf weight


class NodeOutput(NamedTuple):
    """One output of a node in a derivation."""

    tree: GrownTree
    names: ModelNames
    node: int
    output: int
    side: str  # "this node", "the left child" or "the right child"
    suffix: str  # of its symbols, such as ``"_L"`` or with several outputs ``"_L,1"``

    @property
    def known(self) -> KnownOutput:
        """G and H, and what follows from them."""
        known, waiting = self.tree.known, [self.node]
        if self.tree.params.path_smooth > 0.0:  # outputs depend on those above
            while (waiting[-1], self.output) not in known and waiting[-1] > 0:
                waiting.append(int(self.tree.parents[waiting[-1]]))
        for node in reversed(waiting):
            if (node, self.output) not in known:
                known[node, self.output] = self._replace(node=node)._compute()
        return known[self.node, self.output]

    def _compute(self) -> KnownOutput:
        tree, params = self.tree, self.tree.params
        gradient, hessian = tree.sums[self.node, self.output, 1:].tolist()
        best = None
        if hessian + params.reg_lambda != 0.0:
            free = params._replace(max_delta_step=math.inf)
            best = float(leaf_weight(gradient, hessian, free))
        weight = self._weight(gradient, hessian) if hessian != 0.0 else 0.0
        return KnownOutput(
            *(gradient, hessian, best, weight),
            float(similarity_at(gradient, hessian, weight, params)) + 0.0,
            best is not None and math.isclose(best, weight, **_SAME),
        )

    def _weight(self, gradient: float, hessian: float) -> float:
        tree, params = self.tree, self.tree.params
        best = leaf_weight(gradient, hessian, params)
        above = int(tree.parents[self.node])
        if above >= 0 and params.path_smooth > 0.0:
            best = smooth(best, hessian, tree.known[above, self.output].weight, params.path_smooth)
        value = float(tree.sums[self.node, self.output, 0])
        # of renewed leaves that weight is stored only where pruned splits are remembered
        is_renewed = self.is_renewable and value == tree.values[self.node, self.output]
        if is_renewed and self.node < tree.n_kept and tree.nodes[self.node].left < 0:
            return float(best)
        # at learning rate 0 the value does not tell
        used = value / params.learning_rate if params.learning_rate > 0.0 else best
        return float(best if math.isclose(best, used, **_SAME) else used)

    @property
    def has_sums(self) -> bool:
        """Whether G is known: of some models of other libraries it is not."""
        return not math.isnan(self.known.gradient)

    @property
    def of_output(self) -> str:
        """The number of the output, if there are several."""
        return f", output {self.output}" if self.tree.n_outputs > 1 else ""

    @property
    def name(self) -> str:
        """The side, and the number of the output if there are several."""
        return self.side + self.of_output

    def symbols(self, letters: str) -> list[str]:
        """Symbols of its numbers."""
        return [letter + self.suffix for letter in letters]

    @property
    def is_renewable(self) -> bool:
        """Whether the loss renews the values of leaves."""
        return len(self.names.loss.renewal) > 0

    def sum_steps(self) -> list[Line]:
        """G and H, as far as they are known."""
        G, H = self.symbols("GH")
        known = self.known
        steps: list[Line] = [given(f"sum of gradients of {self.name}", G, known.gradient)]
        return [
            *(steps if self.has_sums else []),
            given(f"sum of hessians of {self.name}", H, known.hessian),
        ]

    def similarity_steps(self) -> list[Line]:
        """Similarity: twice what a leaf would remove from the loss."""
        params, known = self.tree.params, self.known
        G, H, S, w, T = self.symbols("GHSwT")
        values = {G: known.gradient, H: known.hessian, "λ": params.reg_lambda}
        formula = f"{G}² / ({H} + λ)"
        if known.is_plain:
            if params.reg_alpha > 0.0:
                values = {T: float(soft_threshold(known.gradient, params.reg_alpha)), **values}
                formula = f"{T}² / ({H} + λ)"
        else:
            formula = f"-(2 · {G} · {w} + ({H} + λ) · {w}²)"
            values[w] = known.weight
            if params.reg_alpha > 0.0:
                formula = f"-(2 · {G} · {w} + ({H} + λ) · {w}² + 2 · α · |{w}|)"
                values["α"] = params.reg_alpha
        return [Step(f"similarity of {self.name}", S, formula, values, known.similarity)]

    def weight_steps(self) -> list[Line]:
        """Leaf weight: the best one, and whatever constrains it."""
        params, known = self.tree.params, self.known
        best = known.best
        if known.hessian == 0.0 or best is None:
            return [f"No rows were drawn for {self.name}: it adds nothing."]
        G, H, w, T = self.symbols("GHwT")
        lines: list[Line] = []
        top, top_value = G, known.gradient
        if params.reg_alpha > 0.0:
            values = {G: known.gradient, "α": params.reg_alpha}
            top, top_value = T, float(soft_threshold(known.gradient, params.reg_alpha))
            formula = f"max({G} - α, 0) + min({G} + α, 0)"
            name = f"G of {self.name}, moved towards 0 by alpha"
            lines.append(Step(name, T, formula, values, top_value))
        values = {top: top_value, H: known.hessian, "λ": params.reg_lambda}
        formula = f"-{top} / ({H} + λ)"
        lines.append(Step(f"output of {self.name}", w, formula, values, best + 0.0))
        return lines + self._constraint_steps(best)

    def _constraint_steps(self, best: float) -> list[Line]:
        """From the best leaf weight to the one that was used."""
        params, above = self.tree.params, int(self.tree.parents[self.node])
        hessian, used = self.known.hessian, self.known.weight
        H, w = self.symbols("Hw")
        lines: list[Line] = []
        weight, step = best, params.max_delta_step
        if abs(weight) > step:
            weight = math.copysign(step, weight)
            name = f"output of {self.name} within ±Δ (max_delta_step, or the loss's own limit)"
            lines.append(Step(name, w, f"max(-Δ, min({w}, Δ))", {w: best, "Δ": step}, weight))
        if params.path_smooth > 0.0 and above >= 0:
            weight_above = self._replace(node=above).known.weight
            values = {H: hessian, "c": params.path_smooth}
            share = hessian / (hessian + params.path_smooth)
            name = f"share of {self.name} in its output, c being path_smooth"
            lines.append(Step(name, "s", f"{H} / ({H} + c)", values, share))
            values = {"s": share, w: weight, "w_above": weight_above}
            weight = float(smooth(weight, hessian, weight_above, params.path_smooth))
            name = f"output of {self.name}, smoothed towards that of the node above"
            lines.append(Step(name, w, f"s · {w} + (1 - s) · w_above", values, weight))
        if not math.isclose(weight, used, **_SAME):
            name = f"output of {self.name} within the bounds of monotone constraints"
            lines.append(given(name, w, used))
        return lines

    def value_steps(self) -> list[Line]:
        """Leaf value: what a leaf adds to the raw scores of its rows."""
        tree, rate = self.tree, self.tree.params.learning_rate
        value = float(tree.values[self.node, self.output])
        w, v = self.symbols("wv")
        lines: list[Line] = []
        searched = self.known.weight
        weight = value / rate if rate > 0.0 else searched
        if math.isclose(weight, searched, **_SAME):
            weight = searched
        is_removed, is_split = self.node >= tree.n_kept, tree.is_split[self.node]
        if self.is_renewable and not is_removed and not is_split:
            renewal = self.names.loss.renewal
            is_vector = tree.n_outputs > 1
            alpha = float(renewal[self.output if is_vector else tree.number % len(renewal)])
            what = "median" if alpha == 0.5 else f"{alpha:g} quantile"
            what = f"output of {self.name}, renewed: the {what} of its rows' residuals"
            lines.append(given(what, w, weight))
        name = f"leaf value of {self.name}: learning rate times output"
        if is_split:
            name = f"value of {self.name}, if it were a leaf"
        elif is_removed:
            name = f"value of {self.name}, if pruning had kept it"
        lines.append(Step(name, v, f"η · {w}", {"η": rate, w: weight}, value + 0.0))
        return lines
