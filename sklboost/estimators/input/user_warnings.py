"""Warnings that name the line of the user's code, however deep in the package they arise."""

import sys
import warnings

# What may lie between the user's line and a warning: this package, tools that call it, and what
# threads, processes and pickles begin with.
_BETWEEN = {"sklboost", "sklearn", "joblib", "dask", "distributed", "numpy", "pickle"}
_BETWEEN |= {"cloudpickle", "threading", "queue", "multiprocessing", "concurrent", "runpy"}
_BETWEEN |= {"contextlib"}  # what is called at the end of a with statement


def warn_user(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn, naming the nearest line on the stack that is in none of these packages.

    A worker of joblib or Dask, on whose stack there is none, names the line that warns.
    """
    frame, level = sys._getframe(1), 2
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name == "__main__":  # the name after python -m, as of a worker's process
            name = getattr(frame.f_globals.get("__spec__"), "name", name)
        if name.partition(".")[0] not in _BETWEEN:
            break
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    warnings.warn(message, category, stacklevel=2 if frame is None else level)
