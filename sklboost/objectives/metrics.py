"""Metrics that are not the mean of an objective: errors, areas, rankings, survival times."""

import math
import re
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import exp_of_negative, log
from sklboost.engine.sorting import order_floats
from sklboost.objectives.blocks import ANY, LEAST_PROBABILITY, NO_FAULT, Formula
from sklboost.objectives.domains import IDENTITY, LOG_ODDS, SOFTMAX, no_rows
from sklboost.objectives.losses.classes import fill_largest
from sklboost.objectives.losses.ranking import (
    MOST_RELEVANT,
    discounts_of,
    gains_of,
    starts_of_queries,
)

# --- means of losses that are no objectives


@inlined
def wrong_side(y, prediction, threshold):
    """Return ``1 - y`` where the prediction is above the threshold, which is class 1, else y."""
    return 1.0 - y if prediction > threshold else y


@kernel
def wrong_classes(rows, output, y, raw_score, parameters, scratch):
    """Fill 1 where the most probable class, the first of equals, is not y."""
    n_rows = rows[1] - rows[0]
    targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
    largest, best = scratch[1, :n_rows], scratch[2, :n_rows]
    largest[:] = -np.inf
    for class_ in range(raw_score.shape[0]):
        scores, number = raw_score[class_, rows[0] : rows[1]], float(class_)
        for row in range(len(targets)):
            # read before it is known whether it is needed: a vector of rows, not a branch each
            score, top, first = scores[row], largest[row], best[row]
            best[row] = number if score > top else first
            largest[row] = max(score, top)
    for row in range(len(targets)):
        losses[row] = 0.0 if best[row] == targets[row] else 1.0
    return NO_FAULT


@kernel
def squared_class_errors(rows, output, y, raw_score, parameters, scratch):
    """Fill the sum over classes of ``([y = k] - p_k)^2``."""
    n_rows = rows[1] - rows[0]
    targets, losses = y[0, rows[0] : rows[1]], scratch[0, :n_rows]
    largest, total = scratch[1, :n_rows], scratch[2, :n_rows]
    fill_largest(rows, raw_score, largest)
    total[:] = 0.0
    losses[:] = 0.0
    for class_ in range(raw_score.shape[0]):
        scores = raw_score[class_, rows[0] : rows[1]]
        for row in range(len(targets)):
            total[row] += exp_of_negative(scores[row] - largest[row])
    for class_ in range(raw_score.shape[0]):
        scores, number = raw_score[class_, rows[0] : rows[1]], float(class_)
        for row in range(len(targets)):
            term = exp_of_negative(scores[row] - largest[row])
            happened = 1.0 if targets[row] == number else 0.0
            losses[row] += (happened - term / total[row]) ** 2
    return NO_FAULT


# The threshold 0 of log-odds tells more rows apart than 1/2 of probabilities that are rounded.
WRONG_SIDE = Formula(wrong_side, LOG_ODDS)
WRONG_SIDE_OF_PROBABILITY = Formula(wrong_side, IDENTITY)
WRONG_CLASS = Formula(wrong_classes, ANY, is_block=True)
SQUARED_CLASS_ERROR = Formula(squared_class_errors, SOFTMAX, is_block=True)


# --- areas under curves

_TWO_CLASSES, _CLASS_1 = "two classes or more", "class 1"


@np.errstate(all="ignore")
def auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the area under the ROC curve: how often a row of class 1 is above one of class 0.

    Equals count half. As scikit-learn's ``roc_auc_score``. A target between 0 and 1 is that much of
    a row of class 1, as in XGBoost. Of several labels, the mean of the areas of those that have
    rows of both classes; ValueError if none has.
    """
    return _mean_of_labels("auc", _TWO_CLASSES, _area, y, prediction, weight)


@np.errstate(all="ignore")
def aucpr(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the area under the precision-recall curve, as XGBoost draws it.

    Of several labels, the mean over those that have rows of class 1; ValueError if none has.
    """
    return _mean_of_labels("aucpr", _CLASS_1, _area_of_precision, y, prediction, weight)


@np.errstate(all="ignore")
def mean_precision(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean precision at the rows of class 1: the same curve in steps.

    As scikit-learn's ``average_precision_score``; of several labels as :func:`aucpr`.
    """
    name = "average_precision_score"
    return _mean_of_labels(name, _CLASS_1, _average_precision, y, prediction, weight)


@np.errstate(all="ignore")
def multiclass_auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean area of each class against the rest, weighted by its share of the rows.

    As scikit-learn's ``roc_auc_score(multi_class="ovr", average="weighted")``. A class without rows
    has share 0; there scikit-learn raises an error. ValueError if there is only one class.
    """
    classes = _classes_with_rows("auc", y, weight)
    shares = [(y == k).sum() if len(weight) == 0 else weight[y == k].sum() for k in classes]
    areas = [_area((y == k) * 1.0, prediction[:, int(k)], weight) for k in classes]
    return float(np.average(areas, weights=shares))


@np.errstate(all="ignore")
def multiclass_aucpr(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean :func:`aucpr` of each class that has rows against the rest, as in XGBoost."""
    classes = _classes_with_rows("aucpr", y, weight)
    areas = [_area_of_precision((y == k) * 1.0, prediction[:, int(k)], weight) for k in classes]
    return float(np.mean(areas))


def _classes_with_rows(name: str, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    classes = np.unique(_weighted_rows(y, weight))
    if len(classes) < 2:
        raise no_rows(name, _TWO_CLASSES)
    return classes


@np.errstate(all="ignore")
def auc_mu(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean over pairs of classes of the area that tells one from the other.

    A row of the pair is placed by the logarithm of the ratio of its two probabilities, which is the
    difference of raw scores, as in LightGBM (Kleiman & Page 2019, with equal costs). Pairs with a
    class without rows are left out; ValueError if all are.
    """
    classes = _classes_with_rows("auc_mu", y, weight)
    scores = np.log(np.maximum(prediction, LEAST_PROBABILITY))
    areas = []
    for one, other in combinations(classes.astype(int), 2):
        rows = (y == one) | (y == other)
        score = scores[rows, one] - scores[rows, other]
        weights = weight[rows] if len(weight) else weight
        areas.append(_area((y[rows] == one) * 1.0, score, weights))
    return float(np.mean(areas))


def _mean_of_labels(
    name: str,
    needs: str,
    area: Callable[[np.ndarray, np.ndarray, np.ndarray], float],
    y: np.ndarray,
    prediction: np.ndarray,
    weight: np.ndarray,
) -> float:
    """Return the mean area of the labels that have the classes needed; one label is one column."""
    areas = []
    for targets, scores in zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True):
        rows = ~np.isnan(targets) if y.ndim > 1 else slice(None)
        weights = weight[rows] if len(weight) else weight
        known = _weighted_rows(targets[rows], weights)
        least = known.min(initial=np.inf) if needs == _TWO_CLASSES else 0.0
        if known.max(initial=-np.inf) > least:
            areas.append(area(targets[rows], scores[rows], weights))
    if not areas:
        raise no_rows(name, needs)
    return float(np.mean(areas))


def _area(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    positives, negatives = _by_prediction(y, prediction, weight)
    below = negatives.cumsum() - 0.5 * negatives
    return float((positives * below).sum() / (positives.sum() * negatives.sum()))


def _average_precision(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    positives, negatives = _by_prediction(y, prediction, weight)
    # from the top down, so that sums are of the rows above a threshold
    positives, negatives = positives[::-1], negatives[::-1]
    precision = positives.cumsum() / (positives + negatives).cumsum()
    return float((precision * positives).sum() / positives.sum())


def _area_of_precision(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    positives, negatives = _by_prediction(y, prediction, weight)
    starts, areas = np.array([0, len(positives)]), np.empty(1)
    distinct = np.arange(len(positives), dtype=np.float64)
    _fill_areas(starts, distinct, positives[::-1].copy(), negatives[::-1].copy(), areas)
    return float(areas[0])


@kernel
def _fill_areas(starts, scores, positives, negatives, areas):
    """Fill the area under the precision-recall curve of each query.

    `scores`, and weights of relevant and of other documents, shape (n_samples,), are query by
    query, best scores first. From one score to the next the numbers of both kinds rise in
    proportion, so with t relevant ones the precision is t / (t + slope t + rest), whose integral is
    a logarithm. Source: Davis & Goadrich (2006), "The Relationship Between Precision-Recall and ROC
    Curves".
    """
    for query in range(len(areas)):
        row, stop, area, n_relevant, n_others = starts[query], starts[query + 1], 0.0, 0.0, 0.0
        while row < stop:
            relevant, others, score = 0.0, 0.0, scores[row]
            while row < stop and scores[row] == score:
                relevant += positives[row]
                others += negatives[row]
                row += 1
            if relevant > 0.0:
                slope = 1.0 + others / relevant
                rest = n_others - others / relevant * n_relevant
                area += relevant / slope
                if rest != 0.0:
                    before = n_relevant + n_others
                    ratio = (before + relevant + others) / before
                    area -= rest / (slope * slope) * log(ratio)
            n_relevant += relevant
            n_others += others
        areas[query] = area / n_relevant


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


# --- variance


@np.errstate(all="ignore")
def r2(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of the variance that is explained; of several targets, the mean of theirs.

    As scikit-learn: where all targets are the same, 1 for no error at all and else 0. A target that
    is NaN is not counted, and neither is a column without any other.
    """
    if prediction.shape != y.shape:
        raise ValueError(
            f"r2 of predictions of shape {prediction.shape} for targets of shape {y.shape}: it "
            "needs one prediction for each target; choose another metric"
        )
    shares = []
    for column, predicted in zip(np.atleast_2d(y.T), np.atleast_2d(prediction.T), strict=True):
        known = ~np.isnan(column)
        if not known.any():
            continue
        target, weights = column[known], weight[known] if len(weight) else None
        residual = np.average((target - predicted[known]) ** 2, weights=weights)
        variance = np.average((target - np.average(target, weights=weights)) ** 2, weights=weights)
        if variance == 0.0:
            residual, variance = float(residual != 0.0), 1.0
        shares.append(1.0 - residual / variance)
    return float(np.mean(shares))


# --- rankings

_NAME = re.compile(r"(\w+)(?:@(\d+))?(-?)")
_BINARY = ("map", "pre", "aucpr")


def mean_over_queries(
    name: str, y: np.ndarray, prediction: np.ndarray, weight: np.ndarray, is_exponential: bool
) -> float:
    """Return the metric of a name such as ``ndcg@10-``.

    ``@k`` is of the first k documents; with ``-`` a query without a relevant document is 0, else 1.
    `y` has relevances and numbers of queries; all rows of a query have the same weight.
    """
    family, most, minus = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
    _check_labels(name, family, y[:, 0], is_exponential)
    order = np.lexsort((-prediction, y[:, 1]))
    bounds = starts_of_queries(y[order, 1])
    starts, sizes = bounds[:-1], np.diff(bounds)
    top = Top(
        labels=y[order, 0],
        best=y[np.lexsort((-y[:, 0], y[:, 1])), 0] if family == "ndcg" else y[:, 0],
        ranks=np.arange(len(order)) - np.repeat(starts, sizes),
        starts=starts,
        most=np.inf if most is None else int(most),
        is_exponential=is_exponential,
    )
    values = _FORMULAS[family](top)
    values = np.where(np.isnan(values), 0.0 if minus else 1.0, values)
    return _mean_of_queries(name, "a query", values, weight, order[starts])


def ranking_auc(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return how often the more relevant document of a pair is above the other; equals count half.

    The mean over queries of three documents or more. As in XGBoost, all pairs count: of two that
    are equally relevant, the first row is taken for the better one.
    """
    order = np.lexsort((-y[:, 0], y[:, 1]))
    starts = starts_of_queries(y[order, 1])
    shares = np.empty(len(starts) - 1)
    _fill_shares_of_pairs(starts, prediction[order].astype(np.float64), shares)
    shares[np.diff(starts) < 3] = np.nan
    first = order[starts[:-1]]
    return _mean_of_queries("auc", "a query of three documents", shares, weight, first)


@np.errstate(all="ignore")
def ranking_aucpr(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Return the mean :func:`aucpr` of the queries with relevant documents and others."""
    _check_labels("aucpr", "aucpr", y[:, 0], is_exponential=False)
    order = np.lexsort((-prediction, y[:, 1]))
    starts, relevant = starts_of_queries(y[order, 1]), y[order, 0]
    areas = np.empty(len(starts) - 1)
    _fill_areas(starts, prediction[order].astype(np.float64), relevant, 1.0 - relevant, areas)
    areas[np.minimum.reduceat(relevant, starts[:-1]) > 0.0] = np.nan
    needs = "a query with relevant and irrelevant documents"
    return _mean_of_queries("aucpr", needs, areas, weight, order[starts[:-1]])


def _mean_of_queries(
    name: str, needs: str, values: np.ndarray, weight: np.ndarray, first: np.ndarray
) -> float:
    """Return the mean of values that are not NaN; `first` is a row of each query."""
    known = ~np.isnan(values)
    if not known.any():
        raise no_rows(name, needs)
    return float(np.average(values[known], weights=weight[first[known]] if len(weight) else None))


@kernel
def _fill_shares_of_pairs(starts, scores, shares):
    """Fill for each query the share of pairs whose first document has the higher score."""
    for query in range(len(shares)):
        start, stop, n_won = starts[query], starts[query + 1], 0.0
        for row in range(start, stop):
            for other in range(row + 1, stop):
                difference = scores[row] - scores[other]
                n_won += 1.0 if difference > 0.0 else (0.5 if difference == 0.0 else 0.0)
        n_rows = stop - start
        shares[query] = n_won / max(0.5 * n_rows * (n_rows - 1), 1.0)


def _check_labels(name: str, family: str, labels: np.ndarray, is_exponential: bool) -> None:
    is_wrong, rule = labels < 0.0, "numbers >= 0"
    if family in _BINARY:
        is_wrong, rule = (labels != 0.0) & (labels != 1.0), "0 or 1"
    elif family == "ndcg" and is_exponential:
        is_wrong |= (labels > MOST_RELEVANT) | (labels != np.floor(labels))
        rule = f"whole numbers from 0 to {MOST_RELEVANT}, or ndcg_exp_gain=False"
    if is_wrong.any():
        raise ValueError(
            f"{name} of a relevance of {labels[is_wrong][0]:g}: it needs relevances that are "
            f"{rule}; choose another eval_metric"
        )


class Top(NamedTuple):
    """The documents of all queries, query by query, in the order of predictions."""

    labels: np.ndarray  # float64, shape (n_samples,)
    best: np.ndarray  # float64, shape (n_samples,): the same relevances from high to low
    ranks: np.ndarray  # int64, shape (n_samples,): from 0, within the query
    starts: np.ndarray  # int64, shape (n_queries,)
    most: float  # the number of documents that are looked at
    is_exponential: bool  # whether gains are ``2^relevance - 1``

    def add(self, values: np.ndarray) -> np.ndarray:
        """Return the sums of each query over the documents that are looked at."""
        sums: np.ndarray = np.add.reduceat(
            np.where(self.ranks < self.most, values, 0.0), self.starts
        )
        return sums

    @property
    def sizes(self) -> np.ndarray:
        """How many documents of each query are looked at."""
        sizes = np.diff(self.starts, append=len(self.labels))
        return np.minimum(sizes, self.most)


def ndcg(top: Top) -> np.ndarray:
    """Discounted gains relative to the best order: Järvelin & Kekäläinen (2002).

    A gain at rank r, from 1, is divided by ``log2(1 + r)``.
    """
    discounts = discounts_of(int(top.ranks.max(initial=0)) + 1)[top.ranks]
    found, best = (
        top.add(gains_of(labels, top.is_exponential) * discounts)
        for labels in (top.labels, top.best)
    )
    return found / np.where(best > 0.0, best, np.nan)


def average_precision(top: Top) -> np.ndarray:
    """Mean of the precision at each relevant document.

    There are as many as the query has, but no more than are looked at.
    """
    totals = top.labels.cumsum()
    before = totals[top.starts] - top.labels[top.starts]
    sizes = np.diff(top.starts, append=len(top.labels))
    hits = totals - np.repeat(before, sizes)
    n_relevant = np.add.reduceat(top.labels, top.starts)
    found = top.add(hits / (top.ranks + 1.0) * top.labels)
    return found / np.where(n_relevant > 0.0, np.minimum(n_relevant, top.most), np.nan)


def precision(top: Top) -> np.ndarray:
    """Share of relevant documents."""
    shares: np.ndarray = top.add(top.labels) / top.sizes
    return shares


def reciprocal_rank(top: Top) -> np.ndarray:
    """One divided by the rank of the first relevant document, 0 if there is none."""
    ranks = np.where(top.labels > 0.0, top.ranks + 1.0, np.inf)
    ranks[top.ranks >= top.most] = np.inf
    inverse: np.ndarray = 1.0 / np.minimum.reduceat(ranks, top.starts)
    return inverse


# The value of each query, NaN where it has no relevant document.
_FORMULAS: dict[str, Callable[[Top], np.ndarray]] = {
    "ndcg": ndcg,
    "map": average_precision,
    "pre": precision,
    "mrr": reciprocal_rank,
}


# --- survival times


def cindex(y: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float:
    """Return the concordance index as a metric of validation rows; ValueError without pairs."""
    index = concordance(y, risk, weight)
    if math.isnan(index):
        raise no_rows("cindex", "which it is known whose event was first")
    return index


def concordance(y: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float:
    """Return Harrell's concordance index: how often the row of more risk has its event first.

    Over the pairs of rows in which one surely has its event before the other does, while the other
    is observed. Equal risks count half. An event at the time at which another row was censored is
    before that row's; two events at one time are no pair. A pair has the product of the weights.
    NaN if there are no pairs. It takes a time of n log n. Source: Harrell et al. (1996),
    "Multivariable prognostic models", section 5.5.

    `y` has shape (n_samples, 4).
    """
    counts = np.zeros(3)
    for stratum in np.unique(y[:, 3]):
        of_stratum = y[:, 3] == stratum
        rows = np.ascontiguousarray(y[of_stratum].T)
        lower, upper, entry, _ = rows
        distinct, ranks = np.unique(risk[of_stratum], return_inverse=True)
        is_exact = lower == upper
        ends = np.argsort(-upper, kind="stable")
        orders = _Orders(
            ends=ends[np.isfinite(upper[ends])],
            begins=np.lexsort((is_exact, -lower)),
            entries=np.argsort(-entry, kind="stable")[: np.count_nonzero(entry > -np.inf)],
            ranks=ranks.ravel() + 1,
        )
        tree = np.zeros(len(distinct) + 1)
        _count_pairs(rows, weight[of_stratum] if len(weight) else weight, orders, tree, counts)
    concordant, tied, comparable = counts.tolist()
    return (concordant + 0.5 * tied) / comparable if comparable > 0.0 else math.nan


def share_between(y: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of rows whose predicted time, ``e^-risk``, is within its bounds.

    Rows of known times have it to the last digit or not, so they hardly ever are.
    """
    with np.errstate(over="ignore"):
        time = np.exp(-risk)
    is_within = (y[:, 0] <= time) & (time <= y[:, 1])
    return float(np.average(is_within, weights=weight if len(weight) else None))


class _Orders(NamedTuple):
    """Rows of a stratum, in the orders in which :func:`_count_pairs` comes to them."""

    # int64: from the latest on: rows whose event was before some time, by that time; all rows, by
    # the time up to which they had none; rows that were not observed from the start, by when they
    # were
    ends: np.ndarray
    begins: np.ndarray
    entries: np.ndarray
    ranks: np.ndarray  # int64, shape (n_samples,): of the risks, from 1


@kernel
def _count_pairs(y, weight, orders, tree, counts):
    """Add the weights of concordant pairs, of pairs of equal risk, and of all pairs to `counts`.

    From the latest end to the first, rows of later begins are put into a binary indexed tree by
    their risks, and taken out again where they were not observed yet. `tree` has the sums of
    weights; it begins with zeros. Source: Fenwick (1994), "A New Data Structure for Cumulative
    Frequency Tables".
    """
    lower, upper, entry = y[0], y[1], y[2]
    n_begun, n_entered, total = 0, 0, 0.0
    for row in orders.ends:
        end = upper[row]
        while n_begun < len(orders.begins):
            other = orders.begins[n_begun]
            is_later = lower[other] > end or (lower[other] == end and upper[other] > end)
            if not is_later:
                break
            total += _add_to_tree(tree, orders.ranks[other], _weight(weight, other))
            n_begun += 1
        while n_entered < len(orders.entries) and entry[orders.entries[n_entered]] >= end:
            other = orders.entries[n_entered]
            total -= _add_to_tree(tree, orders.ranks[other], -_weight(weight, other))
            n_entered += 1
        below = _sum_of_tree(tree, orders.ranks[row] - 1)
        equal = _sum_of_tree(tree, orders.ranks[row]) - below
        counts[0] += _weight(weight, row) * below
        counts[1] += _weight(weight, row) * equal
        counts[2] += _weight(weight, row) * total


@kernel
def _weight(weight, row):
    """Return the weight of a row."""
    return weight[row] if len(weight) > 0 else 1.0


@kernel
def _add_to_tree(tree, rank, value):
    """Add to the sum of a rank; return the absolute value."""
    while rank < len(tree):
        tree[rank] += value
        rank += rank & -rank
    return abs(value)


@kernel
def _sum_of_tree(tree, rank):
    """Return the sum of all ranks up to this one."""
    total = 0.0
    while rank > 0:
        total += tree[rank]
        rank -= rank & -rank
    return total
