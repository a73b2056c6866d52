"""Metrics of the order that predictions put the rows in: areas under curves.

Rows of equal prediction have no order among themselves, so sums run over distinct predictions.
Products are summed by NumPy and not by ``@``, whose last bits depend on the threads of the BLAS.
"""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sklboost.objectives.metrics.scales import LEAST_PROBABILITY


class Curve(NamedTuple):
    """An area under a curve, of one label.

    Attributes
    ----------
    area : callable
        ``area(y, prediction, weight) -> float``.
    is_defined : callable
        Tells from the targets whether there is a curve.
    needs : str
        What the rows must be of for that.
    """

    area: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    is_defined: Callable[[np.ndarray], bool]
    needs: str


def auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the area under the ROC curve: how often a row of class 1 is above one of class 0.

    Equals count half. As scikit-learn's ``roc_auc_score``. A target between 0 and 1 is that much of
    a row of class 1, as in XGBoost. Of several labels, the mean of the areas of those that have
    rows of both classes.

    Raises
    ------
    ValueError
        If none has rows of both classes.
    """
    return _mean_over_labels("auc", _ROC, y, prediction, weight)


def aucpr(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the average precision: the mean precision at the rows of class 1.

    As scikit-learn's ``average_precision_score``, a sum over steps. XGBoost's ``aucpr`` draws a
    curve between the steps, so the two differ a little. Of several labels, the mean over those
    that have rows of class 1.

    Raises
    ------
    ValueError
        If there are no rows of class 1.
    """
    return _mean_over_labels("aucpr", _PRECISION_RECALL, y, prediction, weight)


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
    _check_classes("auc", classes)
    shares = counts if len(weight) == 0 else [weight[y == k].sum() for k in classes]
    areas = [_area((y == k) * 1.0, prediction[:, int(k)], weight) for k in classes]
    return float(np.average(areas, weights=shares))


def auc_mu(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean over pairs of classes of the area that tells one from the other.

    A row of the pair is placed by the logarithm of the ratio of its two probabilities, which is the
    difference of raw scores, as in LightGBM (Kleiman & Page 2019, with equal costs). Pairs with a
    class without rows are left out.

    Raises
    ------
    ValueError
        If there are rows of one class only.
    """
    classes = np.unique(_weighted_rows(y, weight))
    _check_classes("auc_mu", classes)
    scores = np.log(np.maximum(prediction, LEAST_PROBABILITY))
    areas = []
    for one, other in combinations(classes.astype(int), 2):
        rows = (y == one) | (y == other)
        score = scores[rows, one] - scores[rows, other]
        own = weight[rows] if len(weight) else weight
        areas.append(_area((y[rows] == one) * 1.0, score, own))
    return float(np.mean(areas))


def _mean_over_labels(
    name: str, curve: Curve, y: np.ndarray, prediction: np.ndarray, weight: np.ndarray
) -> float:
    """Give the mean over the labels whose rows tell something; one label is one column."""
    areas = []
    for targets, own in zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True):
        rows = ~np.isnan(targets) if y.ndim > 1 else slice(None)
        weights = weight[rows] if len(weight) else weight
        if curve.is_defined(_weighted_rows(targets[rows], weights)):
            areas.append(curve.area(targets[rows], own[rows], weights))
    if not areas:
        raise _no_rows(name, curve.needs)
    return float(np.mean(areas))


def _area(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    positives, negatives = _by_prediction(y, prediction, weight)
    below = negatives.cumsum() - 0.5 * negatives
    return float((positives * below).sum() / (positives.sum() * negatives.sum()))


def _average_precision(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    positives, negatives = _by_prediction(y, prediction, weight)
    # from the top: what is above a threshold
    positives, negatives = positives[::-1], negatives[::-1]
    precision = positives.cumsum() / (positives + negatives).cumsum()
    return float((precision * positives).sum() / positives.sum())


def _by_prediction(
    y: np.ndarray, prediction: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give the weights of positive and of negative rows for each distinct prediction, ascending."""
    if len(weight):
        kept = weight > 0.0  # else a distinct prediction could have no weight at all
        y, prediction, weight = y[kept], prediction[kept], weight[kept]
    order = np.argsort(prediction)
    ordered = prediction[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    rows = weight[order] if len(weight) else np.ones(len(order))
    positive_rows = rows * y[order]
    positives = np.add.reduceat(positive_rows, starts)
    negatives = np.add.reduceat(rows - positive_rows, starts)
    return positives, negatives


def _weighted_rows(y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return y[weight > 0.0] if len(weight) else y


def _has_both(y: np.ndarray) -> bool:
    return len(y) > 0 and bool(y.min() < y.max())


def _has_ones(y: np.ndarray) -> bool:
    return bool((y > 0.0).any())


_TWO_CLASSES = "two classes or more"
_ROC = Curve(_area, _has_both, _TWO_CLASSES)
_PRECISION_RECALL = Curve(_average_precision, _has_ones, "class 1")


def _check_classes(name: str, classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise _no_rows(name, _TWO_CLASSES)


def _no_rows(name: str, needs: str) -> ValueError:
    return ValueError(
        f"{name} needs validation rows of {needs}, and there are none; choose another eval_metric, "
        "or other validation rows"
    )
