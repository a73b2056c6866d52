"""A derivation: named steps in sections, and its three written forms.

The one idea: what is computed is put down once, as plain numbers and strings, and text, LaTeX and
HTML are three ways to write the same steps.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from sklboost.inspection.derivation.html import as_html
from sklboost.inspection.derivation.latex import as_latex
from sklboost.inspection.derivation.text import as_text


class Step(NamedTuple):
    """One equation.

    Attributes
    ----------
    name : str
        What is computed, in words.
    symbol : str
        As later formulas call it.
    formula : str
        As in ``formulas.py``; empty for what is given.
    values : mapping of str to float
        Of the symbols of the formula.
    result : float
    """

    name: str
    symbol: str
    formula: str
    values: Mapping[str, float]
    result: float


def given(name: str, symbol: str, value: float) -> Step:
    """Make the step of a number that is not computed from others."""
    return Step(name, symbol, "", {}, float(value))


class Section(NamedTuple):
    """Some steps, and sentences between them.

    Attributes
    ----------
    heading : str
    lines : tuple of Step or str
    """

    heading: str
    lines: tuple[Step | str, ...]


@dataclass(frozen=True)
class Derivation:
    """How a number of a model comes about, step by step.

    Print it, or let a notebook show it; :attr:`text`, :attr:`latex` and :attr:`html` are its forms.

    Attributes
    ----------
    title : str
    sections : tuple of Section
    """

    title: str
    sections: tuple[Section, ...]

    @property
    def text(self) -> str:
        """Lines of plain text."""
        return as_text(self)

    @property
    def latex(self) -> str:
        """A piece of a LaTeX document that uses the package amsmath."""
        return as_latex(self)

    @property
    def html(self) -> str:
        """An HTML element; names of features and classes in it stay text."""
        return as_html(self)

    @property
    def steps(self) -> tuple[Step, ...]:
        """All equations, in order."""
        lines = [line for section in self.sections for line in section.lines]
        return tuple(line for line in lines if isinstance(line, Step))

    def result(self, symbol: str) -> float:
        """Give the last number that was computed for a symbol.

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
            If there is none; the text lists the symbols.
        """
        results = {step.symbol: step.result for step in self.steps}
        if symbol not in results:
            raise KeyError(f"symbol={symbol!r}: this derivation has {', '.join(results)}")
        return results[symbol]

    def as_dict(self) -> dict[str, Any]:
        """Give everything as dicts, lists, strings and floats, for ``json.dumps``.

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

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """Give the text: what a prompt should show."""
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    def _repr_latex_(self) -> str:
        return self.latex
