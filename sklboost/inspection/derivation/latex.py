"""A derivation as LaTeX: headings, paragraphs of words, and equations that amsmath aligns.

Whatever comes from the user's data is escaped.
"""

import itertools
import re
from collections.abc import Iterable, Mapping

from sklboost.inspection.derivation.steps import SYMBOL, Section, Step, fill_in, number

_GREEK = {"α": r"\alpha", "γ": r"\gamma", "Δ": r"\Delta", "η": r"\eta", "λ": r"\lambda"}
_FUNCTIONS = {"exp": r"\exp", "log": r"\log", "max": r"\max", "min": r"\min"}
_IN_FORMULAS = {"²": "^2", "·": r"\cdot", "≥": r"\ge", "≤": r"\le"}
_IN_WORDS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "→": r"$\to$",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{letter: f"${name}$" for letter, name in (_GREEK | _IN_FORMULAS).items()},
}
_BRACKETS = r"\((?:[^()]|\([^()]*\))*\)"
_FRACTION = re.compile(rf"({_BRACKETS}|[^\s()]+) / ({_BRACKETS}|[^\s()]+)")


def as_latex(title: str, sections: Iterable[Section]) -> str:
    """Write a derivation as part of a document."""
    parts = [rf"\paragraph{{{_words(title)}}}"]
    for section in sections:
        parts.append(rf"\subparagraph{{{_words(section.heading)}}}")
        for kind, lines in itertools.groupby(section.lines, type):
            if kind is str:
                parts += [f"{_words(line)}\n" for line in lines if isinstance(line, str)]
            else:
                rows = " \\\\\n".join(_row(line) for line in lines if isinstance(line, Step))
                parts.append(f"\\begin{{align*}}\n{rows}\n\\end{{align*}}")
    return "\n".join(parts)


def _row(step: Step) -> str:
    parts = [_formula(step.formula, None), _formula(step.formula, step.values)]
    parts = [*dict.fromkeys(filter(None, parts)), _number(step.result)]
    name = rf"&&\text{{{_words(step.name)}}}"
    equation = " = ".join(dict.fromkeys(parts))
    return f"{_symbol(step.symbol)} &= {equation} {name}" if step.symbol else f"& {equation} {name}"


def _words(text: str) -> str:
    return "".join(_IN_WORDS.get(letter, letter) for letter in text)


def _number(value: float) -> str:
    mantissa, _, exponent = number(value).partition("e")
    if exponent:
        return rf"{mantissa} \cdot 10^{{{int(exponent)}}}"
    return mantissa.replace("inf", r"\infty")


def _formula(formula: str, values: Mapping[str, float] | None) -> str:
    """Write a formula with fractions; with values, these in place of their symbols."""
    text, place = "", 0
    for match in _FRACTION.finditer(formula):
        top, bottom = (_line(_without_brackets(part), values) for part in match.groups())
        text += _line(formula[place : match.start()], values) + rf"\frac{{{top}}}{{{bottom}}}"
        place = match.end()
    return text + _line(formula[place:], values)


def _without_brackets(part: str) -> str:
    return part[1:-1] if part.startswith("(") else part


def _line(formula: str, values: Mapping[str, float] | None) -> str:
    """Write a formula without fractions."""
    if values:
        filled = fill_in(formula, values)
        formula = re.sub(r"(\d)e([+-]\d+)", lambda m: rf"{m[1]} · 10^{{{int(m[2])}}}", filled)
    text = SYMBOL.sub(lambda match: _symbol(match.group()), formula)
    return "".join(_IN_FORMULAS.get(letter, letter) for letter in text)


def _symbol(symbol: str) -> str:
    letters, _, subscript = symbol.partition("_")
    below = f"_{{{subscript}}}" if subscript else ""
    if letters in _GREEK | _FUNCTIONS:
        return (_GREEK | _FUNCTIONS)[letters] + below
    return (letters if len(letters) == 1 else rf"\mathrm{{{letters}}}") + below
