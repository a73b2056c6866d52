"""Splits on categories: the order of the scan, the set that goes left."""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core.frontier import sink
from sklboost.tree.core.quantization import (
    gradient_of,
    hessian_of,
    pack,
    scales_of,
    sum_cells,
    unpack,
)
from sklboost.tree.options.several_outputs import list_sums
from sklboost.tree.options.shared_columns import missing_cell_of

# A feature of numbers is chosen for the luck of its best place, too: so many categories are free.
_FREE = 2.0
# Weights are added up as whole numbers of this, so that no order of the rows changes the sum.
_WEIGHT_STEP = 2.0**-16
_GRADIENT_LIMIT = 2.0**31 - 1.0


@kernel
def sum_spread(derivatives, packed, workspace, node, output):
    """Return two sums over a node's rows, as integers: ``g^2 / h``, and the weights."""
    tree, partition = workspace.tree, workspace.partition
    lists, weights = partition.lists[tree.growth[node].depth % 2], derivatives.weight
    spread, weight = np.int64(0), np.int64(0)
    for block in range(partition.n_counted):
        row_list = lists[partition.start[block, node] : partition.stop[block, node]]
        for row in row_list:
            value = packed[output, np.uint64(row)]
            gradient = np.float64(gradient_of(value))
            # of one output of several, a target may be unknown: no gradient and no hessian
            spread += np.int64(gradient * gradient / max(hessian_of(value), 1) + 0.5)
            if len(weights) > 0:
                weight += np.int64(weights[np.uint64(row)] / _WEIGHT_STEP + 0.5)
        if len(weights) == 0:
            weight += np.int64(len(row_list) / _WEIGHT_STEP)
    return spread, weight


@kernel
def keep_spread(derivatives, scales, known, sums):
    """Keep the sums of :func:`sum_spread` as numbers; `known` is of the node and the output."""
    known.spread = sums[0] * scales[0] * scales[0] / scales[1]
    known.total_weight = sums[1] * _WEIGHT_STEP * derivatives.weight_scale


@kernel
def sum_spreads(derivatives, workspace, sums):
    """Fill `sums`, int64 of shape (n_searched, n_outputs, 2), with the sums of each searched node.

    Python calls it and :func:`keep_spreads` where the rows are on several machines.
    """
    packed = workspace.gradients.packed
    for index in range(sums.shape[0]):
        node = workspace.tree.searched[index]
        for output in range(sums.shape[1]):
            spread, weight = sum_spread(derivatives, packed, workspace, node, output)
            sums[index, output, 0], sums[index, output, 1] = spread, weight


@kernel
def keep_spreads(derivatives, workspace, sums):
    """Keep what :func:`sum_spreads` has filled, of all machines."""
    tree = workspace.tree
    for index in range(sums.shape[0]):
        for output in range(sums.shape[1]):
            known = tree.outputs[tree.searched[index], output]
            pair = sums[index, output, 0], sums[index, output, 1]
            keep_spread(derivatives, scales_of(workspace.gradients.scales, output), known, pair)


@kernel
def spread_of(search, workspace, node, output):
    """Return the sum of ``g^2 / h`` of a node's rows, and the sum of their weights.

    They are kept in ``tree.outputs`` for other features of the node. Members that search these at
    the same time may each find them: then both write the same numbers, and none reads one that is
    not there yet.
    """
    known, derivatives = workspace.tree.outputs[node, output], search.derivatives
    if known.spread < 0.0 or known.total_weight < 0.0:
        sums = sum_spread(derivatives, search.packed, workspace, node, output)
        keep_spread(derivatives, scales_of(search.scales, output), known, sums)
    return known.spread, known.total_weight


@inlined
def noise_strength(moments, of_missing, spread, total_weight, cat_smooth):
    """Return ``1 / k``.

    `moments` are sums over the categories: their number, G, H, G^2 / H and H^2; `of_missing` is
    G^2 / H of missing values, which are one more category, or -1 if there are none.
    """
    n_categories, gradient, hessian, similarities, squares = moments
    between = similarities - gradient * gradient / hessian
    within = max(spread - similarities - max(of_missing, 0.0), 0.0)
    freedom = max(total_weight - n_categories - (of_missing >= 0.0), 0.0)
    # one row more, as spread as all are: where each category has one, nothing is known of `within`
    of_all = (within + between) / max(total_weight - 1.0, 1.0)
    noise = (within + of_all) / (freedom + 1.0)
    excess = max(between - (n_categories - 1.0) * noise, 0.0)
    room = noise * (hessian - squares / hessian)
    return excess / room if excess * cat_smooth < room else 1.0 / cat_smooth


@late()
def shrink_sums(search, workspace, node, output, feature, bins, sums):
    """Replace the sums before each category of the scan by sums without noise.

    `bins` are the categories that the node has, in the order of the scan. `sums` are the packed
    sums of the output before each of them; their gradients are modified. What is known of the
    node's spread is kept in ``tree.outputs``.
    """
    cat_smooth, matrix = search.params.cat_smooth, search.matrix
    charged = 1.0 - _FREE / max(len(bins) - 1.0, 1.0)
    if cat_smooth == 0.0 or charged <= 0.0:
        return
    histogram, scales = workspace.pool.histograms, scales_of(search.scales, output)
    n_lanes = histogram.shape[2] // matrix.cell_starts[-1]
    strip = histogram[workspace.tree.growth[node].slot, output // n_lanes]
    first = matrix.places[feature].first_cell * n_lanes + output % n_lanes
    moments = sum_moments(strip[first:], n_lanes, scales, bins)
    of_missing = -1.0
    if matrix.has_missing[feature] == 1:
        missing = strip[missing_cell_of(matrix, feature) * n_lanes + output % n_lanes]
        gradient, hessian = unpack(missing, scales)
        of_missing = gradient * gradient / hessian if missing != 0 else -1.0
    if moments[2] == 0.0:
        return  # the targets of this output are unknown in all rows of the node
    spread, total_weight = spread_of(search, workspace, node, output)
    strength = noise_strength(moments, of_missing, spread, total_weight, cat_smooth)
    shrink_with(strip[first:], n_lanes, scales, (strength, charged), bins, sums)


@kernel
def sum_moments(numbers, n_lanes, scales, bins):
    """Return the number of categories and the sums of G, H, G^2 / H and H^2 over them."""
    gradients, hessians, similarities, squares = 0.0, 0.0, 0.0, 0.0
    for bin_ in bins:
        gradient, hessian = unpack(numbers[bin_ * n_lanes], scales)
        gradients += gradient
        hessians += hessian
        similarities += gradient * gradient / max(hessian, scales[1])
        squares += hessian * hessian
    return np.float64(len(bins)), gradients, hessians, similarities, squares


@kernel
def shrink_with(numbers, n_lanes, scales, prior, bins, sums):
    """Move the gradients of categories towards their mean, and add them up in `sums`.

    What is left of a category's difference from the mean is ``1 - charged / (1 + strength H)``.
    """
    strength, charged = prior
    gradients, hessians, left_gradients, left_hessians = 0.0, 0.0, 0.0, 0.0
    for bin_ in bins:
        gradient, hessian = unpack(numbers[bin_ * n_lanes], scales)
        left = 1.0 - charged / (1.0 + strength * hessian)
        gradients += gradient
        hessians += hessian
        left_gradients += left * gradient
        left_hessians += left * hessian
    # weighted so that the sum over all categories stays what it is
    mean, middle = gradients / hessians, left_gradients / left_hessians
    before, hessian_before = 0.0, np.int64(0)
    for position in range(len(bins)):
        whole = np.round(before / scales[0])
        sums[position] = pack(min(max(whole, -_GRADIENT_LIMIT), _GRADIENT_LIMIT), hessian_before)
        number = numbers[bins[position] * n_lanes]
        gradient, hessian = unpack(number, scales)
        left = 1.0 - charged / (1.0 + strength * hessian)
        before += hessian * mean + left * (gradient - hessian * middle)
        hessian_before += hessian_of(number)


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

    In a tree of several outputs, the keys of the output in which the categories differ most count.
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
    """Turn the sums of all categories before a place into sums of single ones, after a 0.

    `sums` has room for one more; `total` is the packed sum of all categories.
    """
    sums[n_categories] = total
    for place in range(n_categories, 0, -1):
        sums[place] -= sums[place - 1]


@late("int64")
def order_categories(search, feature, histogram, cells, bins, sums, keys):
    """Put the categories of a feature in the order of the scan; return its number of places.

    `histogram` is the node's, of shape (n_strips, n_cells * n_lanes); `cells` are the first cell of
    the feature and the one after its last category. `bins`, the occupied ones, and `sums`, the
    first output's before each of them, are modified; `keys` are filled.
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

    `bins` are the categories that the node has, in the order of the scan; `categories` is filled
    from the front. The sides are exchanged if the left one has more. Categories that no row of the
    node has then go to the side that is not listed, and so do missing values if the node has none
    (if `missing`, their packed sum, is 0). The left sum is no longer the one of the split.
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
