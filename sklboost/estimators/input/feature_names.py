"""Columns by name: where those of the fit are in a frame.

In: anything. Out: names, or numbers of columns. Frames (pandas, polars, Arrow tables) are known
by their attributes, so that none of these libraries is imported, and whichever of them the
installed scikit-learn knows.

The one idea: names are names, be they strings, numbers or levels of two headings. Columns that
nobody named are called 0, 1, 2, as pandas does. scikit-learn knows strings only: where names are
strings at fit and not at prediction, or the other way round, or some are and others not, it is left
to scikit-learn, which warns or raises an error.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def column_names(X: Any) -> np.ndarray | None:
    """Give the names of the columns as ndarray of object; None if `X` has none."""
    # asked of the class: a pandas frame has its columns as attributes, whatever they are called
    for attribute in ("column_names", "columns"):  # an Arrow table has its values in `columns`
        if hasattr(type(X), attribute):
            # an array first: a pandas index takes ten times as long to go through
            return np.asarray(getattr(X, attribute), dtype=object)
    return None


def given_names(X: Any) -> np.ndarray | None:
    """Give the names of the columns as `column_names` does; None, too, if nobody named them."""
    names = column_names(X)
    return None if names is None or _are_counted(names.tolist()) else names


def remember_names(estimator: Any, names: np.ndarray | None) -> None:
    """Keep the names of a fit: strings where scikit-learn has them."""
    estimator._other_names = names
    if names is not None and _kind(names) == "text":
        estimator.feature_names_in_, estimator._other_names = names, None


def fitted_names(estimator: Any) -> list[Any]:
    """Give the names at fit; 0, 1, 2 for columns that nobody named."""
    names = getattr(estimator, "feature_names_in_", estimator._other_names)
    return list(range(estimator.n_features_in_)) if names is None else names.tolist()


def order_of_fit(X: Any, fitted: list[Any]) -> Sequence[int] | None:
    """Tell where the features of the fit are.

    Parameters
    ----------
    X : frame or anything else
    fitted : list of length n_features
        The names at fit.

    Returns
    -------
    sequence of int, or None
        The column of each feature. None if `X` has no names, or no such as were given at fit.

    Raises
    ------
    ValueError
        If columns are missing or not of the fit; it lists them all. If columns of the same name
        would have to be told apart.
    """
    array = column_names(X)
    if array is None:
        return None
    names = array.tolist()
    if names == fitted:
        return range(len(fitted))
    kind = _kind(names)
    if kind == "mixed" or kind != _kind(fitted):
        return None
    if not are_comparable(names, fitted):
        return None
    _check_same_names(names, fitted)
    places = {name: place for place, name in enumerate(names)}
    return [places[name] for name in fitted]


def are_comparable(names: list[Any], fitted: list[Any]) -> bool:
    """Tell whether users have named their columns here and at fit; 0, 1, 2 may be no names."""
    return set(names) == set(fitted) or not (_are_counted(names) or _are_counted(fitted))


def _are_counted(names: list[Any]) -> bool:
    return names == list(range(len(names)))


def _kind(names: Iterable[Any]) -> str:
    are_text = {isinstance(name, str) for name in names}
    return "mixed" if len(are_text) > 1 else "text" if True in are_text else "other"


def _check_same_names(names: list[Any], fitted: list[Any]) -> None:
    unseen, missing = set(names) - set(fitted), set(fitted) - set(names)
    if unseen or missing:
        # scikit-learn's words, but all of the names
        lines = ["The feature names should match those that were passed during fit."]
        for heading, listed in (
            ("Feature names unseen at fit time:", sorted(unseen, key=str)),
            ("Feature names seen at fit time, yet now missing:", sorted(missing, key=str)),
        ):
            if listed:
                lines += [heading, *(f"- {name}" for name in listed)]
        raise ValueError("\n".join(lines) + "\n")
    counts = Counter(names) | Counter(fitted)
    twice = sorted((name for name, count in counts.items() if count > 1), key=str)
    if twice:
        raise ValueError(
            f"columns {twice} occur more than once, here or at fit, so that they cannot be put in "
            "order by name: give each column a name of its own, or all of them in the order of fit"
        )
