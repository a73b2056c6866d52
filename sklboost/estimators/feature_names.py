"""Columns by name: where those of the fit are in a frame.

In: anything. Out: names, or numbers of columns. Frames (pandas, polars, Arrow tables) are known
by their attributes, so that none of these libraries is imported, and whichever of them the
installed scikit-learn knows. What has no names, or not all of them strings, is left to
scikit-learn, which warns.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


def column_names(X: Any) -> np.ndarray | None:
    """Give the names of the columns as ndarray of str, dtype object; None if `X` has no such."""
    # asked of the class: a pandas frame has its columns as attributes, whatever they are called
    for attribute in ("column_names", "columns"):  # an Arrow table has its values in `columns`
        if hasattr(type(X), attribute):
            # an array first: a pandas index takes ten times as long to go through
            names = np.asarray(getattr(X, attribute), dtype=object)
            is_text = names.size > 0 and all(isinstance(name, str) for name in names.tolist())
            return names if is_text else None
    return None


def order_of_fit(X: Any, fitted_names: np.ndarray) -> Sequence[int] | None:
    """Tell where the features of the fit are.

    Parameters
    ----------
    X : frame or anything else
    fitted_names : ndarray of str, shape (n_features,)
        The names at fit.

    Returns
    -------
    sequence of int, or None
        The column of each feature. None if `X` has no names.

    Raises
    ------
    ValueError
        If columns are missing or not of the fit; it lists them all. If columns of the same name
        would have to be told apart.
    """
    array = column_names(X)
    if array is None:
        return None
    names, fitted = array.tolist(), fitted_names.tolist()
    if names == fitted:
        return range(len(fitted))
    _check_same_names(names, fitted)
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in fitted]


def _check_same_names(names: list[str], fitted: list[str]) -> None:
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    if unseen or missing:
        # scikit-learn's words, but all of the names
        lines = ["The feature names should match those that were passed during fit."]
        for heading, listed in (
            ("Feature names unseen at fit time:", unseen),
            ("Feature names seen at fit time, yet now missing:", missing),
        ):
            if listed:
                lines += [heading, *(f"- {name}" for name in listed)]
        raise ValueError("\n".join(lines) + "\n")
    counts = Counter(names) | Counter(fitted)
    twice = sorted(name for name, count in counts.items() if count > 1)
    if twice:
        raise ValueError(
            f"columns {twice} occur more than once, here or at fit, so that they cannot be put in "
            "order by name: give each column a name of its own, or all of them in the order of fit"
        )
