"""Thresholds: the value at which a split found between two bins divides the rows.

A threshold never divides the values of one bin. Then rows go the same way by their bins and by
their values, also those that the node's split was not found from: the rows that sampling left out,
and those of a :class:`~sklboost.data.binned_matrix.BinnedMatrix` that a fold holds out.
"""

import numpy as np

from sklboost.data.cuts import midpoint
from sklboost.engine.compiling import inlined, kernel


@inlined
def right_end(bin_, is_exact, lower, upper):
    """Return the largest threshold that has `bin_` on its right and the bin before on its left.

    If every value has its own bin, that is the value itself. Else rows that the cut points were not
    chosen from may lie anywhere between two bins, and only the cut divides them as bins do.
    """
    return lower[bin_] if is_exact else midpoint(upper[bin_ - 1], lower[bin_])


@kernel
def has_own_bins(lower, upper):
    """Whether every value has a bin of its own; of a feature of many values few bins are read."""
    bin_ = 0
    while bin_ < len(lower) and lower[bin_] == upper[bin_]:
        bin_ += 1
    return bin_ == len(lower)


@kernel
def first_bin_right_of(value, split, is_exact, lower, upper):
    """Return the first bin above ``split.below`` whose :func:`right_end` is not below `value`."""
    first, last = split.below + 1, split.bin
    while first < last:
        middle = (first + last) // 2
        if right_end(middle, is_exact, lower, upper) >= value:
            last = middle
        else:
            first = middle + 1
    return first


@kernel
def place_threshold(split, matrix):
    """Return the threshold of a split and set ``split.bin`` to the first bin on its right.

    It is the value halfway between the node's neighbours of the split, so that ``x < threshold``
    holds for the lower one only; -inf if only missing values go left. Where a feature has more
    values than bins, it is the cut nearest to that, the lower of two. A split on categories has
    none: NaN.
    """
    if matrix.n_categories[split.feature] > 0:
        return np.nan
    if split.below < 0:
        split.bin = 0
        return -np.inf
    start, stop = matrix.bin_starts[split.feature], matrix.bin_starts[split.feature + 1]
    stop -= matrix.has_missing[split.feature]
    lower, upper = matrix.lower[start:stop], matrix.upper[start:stop]
    is_exact = has_own_bins(lower, upper)
    below = upper[split.below]
    if below == -np.inf:
        below = upper[split.bin - 1]  # nothing is halfway to -inf
    halfway = midpoint(below, lower[split.bin])
    bin_ = first_bin_right_of(halfway, split, is_exact, lower, upper)
    threshold = halfway
    if not is_exact:
        threshold = right_end(bin_, is_exact, lower, upper)
        if bin_ - 1 > split.below:
            before = right_end(bin_ - 1, is_exact, lower, upper)
            if halfway <= midpoint(before, threshold):
                bin_, threshold = bin_ - 1, before
    split.bin = bin_
    return threshold
