"""Warnings that name the line of the user's code, however deep in the package they arise."""

import sys
import warnings

# What lies between the user and a warning: this package, and tools that call it.
_BETWEEN = {"sklboost", "sklearn", "joblib", "numpy", "pickle"}


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, naming the nearest line on the stack that is not in one of these packages."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
