"""Splits on categories: the order in which the levels of a feature are scanned, and their sets.

In: the occupied bins of a categorical feature, whose bins are its levels. Out: the same bins in
another order, and for each place to split there the packed sum of the levels before it; at last the
levels that the chosen split sends left.

The one idea: of all divisions of the levels into two sets the best one divides them in the order of
their leaf weights, so they are sorted by ``G / (H + cat_smooth)`` and then scanned as numbers are
(Fisher 1958, "On Grouping for Maximum Homogeneity"; Breiman et al. 1984, section 4.2). With few
rows a level's weight is noise, which `cat_smooth` draws towards 0, the node's own. Missing values
are one more level, which the scan tries on both sides of every place.

A feature of few levels is split one level against the others instead: place p + 1 is for the level
that is p-th, and place 0 for missing values alone.
"""

import numpy as np

from sklboost.compiling import kernel
from sklboost.tree.histogram import sum_cells
from sklboost.tree.occupied_bins import list_sums
from sklboost.tree.quantization import steps_of, unpack


@kernel
def is_one_hot(search, feature):
    """Tell whether a categorical feature is split one level against the others."""
    return search.matrix.n_levels[feature] < search.params.max_cat_to_onehot


@kernel
def comes_before(key, bin_, other_key, other_bin):
    """Tell whether a level is scanned before another: by key, then by number."""
    return key < other_key or (key == other_key and bin_ < other_bin)


@kernel
def sink(keys, bins, position, stop):
    """Let the level at `position` of a heap of `stop` levels sink to where it belongs."""
    key, bin_ = keys[position], bins[position]
    child = 2 * position + 1
    while child < stop:
        if child + 1 < stop and comes_before(
            keys[child], bins[child], keys[child + 1], bins[child + 1]
        ):
            child += 1
        if not comes_before(key, bin_, keys[child], bins[child]):
            break
        keys[position], bins[position] = keys[child], bins[child]
        position, child = child, 2 * child + 1
    keys[position], bins[position] = key, bin_


@kernel
def sort_levels(keys, bins):
    """Sort levels by their keys, in place: a heap, since kernels take no memory of their own."""
    n_levels = len(bins)
    for position in range(n_levels // 2 - 1, -1, -1):
        sink(keys, bins, position, n_levels)
    for stop in range(n_levels - 1, 0, -1):
        keys[0], keys[stop] = keys[stop], keys[0]
        bins[0], bins[stop] = bins[stop], bins[0]
        sink(keys, bins, 0, stop)


@kernel
def fill_keys(search, numbers, n_lanes, output, bins, keys):
    """Fill ``keys`` with ``G / (H + cat_smooth)`` of each level; return how much these differ.

    That is the sum of ``G^2 / (H + cat_smooth)``: the similarity of all levels apart.

    Parameters
    ----------
    search : Search
    numbers : ndarray of int64, shape (n_bins * n_lanes,)
        The feature's part of the output's histogram.
    n_lanes, output : int
    bins : ndarray of int64
    keys : ndarray of float64
        Filled.
    """
    steps, spread = steps_of(search.steps, output), 0.0
    for position in range(len(bins)):
        gradient, hessian = unpack(numbers[bins[position] * n_lanes + output % n_lanes], steps)
        keys[position] = gradient / (hessian + search.params.cat_smooth)
        spread += keys[position] * gradient
    return spread


@kernel
def sort_by_weight(search, histogram, cells, bins, keys):
    """Sort levels by ``G / (H + cat_smooth)``; `keys` is scratch.

    In a tree of several outputs, the one in which the levels differ most has the say.
    """
    n_lanes, n_outputs = histogram.shape[1] // search.matrix.cell_starts[-1], len(search.steps)
    start, stop = cells[0] * n_lanes, cells[1] * n_lanes
    chosen, most = 0, -np.inf
    for output in range(n_outputs if n_outputs > 1 else 0):
        numbers = histogram[output // n_lanes, start:stop]
        spread = fill_keys(search, numbers, n_lanes, output, bins, keys)
        if spread > most:
            chosen, most = output, spread
    fill_keys(search, histogram[chosen // n_lanes, start:stop], n_lanes, chosen, bins, keys)
    sort_levels(keys[: len(bins)], bins)


@kernel
def set_apart(sums, n_levels, total):
    """Turn sums of all levels before a place into 0, and then each level's own sum.

    Parameters
    ----------
    sums : ndarray of int64, shape (at least n_levels + 1,)
        Modified.
    n_levels : int
    total : int
        Packed sum of all of them.
    """
    sums[n_levels] = total
    for place in range(n_levels, 0, -1):
        sums[place] -= sums[place - 1]


@kernel
def order_levels(search, feature, histogram, cells, bins, scratch):
    """Put the levels of a feature in the order of the scan; give the number of its places.

    Parameters
    ----------
    search : Search
    feature : int
    histogram : ndarray of int64, shape (n_bundles, n_cells * n_lanes)
        The node's.
    cells : tuple of int
        First cell of the feature, and the one after its last level.
    bins : ndarray of int64, shape (n_occupied,)
        The occupied ones. Modified.
    scratch : SearchScratch
        ``sums[0]``, the sums before each of them, is modified; ``gains`` is scratch here.
    """
    sums = scratch.sums[0]
    if is_one_hot(search, feature):
        total = sum_cells(search.matrix, histogram, 0, cells[0], cells[1])
        set_apart(sums, len(bins), total)
        return len(bins) + 1
    sort_by_weight(search, histogram, cells, bins, scratch.gains[0])
    n_lanes = histogram.shape[1] // search.matrix.cell_starts[-1]
    list_sums(histogram[0, cells[0] * n_lanes : cells[1] * n_lanes], n_lanes, 0, bins, sums)
    return len(bins)


@kernel
def forbid_long_lists(places, most_listed, gains):
    """Set the gains of places that have too many levels on both sides to be listed to -inf.

    `places` are the first one, which has ``gains[0]``, and the one after the last of the feature.
    """
    first, n_levels = places
    for place in range(max(first, most_listed + 1), n_levels - most_listed):
        gains[place - first] = -np.inf


@kernel
def list_left_levels(split, place, one_hot, bins, total, levels):
    """Make a scan's split at `place` one that lists the levels on its left.

    The shorter list is written, so perhaps the sides change places. Levels that no row of the node
    has are then on the side of the longer one. So are missing values, if the node has none.

    Parameters
    ----------
    split : record of SPLIT_DTYPE
        With the scan's left sum and direction. Modified.
    place : int
    one_hot : bool
    bins : ndarray of int64, shape (n_levels,)
        The levels that the node has, in the order of the scan.
    total : tuple of int
        Packed sums of the node's rows, and of those whose value is missing.
    levels : ndarray of uint16
        Filled from the front.
    """
    first, stop = 0, place
    if one_hot:
        first = max(place - 1, 0)
    elif 2 * place > len(bins):
        first, stop = place, len(bins)
        split.left_sum = total[0] - split.left_sum
        split.default_left = 1 - split.default_left if total[1] != 0 else 0
    split.n_listed = stop - first
    for position in range(first, stop):
        levels[position - first] = bins[position]


@kernel
def sum_levels(matrix, histogram, output, feature, levels):
    """Give the packed sum of the listed levels of a feature, for one output."""
    n_lanes = histogram.shape[1] // matrix.cell_starts[-1]
    numbers, total = histogram[output // n_lanes], np.int64(0)
    for level in levels:
        cell = matrix.places[feature].first_cell + level
        total += numbers[cell * n_lanes + output % n_lanes]
    return total
