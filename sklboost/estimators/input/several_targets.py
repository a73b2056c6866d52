"""Targets in several columns: are there any, which values may they have, which are known.

In: `y` as users give it. Out: an array of shape (n_samples, n_targets) where NaN stands for a value
that is not known. The one idea: a value that is not known has no gradient, so each column is learnt
from its own known rows, and no row needs to be left out for one of its columns.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_array


def has_columns(y: Any) -> bool:
    """Tell whether `y` has several columns.

    One column is one target in another form, which scikit-learn takes with a warning.
    """
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # rows of different lengths: scikit-learn finds the words for it
        return False
    return len(shape) > 1 and shape[1] != 1


def read_columns(y: Any, name: str, *, numeric: bool) -> np.ndarray:
    """Give targets in several columns, shape (n_samples, n_targets).

    Parameters
    ----------
    y : array-like of shape (n_samples, n_targets)
    name : str
        Of the argument, for errors.
    numeric : bool
        Whether the result must be float64. Else any dtype, labels too.

    Raises
    ------
    ValueError
        For more than two dimensions, no rows or columns, infinite values, text instead of numbers.
    """
    return check_array(
        y,
        dtype=np.float64 if numeric else None,
        ensure_all_finite="allow-nan",
        input_name=name,
    )


def check_columns(y: np.ndarray, n_targets: int, name: str) -> None:
    """Raise ValueError unless there are as many targets as were fitted."""
    n_columns = 1 if y.ndim == 1 else y.shape[1]
    if n_columns != n_targets:
        raise ValueError(
            f"{name} has shape {y.shape}, but y of the fit has {n_targets} target(s): pass the same"
        )


def known_rows(y: np.ndarray) -> np.ndarray:
    """Tell which rows have a target that is known; bool, shape (n_samples,)."""
    if y.ndim == 1 or y.dtype.kind != "f":
        return np.ones(len(y), dtype=bool)
    return ~np.isnan(y).all(axis=1)


def check_known(y: np.ndarray, why: str) -> None:
    """Raise ValueError if no value of a column is known.

    Parameters
    ----------
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    why : str
        What the rows are, or where the others have gone, and what to do.
    """
    if y.ndim == 1 or y.dtype.kind != "f":
        return
    is_unknown = np.isnan(y).all(axis=0)
    if is_unknown.any():
        raise ValueError(f"y[:, {int(np.argmax(is_unknown))}] is NaN, not known, in {why}")
