"""Derivations of many nodes in little room: sentences and formulas once, numbers in columns.

In: derivations. Out: templates, and for each derivation which one it is and its numbers. The
derivations of one kind of node differ in numbers only, and most of these occur several times in
each: a column of numbers is kept once, and a column of equal numbers is one number.
"""

import re
from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np

from sklboost.inspection.derivation.derivation import Derivation
from sklboost.inspection.derivation.steps import Step
from sklboost.inspection.page.tokens import written

# A number in a sentence, if JavaScript writes it in the same way, and what is put in its place.
_NUMBER = re.compile(r"(?<![\w.+-])(?!-0(?!\.))-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?(?![\w.]?\w|\.\.)")
MARK = "\ufffc"


class _Sentences:
    """Different sentences, by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def fold(self, sentence: str) -> list[float]:
        """Give the number of a sentence without its numbers, and these."""
        found: list[str] = [] if MARK in sentence else _NUMBER.findall(sentence)
        text = _NUMBER.sub(MARK, sentence) if found else sentence
        return [self.numbers.setdefault(text, len(self.numbers)), *map(float, found)]


def fold_derivations(derivations: Iterable[Derivation]) -> dict[str, Any]:
    """Fold derivations.

    Returns
    -------
    dict
        ``kinds``: for each derivation the number of its template. ``templates``: each has
        ``sections`` (heading and lines: of a step its name, symbol, formula and the symbols of its
        values; of a sentence how many numbers it has; the first section is the title), ``slots``
        (for each number, in order, the number of its column; a sentence comes before its numbers,
        a result after its values) and ``columns``. ``sentences``: with a mark for each number.
    """
    sentences = _Sentences()
    known: dict[tuple, int] = {}
    folded: list[array] = []
    kinds = []
    for derivation in derivations:
        shape, numbers = _fold(derivation, sentences)
        kind = known.setdefault(shape, len(known))
        if kind == len(folded):
            folded.append(array("d"))
        folded[kind].extend(numbers)
        kinds.append(kind)
    templates = [
        {"sections": shape, **_columns(np.array(own).reshape(kinds.count(kind), -1), shape)}
        for kind, (shape, own) in enumerate(zip(known, folded, strict=True))
    ]
    return {"kinds": kinds, "templates": templates, "sentences": list(sentences.numbers)}


def _fold(derivation: Derivation, sentences: _Sentences) -> tuple[tuple, list[float]]:
    """Give what derivations of a kind have in common, and the numbers of this one."""
    title = sentences.fold(derivation.title)
    shape: list[tuple] = [("", (len(title) - 1,))]
    numbers = title
    for section in derivation.sections:
        lines: list[Any] = []
        for line in section.lines:
            if isinstance(line, Step):
                lines.append((line.name, line.symbol, line.formula, tuple(line.values)))
                numbers += [*line.values.values(), line.result]
            else:
                folded = sentences.fold(line)
                lines.append(len(folded) - 1)
                numbers += folded
        shape.append((section.heading, tuple(lines)))
    return tuple(shape), numbers


def _columns(numbers: np.ndarray, shape: tuple) -> dict[str, Any]:
    """Give the different columns, and which of them each slot has."""
    is_exact = [exact for _, lines in shape for line in lines for exact in _exact(line)]
    different: dict[tuple[bool, bytes], int] = {}
    columns: list[Any] = []
    slots = []
    for own, exact in zip(numbers.T, is_exact, strict=True):
        key = (exact, own.tobytes())
        if key not in different:
            different[key] = len(columns)
            same = bool((own == own[0]).all())
            values = own[:1].tolist() if same else own.tolist()
            texts = [_shortest(value) for value in values] if exact else written(values)
            columns.append(texts[0] if same else texts)
        slots.append(different[key])
    return {"slots": slots, "columns": columns}


def _exact(line: Any) -> list[bool]:
    """Tell for each number of a line whether it is written with all its digits."""
    return [True] * (1 + line) if isinstance(line, int) else [False] * (1 + len(line[3]))


def _shortest(value: float) -> float | int:
    return int(value) if value.is_integer() else value
