"""Metrics that need all rows at once: areas under curves, and the share of variance explained.

An area depends on the order that predictions put the rows in. Rows of equal prediction have no
order among themselves, so sums run over distinct predictions. Products are summed by NumPy and not
by ``@``, whose last bits depend on the threads of the BLAS.
"""

from collections.abc import Callable
from itertools import combinations

import numpy as np

from sklboost.engine.sorting import order_floats
from sklboost.objectives.domains import no_rows
from sklboost.objectives.links import LEAST_PROBABILITY

_TWO_CLASSES = "two classes or more"


@np.errstate(all="ignore")
def auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the area under the ROC curve: how often a row of class 1 is above one of class 0.

    Equals count half. As scikit-learn's ``roc_auc_score``. A target between 0 and 1 is that much of
    a row of class 1, as in XGBoost. Of several labels, the mean of the areas of those that have
    rows of both classes; ValueError if none has.
    """
    return _mean("auc", _TWO_CLASSES, _areas_of_labels(_area, _has_both, y, prediction, weight))


@np.errstate(all="ignore")
def aucpr(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the average precision: the mean precision at the rows of class 1.

    As scikit-learn's ``average_precision_score``, a sum over steps. XGBoost's ``aucpr`` draws a
    curve between the steps, so the two differ a little. Of several labels, the mean over those
    that have rows of class 1; ValueError if none has.
    """
    areas = _areas_of_labels(_average_precision, _has_ones, y, prediction, weight)
    return _mean("aucpr", "class 1", areas)


@np.errstate(all="ignore")
def multiclass_auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean area of each class against the rest, weighted by its share of the rows.

    As scikit-learn's ``roc_auc_score(multi_class="ovr", average="weighted")``. A class without rows
    has share 0; there scikit-learn raises an error. ValueError if there is only one class.
    """
    classes, counts = np.unique(_weighted_rows(y, weight), return_counts=True)
    if len(classes) < 2:
        raise no_rows("auc", _TWO_CLASSES)
    shares = counts if len(weight) == 0 else [weight[y == k].sum() for k in classes]
    areas = [_area((y == k) * 1.0, prediction[:, int(k)], weight) for k in classes]
    return float(np.average(areas, weights=shares))


@np.errstate(all="ignore")
def auc_mu(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean over pairs of classes of the area that tells one from the other.

    A row of the pair is placed by the logarithm of the ratio of its two probabilities, which is the
    difference of raw scores, as in LightGBM (Kleiman & Page 2019, with equal costs). Pairs with a
    class without rows are left out; ValueError if all are.
    """
    classes = np.unique(_weighted_rows(y, weight))
    scores = np.log(np.maximum(prediction, LEAST_PROBABILITY))
    areas = []
    for one, other in combinations(classes.astype(int), 2):
        rows = (y == one) | (y == other)
        score = scores[rows, one] - scores[rows, other]
        weights = weight[rows] if len(weight) else weight
        areas.append(_area((y[rows] == one) * 1.0, score, weights))
    return _mean("auc_mu", _TWO_CLASSES, areas)


def _areas_of_labels(
    area: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    is_defined: Callable[[np.ndarray], bool],
    y: np.ndarray,
    prediction: np.ndarray,
    weight: np.ndarray,
) -> list[float]:
    """Return the areas of the labels whose rows have a curve; one label is one column."""
    areas = []
    for targets, scores in zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True):
        rows = ~np.isnan(targets) if y.ndim > 1 else slice(None)
        weights = weight[rows] if len(weight) else weight
        if is_defined(_weighted_rows(targets[rows], weights)):
            areas.append(area(targets[rows], scores[rows], weights))
    return areas


def _mean(name: str, needs: str, areas: list[float]) -> float:
    if not areas:
        raise no_rows(name, needs)
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
    """Return weights of positive and of negative rows for each distinct prediction, ascending."""
    if len(weight):
        kept = weight > 0.0  # else a distinct prediction could have no weight at all
        y, prediction, weight = y[kept], prediction[kept], weight[kept]
    ordered, order = order_floats(prediction)
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


# --- variance


@np.errstate(all="ignore")
def r2(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of the variance that is explained; of several targets, the mean of theirs.

    As scikit-learn: where all targets are the same, 1 for no error at all and else 0. A target that
    is NaN is not counted, and neither is a column without any other. ValueError if there is not one
    prediction for each target, but one for each alpha of a quantile.
    """
    if prediction.shape != y.shape:
        raise ValueError(
            f"r2 of predictions of shape {prediction.shape} for targets of shape {y.shape}: it "
            "needs one prediction for each target; choose another metric"
        )
    columns = zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True)
    known = [column for column in columns if not np.isnan(column[0]).all()]
    return float(np.mean([_r2_of_target(*column, weight) for column in known]))


def _r2_of_target(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    known = ~np.isnan(y)
    y, prediction = y[known], prediction[known]
    weights = weight[known] if len(weight) else None
    residual = np.average((y - prediction) ** 2, weights=weights)
    variance = np.average((y - np.average(y, weights=weights)) ** 2, weights=weights)
    if variance == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return float(1.0 - residual / variance)
