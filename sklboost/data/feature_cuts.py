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
def distinct_values(ordered, weight, absent, values, mass):
    """List the distinct values of an increasing array and the weight of each; return how many.

    Parameters
    ----------
    ordered : ndarray of float32 or float64, shape (n,)
    weight : ndarray of float64, shape (n,) or (0,)
        In the same order. Empty: all 1.
    absent : float
        The weight of the zeros that are not stored; then no others are.
    values, mass : ndarray of float64, shape (n + 1,)
        Filled from the front.
    """
    n_distinct = 0
    for position in range(len(ordered) + 1):
        is_end = position == len(ordered)
        if absent > 0.0 and (is_end or ordered[position] > 0.0):
            values[n_distinct], mass[n_distinct] = 0.0, absent
            n_distinct, absent = n_distinct + 1, 0.0
        if is_end:
            break
        if n_distinct == 0 or ordered[position] != values[n_distinct - 1]:
            # of equal zeros, -0.0 and 0.0, the first depends on the order of the rows
            values[n_distinct], mass[n_distinct] = ordered[position] + 0.0, 0.0
            n_distinct += 1
        mass[n_distinct - 1] += weight[position] if len(weight) > 0 else 1.0
    return n_distinct


@kernel
def fair_share(mass, total, n_bins):
    """Return the weight of a bin if every value heavier than that has a bin of its own.

    And the weight of all others together, and how many are heavier. `total` is the sum of `mass`.
    """
    light, n_heavy = total, 0
    share_ = total / n_bins
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
        share_ = light / (n_bins - n_heavy)  # smaller, so perhaps more values are heavy


@kernel
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
    heavy, light_left, n_heavy = fair_share(mass, total, n_bins)
    light_bins = n_bins - n_heavy
    target = light_left / max(light_bins, 1)
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
            target = light_left / max(light_bins, 1)
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
    _, exponent = math.frexp(float(weight.max()) * len(weight))
    step = math.ldexp(1.0, exponent - 52)
    exact = np.empty(len(weight))
    for rows in row_blocks(len(weight)):
        exact[rows] = np.maximum(np.rint(weight[rows] / step), weight[rows] > 0.0) * step
    return exact


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
    n_present = len(ordered) - np.count_nonzero(np.isnan(ordered))  # NaN is sorted to the end
    if n_present == 0 and absent == 0.0:
        nothing = np.zeros(1)
        return FeatureCuts(np.empty(0), nothing, nothing)
    ordered, weight = ordered[:n_present], weight[:n_present]
    # room for those that there are, and 0: a column of few values may have very many rows
    n_most = 2 + np.count_nonzero(ordered[1:] != ordered[:-1])
    distinct, mass = np.empty((2, n_most))
    n_distinct = distinct_values(ordered, weight, absent, distinct, mass)
    lower = upper = distinct[:n_distinct]
    if n_distinct > max_bin:
        n_bins = max(1, max_bin - int(missing))
        lower, upper = np.empty(n_bins), np.empty(n_bins)
        mass = mass[:n_distinct]
        # NumPy's sum, which is fast; exact in any order, as are the sums in the kernel
        total = float(mass.sum())
        n_bins = merge_values(distinct[:n_distinct], mass, total, n_bins, lower, upper)
        lower, upper = lower[:n_bins], upper[:n_bins]
    cuts = np.empty(len(lower) - 1)
    fill_midpoints(lower, upper, cuts)
    return FeatureCuts(cuts, lower, upper)


@kernel
def fill_midpoints(lower, upper, cuts):
    """Fill the cut between each bin and the next."""
    for bin_ in range(len(cuts)):
        cuts[bin_] = midpoint(upper[bin_], lower[bin_ + 1])


def cut_categories(n_categories: int) -> FeatureCuts:
    """Return cuts halfway between neighbouring codes, so that a bin is a code."""
    codes = np.arange(n_categories, dtype=np.float64)
    return FeatureCuts(codes[1:] - 0.5, codes, codes)
