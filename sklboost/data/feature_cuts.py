"""The cut points of one feature, from its values and their weights.

Every distinct value is a bin where there are at most `max_bin`; otherwise bins have about equal
weight. Every category is a bin. NaN is left out.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.row_arrays import row_blocks
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.sorting import order_floats, sort_floats

# Weights of bins that differ by less than this part of their mean are equal, so that a tie stays
# one when all weights are multiplied by a number, which rounds them. Whole weights that are not
# equal differ by half a row divided by the number of bins or more: more than this up to 2^29 rows.
_TIE = 2.0**-30


class FeatureCuts(NamedTuple):
    """The cuts of one feature and the extreme values of its bins, as in BinCuts."""

    cuts: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@inlined
def midpoint(below, above):
    """Return a float64 t with ``below < t <= above``: halfway where one lies between."""
    if math.isinf(below) or math.isinf(above):
        return above  # nothing lies halfway to infinity
    middle = below / 2.0 + above / 2.0  # halved first: their sum may overflow
    return middle if below < middle <= above else above


@kernel
def divide_values(ordered, weight, absent, sizes, distinct, bins):
    """Divide the values of one feature into bins; return how many there are.

    Parameters
    ----------
    ordered, weight, absent
        As for :func:`distinct_values`.
    sizes : tuple of int
        So many distinct values may have a bin each; if there are more, so many bins.
    distinct : ndarray of float64, shape (2, n + 1)
        Scratch.
    bins : ndarray of float64, shape (3, max(sizes))
        Filled with the smallest and the largest value of each bin, and the cut between it and the
        next.
    """
    values, mass = distinct
    n_bins, total = distinct_values(ordered, weight, absent, values, mass)
    lower, upper, cuts = bins
    if n_bins > sizes[0]:
        n_bins = merge_values(values[:n_bins], mass[:n_bins], total, sizes[1], lower, upper)
    else:
        for bin_ in range(n_bins):
            lower[bin_] = upper[bin_] = values[bin_]
    for bin_ in range(n_bins - 1):
        cuts[bin_] = midpoint(upper[bin_], lower[bin_ + 1])
    return n_bins


@inlined
def distinct_values(ordered, weight, absent, values, mass):
    """List the distinct values of an increasing array and their weights.

    Returns how many there are, and the sum of the weights.

    Parameters
    ----------
    ordered : ndarray of float32 or float64, shape (n,)
        NaN, at the end, is left out.
    weight : ndarray of float64, shape (n,) or (0,)
        In the same order, of :func:`exact_weights`: their sums are exact. Empty: all 1.
    absent : float
        The weight of the zeros that are not stored; then no others are.
    values, mass : ndarray of float64, shape (n + 1,)
        Filled from the front.
    """
    # what is added to stays in registers
    n_distinct, last, last_mass, total = 0, np.nan, 0.0, absent
    for position in range(len(ordered) + 1):
        is_end = position == len(ordered) or ordered[position] != ordered[position]
        if absent > 0.0 and (is_end or ordered[position] > 0.0):
            values[n_distinct], mass[n_distinct] = 0.0, absent
            n_distinct, absent = n_distinct + 1, 0.0
        if is_end:
            break
        if ordered[position] != last:
            # of equal zeros, -0.0 and 0.0, the first depends on the order of the rows
            last, last_mass = ordered[position] + 0.0, 0.0
            values[n_distinct] = last
            n_distinct += 1
        added = weight[position] if len(weight) > 0 else 1.0
        last_mass += added
        total += added
        mass[n_distinct - 1] = last_mass
    return n_distinct, total


@inlined
def fair_share(mass, total, n_bins, room):
    """Return the weight of a bin if every value heavier than that has a bin of its own.

    And the weight of all others together, and how many are heavier. `total` is the sum of `mass`;
    what is heavier by less than `room` is not.
    """
    light, n_heavy = total, 0
    share_ = total / n_bins + room
    while True:
        n_heavy_before, n_heavy = n_heavy, 0
        for weight in mass:
            n_heavy += weight > share_
        if n_heavy > n_heavy_before:
            light = 0.0
            for weight in mass:
                light += 0.0 if weight > share_ else weight
        # ends: each time round there are more heavy values, or it is over
        if n_heavy <= n_heavy_before or n_heavy >= n_bins:
            return share_, light, n_heavy
        share_ = light / (n_bins - n_heavy) + room  # smaller, so perhaps more values are heavy


@inlined
def merge_values(values, mass, total, n_bins, lower, upper):
    """Gather distinct values in at most `n_bins` bins of about equal weight; return how many.

    Values heavier than a fair share have bins of their own (but for a few light ones before them),
    the others divide the rest evenly: a bin is closed where its weight is nearest its share of what
    is left.

    Parameters
    ----------
    values, mass : ndarray of float64, shape (n,)
        Increasing distinct values and their weights.
    total : float
        The sum of the weights.
    n_bins : int
    lower, upper : ndarray of float64, shape (n_bins,)
        Filled with the smallest and largest value of each bin.
    """
    room = _TIE * total / n_bins
    heavy, light_left, n_heavy = fair_share(mass, total, n_bins, room)
    light_bins = n_bins - n_heavy
    target = light_left / max(light_bins, 1) + room
    filled = 0.0  # light weight in the open bin
    bin_ = 0
    lower[0] = values[0]
    for position in range(len(values) - 1):
        bins_left = n_bins - bin_
        if bins_left == 1:
            break
        is_heavy, next_is_heavy = mass[position] > heavy, mass[position + 1] > heavy
        filled += 0.0 if is_heavy else mass[position]
        # before a heavy value a bin is closed if it is more full than not
        reach = filled + (filled if next_is_heavy else mass[position + 1] / 2.0)
        values_left = len(values) - 1 - position
        if is_heavy or reach > target or values_left < bins_left:
            upper[bin_] = values[position]
            bin_ += 1
            lower[bin_] = values[position + 1]
            light_left -= filled
            light_bins -= 0 if is_heavy else 1
            target = light_left / max(light_bins, 1) + room
            filled = 0.0
    upper[bin_] = values[-1]
    return bin_ + 1


def exact_weights(weight: np.ndarray) -> np.ndarray:
    """Round weights, not all 0, so that any of them add up to the same bits in any order.

    They become multiples of a power of two of which all together are less than 2^53. Positive ones
    stay positive.
    """
    if len(weight) == 0:
        return weight
    exact, most = np.empty(len(weight)), float(weight.max()) * len(weight)
    for _ in range(2):  # a sum in floats would depend on the order, that of rounded ones does not
        step = math.ldexp(1.0, math.frexp(most)[1] - 52)
        for rows in row_blocks(len(weight)):
            exact[rows] = np.maximum(np.rint(weight[rows] / step), weight[rows] > 0.0) * step
        most = float(exact.sum())
    return exact


def heaviest_first(masses: np.ndarray) -> np.ndarray:
    """Order masses, sums of exact weights, from the largest on; equal ones by their place."""
    order = np.argsort(-masses)
    falls = -np.diff(masses[order], prepend=masses.max()) > _TIE * masses.mean()
    rank = np.empty(len(masses), dtype=np.int64)
    rank[order] = falls.cumsum()
    return rank.argsort(kind="stable")


def cut_feature(
    values: np.ndarray, weight: np.ndarray, absent: float, max_bin: int, missing: bool
) -> FeatureCuts:
    """Find the cuts of one feature.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n,)
        NaN is left out.
    weight : ndarray of float64, shape (n,) or (0,)
    absent : float
        The weight of the zeros that are not stored, see :func:`distinct_values`.
    max_bin : int
        At most so many distinct values become bins; otherwise there are `max_bin` bins, the one
        for missing values counted.
    missing : bool
        Whether the feature has missing values.
    """
    if len(weight) == 0:
        ordered = sort_floats(values)
    else:
        ordered, order = order_floats(values)
        weight = weight[order]
    sizes = (max_bin, max(1, max_bin - int(missing)))
    # of few distinct values, most of this memory is never touched
    distinct, bins = np.empty((2, len(ordered) + 1)), np.empty((3, max(sizes)))
    n_bins = divide_values(ordered, weight, absent, sizes, distinct, bins)
    if n_bins == 0:
        nothing = np.zeros(1)
        return FeatureCuts(np.empty(0), nothing, nothing)
    lower, upper, cuts = bins[:, :n_bins].copy()
    return FeatureCuts(cuts[:-1], lower, upper)


def cut_categories(n_categories: int) -> FeatureCuts:
    """Return cuts halfway between neighbouring codes, so that a bin is a code."""
    codes = np.arange(n_categories, dtype=np.float64)
    return FeatureCuts(codes[1:] - 0.5, codes, codes)
