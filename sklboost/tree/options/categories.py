"""Splits on categories: the order in which the levels of a feature are scanned, and their sets.

In: the occupied bins of a categorical feature, whose bins are its levels. Out: the same bins in
another order, and for each place to split there the packed sum of the levels before it; at last the
levels that the chosen split sends left.

The one idea: of all divisions of the levels into two sets the best one divides them in the order of
their leaf weights, so they are sorted by ``G / (H + cat_smooth)`` and then scanned as numbers are
(Fisher 1958, "On Grouping for Maximum Homogeneity"; Breiman et al. 1984, section 4.2). Missing
values are one more level, which the scan tries on both sides of every place.

With few rows the weight of a level is noise, and the order that suits the noise of many of them
looks like a large gain. So levels whose H is less than half of `cat_smooth` are one in the scan:
they have a common weight, and no place lies between them. (LightGBM leaves them out, on the right.)

A feature of few levels is split one level against the others instead: place p + 1 is for the level
that is p-th, and place 0 for missing values alone.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core.open_nodes import sink
from sklboost.tree.core.quantization import scales_of, unpack
from sklboost.tree.options.several_outputs import list_sums, sum_cells


@inlined
def is_one_hot(search, feature):
    """Tell whether a categorical feature is split one level against the others."""
    return search.matrix.n_categories[feature] < search.params.max_cat_to_onehot


@inlined
def sort_categories(keys, bins):
    """Sort categories by their keys, then by number, in place, since kernels take no memory.

    A heap: its top, the largest key and of equal ones the lowest item, goes to the end. So numbers
    are negative in it.
    """
    n_categories = len(bins)
    for position in range(n_categories):
        bins[position] = -bins[position]
    for position in range(n_categories // 2 - 1, -1, -1):
        sink(keys, bins, position, n_categories)
    for stop in range(n_categories - 1, 0, -1):
        keys[0], keys[stop] = keys[stop], keys[0]
        bins[0], bins[stop] = bins[stop], bins[0]
        sink(keys, bins, 0, stop)
    for position in range(n_categories):
        bins[position] = -bins[position]


@kernel
def fill_keys(search, numbers, n_lanes, output, bins, keys):
    """Fill `keys` with ``G / (H + cat_smooth)`` of each level, and then of the rare ones together.

    These have all that last key; without any it is NaN. Return how much levels differ: the sum of
    ``G^2 / (H + cat_smooth)``, the similarity of all of them apart.

    Parameters
    ----------
    search : Search
    numbers : ndarray of int64, shape (n_bins * n_lanes,)
        The feature's part of the output's histogram.
    n_lanes, output : int
    bins : ndarray of int64, shape (n_occupied,)
    keys : ndarray of float64, shape (at least n_occupied + 1,)
        Filled.
    """
    scales, cat_smooth = scales_of(search.scales, output), search.params.cat_smooth
    spread, rare_gradient, rare_hessian = 0.0, 0.0, 0.0
    for position in range(len(bins)):
        gradient, hessian = unpack(numbers[bins[position] * n_lanes + output % n_lanes], scales)
        keys[position] = np.nan
        if hessian < 0.5 * cat_smooth:
            rare_gradient += gradient
            rare_hessian += hessian
        else:
            keys[position] = gradient / (hessian + cat_smooth)
            spread += keys[position] * gradient
    keys[len(bins)] = np.nan
    if rare_hessian > 0.0:
        keys[len(bins)] = rare_gradient / (rare_hessian + cat_smooth)
        spread += keys[len(bins)] * rare_gradient
    for position in range(len(bins)):
        if np.isnan(keys[position]):
            keys[position] = keys[len(bins)]
    return spread


@kernel
def sort_by_weight(search, histogram, cells, bins, keys):
    """Sort levels by their keys, which are filled, too.

    In a tree of several outputs, the one in which the levels differ most has the say.
    """
    n_lanes, n_outputs = histogram.shape[1] // search.matrix.cell_starts[-1], len(search.scales)
    start, stop = cells[0] * n_lanes, cells[1] * n_lanes
    chosen, most = 0, -np.inf
    for output in range(n_outputs if n_outputs > 1 else 0):
        numbers = histogram[output // n_lanes, start:stop]
        spread = fill_keys(search, numbers, n_lanes, output, bins, keys)
        if spread > most:
            chosen, most = output, spread
    fill_keys(search, histogram[chosen // n_lanes, start:stop], n_lanes, chosen, bins, keys)
    sort_categories(keys[: len(bins)], bins)


@kernel
def set_apart(sums, n_categories, total):
    """Turn sums of all levels before a place into 0, and then each level's own sum.

    Parameters
    ----------
    sums : ndarray of int64, shape (at least n_categories + 1,)
        Modified.
    n_categories : int
    total : int
        Packed sum of all of them.
    """
    sums[n_categories] = total
    for place in range(n_categories, 0, -1):
        sums[place] -= sums[place - 1]


@late("int64")
def order_categories(search, feature, histogram, cells, bins, sums, keys):
    """Put the levels of a feature in the order of the scan; give the number of its places.

    Parameters
    ----------
    search : Search
    feature : int
    histogram : ndarray of int64, shape (n_strips, n_cells * n_lanes)
        The node's.
    cells : tuple of int
        First cell of the feature, and the one after its last level.
    bins : ndarray of int64, shape (n_occupied,)
        The occupied ones. Modified.
    sums : ndarray of int64
        The first output's, before each of them. Modified.
    keys : ndarray of float64
        Filled.
    """
    if is_one_hot(search, feature):
        total = sum_cells(search.matrix, histogram, 0, cells[0], cells[1])
        set_apart(sums, len(bins), total)
        return len(bins) + 1
    sort_by_weight(search, histogram, cells, bins, keys)
    n_lanes = histogram.shape[1] // search.matrix.cell_starts[-1]
    list_sums(histogram[0, cells[0] * n_lanes : cells[1] * n_lanes], n_lanes, 0, bins, sums)
    return len(bins)


@late()
def forbid_places(search, places, keys, gains):
    """Set the gains to -inf of places where levels cannot be divided.

    That is between levels of one weight, so among the rare ones, and where there would be too many
    levels on both sides to list those of one.

    Parameters
    ----------
    search : Search
    places : tuple of int
        The first one, which has ``gains[0]``, and the number of levels.
    keys : ndarray of float64
        In the order of the scan.
    gains : ndarray of float64
        Modified.
    """
    (first, n_categories), most_listed = places, search.params.max_cat_threshold
    for place in range(max(first, 1), n_categories):
        is_long = min(place, n_categories - place) > most_listed
        if is_long or keys[place] == keys[place - 1]:
            gains[place - first] = -np.inf


@inlined
def lists_right(place, n_categories, keys, most_listed):
    """Tell whether a split lists the levels on the right of a place, rather than on its left.

    The side without the rare levels, or without such the shorter one, if it is not too long.
    """
    rare = keys[n_categories]
    if np.isnan(rare):
        return 2 * place > n_categories
    # sorted, so the rare levels are on the left if they come before the last one there
    rare_on_left = place > 0 and rare <= keys[max(place - 1, 0)]
    n_listed = n_categories - place if rare_on_left else place
    return rare_on_left == (n_listed <= most_listed)


@late()
def list_left_categories(split, place, one_hot, bins, totals, keys, categories):
    """Make a scan's split at `place` one that lists the levels on its left.

    Perhaps the sides change places for that. Levels that no row of the node has are then on the
    side that is not listed. So are missing values, if the node has none.

    Parameters
    ----------
    split : record of SPLIT_DTYPE
        With the scan's left sum and direction. Modified.
    place : int
    one_hot : bool
    bins : ndarray of int64, shape (n_categories,)
        The levels that the node has, in the order of the scan.
    totals : tuple of int
        Packed sums of the node's rows, and of those whose value is missing.
    keys : ndarray of float64
        From :func:`order_categories`.
    categories : ndarray of uint16, shape (most_listed,)
        Filled from the front.
    """
    first, stop = 0, place
    if one_hot:
        first = max(place - 1, 0)
    elif lists_right(place, len(bins), keys, len(categories)):
        first, stop = place, len(bins)
        split.left_sum = totals[0] - split.left_sum
        split.default_left = 1 - split.default_left if totals[1] != 0 else 0
    split.n_listed = stop - first
    for position in range(first, stop):
        categories[position - first] = bins[position]


@late("int64")
def sum_categories(matrix, histogram, output, feature, categories):
    """Give the packed sum of the listed levels of a feature, for one output."""
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    numbers, total = histogram[output // n_lanes], np.int64(0)
    for category in categories:
        cell = matrix.places[feature].first_cell + category
        total += numbers[cell * n_lanes + output % n_lanes]
    return total
