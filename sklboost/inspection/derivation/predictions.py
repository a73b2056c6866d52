"""The derivation of a prediction: one row through all trees, and what its raw scores mean."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from sklboost.engine.model import LinearLeaves, Model
from sklboost.inspection.derivation import Derivation, Line, Section, Step, given, number
from sklboost.inspection.derivation.nodes import NodeOutput
from sklboost.inspection.derivation.trees import ModelNames, grown_tree

_MOST_TREES, _MOST_FEATURES, _MOST_OTHERS = 3, 4, 4  # in a summary
# A derivation of more lines has a summary.
_MOST_LINES = 25


class Row(NamedTuple):
    """A row and what the model makes of it."""

    values: np.ndarray  # float64, shape (n_features,): codes of categories, NaN for missing values
    leaves: np.ndarray  # int, shape (n_trees,)
    start: np.ndarray  # float64, shape (n_outputs,): raw scores before the first tree
    has_margin: bool  # whether these are the user's
    shift: np.ndarray  # float64, shape (n_outputs,): what is added to raw scores after training
    trees: range  # those that are used
    # float64, shape (n_predictions,): probabilities of the classes for a classifier that has them
    predictions: np.ndarray
    conclusion: str  # A last sentence, such as the predicted class


class _Scores:
    """Running raw scores, with symbols that count the additions."""

    def __init__(self, row: Row):
        self.values: list[float] = row.start.tolist()
        # of each output the terms of the trees, by name
        self.of_trees: list[list[tuple[str, float]]] = [[] for _ in self.values]
        self._n_added = [0] * len(self.values)

    def symbol(self, output: int) -> str:
        """Return ``F_3``, or of several outputs ``F_3,1``."""
        return f"F_{self._n_added[output]}" + (f",{output}" if len(self.values) > 1 else "")

    def add(
        self, output: int, name: str, formula: str, terms: dict[str, float], added: float
    ) -> Step:
        """Add a number to one score; the formula and its terms say how it is computed."""
        before, value = self.symbol(output), self.values[output]
        self._n_added[output] += 1
        self.values[output] = value + added
        formula, terms = f"{before} + {formula}", {before: value, **terms}
        return Step(name, self.symbol(output), formula, terms, self.values[output])


def derive_prediction(
    model: Model,
    row: Row,
    names: ModelNames,
    contributions: Callable[[], np.ndarray] | None = None,
    full: bool = False,
) -> Derivation:
    """Derive the prediction of a row; unless `full`, a long derivation has a summary."""
    scores = _Scores(row)
    sections = [_start(row, scores, names)]
    firsts = [(scores.symbol(output), value) for output, value in enumerate(scores.values)]
    sections += [_tree_section(model, tree, row, scores, names) for tree in row.trees]
    sections.append(_link(row, scores, names))
    n_trees = len(row.trees)
    title = f"Prediction of one row by {n_trees} tree{'s' * (n_trees != 1)}"
    derivation = Derivation(title, tuple(sections))
    n_lines = 1 + sum(2 + len(section.lines) for section in sections)
    if full or n_lines <= _MOST_LINES:
        return derivation
    # of several classes or labels the most probable
    is_chance = names.loss.link in ("softmax", "logit")
    output = int(np.argmax(scores.values)) if is_chance else 0
    last = scores.values[output]
    features = None
    if contributions is not None:
        features = _features_section(contributions()[:, output], row.values, last, names)
    summary = _summarize(output, firsts[output], scores, features, sections, names)
    return replace(derivation, summary=summary)


def _start(row: Row, scores: _Scores, names: ModelNames) -> Section:
    lines: list[Line] = []
    for output, value in enumerate(scores.values):
        symbol, of_output = scores.symbol(output), names.of_output(output)
        if row.has_margin or names.loss.link not in ("logit", "log"):
            source = "base_margin of the row" if row.has_margin else "base score"
            lines.append(
                given(f"raw score{of_output} before the first tree: {source}", symbol, value)
            )
        elif names.loss.link == "logit":
            values = {"p": float(expit(value))}
            name = f"log-odds of the starting probability p{of_output}"
            lines.append(Step(name, symbol, "log(p / (1 - p))", values, value))
        else:
            name = f"logarithm of the starting prediction y{of_output}"
            lines.append(Step(name, symbol, "log(y)", {"y": math.exp(value)}, value))
    for output, shift in enumerate(row.shift.tolist()):
        if shift != 0.0:
            name = f"shift of the raw score{names.of_output(output)} (calibrated_prior)"
            lines.append(scores.add(output, name, "shift", {"shift": shift}, shift))
    return Section("Start", (*lines, *names.notes))


def _tree_section(
    model: Model, number: int, row: Row, scores: _Scores, names: ModelNames
) -> Section:
    tree, leaf = grown_tree(model._replace(unpruned=None), number), int(row.leaves[number])
    lines: list[Line] = [
        f"node {node}: {names.decision(tree, node, row.values[tree.nodes.feature[node]])} → "
        f"node {below}"
        for node, below in itertools.pairwise(tree.path(leaf))
    ]
    line = 0.0
    if model.linear is not None:
        position = int(model.tree_starts[number]) + leaf
        step, line = _line_of_leaf(model.linear, position, row, names)
        lines.append(step)
    n_outputs, is_vector = len(scores.values), tree.n_outputs > 1
    rate = tree.params.learning_rate
    for column, value in enumerate(tree.values[leaf].tolist()):
        output = column if is_vector else number % n_outputs
        name = f"raw score{names.of_output(output)} after leaf {leaf}"
        searched = NodeOutput(tree, names, leaf, column, "", "").known.weight
        formula, terms = "η · w", {"η": rate, "w": value / rate if rate > 0.0 else searched}
        if model.linear is not None:
            formula, terms["l"] = "η · w + l", line
        lines.append(scores.add(output, name, formula, terms, value + line))
        scores.of_trees[output].append((f"tree {number}, leaf {leaf}", value + line))
    of_output = "" if is_vector else names.of_output(number % n_outputs)
    return Section(f"Tree {number}{of_output}", tuple(lines))


def _line_of_leaf(
    linear: LinearLeaves, position: int, row: Row, names: ModelNames
) -> tuple[Line, float]:
    """Derive the term l of a linear leaf, a line within limits, which is added to its value."""
    terms = linear.terms[linear.starts[position] : linear.starts[position + 1]].view(np.recarray)
    x = row.values[terms.feature]
    if not np.isfinite(x).all():
        return "l = 0: a value that the leaf's line needs is missing or infinite.", 0.0
    least, most = linear.limits[position].tolist()
    total = float(linear.shifts[position] + (terms.slope * (x - terms.centre)).sum())
    line = min(max(total, least), most)
    values, parts = {"shift": float(linear.shifts[position])}, ["shift"]
    for index, term in enumerate(terms):
        symbols = {f"b_{index}": term.slope, f"x_{index}": x[index], f"c_{index}": term.centre}
        values |= {symbol: float(value) for symbol, value in symbols.items()}
        parts.append(f"b_{index} · (x_{index} - c_{index})")
    features = [
        f"x_{i} is {names.features[feature]}{names.encoding(feature).measure}"
        for i, feature in enumerate(terms.feature)
    ]
    values |= {"least": least, "most": most}
    formula = f"min(most, max(least, {' + '.join(parts)}))"
    name = "; ".join(["line of the leaf, within the limits of its own rows", *features])
    return Step(name, "l", formula, values, line), line


def _link(row: Row, scores: _Scores, names: ModelNames) -> Section:
    lines = _link_steps(row, scores, names)
    steps = [step.result for step in lines if isinstance(step, Step) and step.symbol != "Z"]
    expected = row.predictions[-len(steps) :] if steps else row.predictions
    if len(steps) != len(expected) or not np.allclose(steps, expected, rtol=1e-9, atol=1e-300):
        # a link of the user's own, or several quantiles, which are put in order
        lines = [f"Predictions are a function of the raw scores that {names.loss.name} defines."]
        lines += [
            given(f"prediction {index}", f"y_{index}", value)
            for index, value in enumerate(row.predictions.tolist())
        ]
    conclusion = (row.conclusion,) if row.conclusion else ()
    return Section("Prediction", (*lines, *conclusion))


def _link_steps(row: Row, scores: _Scores, names: ModelNames) -> list[Line]:
    """Apply the link of the loss to the last raw scores."""
    link, lines = names.loss.link, list[Line]()
    symbols = [scores.symbol(output) for output in range(len(scores.values))]
    values = dict(zip(symbols, scores.values, strict=True))
    if link == "softmax":
        total = float(np.exp(list(values.values())).sum())
        formula = " + ".join(f"exp({symbol})" for symbol in symbols)
        lines.append(Step("sum over the classes", "Z", formula, values, total))
    for output, (symbol, value) in enumerate(values.items()):
        of_output, subscript = names.of_output(output), f"_{output}" if len(symbols) > 1 else ""
        if link == "softmax":
            terms = {symbol: value, "Z": total}
            name, target, formula = "probability", "p", f"exp({symbol}) / Z"
            result = float(row.predictions[output])
        elif link == "logit":
            name, target, formula = "probability", "p", f"1 / (1 + exp(-{symbol}))"
            terms, result = {symbol: value}, float(expit(value))
        elif link == "log":
            name, target, formula = "prediction", "y", f"exp({symbol})"
            terms, result = {symbol: value}, math.exp(min(max(value, -700.0), 700.0))
        else:
            name, target, formula, terms, result = "prediction", "y", symbol, {}, value
        lines.append(Step(f"{name}{of_output}", target + subscript, formula, terms, result))
    return lines


# --- the summary ----------------------------------------------------------------------------------


def _summarize(
    output: int,
    first: tuple[str, float],
    scores: _Scores,
    features: Section | None,
    sections: Sequence[Section],
    names: ModelNames,
) -> tuple[Section, ...]:
    """Return the sections of the summary of the derivation of one raw score.

    `first` are its symbol and value before the first tree; `sections` are the whole derivation.
    """
    start, link = sections[0], sections[-1]
    added, (symbol, value) = scores.of_trees[output], first
    last = scores.values[output]
    total = last - value
    terms = {symbol: value, "T": total}
    of_output = names.of_output(output)
    raw_score = Step(f"raw score{of_output}", scores.symbol(output), f"{symbol} + T", terms, last)
    trees = [
        *_largest(added, total, _MOST_TREES, "trees"),
        given(f"sum of the {len(added)} trees", "T", total),
    ]
    lines = [raw_score, *_results(link.lines, output)]
    end = f",{output}" if len(names.outputs) > 1 else ""  # of the symbols of this output
    begin = [line for line in start.lines if isinstance(line, str) or line.symbol.endswith(end)]
    n_lines = 1 + sum(2 + len(section.lines) for section in sections)
    whole = f"All {n_lines} lines, tree by tree: explain_prediction(x, full=True)."
    return (
        Section("Start", tuple(begin)),
        Section(f"What the trees add to the raw score{of_output}", tuple(trees)),
        *([] if features is None else [features]),
        Section(link.heading, (*lines, whole)),
    )


def _features_section(
    contributions: np.ndarray, values: np.ndarray, raw_score: float, names: ModelNames
) -> Section:
    """List the contributions of features to the mean raw score: SHAP values, (n_features,)."""
    added = [
        (f"{name} = {names.value_text(feature, value)}", contribution)
        for feature, (name, value, contribution) in enumerate(
            zip(names.features, values.tolist(), contributions.tolist(), strict=True)
        )
    ]
    total = float(contributions.sum())
    lines = [
        given("mean raw score", "", raw_score - total),
        *_largest(added, total, _MOST_FEATURES, "features"),
    ]
    return Section("What the features add to the mean raw score (SHAP values)", tuple(lines))


def _largest(added: Sequence[tuple[str, float]], total: float, most: int, kind: str) -> list[Step]:
    """List the largest terms, given by name and value, and all others as one."""
    order = sorted(added, key=lambda pair: -abs(pair[1]))
    # a single one would take the line of the others
    shown = order if len(order) <= most + 1 else order[:most]
    steps = [given(name, "", value) for name, value in shown]
    if len(order) > len(shown):
        others = total - sum(value for _, value in shown)
        steps.append(given(f"the other {len(order) - len(shown)} {kind}", "", others))
    return steps


def _results(lines: Sequence[Line], output: int) -> list[Line]:
    """Keep the steps that lead to one output, and of other outputs the results alone."""
    steps = [line for line in lines if isinstance(line, Step)]
    results = [step for step in steps if step.symbol != "Z"]
    if len(results) == 1:
        return list(lines)
    own = [step for step in results if step.symbol.endswith(f"_{output}")]
    total = [given(step.name, step.symbol, step.result) for step in steps if step.symbol == "Z"]
    others = sorted((step for step in results if step not in own), key=lambda step: -step.result)
    texts = [f"{step.name} {number(step.result)}" for step in others[:_MOST_OTHERS]]
    if len(others) > _MOST_OTHERS:
        texts.append(f"and {len(others) - _MOST_OTHERS} more")
    sentences = [line for line in lines if isinstance(line, str)]
    return [*total, *own, f"Others: {', '.join(texts)}.", *sentences]
