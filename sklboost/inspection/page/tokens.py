"""Numbers as JSON that the page shows as Python would write them."""

import re

from sklboost.inspection.derivation.steps import number

Token = float | int | str

# What JavaScript writes as it is written here.
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?")


def token(text: str) -> Token:
    """Give the number that JavaScript would write so, or if there is none the text itself."""
    if not _PLAIN.fullmatch(text) or text == "-0":
        return text
    return float(text) if "." in text else int(text)


def rounded(value: float) -> Token:
    """Give a number with as many digits as derivations have."""
    return token(number(value))


def compared(value: float) -> Token:
    """Give a threshold, or a value that is compared with one, with the digits of conditions."""
    return token(f"{value:.10g}")


def written(values: list[float]) -> list[Token]:
    """Give numbers that the page shows as derivations write them."""
    return list(map(rounded, values))


def column(values: list[float]) -> list[float]:
    """Give numbers that the page computes with, in nine digits."""
    return [float(f"{value:.9g}") for value in values]
