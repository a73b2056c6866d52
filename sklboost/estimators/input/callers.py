"""Whom a warning is for: the line of the user's that led to it, however deep it is found out.

In: the stack. Out: the `stacklevel` for :func:`warnings.warn`.
"""

import sys

# What is between the user and a warning: this package, and tools that call it.
_BETWEEN = {"sklboost", "sklearn", "joblib"}


def stack_level() -> int:
    """Give the `stacklevel` by which a warning names the line that is not of these packages."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    return level
