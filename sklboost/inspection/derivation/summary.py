"""The summary of a prediction: the start, what trees and features add, the sum, the result.

A derivation has some lines for each tree; the summary is as short for a thousand trees as for ten.
Its numbers are those of the derivation, added up.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sklboost.inspection.derivation.names import ModelNames
from sklboost.inspection.derivation.steps import Line, Section, Step, given, number

_MOST_TREES, _MOST_FEATURES, _MOST_OTHERS = 3, 4, 4


class Addition(NamedTuple):
    """What a tree adds to a raw score."""

    tree: int
    leaf: int
    output: int
    value: float


class RawScore(NamedTuple):
    """One of the raw scores: its symbol and value before the first tree, and after the last."""

    first_symbol: str
    first: float
    last_symbol: str
    last: float


def summarize(
    output: int,
    score: RawScore,
    additions: Iterable[Addition],
    features: Section | None,
    sections: Sequence[Section],
    names: ModelNames,
) -> tuple[Section, ...]:
    """Return the sections of the summary.

    Parameters
    ----------
    output : int
        Which raw score.
    score : RawScore
    additions : iterable of Addition
    features : Section, optional
        What the features add.
    sections : sequence of Section
        The derivation: the start first, the prediction last.
    names : ModelNames
    """
    start, link = sections[0], sections[-1]
    total = score.last - score.first
    own = [addition for addition in additions if addition.output == output]
    added = [(f"tree {own.tree}, leaf {own.leaf}", own.value) for own in own]
    of_output = names.of_output(output)
    raw_score = Step(
        f"raw score{of_output}",
        score.last_symbol,
        f"{score.first_symbol} + T",
        {score.first_symbol: score.first, "T": total},
        score.last,
    )
    trees = [
        *largest(added, total, _MOST_TREES, "trees"),
        given(f"sum of the {len(own)} trees", "T", total),
    ]
    lines = [raw_score, *_results(link.lines, output)]
    whole = f"All {count_lines(sections)} lines, tree by tree: explain_prediction(x, full=True)."
    return (
        Section("Start", _of_output(start.lines, output, len(names.outputs))),
        Section(f"What the trees add to the raw score{of_output}", tuple(trees)),
        *([] if features is None else [features]),
        Section(link.heading, (*lines, whole)),
    )


def features_section(
    contributions: np.ndarray, values: np.ndarray, raw_score: float, names: ModelNames
) -> Section:
    """Return what features add, their SHAP values of shape (n_features,), to the mean raw score."""
    added = [
        (f"{name} = {names.value_text(feature, value)}", contribution)
        for feature, (name, value, contribution) in enumerate(
            zip(names.features, values.tolist(), contributions.tolist(), strict=True)
        )
    ]
    total = float(contributions.sum())
    lines = [
        given("mean raw score", "", raw_score - total),
        *largest(added, total, _MOST_FEATURES, "features"),
    ]
    return Section("What the features add to the mean raw score (SHAP values)", tuple(lines))


def largest(added: Sequence[tuple[str, float]], total: float, most: int, kind: str) -> list[Step]:
    """Return steps of what adds most, by name and value, and of all others together."""
    order = sorted(added, key=lambda pair: -abs(pair[1]))
    # a single one would take the line of the others
    shown = order if len(order) <= most + 1 else order[:most]
    steps = [given(name, "", value) for name, value in shown]
    if len(order) > len(shown):
        others = total - sum(value for _, value in shown)
        steps.append(given(f"the other {len(order) - len(shown)} {kind}", "", others))
    return steps


def count_lines(sections: Iterable[Section]) -> int:
    """Return how many lines of text a derivation has."""
    return 1 + sum(2 + len(section.lines) for section in sections)


def _of_output(lines: Sequence[Line], output: int, n_outputs: int) -> tuple[Line, ...]:
    """Leave out the steps of other outputs."""
    end = f",{output}" if n_outputs > 1 else ""
    return tuple(line for line in lines if isinstance(line, str) or line.symbol.endswith(end))


def _results(lines: Sequence[Line], output: int) -> list[Line]:
    """Return the steps of one output and of what it needs; of others the results alone."""
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
