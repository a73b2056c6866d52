"""Derivations of many nodes in little space: sentences and formulas once, numbers in columns.

The derivations of one kind of node differ in numbers only, and have a template in common. Most
numbers occur several times in a derivation: a column of numbers is kept once, and a column of equal
numbers is one number.
"""

import re
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np

from sklboost.inspection.derivation.derivation import Derivation
from sklboost.inspection.derivation.steps import Step
from sklboost.inspection.page.tokens import is_same_number, rounded

# A number in a sentence, if JavaScript writes it in the same way, and the mark in its place.
_NUMBER = re.compile(r"(?<![\w.+-])(?!-0(?!\.))-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?(?![\w.]?\w|\.\.)")
MARK = "\ufffc"
# The heading and the lines of each section.
_Shape = tuple[tuple[str, tuple[Any, ...]], ...]


def fold_derivations(derivations: Iterable[Derivation]) -> dict[str, Any]:
    """Return derivations as templates and columns of numbers.

    Returns
    -------
    dict
        ``kinds``: the number of each derivation's template. ``templates``: each has
        ``sections`` (heading and lines: of a step its name, symbol, formula and the symbols of its
        values; of a sentence how many numbers it has; the first section is the title), ``slots``
        (for each number, in order, the number of its column; a sentence comes before its numbers,
        a result after its values) and ``columns``. ``sentences``: with a mark for each number.
    """
    sentences: dict[str, int] = {}
    known: dict[_Shape, int] = {}
    folded: list[array[float]] = []
    kinds = []
    for derivation in derivations:
        shape, numbers = _fold(derivation, sentences)
        kind = known.setdefault(shape, len(known))
        if kind == len(folded):
            folded.append(array("d"))
        folded[kind].extend(numbers)
        kinds.append(kind)
    templates = [
        {"sections": shape, **_columns(np.array(numbers).reshape(kinds.count(kind), -1), shape)}
        for kind, (shape, numbers) in enumerate(zip(known, folded, strict=True))
    ]
    return {"kinds": kinds, "templates": templates, "sentences": list(sentences)}


def _fold(derivation: Derivation, sentences: dict[str, int]) -> tuple[_Shape, list[float]]:
    """Return what derivations of a kind have in common, and the numbers of this one."""
    numbers = _fold_sentence(derivation.title, sentences)
    shape: list[tuple[str, tuple[Any, ...]]] = [("", (len(numbers) - 1,))]
    for section in derivation.sections:
        lines: list[Any] = []
        for line in section.lines:
            if isinstance(line, Step):
                lines.append((line.name, line.symbol, line.formula, tuple(line.values)))
                numbers += [*line.values.values(), line.result]
            else:
                folded = _fold_sentence(line, sentences)
                lines.append(len(folded) - 1)
                numbers += folded
        shape.append((section.heading, tuple(lines)))
    return tuple(shape), numbers


def _fold_sentence(sentence: str, sentences: dict[str, int]) -> list[float]:
    """Return the number of a sentence without its numbers, and these."""
    if sentence in sentences:  # without numbers, and not new
        return [sentences[sentence]]
    found: list[str] = []

    def marked(match: re.Match[str]) -> str:
        if not is_same_number(match.group()):
            return match.group()
        found.append(match.group())
        return MARK

    text = sentence if MARK in sentence else _NUMBER.sub(marked, sentence)
    return [sentences.setdefault(text, len(sentences)), *map(float, found)]


def _columns(numbers: np.ndarray, shape: _Shape) -> dict[str, Any]:
    """Return the different columns, and the number of each slot's column."""
    is_exact = [exact for _, lines in shape for line in lines for exact in _exact(line)]
    different: dict[tuple[bool, bytes], int] = {}
    columns: list[Any] = []
    slots = []
    for column, exact in zip(numbers.T, is_exact, strict=True):
        key = (exact, column.tobytes())
        if key not in different:
            different[key] = len(columns)
            same = bool((column == column[0]).all())
            values = column[:1].tolist() if same else column.tolist()
            texts = [_shortest(value) if exact else rounded(value) for value in values]
            columns.append(texts[0] if same else texts)
        slots.append(different[key])
    return {"slots": slots, "columns": columns}


def _exact(line: Any) -> list[bool]:
    """Whether each number of a line is written with all its digits."""
    return [True] * (1 + line) if isinstance(line, int) else [False] * (1 + len(line[3]))


def _shortest(value: float) -> float | int:
    return int(value) if value.is_integer() else value
