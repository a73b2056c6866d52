"""Metrics of the order that predictions put the rows in: areas under curves.

Rows of equal prediction have no order among themselves, so sums run over distinct predictions.
Products are summed by NumPy and not by ``@``, whose last bits depend on the threads of the BLAS.
"""

import numpy as np


def auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the area under the ROC curve: how often a row of class 1 is above one of class 0.

    Equals count half. As scikit-learn's ``roc_auc_score``.

    Raises
    ------
    ValueError
        If there are rows of one class only.
    """
    _check_classes("auc", len(np.unique(_weighted_rows(y, weight))))
    return _area(y == 1.0, prediction, weight)


def multiclass_auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean area of each class against the rest, weighted by its share of the rows.

    As scikit-learn's ``roc_auc_score(multi_class="ovr", average="weighted")``. A class without rows
    has share 0; there scikit-learn raises an error.

    Raises
    ------
    ValueError
        If there are rows of one class only.
    """
    classes, counts = np.unique(_weighted_rows(y, weight), return_counts=True)
    _check_classes("auc", len(classes))
    shares = counts if len(weight) == 0 else [weight[y == k].sum() for k in classes]
    areas = [_area(y == k, prediction[:, int(k)], weight) for k in classes]
    return float(np.average(areas, weights=shares))


def aucpr(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the average precision: the mean precision at the rows of class 1.

    As scikit-learn's ``average_precision_score``, a sum over steps. XGBoost's ``aucpr`` draws a
    curve between the steps, so the two differ a little.

    Raises
    ------
    ValueError
        If there are no rows of class 1.
    """
    if not (_weighted_rows(y, weight) == 1.0).any():
        raise ValueError(
            "aucpr needs validation rows of class 1, and there are none; choose another "
            "eval_metric, or other validation rows"
        )
    positives, negatives = _by_prediction(y == 1.0, prediction, weight)
    # from the top: what is above a threshold
    positives, negatives = positives[::-1], negatives[::-1]
    precision = positives.cumsum() / (positives + negatives).cumsum()
    return float((precision * positives).sum() / positives.sum())


def _area(is_positive: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    positives, negatives = _by_prediction(is_positive, prediction, weight)
    below = negatives.cumsum() - 0.5 * negatives
    return float((positives * below).sum() / (positives.sum() * negatives.sum()))


def _by_prediction(
    is_positive: np.ndarray, prediction: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give the weights of positive and of negative rows for each distinct prediction, ascending."""
    if len(weight):
        kept = weight > 0.0  # else a distinct prediction could have no weight at all
        is_positive, prediction, weight = is_positive[kept], prediction[kept], weight[kept]
    order = np.argsort(prediction)
    ordered = prediction[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rows = weight[order] if len(weight) else np.ones(len(order))
    positive_rows = np.where(is_positive[order], rows, 0.0)
    positives = np.add.reduceat(positive_rows, starts)
    negatives = np.add.reduceat(rows - positive_rows, starts)
    return positives, negatives


def _weighted_rows(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return y[weight > 0.0] if len(weight) else y


def _check_classes(name: str, n_classes: int) -> None:
    if n_classes < 2:
        raise ValueError(
            f"{name} needs validation rows of two classes or more, and there is {n_classes}; "
            "choose another eval_metric, or other validation rows"
        )
