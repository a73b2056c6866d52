"""Steps of a derivation, and their formulas and numbers as plain text.

A formula is text, such as ``"G_L² / (H_L + λ)"``, written so that it can be read as it is, and so
that LaTeX and HTML can be made of it: operators stand between spaces, a symbol is letters with at
most one subscript (``G_L``, ``F_2,1``), and what is divided, or divides, is one symbol or stands in
brackets.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

# not \w: that has the ² in it
_LETTERS, _SUBSCRIPT = "[A-Za-zα-ωΑ-Ω]+", "[A-Za-z0-9]+"
SYMBOL = re.compile(f"{_LETTERS}(?:_{_SUBSCRIPT}(?:,{_SUBSCRIPT})*)?")

# Beyond, a number is written with a power of ten.
_LARGEST, _SMALLEST = 1e10, 1e-3


class Step(NamedTuple):
    """One equation."""

    name: str  # what is computed, in words
    symbol: str  # its symbol in later formulas. Empty: none has it.
    formula: str  # empty for a number that is not computed from others
    values: Mapping[str, float]  # values of the symbols of the formula
    result: float

    def __str__(self) -> str:
        """Return the equation in plain text: symbol, formula, its numbers and the result."""
        numbers, result = fill_in(self.formula, self.values), number(self.result)
        if numbers in (self.formula, result):
            numbers = ""
        equation = [part for part in (self.symbol, self.formula, numbers, result) if part]
        return f"{self.name}: " + " = ".join(equation)


Line = Step | str  # a sentence


class Section(NamedTuple):
    """Some steps, and sentences between them."""

    heading: str
    lines: tuple[Line, ...]


def given(name: str, symbol: str, value: float) -> Step:
    """Make the step of a number that is not computed from others."""
    return Step(name, symbol, "", {}, float(value))


def number(value: float) -> str:
    """Write a number with four decimals, below 1 with six, and without zeros at the end.

    Beyond 1e10 and below 0.001 it has six significant digits.
    """
    size = abs(value)
    if size < _SMALLEST or not size < _LARGEST:
        return f"{value + 0.0:.6g}"  # no -0
    text = f"{value:.{4 if size >= 1.0 else 6}f}"
    return text.rstrip("0").rstrip(".")


def fill_in(formula: str, values: Mapping[str, float]) -> str:
    """Put numbers in place of symbols; a negative one in brackets, unless it stands alone."""

    def written(match: re.Match[str]) -> str:
        symbol = match.group()
        if symbol not in values:
            return symbol
        text = number(values[symbol])
        is_negative = text.startswith("-")
        return f"({text})" if is_negative and _would_be_misread(match, formula) else text

    return SYMBOL.sub(written, formula)


def _would_be_misread(match: re.Match[str], formula: str) -> bool:
    """Whether a negative number comes after an operator, or before a ²."""
    before, after = formula[: match.start()], formula[match.end() :]
    return after.startswith("²") or before.rstrip().endswith(("+", "-", "·", "/"))
