"""Numbers as JSON that the page shows as Python would write them."""

import re

from sklboost.inspection.derivation.steps import number

Token = float | int | str

# Numbers that JavaScript writes as they are written here.
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?")


def is_same_number(text: str) -> bool:
    """Whether a float, as JavaScript writes it, is this text: no digit is lost."""
    return text != "-0" and repr(float(text)).removesuffix(".0") == text


def token(text: str) -> Token:
    """Return the number that JavaScript writes as this text, or the text if there is none."""
    if not _PLAIN.fullmatch(text) or not is_same_number(text):
        return text
    return float(text) if "." in text else int(text)


def rounded(value: float) -> Token:
    """Return a number with as many digits as derivations have."""
    return token(number(value))


def column(values: list[float]) -> list[float]:
    """Return numbers that the page computes with, in nine digits."""
    return [float(f"{value:.9g}") for value in values]
