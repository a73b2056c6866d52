"""The derivation of a node: of its split, or of the leaf that it is.

All numbers are those of the training: G, H, gains and values as the model keeps them. What follows
from them is computed by the functions that training calls.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sklboost.inspection.derivation.derivation import Derivation
from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.leaves import NodeOutput
from sklboost.inspection.derivation.names import ModelNames
from sklboost.inspection.derivation.steps import Line, Section, Step, given, number
from sklboost.inspection.derivation.verdicts import cover_lines, verdict, why_leaf
from sklboost.tree.core.formulas import split_gain

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
        lines.append("The gain is that of the other library.")
    elif not math.isclose(computed, gain, **exact):
        lines.append(
            "The gain is that of the training: bounds of monotone constraints were in force when "
            "splits were compared, and renewed leaves do not show them."
        )
    return tuple(lines)


def _rows_section(outputs: Sequence[NodeOutput], rows: NodeRows) -> Section:
    """Count the rows of the node and add up their gradients and hessians, for each output.

    The sums are compared with those of the training, which are all that a model keeps.
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
    """Whether the sums are those of the training, but for what rounding gradients may do."""
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
