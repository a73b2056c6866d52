"""A derivation: how a number of a model comes about, in sections of steps and sentences."""

from dataclasses import dataclass
from typing import Any

from sklboost.inspection.derivation.html import as_html
from sklboost.inspection.derivation.latex import as_latex
from sklboost.inspection.derivation.steps import Section, Step


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
        return as_latex(self.title, self._shown)

    @property
    def html(self) -> str:
        """An HTML element; names of features and classes in it stay text."""
        return as_html(self.title, self._shown)

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

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        """Return the text, which a prompt should show."""
        return self.text

    def _repr_html_(self) -> str:
        return self.html

    def _repr_latex_(self) -> str:
        return self.latex
