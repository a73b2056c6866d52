"""A derivation as plain text."""

from typing import Any

from sklboost.inspection.derivation.formulas import fill_in, number


def as_text(derivation: Any) -> str:
    """Write a derivation: a heading and indented lines for each section."""
    lines = [derivation.title]
    for section in derivation.sections:
        lines += ["", section.heading]
        lines += [f"  {_line(line)}" for line in section.lines]
    return "\n".join(lines)


def _line(line: Any) -> str:
    if isinstance(line, str):
        return line
    parts = [line.symbol, line.formula, _with_numbers(line), number(line.result)]
    return f"{line.name}: " + " = ".join(part for part in parts if part)


def _with_numbers(step: Any) -> str:
    """Give the formula with numbers in it, unless that is the result already."""
    text = fill_in(step.formula, step.values)
    return "" if text in (step.formula, number(step.result)) else text
