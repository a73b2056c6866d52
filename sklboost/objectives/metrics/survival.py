"""Metrics of survival times, which need all rows at once.

Targets have the form of ``sklboost/estimators/input/survival_kind.py``: for each row a lower and an
upper bound of the time of its event, when it was first observed, and the number of its stratum.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.objectives.domains import no_rows


class _Orders(NamedTuple):
    """Rows of a stratum, in the orders in which :func:`_count_pairs` comes to them."""

    # int64: from the latest on: rows whose event was before some time, by that time; all rows, by
    # the time up to which they had none; rows that were not observed from the start, by when they
    # were
    ends: np.ndarray
    begins: np.ndarray
    entries: np.ndarray
    ranks: np.ndarray  # int64, shape (n_samples,): of the risks, from 1


def concordance(y: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float:
    """Return Harrell's concordance index: how often the row of more risk has its event first.

    Over the pairs of rows in which one surely has its event before the other does, while the other
    is observed. Equal risks count half. An event at the time at which another row was censored is
    before that row's; two events at one time are no pair. A pair has the product of the weights.
    NaN if there are no pairs. It takes a time of n log n. Source: Harrell et al. (1996),
    "Multivariable prognostic models", section 5.5.

    Parameters
    ----------
    y : ndarray of float64, shape (n_samples, 4)
    risk : ndarray of float64, shape (n_samples,)
    weight : ndarray of float64, shape (n_samples,) or (0,)
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


def cindex(y: np.ndarray, risk: np.ndarray, weight: np.ndarray) -> float:
    """Return the concordance index as a metric of validation rows; ValueError without pairs."""
    index = concordance(y, risk, weight)
    if math.isnan(index):
        raise no_rows("cindex", "which it is known whose event was first")
    return index


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
