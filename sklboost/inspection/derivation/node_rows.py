"""The rows of a node, from data that is given for its derivation.

In: the rows that come to a node, with their gradients and hessians. Out: a section that adds them
up, and compares the sums with those of the training, which are all that a model keeps.
"""

from typing import NamedTuple

import numpy as np

from sklboost.inspection.derivation.formulas import number
from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.leaves import Side
from sklboost.inspection.derivation.steps import Section, Step
from sklboost.inspection.derivation.words import Words, has_residuals

# So many are written out, row by row.
_MOST_TERMS = 8


class NodeRows(NamedTuple):
    """Rows that come to a node.

    Attributes
    ----------
    n_given : int
        Rows of all the data.
    is_here : ndarray of bool, shape (n_given,)
        Which of them come to the node.
    gradients, hessians : ndarray of float64, shape (n_tree_outputs, n_given) or (0, 0)
        Before the round of the tree, times their weights. Empty: not known.
    why_unknown : str
        A sentence for that.
    """

    n_given: int
    is_here: np.ndarray
    gradients: np.ndarray
    hessians: np.ndarray
    why_unknown: str


def rows_section(tree: GrownTree, sides: list[Side], rows: NodeRows, words: Words) -> Section:
    """Count the rows and add up what they have of each output."""
    n_here = int(rows.is_here.sum())
    lines: list[Step | str] = [
        f"{n_here} of the {rows.n_given} rows given (of positive weight) come to this node."
    ]
    if len(rows.gradients) == 0:
        return Section("Rows", (*lines, *filter(None, [rows.why_unknown])))
    for side in sides:
        gradient, hessian = (
            own[side.output, rows.is_here] for own in (rows.gradients, rows.hessians)
        )
        if has_residuals(words) and n_here <= _MOST_TERMS:
            listed = ", ".join(map(number, (-gradient).tolist()))
            lines.append(f"Their residuals, weights counted: {listed}.")
        lines += [_sum("gradients", "g", gradient, side), _sum("hessians", "h", hessian, side)]
        lines.append(_compared(tree, side, rows))
    return Section("Rows", tuple(lines))


def _sum(name: str, letter: str, values: np.ndarray, side: Side) -> Step:
    terms: dict[str, float] = {}
    if len(values) <= _MOST_TERMS:
        terms = {f"{letter}_{row}": value for row, value in enumerate(values.tolist(), start=1)}
    name = f"sum of {name} of these rows" + side.with_output.removeprefix(side.name)
    symbol = f"{letter.upper()}_given" + side.suffix.replace("_", ",")
    return Step(name, symbol, " + ".join(terms), terms, float(values.sum()))


def _compared(tree: GrownTree, side: Side, rows: NodeRows) -> str:
    """Say whether the sums are those of the training, but for what rounding gradients may do."""
    _, *expected = tree.sums[side.node, side.output].tolist()
    agrees = True
    for own, known in zip((rows.gradients, rows.hessians), expected, strict=True):
        sizes = np.abs(own[side.output])
        # a row is rounded by less than 2^-29 of the sum of all, and is a float32 before
        room = rows.is_here.sum() * sizes.sum() * 2.0**-29 + 1e-5 * sizes[rows.is_here].sum()
        agrees &= bool(abs(own[side.output, rows.is_here].sum() - known) <= room)
    if agrees:
        return "That is what the training had, but for its rounding of gradients."
    gradient, hessian = map(number, expected)
    return (
        f"The training had G = {gradient} and H = {hessian}: it drew rows, held some out, or "
        "learnt from other rows, targets or weights than those given."
    )
