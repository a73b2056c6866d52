"""A derivation: how a number of a model comes about; as text, HTML and LaTeX."""

import html
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """Put numbers in place of symbols; negative operands in brackets."""

    def written(match: re.Match[str]) -> str:
        symbol = match.group()
        if symbol not in values:
            return symbol
        text = number(values[symbol])
        before, after = formula[: match.start()].rstrip(), formula[match.end() :]
        is_operand = before.endswith(("+", "-", "·", "/")) or after.startswith("²")
        return f"({text})" if text.startswith("-") and is_operand else text

    return SYMBOL.sub(written, formula)


def _html_row(line: Line) -> str:
    if isinstance(line, str):
        return f'<tr><td colspan="2">{html.escape(line)}</td></tr>'
    numbers = fill_in(line.formula, line.values)
    texts = [_html_formula(line.symbol), _html_formula(line.formula)]
    if numbers != line.formula:
        texts.append(html.escape(numbers))
    texts.append(html.escape(number(line.result)))
    unique = [text for i, text in enumerate(texts) if text and text not in texts[:i]]
    return f'<tr><th scope="row">{html.escape(line.name)}</th><td>{" = ".join(unique)}</td></tr>'


def _html_formula(formula: str) -> str:
    """Write a formula with subscripts; there is no text of the user in it to be escaped."""

    def written(match: re.Match[str]) -> str:
        letters, _, subscript = match.group().partition("_")
        return f"<i>{letters}</i>" + (f"<sub>{subscript}</sub>" if subscript else "")

    return SYMBOL.sub(written, formula)


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


def _latex_row(step: Step) -> str:
    parts = [_latex_formula(step.formula, None), _latex_formula(step.formula, step.values)]
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


def _latex_formula(formula: str, values: Mapping[str, float] | None) -> str:
    """Write a formula with fractions; with values, these in place of their symbols."""
    text, place = "", 0
    for match in _FRACTION.finditer(formula):
        top, bottom = (
            _line(part[1:-1] if part.startswith("(") else part, values) for part in match.groups()
        )
        text += _line(formula[place : match.start()], values) + rf"\frac{{{top}}}{{{bottom}}}"
        place = match.end()
    return text + _line(formula[place:], values)


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


@dataclass(frozen=True)
class Derivation:
    """How a number of a model comes about, step by step.

    Print it, or let a notebook show it; :attr:`text`, :attr:`latex` and :attr:`html` are its forms.
    They show the summary where there is one. Everything else has all steps.

    Attributes
    ----------
    title : str
    sections : tuple of Section
    summary : tuple of Section
        In place of the sections where these are too many to be read. Empty: they are few.
    """

    title: str
    sections: tuple[Section, ...]
    summary: tuple[Section, ...] = ()

    @property
    def _shown(self) -> tuple[Section, ...]:
        return self.summary or self.sections

    @property
    def text(self) -> str:
        """Lines of plain text."""
        lines = [self.title]
        for section in self._shown:
            lines += ["", section.heading, *(f"  {line}" for line in section.lines)]
        return "\n".join(lines)

    @property
    def latex(self) -> str:
        """A piece of a LaTeX document that uses the package amsmath."""
        parts = [rf"\paragraph{{{_words(self.title)}}}"]
        for section in self._shown:
            parts.append(rf"\subparagraph{{{_words(section.heading)}}}")
            for kind, lines in itertools.groupby(section.lines, type):
                if kind is str:
                    parts += [f"{_words(line)}\n" for line in lines if isinstance(line, str)]
                else:
                    steps = (_latex_row(line) for line in lines if isinstance(line, Step))
                    rows = " \\\\\n".join(steps)
                    parts.append(f"\\begin{{align*}}\n{rows}\n\\end{{align*}}")
        return "\n".join(parts)

    @property
    def html(self) -> str:
        """An HTML element; names of features and classes in it stay text."""
        parts = [f"<h3>{html.escape(self.title)}</h3>"]
        for section in self._shown:
            rows = "".join(map(_html_row, section.lines))
            heading = html.escape(section.heading)
            parts.append(f"<section><h4>{heading}</h4><table>{rows}</table></section>")
        return f'<div class="sklboost-derivation">{"".join(parts)}</div>'

    @property
    def steps(self) -> tuple[Step, ...]:
        """All equations, in order."""
        lines = [line for section in self.sections for line in section.lines]
        return tuple(line for line in lines if isinstance(line, Step))

    def result(self, symbol: str) -> float:
        """Return the last number that was computed for a symbol.

        Parameters
        ----------
        symbol : str
            Such as ``"gain"`` or ``"S_L"``.

        Returns
        -------
        float

        Raises
        ------
        KeyError
            If there is none; the message lists the symbols.
        """
        results = {step.symbol: step.result for step in self.steps}
        if symbol not in results:
            raise KeyError(f"symbol={symbol!r}: this derivation has {', '.join(results)}")
        return results[symbol]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as dicts, lists, strings and floats, for ``json.dumps``.

        Returns
        -------
        dict
            ``title``, and ``sections`` of ``heading`` and ``lines``: a sentence, or a dict with the
            fields of a step.
        """
        sections = [
            {
                "heading": section.heading,
                "lines": [
                    line if isinstance(line, str) else {**line._asdict(), "values": {**line.values}}
                    for line in section.lines
                ],
            }
            for section in self.sections
        ]
        return {"title": self.title, "sections": sections}

    def __repr__(self) -> str:
        """Return the text, which a prompt should show."""
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    def _repr_latex_(self) -> str:
        return self.latex
