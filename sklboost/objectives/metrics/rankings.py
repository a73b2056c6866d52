"""Metrics of rankings: means over queries of what users find at the top.

Documents are put in the order of their predictions, from high to low; equal predictions in the
order of the rows. Targets have two columns: relevances, and numbers of queries. Each query counts
with its weight. Formulas and names are XGBoost's, but `mrr`, which it does not have.
"""

import functools
import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklboost.objectives.losses.ranking import MOST_RELEVANT, discounts_of, gains_of

_NAME = re.compile(r"(\w+)(?:@(\d+))?(-?)")


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


# The value of each query, NaN where it has no relevant document.
OfQueries = Callable[[Top], np.ndarray]


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


_FORMULAS: dict[str, OfQueries] = {
    "ndcg": ndcg,
    "map": average_precision,
    "pre": precision,
    "mrr": reciprocal_rank,
}
_BINARY = ("map", "pre")


@functools.cache
def metric_function(
    name: str, is_exponential: bool
) -> Callable[[np.ndarray, np.ndarray, np.ndarray], float]:
    """Return the function of a metric, the same one for equal arguments."""

    def function(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
        return mean_over_queries(name, y, prediction, weight, is_exponential)

    return function


def mean_over_queries(
    name: str, y: np.ndarray, prediction: np.ndarray, weight: np.ndarray, is_exponential: bool
) -> float:
    """Return the metric of a name such as ``ndcg@10-``.

    Parameters
    ----------
    name : str
        What is computed; ``@k``: of the first k documents; ``-``: a query without a relevant
        document is 0, else 1.
    y : ndarray of float64, shape (n_samples, 2)
    prediction : ndarray of float64, shape (n_samples,)
    weight : ndarray of float64, shape (n_samples,) or (0,)
        All rows of a query have the same.
    is_exponential : bool
        Whether gains are ``2^relevance - 1``, or relevances.

    Raises
    ------
    ValueError
        For relevances that the metric is not defined for.
    """
    family, most, minus = _NAME.fullmatch(name).groups()  # type: ignore[union-attr]
    _check_labels(name, family, y[:, 0], is_exponential)
    order = np.lexsort((-prediction, y[:, 1]))
    numbers = y[order, 1]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1]])
    sizes = np.diff(starts, append=len(order))
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
    weights = weight[order][starts] if len(weight) else None
    return float(np.average(values, weights=weights))


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
