"""Splits on categories: the order in which they are scanned, and the set that goes left.

Each category is a bin. Of all divisions of the categories into two sets the best one divides them
in the order of their leaf weights. So they are sorted by ``G / (H + cat_smooth)`` and then scanned
as numbers are (Fisher 1958, "On Grouping for Maximum Homogeneity"; Breiman et al. 1984, section
4.2). Missing values are one more category, which the scan tries on both sides of every place.

The weight of a category of few rows is noise, and an order that follows the noise of many of them
looks like a large gain. What the gain would be without is estimated in
:mod:`sklboost.tree.options.category_noise`.

A feature of few categories is split one category against the others instead: place p + 1 is for the
p-th category alone, and place 0 for missing values alone.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core.open_nodes import sink
from sklboost.tree.core.quantization import scales_of, unpack
from sklboost.tree.options.several_outputs import list_sums, sum_cells


@inlined
def is_one_hot(search, feature):
    """Whether a categorical feature is split one category against the others."""
    return search.matrix.n_categories[feature] < search.params.max_cat_to_onehot


@kernel
def sort_categories(keys, bins, n_wanted):
    """Sort categories by key, then by number; a heapsort, since kernels allocate no memory.

    It may end when the last `n_wanted` are in their places. The top of the heap has the largest key
    and of equal ones the lowest item, and goes to the end. So the numbers are negative while they
    are in it.
    """
    n_categories = len(bins)
    for position in range(n_categories):
        bins[position] = -bins[position]
    for position in range(n_categories // 2 - 1, -1, -1):
        sink(keys, bins, position, n_categories)
    for stop in range(n_categories - 1, max(n_categories - 1 - n_wanted, 0), -1):
        keys[0], keys[stop] = keys[stop], keys[0]
        bins[0], bins[stop] = bins[stop], bins[0]
        sink(keys, bins, 0, stop)
    for position in range(n_categories):
        bins[position] = -bins[position]


@inlined
def reverse(items):
    """Reverse an array in place."""
    for position in range(len(items) // 2):
        opposite = len(items) - 1 - position
        items[position], items[opposite] = items[opposite], items[position]


@kernel
def sort_ends(keys, bins, n_wanted):
    """Sort categories as :func:`sort_categories` does, but not those far from both ends.

    Only the first and the last `n_wanted` are in their places: others cannot be listed by a split,
    and to sort tens of thousands would take longer than all else in a node.
    """
    if len(bins) <= 4 * n_wanted:
        sort_categories(keys, bins, len(bins))
        return
    sort_categories(keys, bins, n_wanted)
    rest = len(bins) - n_wanted
    for position in range(rest):
        keys[position], bins[position] = -keys[position], -bins[position]
    sort_categories(keys[:rest], bins[:rest], n_wanted)
    reverse(keys[:rest])
    reverse(bins[:rest])
    for position in range(rest):
        keys[position], bins[position] = -keys[position], -bins[position]


@kernel
def fill_keys(search, numbers, n_lanes, output, bins, keys):
    """Fill `keys` with ``G / (H + cat_smooth)`` of each category.

    Return by how much the categories differ: the sum of ``G^2 / (H + cat_smooth)``, their
    similarities. `numbers`, of shape (n_bins * n_lanes,), is the feature's part of the output's
    histogram.
    """
    scales, spread = scales_of(search.scales, output), 0.0
    for position in range(len(bins)):
        gradient, hessian = unpack(numbers[bins[position] * n_lanes + output % n_lanes], scales)
        keys[position] = gradient / (hessian + search.params.cat_smooth)
        spread += keys[position] * gradient
    return spread


@kernel
def sort_by_weight(search, histogram, cells, bins, keys):
    """Fill the keys of categories and sort these by them.

    In a tree of several outputs, keys are those of the output in which the categories differ most.
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
    sort_ends(keys[: len(bins)], bins, search.params.max_cat_threshold)


@kernel
def set_apart(sums, n_categories, total):
    """Turn the sums of all categories before a place into those of single ones, after a 0.

    `sums` has room for one more; `total` is the packed sum of all categories.
    """
    sums[n_categories] = total
    for place in range(n_categories, 0, -1):
        sums[place] -= sums[place - 1]


@late("int64")
def order_categories(search, feature, histogram, cells, bins, sums, keys):
    """Put the categories of a feature in the order of the scan; return its number of places.

    Parameters
    ----------
    search : Search
    feature : int
    histogram : ndarray of int64, shape (n_strips, n_cells * n_lanes)
        The node's.
    cells : tuple of int
        First cell of the feature, and the one after its last category.
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
def forbid_places(search, places, gains):
    """Set the gains to -inf of places where both sides have too many categories to list.

    `places` are the first one, which has ``gains[0]``, and the number of categories.
    """
    (first, n_categories), most_listed = places, search.params.max_cat_threshold
    for place in range(max(first, most_listed + 1), n_categories - most_listed):
        gains[place - first] = -np.inf


@late()
def list_left_categories(split, place, one_hot, bins, missing, categories):
    """Turn a scan's split at `place` into one that lists the categories on its left.

    The sides are exchanged if the left one has more. Categories that no row of the node has then go
    to the side that is not listed, and so do missing values if the node has none. The left sum is
    no longer that of the split.

    Parameters
    ----------
    split : record of SPLIT_DTYPE
        With the scan's direction. Modified.
    place : int
    one_hot : bool
    bins : ndarray of int64, shape (n_categories,)
        The categories that the node has, in the order of the scan.
    missing : int
        Packed sum of the node's rows whose value is missing.
    categories : ndarray of uint16, shape (most_listed,)
        Filled from the front.
    """
    first, stop = 0, place
    if one_hot:
        first = max(place - 1, 0)
    elif 2 * place > len(bins):
        first, stop = place, len(bins)
        split.default_left = 1 - split.default_left if missing != 0 else 0
    split.n_listed = stop - first
    for position in range(first, stop):
        categories[position - first] = bins[position]


@late("int64")
def sum_categories(matrix, histogram, output, feature, categories):
    """Return the packed sum of the listed categories of a feature, for one output."""
    total = np.int64(0)
    for category in categories:
        cell = matrix.places[feature].first_cell + np.int64(category)
        total += sum_cells(matrix, histogram, output, cell, cell + 1)
    return total
