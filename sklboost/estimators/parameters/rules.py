"""What a parameter may be: rules, in words and as a test."""

import math
from collections.abc import Callable
from math import isfinite
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np


class Rule(NamedTuple):
    """What a value must be.

    Attributes
    ----------
    kind : str
        The type, as the documentation has it.
    words : str
        What follows "it must be".
    holds : callable
        The test.
    """

    kind: str
    words: str
    holds: Callable[[Any], bool]


def integer(least: int, most: float = math.inf) -> Rule:
    """Give the rule of a whole number from `least` to `most`."""
    words = f">= {least}" if most == math.inf else f"from {least} to {most}"
    return Rule(
        "int",
        f"an integer {words}",
        lambda value: is_integer(value) and least <= value <= most,
    )


def number(least: float, *, excluded: bool = False) -> Rule:
    """Give the rule of a finite number from `least` on."""
    return Rule(
        "float",
        f"a finite number {'>' if excluded else '>='} {least:g}",
        lambda value: is_finite(value) and (value > least if excluded else value >= least),
    )


def fraction() -> Rule:
    """Give the rule of a part of a whole."""
    return Rule(
        "float",
        "a number > 0 and <= 1",
        lambda value: is_finite(value) and 0 < value <= 1,
    )


def one_of(*names: str) -> Rule:
    """Give the rule of some words."""
    kind = ", ".join(f'"{name}"' for name in names)
    words = "one of " + ", ".join(map(repr, names))
    return Rule(f"{{{kind}}}", words, lambda value: isinstance(value, str) and value in names)


def anything(kind: str) -> Rule:
    """Give the rule of what is checked where it is used."""
    return Rule(kind, "", lambda value: True)


def is_integer(value: Any) -> bool:
    """Tell a whole number."""
    # a bool is an int to Python, but max_depth=True is a mistake
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def is_finite(value: Any) -> bool:
    """Tell a finite number."""
    # np.bool_ is no Real, bool is
    return isinstance(value, int | float | Real) and not isinstance(value, bool) and isfinite(value)


FLAG = Rule("bool", "True or False", lambda value: isinstance(value, bool | np.bool_))
