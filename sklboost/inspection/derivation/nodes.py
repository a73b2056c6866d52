"""The derivation of a node: of its split, or of the leaf that it is.

In: a tree with the splits that pruning removed, and the number of a node. Out: a
:class:`~sklboost.inspection.derivation.steps.Derivation`.

All numbers are those of the training: G, H, gains and values as the model keeps them. What follows
from them is computed by the functions that training calls.
"""

import math
from collections.abc import Callable

import numpy as np

from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.leaves import (
    Side,
    is_plain,
    similarity_steps,
    sum_steps,
    value_steps,
    weight_steps,
)
from sklboost.inspection.derivation.node_rows import NodeRows, rows_section
from sklboost.inspection.derivation.steps import Derivation, Section, Step, given
from sklboost.inspection.derivation.verdicts import cover_lines, verdict, why_leaf
from sklboost.inspection.derivation.words import (
    Words,
    condition,
    words_of_loss,
    words_of_output,
)
from sklboost.tree.core.formulas import split_gain

_SUFFIXES = {"this node": "", "the left child": "_L", "the right child": "_R"}


def derive_node(
    tree: GrownTree, node: int, words: Words, rows: NodeRows | None = None
) -> Derivation:
    """Derive the split of a node, kept or pruned, or the leaf.

    Parameters
    ----------
    tree : GrownTree
    node : int
        At least 0 and below ``len(tree.nodes)``.
    words : Words
    rows : NodeRows, optional
        Of the node, from data that is given for it.
    """
    is_vector = tree.sums.shape[1] > 1
    of_output = "" if is_vector else words_of_output(words, tree.number % len(words.outputs))
    title = f"Tree {tree.number}{of_output}, node {node}"
    if tree.nodes.left[node] < 0:
        title, sections = f"{title}: a leaf", _leaf_sections(tree, node, words)
    else:
        state = "" if tree.is_split[node] else ", pruned"
        title = f"{title}: split at {condition(tree, node, words)}{state}"
        sections = _split_sections(tree, node, words)
    if rows is not None:
        sections += (rows_section(tree, _sides(tree, node, "this node"), rows, words),)
    return Derivation(title, sections)


def _sides(tree: GrownTree, node: int, name: str) -> list[Side]:
    """Give a node once for each output of its tree."""
    n_outputs, suffix = tree.sums.shape[1], _SUFFIXES[name]
    if n_outputs == 1:
        return [Side(node, name, 0, suffix)]
    join = "," if suffix else "_"
    return [Side(node, name, output, f"{suffix}{join}{output}") for output in range(n_outputs)]


def _leaf_sections(tree: GrownTree, node: int, words: Words) -> tuple[Section, ...]:
    sides = _sides(tree, node, "this node")
    return (
        _sums(tree, sides, words),
        Section("Output", _each(weight_steps, tree, sides, words)),
        Section("Similarity", _each(similarity_steps, tree, sides, words)),
        Section("Leaf value", _each(value_steps, tree, sides, words) + words.notes),
        Section("Why it is a leaf", (why_leaf(tree, node),)),
    )


def _split_sections(tree: GrownTree, node: int, words: Words) -> tuple[Section, ...]:
    own, left, right = (
        _sides(tree, number, name)
        for number, name in zip(
            (node, int(tree.nodes.left[node]), int(tree.nodes.right[node])), _SUFFIXES, strict=True
        )
    )
    sides = own + left + right
    weights = Section("Outputs", _each(weight_steps, tree, sides, words))
    similarities = Section("Similarities", _each(similarity_steps, tree, sides, words))
    middle = [similarities, Section("Gain", _gain(tree, node, (own, left, right), similarities))]
    # what holds outputs back comes first: similarities depend on it
    all_plain = all(is_plain(tree, side, words) for side in sides)
    middle = [*middle, weights] if all_plain else [weights, *middle]
    valued = left + right if tree.is_split[node] or node >= tree.n_kept else own
    return (
        Section("Split", _ways(tree, node, words)),
        _sums(tree, sides, words),
        *middle,
        Section("Cover", tuple(cover_lines(tree, node))),
        Section("Verdict", tuple(verdict(tree, node))),
        Section("Values", _each(value_steps, tree, valued, words) + words.notes),
    )


def _each(
    steps: Callable[[GrownTree, Side, Words], list[Step | str]],
    tree: GrownTree,
    sides: list[Side],
    words: Words,
) -> tuple[Step | str, ...]:
    return tuple(line for side in sides for line in steps(tree, side, words))


def _ways(tree: GrownTree, node: int, words: Words) -> tuple[str, ...]:
    split = tree.nodes[node]
    left, right = (f"node {child}" for child in (split.left, split.right))
    missing = left if split.default_left else right
    lines = [f"{condition(tree, node, words)}: to {left}. Else: to {right}."]
    if split.threshold != -np.inf:
        lines.append(f"Missing values: to {missing}.")
    return tuple(lines)


def _sums(tree: GrownTree, sides: list[Side], words: Words) -> Section:
    params = tree.params
    lines: list[Step | str] = [*words_of_loss(words)]
    for side in sides:
        lines += sum_steps(tree, side)
    lines.append(given("reg_lambda", "λ", params.reg_lambda))
    if params.reg_alpha > 0.0:
        lines.append(given("reg_alpha", "α", params.reg_alpha))
    return Section("Sums", tuple(lines))


def _gain(
    tree: GrownTree, node: int, groups: tuple[list[Side], ...], similarities: Section
) -> tuple[Step | str, ...]:
    """Give the gain; with several outputs, their similarities are added up first."""
    found = {step.symbol: step.result for step in similarities.lines if isinstance(step, Step)}
    lines: list[Step | str] = []
    totals = {}
    for sides, (name, suffix) in zip(groups, _SUFFIXES.items(), strict=True):
        parts = {side.symbol("S"): found[side.symbol("S")] for side in sides}
        totals[f"S{suffix}"] = sum(parts.values())
        if len(parts) > 1:
            formula, total = " + ".join(parts), totals[f"S{suffix}"]
            lines.append(Step(f"similarity of {name}", f"S{suffix}", formula, parts, total))
    own, left, right = totals.values()
    gain = float(tree.nodes.gain[node])
    values = {"S_L": left, "S_R": right, "S": own}
    lines.append(Step("gain of the split", "gain", "S_L + S_R - S", values, gain))
    if not math.isclose(split_gain(left, right, own), gain, rel_tol=1e-6, abs_tol=1e-9 * abs(own)):
        lines.append(
            "The gain is that of the training. Bounds of monotone constraints, which leaves that "
            "are renewed do not tell, were in force when splits were compared."
        )
    return tuple(lines)
