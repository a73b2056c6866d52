"""A derivation as HTML: a table for each section, without scripts and without styles.

Whatever comes from the user's data is escaped, so a feature may be called ``<script>``.
"""

import html
import re
from collections.abc import Iterable

from sklboost.inspection.derivation.steps import SYMBOL, Line, Section, fill_in, number


def as_html(title: str, sections: Iterable[Section]) -> str:
    """Write a derivation as one ``div``; sections are its children."""
    parts = [f"<h3>{html.escape(title)}</h3>"]
    for section in sections:
        rows = "".join(map(_row, section.lines))
        heading = html.escape(section.heading)
        parts.append(f"<section><h4>{heading}</h4><table>{rows}</table></section>")
    return f'<div class="sklboost-derivation">{"".join(parts)}</div>'


def _row(line: Line) -> str:
    if isinstance(line, str):
        return f'<tr><td colspan="2">{html.escape(line)}</td></tr>'
    numbers = fill_in(line.formula, line.values)
    texts = [_formula(line.symbol), _formula(line.formula)]
    if numbers != line.formula:
        texts.append(html.escape(numbers))
    texts.append(html.escape(number(line.result)))
    unique = [text for i, text in enumerate(texts) if text and text not in texts[:i]]
    return f'<tr><th scope="row">{html.escape(line.name)}</th><td>{" = ".join(unique)}</td></tr>'


def _formula(formula: str) -> str:
    """Write a formula with subscripts; it has nothing of the user's in it."""

    def written(match: re.Match[str]) -> str:
        letters, _, subscript = match.group().partition("_")
        return f"<i>{letters}</i>" + (f"<sub>{subscript}</sub>" if subscript else "")

    return SYMBOL.sub(written, formula)
