"""The derivation of a node: of its split, or of the leaf that it is."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sklboost.engine.structs import TreeParams
from sklboost.inspection.derivation import Derivation, Line, Section, Step, given, number
from sklboost.inspection.derivation.trees import GrownTree, ModelNames
from sklboost.tree.core.formulas import leaf_weight, similarity_at, soft_threshold, split_gain
from sklboost.tree.options.constrained_weights import smooth


def gamma_and_pruning(params: TreeParams) -> tuple[float, str]:
    """The parameters `gamma` and `pruning`, which a tree has as two gains."""
    if params.prune_gain == -math.inf:
        # the least gain that is grown is above 0 whatever gamma is
        smallest = math.nextafter(0.0, 1.0)
        return 0.0 if params.grow_gain == smallest else params.grow_gain, "pre"
    return params.prune_gain, "full" if params.grow_gain == -math.inf else "post"


def gain_beneath(tree: GrownTree, top: int) -> tuple[float, int]:
    """Sum of the gains of a branch without what gamma removed, and its number of splits."""
    total, n_splits, waiting = 0.0, 0, [top]
    while waiting:
        node = waiting.pop()
        if tree.nodes.left[node] >= 0 and not tree.goes_by_gamma[node]:
            total += float(tree.nodes.gain[node])
            n_splits += 1
            waiting += tree.children(node)
    return total, n_splits


def verdict(tree: GrownTree, node: int) -> list[Line]:
    """Whether a split was kept, and why."""
    gamma, pruning = gamma_and_pruning(tree.params)
    step = given("gamma", "γ", gamma)
    if not tree.is_split[node]:
        return [step, *_why_removed(tree, node), where_rows_end(tree, node)]
    return [step, _why_kept(tree, node, gamma, pruning)]


def _why_kept(tree: GrownTree, node: int, gamma: float, pruning: str) -> str:
    gain = float(tree.nodes.gain[node])
    if pruning == "pre":
        return f'Kept: gain {number(gain)} > 0 and ≥ gamma {number(gamma)} (pruning="pre").'
    if gain >= gamma:
        return f"Kept: gain {number(gain)} ≥ gamma {number(gamma)}."
    below = [child for child in tree.children(node) if tree.is_split[child]]
    names = " and ".join(f"node {child}" for child in below)
    return (
        f"Kept, although gain {number(gain)} < gamma {number(gamma)}: pruning goes from the "
        f"bottom up, and the split of {names} beneath it stays."
    )


def where_rows_end(tree: GrownTree, node: int) -> str:
    """Which leaf has the rows of a node that pruning removed or made a leaf."""
    top = _leaf_above(tree, node)
    return "Its rows end here: it is a leaf." if top == node else f"Its rows end in node {top}."


def _leaf_above(tree: GrownTree, node: int) -> int:
    """The leaf of the model that a node removed by pruning is part of."""
    return next(above for above in tree.path(node) if not tree.is_split[above])


def _why_removed(tree: GrownTree, node: int) -> list[Line]:
    gain, gamma = float(tree.nodes.gain[node]), tree.params.prune_gain
    if tree.goes_by_gamma[node]:
        gains = f"gain {number(gain)} < gamma {number(gamma)}"
        return [f"Pruned: {gains}, and no split beneath it stays."]
    top = _leaf_above(tree, node)
    if top not in tree.known:
        tree.known[top] = gain_beneath(tree, top)
    total, n_splits = tree.known[top]
    alpha, cover = tree.params.ccp_alpha, float(tree.nodes.cover[0])
    where = "its branch" if top == node else f"the branch of node {top}, which it is part of,"
    values = {"n": float(n_splits), "a": alpha, "H_0": cover}
    name = "what n splits have to gain together, a being ccp_alpha and H_0 the cover of the root"
    splits = f"{n_splits} split{'s' * (n_splits > 1)}"
    return [
        f"Pruned: the {splits} of {where} gain {number(total)} together, too little for "
        "cost-complexity pruning.",
        Step(name, "cost", "n · a · H_0", values, n_splits * alpha * cover),
    ]


def why_leaf(tree: GrownTree, node: int) -> str:
    """Why a node was never split, as far as the model tells."""
    params, cover = tree.params, float(tree.nodes.cover[node])
    if node >= tree.n_kept:
        return f"Removed by pruning. {where_rows_end(tree, node)}"
    n_leaves = (len(tree.nodes) + 1) // 2
    if tree.n_forgotten > 0:
        return (
            f"A leaf. Pruning removed {tree.n_forgotten} split{'s' * (tree.n_forgotten > 1)} of "
            "this tree, perhaps the one of this node: keep_pruned=True keeps them."
        )
    if tree.depths[node] >= params.max_depth:
        return f"A leaf: it lies at max_depth, {params.max_depth} splits below the root."
    if n_leaves >= params.max_leaves:
        return f"A leaf: the tree has max_leaves, {n_leaves}, leaves."
    if cover < 2.0 * params.min_child_weight:
        return (
            f"A leaf: its cover {number(cover)} is not enough for two children of "
            f"min_child_weight {number(params.min_child_weight)} each."
        )
    if params.symmetric == 1:
        return (
            "A leaf: none of the splits of later depths, each the one for all nodes of a depth, is "
            "allowed here and gains enough."
        )
    (gamma, pruning), rows = gamma_and_pruning(params), ""
    if params.min_child_samples > 0:  # a model keeps no numbers of rows to compare it with
        rows = f" and leaves min_child_samples, {params.min_child_samples}, rows on both sides"
    if pruning == "full":
        return f"A leaf: no split of it{rows} is possible."
    least = f" and at least gamma {number(gamma)}" if pruning == "pre" else ""
    return f"A leaf: no split that is allowed{rows} gains more than 0{least}."


def cover_lines(tree: GrownTree, node: int) -> list[Line]:
    """Compare the covers of the children with min_child_weight."""
    least, n_outputs = tree.params.min_child_weight, tree.n_outputs
    mean = f", the mean of {n_outputs} outputs," if n_outputs > 1 else ""
    lines: list[Line] = [
        f"Cover H of the {side} child{mean} is {number(float(tree.nodes.cover[child]))} ≥ "
        f"min_child_weight {number(least)}: the split is allowed."
        for child, side in zip(tree.children(node), ("left", "right"), strict=True)
    ]
    if tree.params.min_child_samples > 0:
        rows = tree.params.min_child_samples
        lines.append(f"Both children have at least min_child_samples, {rows}, rows.")
    return lines


# Learning rates are multiplied and divided again: a few units in the last place.
_SAME = dict(rel_tol=1e-9, abs_tol=1e-300)


class KnownOutput(NamedTuple):
    """One output of a node: its sums, and all that follows from them."""

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
            name = f"output of {self.name}, smoothed towards the output above"
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


_SUFFIXES = {"this node": "", "the left child": "_L", "the right child": "_R"}
# So many rows are written out one by one.
_MOST_TERMS = 8
_UNKNOWN_SUMS = (
    "Sums of gradients are not known: the library that trained the model does not keep them, and "
    "they do not follow from its leaf weights."
)


class NodeRows(NamedTuple):
    """Rows that reach a node, from data that is given for its derivation."""

    is_here: np.ndarray  # bool, shape (n_given,): which rows of the data reach the node
    # float64, shape (n_tree_outputs, n_given) or (0, 0): before the round of the tree, times their
    # weights. Empty: not known.
    gradients: np.ndarray
    hessians: np.ndarray
    why_unknown: str  # A sentence for that


def derive_node(
    tree: GrownTree, node: int, names: ModelNames, rows: NodeRows | None = None
) -> Derivation:
    """Derive the split of a node, kept or pruned, or the leaf; `rows` are rows of the node."""
    is_vector = tree.n_outputs > 1
    of_output = "" if is_vector else names.of_output(tree.number % len(names.outputs))
    title = f"Tree {tree.number}{of_output}, node {node}"
    outputs = _outputs(tree, names, node, "this node")
    if tree.nodes.left[node] < 0:
        title, sections = f"{title}: a leaf", _leaf_sections(outputs)
    else:
        state = "" if tree.is_split[node] else ", pruned"
        title = f"{title}: split at {names.condition(tree, node)}{state}"
        sections = _split_sections(outputs)
    if rows is not None:
        sections += (_rows_section(outputs, rows),)
    return Derivation(title, sections)


def _outputs(tree: GrownTree, names: ModelNames, node: int, side: str) -> list[NodeOutput]:
    """All outputs of a node."""
    n_outputs, suffix = tree.n_outputs, _SUFFIXES[side]
    if n_outputs == 1:
        return [NodeOutput(tree, names, node, 0, side, suffix)]
    join = "," if suffix else "_"
    return [
        NodeOutput(tree, names, node, output, side, f"{suffix}{join}{output}")
        for output in range(n_outputs)
    ]


def _leaf_sections(outputs: Sequence[NodeOutput]) -> tuple[Section, ...]:
    tree, names, node, *_ = outputs[0]
    sections = [_sums(outputs)]
    if _have_sums(outputs):
        sections.append(Section("Output", _each(NodeOutput.weight_steps, outputs)))
        sections.append(Section("Similarity", _each(NodeOutput.similarity_steps, outputs)))
    value = Section("Leaf value", _each(NodeOutput.value_steps, outputs) + names.notes)
    why = Section("Why it is a leaf", (why_leaf(tree, node),))
    return (*sections, value) if names.is_foreign else (*sections, value, why)


def _have_sums(outputs: Sequence[NodeOutput]) -> bool:
    return all(output.has_sums for output in outputs)


def _split_sections(outputs: Sequence[NodeOutput]) -> tuple[Section, ...]:
    tree, names, node, *_ = outputs[0]
    left_child, right_child = tree.children(node)
    left = _outputs(tree, names, left_child, "the left child")
    right = _outputs(tree, names, right_child, "the right child")
    everything = [*outputs, *left, *right]
    valued = [*left, *right] if tree.is_split[node] or node >= tree.n_kept else outputs
    rules = (
        Section("Cover", tuple(cover_lines(tree, node))),
        Section("Verdict", tuple(verdict(tree, node))),
    )
    return (
        Section("Split", _ways(tree, node, names)),
        _sums(everything),
        *_comparison(tree, node, everything),
        *(() if names.is_foreign else rules),
        Section("Values", _each(NodeOutput.value_steps, valued) + names.notes),
    )


def _comparison(
    tree: GrownTree, node: int, everything: Sequence[NodeOutput]
) -> tuple[Section, ...]:
    """Outputs, similarities and the gain; of unknown sums the gain alone."""
    if not _have_sums(everything):
        return (Section("Gain", (given("gain of the split", "gain", tree.nodes.gain[node]),)),)
    weights = Section("Outputs", _each(NodeOutput.weight_steps, everything))
    similarities = Section("Similarities", _each(NodeOutput.similarity_steps, everything))
    gain = Section("Gain", _gain(tree, node, similarities, everything[0].names.is_foreign))
    # what constrains outputs comes first: similarities depend on it
    if all(output.known.is_plain for output in everything):
        return similarities, gain, weights
    return weights, similarities, gain


def _each(
    steps: Callable[[NodeOutput], list[Line]], outputs: Sequence[NodeOutput]
) -> tuple[Line, ...]:
    return tuple(line for output in outputs for line in steps(output))


def _ways(tree: GrownTree, node: int, names: ModelNames) -> tuple[str, ...]:
    """Where rows go, and where missing values."""
    split = tree.nodes[node]
    left, right = (f"node {child}" for child in (split.left, split.right))
    ways = f"Rows with {names.condition(tree, node)} go to {left}, all others to {right}."
    if split.threshold == -np.inf:
        name = names.features[split.feature]
        return (f"Rows without a value of {name} go to {left}, all others to {right}.",)
    return ways, f"Missing values go to {left if split.default_left else right}."


def _sums(outputs: Sequence[NodeOutput]) -> Section:
    params, names = outputs[0].tree.params, outputs[0].names
    lines = (*names.about_sums(), *_each(NodeOutput.sum_steps, outputs))
    if not _have_sums(outputs):
        return Section("Sums", (_UNKNOWN_SUMS, *lines))
    lines += (given("reg_lambda", "λ", params.reg_lambda),)
    if params.reg_alpha > 0.0:
        lines += (given("reg_alpha", "α", params.reg_alpha),)
    return Section("Sums", lines)


def _gain(tree: GrownTree, node: int, similarities: Section, is_foreign: bool) -> tuple[Line, ...]:
    """The gain; with several outputs, their similarities are added up first."""
    found = [step for step in similarities.lines if isinstance(step, Step)]
    n_outputs = tree.n_outputs
    lines: list[Line] = []
    totals = {}
    for side, (name, suffix) in enumerate(_SUFFIXES.items()):
        steps = found[side * n_outputs : (side + 1) * n_outputs]
        parts = {step.symbol: step.result for step in steps}
        totals[f"S{suffix}"] = total = sum(parts.values())
        if n_outputs > 1:
            formula = " + ".join(parts)
            lines.append(Step(f"similarity of {name}", f"S{suffix}", formula, parts, total))
    values = {symbol: totals[symbol] for symbol in ("S_L", "S_R", "S")}
    gain = float(tree.nodes.gain[node])
    lines.append(Step("gain of the split", "gain", "S_L + S_R - S", values, gain))
    computed = split_gain(values["S_L"], values["S_R"], values["S"])
    exact = dict(rel_tol=1e-6, abs_tol=1e-9 * abs(values["S"]))
    if is_foreign:
        lines.append("The gain was computed by the other library.")
    elif not math.isclose(computed, gain, **exact):
        lines.append(
            "The gain was computed in the training: bounds of monotone constraints were in force "
            "when splits were compared, and renewed leaves do not show them."
        )
    return tuple(lines)


def _rows_section(outputs: Sequence[NodeOutput], rows: NodeRows) -> Section:
    """Count the rows of the node and add up their gradients and hessians, for each output.

    The sums are compared with the sums of the training, all that a model keeps.
    """
    n_here = int(rows.is_here.sum())
    lines: list[Line] = [
        f"{n_here} of the {len(rows.is_here)} rows given (of positive weight) reach this node."
    ]
    if len(rows.gradients) == 0:
        return Section("Rows", (*lines, *filter(None, [rows.why_unknown])))
    for output in outputs:
        gradients = rows.gradients[output.output, rows.is_here]
        hessians = rows.hessians[output.output, rows.is_here]
        if output.names.has_residuals and n_here <= _MOST_TERMS:
            listed = ", ".join(map(number, (-gradients).tolist()))
            lines.append(f"Their residuals, times their weights: {listed}.")
        lines.append(_sum("gradients", "g", gradients, output))
        lines.append(_sum("hessians", "h", hessians, output))
        lines.append(_compared(output, rows))
    return Section("Rows", tuple(lines))


def _sum(name: str, letter: str, values: np.ndarray, output: NodeOutput) -> Step:
    terms: dict[str, float] = {}
    if len(values) <= _MOST_TERMS:
        terms = {f"{letter}_{row}": value for row, value in enumerate(values.tolist(), start=1)}
    name = f"sum of {name} of these rows{output.of_output}"
    symbol = f"{letter.upper()}_given" + output.suffix.replace("_", ",")
    return Step(name, symbol, " + ".join(terms), terms, float(values.sum()))


def _compared(output: NodeOutput, rows: NodeRows) -> str:
    """Whether the sums agree with the training, up to the rounding of gradients."""
    if not output.has_sums:
        return "The sums of the training are not known."
    expected = output.known[:2]
    agrees = True
    for values, known in zip((rows.gradients, rows.hessians), expected, strict=True):
        values = values[output.output]
        sizes = np.abs(values)
        # a row is rounded by less than 2^-29 of the sum of all, and is a float32 before
        room = rows.is_here.sum() * sizes.sum() * 2.0**-29 + 1e-5 * sizes[rows.is_here].sum()
        agrees &= bool(abs(values[rows.is_here].sum() - known) <= room)
    if agrees:
        return "These are the sums of the training, up to its rounding of gradients."
    gradient, hessian = map(number, expected)
    return (
        f"The training had G = {gradient} and H = {hessian}: it sampled rows, held some out, "
        "or had other rows, targets or weights than those given."
    )
