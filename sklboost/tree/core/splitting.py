"""Split search: the best split of each node from its histogram.

In: the histograms of the nodes in ``tree.searched``. Out: their ``tree.splits``.

The one idea: go through a feature's occupied bins in order with the sums of all bins before; each
occupied bin is a place to split. Missing values on the left are the same scan from another start
value (Chen & Guestrin 2016, Algorithm 3). Bins that are empty in the node are passed over, so a
split lies between two values that the node really has. A feature none of whose splits can reach the
best gain so far is found out by a cheap bound, and only the others' gains are computed.

In a tree of several outputs the similarity of a node is the sum of its outputs' similarities, and
its cover the mean of their hessian sums, so that min_child_weight means what it means for one. (In
XGBoost an output whose own sum is less than that gets the leaf weight 0, and no split is refused.)

Ties: only a strictly larger gain replaces, in the order of features, then bins, then missing right
before missing left, so the first of these wins on any number of threads.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.hashing import hash_key, mix_bits
from sklboost.engine.parallel import barrier, next_task
from sklboost.engine.structs import FeatureRules, TrainingBins, TreeParams
from sklboost.tree.core.formulas import child_weight, inherited_from, similarity_at, split_gain
from sklboost.tree.core.histogram import sum_cells
from sklboost.tree.core.quantization import scales_of, unpack
from sklboost.tree.core.workspace import OWN, SearchScratch
from sklboost.tree.options.categories import (
    forbid_places,
    is_one_hot,
    list_left_categories,
    order_categories,
)
from sklboost.tree.options.column_sampling import list_node_features
from sklboost.tree.options.feature_cells import list_bins, list_others, sum_left_rows

_COUNTER = np.int64(2)
# Far more than rounding can change a sum of two similarities, relative to it.
_SLACK = 1e-9
# Less than every gain, and unlike -inf still a number when multiplied by 0.
_NO_GAIN = -1e300
# In a key: what is drawn are thresholds, not features.
_THRESHOLDS = np.int64(3)
_TWO_32 = 2.0**32


class SearchedNode(NamedTuple):
    """What split search knows of a node."""

    sums: np.ndarray  # packed, of each output
    n_rows: int
    similarity: float  # of all outputs together
    hessian: float  # likewise
    outputs: np.recarray  # as in GrowingTree: what its children inherit
    key: int  # of its random thresholds


class Search(NamedTuple):
    """What split search reads, the same for all nodes of a tree."""

    matrix: TrainingBins
    scales: np.ndarray  # as in Gradients
    params: TreeParams
    rules: FeatureRules


@inlined
def may_improve(search, total, left_start, sums, least):
    """Tell whether a split with ``left_start + sums`` on the left may have similarities of `least`.

    G^2 / (H + lambda) is the similarity of a side, and more than that if a penalty, a bound or the
    parent holds the leaf weight back. Both sides' sum is compared with `least` multiplied out:
    without divisions this takes a quarter of the time of the gains, and most features are done.
    For one output; the sum over several cannot be multiplied out so cheaply.
    """
    scales, params = scales_of(search.scales, 0), search.params
    gradient, hessian = unpack(total, scales)
    n_better = 0
    for position in range(len(sums)):
        left_gradient, left_hessian = unpack(left_start + sums[np.uint64(position)], scales)
        right_gradient, right_hessian = gradient - left_gradient, hessian - left_hessian
        left_divisor = left_hessian + params.reg_lambda
        right_divisor = right_hessian + params.reg_lambda
        sides = left_gradient**2 * right_divisor + right_gradient**2 * left_divisor
        is_allowed = min(left_hessian, right_hessian) >= params.min_child_weight
        n_better += is_allowed & (sides > least * (left_divisor * right_divisor))
    return n_better > 0


@inlined
def weigh_sides(left, total, scales, inherited, params):
    """Give similarity, leaf weight and hessian sum of the left side, then those of the right.

    They are computed even if one side is empty: with a branch the loops that call this would not
    become vector instructions. The filler then keeps 0 / 0 away.
    """
    left_gradient, left_hessian = unpack(left, scales)
    right_gradient, right_hessian = unpack(total - left, scales)
    filler = 0.0 if min(left_hessian, right_hessian) > 0.0 else 1.0
    left_divisor, right_divisor = left_hessian + filler, right_hessian + filler
    left_weight = child_weight(left_gradient, left_divisor, inherited, params)
    right_weight = child_weight(right_gradient, right_divisor, inherited, params)
    return (
        similarity_at(left_gradient, left_divisor, left_weight, params),
        left_weight,
        left_hessian,
        similarity_at(right_gradient, right_divisor, right_weight, params),
        right_weight,
        right_hessian,
    )


@kernel
def add_output(search, node, output, sign, left_start, sums, others):
    """Add to ``SearchScratch.others`` what an output after the first contributes to splits.

    Its similarities are -inf where its leaf weights are not in the order that `sign` asks for.
    """
    scales, path_smooth = scales_of(search.scales, output), search.params.path_smooth
    inherited = inherited_from(node.outputs[output], path_smooth)
    total, similarities, hessians = node.sums[output], others[0], others[1]
    for position in range(len(sums)):
        before = sums[np.uint64(position)]
        left, left_weight, left_hessian, right, right_weight, _ = weigh_sides(
            left_start + before, total, scales, inherited, search.params
        )
        is_allowed = (sign * (right_weight - left_weight) >= 0.0) | (before == 0)
        similarities[np.uint64(position)] += left + right if is_allowed else -np.inf
        hessians[np.uint64(position)] += left_hessian


@inlined
def compute_gains(search, node, constraint, sums, others, gains):
    """Fill `gains` for splits with ``left_start + sums`` on the left; -inf where not allowed.

    Allowed is a split whose children both have rows and a cover of at least `min_child_weight`, and
    leaf weights in the order that `sign` asks for.

    Parameters
    ----------
    search : Search
    node : SearchedNode
    constraint : tuple of int
        ``(sign, left_start)``: the sign of the feature; the packed sum, of the first output, that
        is on the left of all splits.
    sums : ndarray of int64
        Of the first output.
    others : ndarray of float64, shape (2, n_bins)
        The sums over the other outputs, as in SearchScratch.
    gains : ndarray of float64
        Filled.
    """
    if search.params.path_smooth == 0.0:
        # A constant: two of the four divisions of a split are then not in its loop.
        fill_gains(search, node, 0.0, constraint, sums, others, gains)
    else:
        fill_smoothed_gains(search, node, constraint, sums, others, gains)


@late()
def fill_smoothed_gains(search, node, constraint, sums, others, gains):
    """Fill `gains` where leaves lean on their parents."""
    fill_gains(search, node, search.params.path_smooth, constraint, sums, others, gains)


@inlined
def fill_gains(search, node, path_smooth, constraint, sums, others, gains):
    """Fill `gains`; arguments as those of :func:`compute_gains`."""
    (sign, left_start), scales = constraint, scales_of(search.scales, 0)
    inherited = inherited_from(node.outputs[0], path_smooth)
    total, similarities, hessians = node.sums[0], others[0], others[1]
    least_hessian = search.params.min_child_weight * len(node.sums)  # of all outputs together
    for position in range(len(sums)):
        before, others_similarity = sums[np.uint64(position)], similarities[np.uint64(position)]
        left, left_weight, left_hessian, right, right_weight, right_hessian = weigh_sides(
            left_start + before, total, scales, inherited, search.params
        )
        gain = split_gain(left + others_similarity, right, node.similarity)
        left_total = left_hessian + hessians[np.uint64(position)]
        is_allowed = min(left_hessian, right_hessian) > 0.0
        is_allowed &= min(left_total, node.hessian - left_total) >= least_hessian
        # missing values alone are neither below nor above the others
        is_allowed &= (sign * (right_weight - left_weight) >= 0.0) | (before == 0)
        is_allowed &= others_similarity > -np.inf
        gains[np.uint64(position)] = gain if is_allowed else -np.inf


@late()
def add_others(search, node, histogram, sign, missing_cell, places, scratch):
    """Fill ``scratch.others`` for splits at the places ``[first, last)`` of a feature.

    The rows of `missing_cell` go left, too, unless it is -1.
    """
    first, last = places
    scratch.others[:, : last - first] = 0.0
    for output in range(1, len(scratch.sums)):
        left_start = np.int64(0)
        if missing_cell >= 0:
            left_start = sum_cells(search.matrix, histogram, output, missing_cell, missing_cell + 1)
        sums = scratch.sums[output, first:last]
        add_output(search, node, output, sign, left_start, sums, scratch.others)


@inlined
def draw_place(feature, node, first, stop):
    """Draw one of the places ``[first, stop)`` at which a feature may be split in a node."""
    bits = mix_bits(np.uint64(feature) ^ node.key)
    return first + np.int64(np.float64(bits) / _TWO_32 * (stop - first))


@kernel
def describe_split(search, totals, feature, place, bins, scratch, best):
    """Fill in what `best`, which has its gain, left sum and direction, is besides.

    Parameters
    ----------
    search : Search
    totals : tuple of int
        Packed sums of the node's rows, and of those whose value is missing; of the first output.
    feature : int
    place : int
        Among the places of the scan.
    bins : ndarray of int64, shape (n_occupied,)
        In the order of the scan.
    scratch : SearchScratch
    best : record of SPLIT_DTYPE
        Modified.
    """
    best.feature = feature
    best.n_listed = 0
    if search.matrix.n_categories[feature] > 0:
        one_hot = is_one_hot(search, feature)
        list_left_categories(best, place, one_hot, bins, totals, scratch)
        return
    best.bin = bins[place]
    best.below = bins[place - 1] if place > 0 else -1


@inlined
def scan_feature(search, node, histogram, feature, scratch, best):
    """Replace `best` if a split of `feature` has a larger gain.

    Parameters
    ----------
    search : Search
    node : SearchedNode
    histogram : ndarray of int64, shape (n_strips, n_cells * n_lanes)
        The node's.
    feature : int
    scratch : SearchScratch
        One thread's rows of it.
    best : record of SPLIT_DTYPE
        Modified in place; if it becomes one on categories, ``scratch.levels[0]``, too.
    """
    matrix = search.matrix
    place, n_outputs, missing = matrix.places[feature], len(scratch.sums), np.int64(0)
    n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    start, stop = place.first_cell, place.first_cell + n_bins - place.is_shared
    if matrix.has_missing[feature] == 1:
        stop -= 1
        missing = histogram[0, stop * histogram.shape[1] // matrix.cell_starts[-1]]
    n_occupied = list_bins(matrix, histogram, node, feature, (start, stop), scratch)
    if n_occupied < 2 and missing == 0:
        return
    bins, first_sums, gains = scratch.bins[:n_occupied], scratch.sums[0], scratch.gains
    first, last = np.int64(0), np.int64(n_occupied)  # the first place, one after the last
    is_ordered = False
    if matrix.n_categories[feature] > 0:
        is_ordered = not is_one_hot(search, feature)
        last = order_categories(search, feature, histogram, (start, stop), bins, scratch)
    if search.params.extra_trees == 1:
        first = draw_place(feature, node, np.int64(missing == 0), last)
        last = min(first + 1, last)
    sums = first_sums[first:last]
    # rounding must not hide a split that is better by the last bit
    least = max(best.gain, _NO_GAIN) + node.similarity
    least -= _SLACK * abs(least)
    n_directions = 2 if missing != 0 else 1
    # with several outputs the bound would take the very divisions that it saves
    may_be_better = n_outputs > 1
    for default_left in range(n_directions if n_outputs == 1 else 0):
        left_start = missing * default_left
        may_be_better |= may_improve(search, node.sums[0], left_start, sums, least)
    if not may_be_better:
        return
    if n_outputs > 1:
        list_others(search, node, histogram, feature, (start, stop), bins, scratch)
    sign = search.rules.signs[feature]
    for default_left in range(n_directions):
        if n_outputs > 1:
            missing_cell = stop if default_left == 1 else np.int64(-1)
            add_others(search, node, histogram, sign, missing_cell, (first, last), scratch)
        constraint, own_gains = (sign, missing * default_left), gains[default_left]
        compute_gains(search, node, constraint, sums, scratch.others, own_gains)
        if is_ordered:
            forbid_places(search, (first, n_occupied), scratch.keys, own_gains)
    best_gain, best_position, best_direction = best.gain, -1, 0
    for position in range(last - first):
        for default_left in range(n_directions):
            gain = gains[np.uint64(default_left), np.uint64(position)]
            if gain > best_gain:
                best_gain, best_position, best_direction = gain, position, default_left
    if best_position >= 0:
        best.gain = best_gain
        best.left_sum = missing * best_direction + sums[best_position]
        best.default_left = best_direction
        totals = (node.sums[0], missing)
        describe_split(search, totals, feature, first + best_position, bins, scratch, best)


@inlined
def describe_node(node, params, key, tree):
    """Give the :class:`SearchedNode` of a node whose sums are known; `key` is the tree's."""
    outputs = tree.outputs[node]
    similarity, hessian = 0.0, 0.0
    for output in range(len(outputs)):
        own = outputs[output]
        similarity += similarity_at(own.gradient, own.hessian, own.weight, params)
        hessian += own.hessian
    sums, n_rows = tree.sums[node, OWN], tree.growth[node].n_rows
    own_key = hash_key(key, _THRESHOLDS, node)
    return SearchedNode(sums, n_rows, similarity, hessian, outputs, own_key)


@inlined
def search_task(search, workspace, columns, task, rank):
    """Find the best split of one node among one chunk of the features."""
    tree, scratch = workspace.tree, workspace.scratch
    n_chunks = tree.counts[0].n_chunks
    node, chunk = tree.searched[task // n_chunks], task % n_chunks
    own = SearchScratch(
        scratch.candidates,
        scratch.best[rank],
        scratch.cells[rank],
        scratch.sums[rank],
        scratch.bins[rank],
        scratch.gains[rank],
        scratch.others[rank],
        scratch.keys[rank],
        scratch.categories[len(scratch.candidates) + rank :],
    )
    best = own.best[0]
    best.gain, best.n_listed = -np.inf, 0
    growth = tree.growth[node]
    histogram = workspace.pool.histograms[growth.slot]
    searched = describe_node(node, search.params, columns.key[0], tree)
    features = columns.of_node[rank]
    n_features = list_node_features(node, rank, tree, search.params, columns)
    chosen = features[n_features * chunk // n_chunks : n_features * (chunk + 1) // n_chunks]
    scan_features(search, searched, histogram, chosen, own, best)
    scratch.candidates[task] = best
    for index in range(best.n_listed):
        scratch.categories[task, index] = own.categories[0, index]


@kernel
def scan_features(search, node, histogram, features, scratch, best):
    """Replace `best` if a split of one of `features` has a larger gain."""
    for feature in features:
        scan_feature(search, node, histogram, feature, scratch, best)


@kernel
def find_splits(team, search, workspace, columns):
    """Fill ``tree.splits`` for all nodes in ``tree.searched``; ends when member 0 may read them.

    A task is a node, or where there are few nodes a chunk of the features of one.
    """
    tree, candidates = workspace.tree, workspace.scratch.candidates
    counts = tree.counts[0]
    n_tasks = counts.n_searched * counts.n_chunks
    task = next_task(team, _COUNTER)
    while task < n_tasks:
        search_task(search, workspace, columns, task, team.rank)
        task = next_task(team, _COUNTER)
    barrier(team)
    if team.rank == 0:
        for place in range(counts.n_searched):
            node = tree.searched[place]
            chosen = place * counts.n_chunks
            for task in range(chosen + 1, chosen + counts.n_chunks):
                if candidates[task].gain > candidates[chosen].gain:
                    chosen = task
            tree.splits[node] = candidates[chosen]
            for index in range(tree.splits[node].n_listed):
                tree.categories[node, index] = workspace.scratch.categories[chosen, index]
            sum_left_rows(node, search.matrix, workspace)


@inlined
def can_be_split(node, params, tree):
    """Tell whether a node's rows and cover leave room for two children."""
    return tree.growth[node].n_rows >= 2 and tree.nodes[node].cover >= 2.0 * params.min_child_weight
