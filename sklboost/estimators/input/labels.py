"""Labels: one a row of two or more classes, or several that each row has or has not."""

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

_PROBABILITIES = "for probabilities as targets, use XGBRegressorLite(objective='reg:logistic')"


def check_labels(y: np.ndarray) -> None:
    """Raise ValueError for what are no labels, shape (n_samples,); scikit-learn's words."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        if y.dtype.kind == "f" and y.min() >= 0.0 and y.max() <= 1.0:
            raise ValueError(f"{error} Or {_PROBABILITIES}") from None
        if y.dtype.kind == "O":
            types = ", ".join(sorted({type(label).__name__ for label in y}))
            raise ValueError(
                f"{error} y holds Python objects of type {types}: labels are all text, or numbers "
                "of a dtype of their own, as y.astype(int) has"
            ) from None
        raise


def read_indicator(y: np.ndarray, name: str) -> np.ndarray:
    """Give which labels each row has, 1, or has not, 0; NaN: not known.

    Parameters
    ----------
    y : ndarray of shape (n_samples, n_labels)
    name : str
        Of the argument, for the error.

    Returns
    -------
    ndarray of float64, shape (n_samples, n_labels)

    Raises
    ------
    ValueError
        For any other value, with the remedy.
    """
    try:
        is_text = y.dtype.kind in "US"
        indicator = (y[:0] if is_text else y).astype(np.float64)
        values = set(y.flat if is_text else np.unique(indicator[~np.isnan(indicator)]).tolist())
    except (TypeError, ValueError):  # objects that are no numbers
        values = set(y.flat)
    others = sorted(map(str, values - {0.0, 1.0}))
    if others:
        raise ValueError(
            f"{name} has {y.shape[1]} columns and the value {others[0]}: each column is a label "
            "that rows have (1) or have not (0; NaN: not known). For several targets of any "
            "classes, use sklearn.multioutput.MultiOutputClassifier(XGBClassifierLite()); "
            f"{_PROBABILITIES}"
        )
    return indicator
