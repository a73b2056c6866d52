"""Symmetric (oblivious) trees: all nodes of a depth are split by one feature at one threshold.

The split with the largest sum of gains over the nodes of the depth is chosen (Kohavi & Li 1995;
Prokhorenkova et al. 2018). A feature is gone through for all of these nodes: each adds its gains,
bin by bin, for missing values right and left, to the sums of the feature. One thread does that, in
the order of the nodes, so the sums have the same bits on any number of threads. Blocks of bins that
cannot hold the best split are passed over, as in the search of one node; the threads meet once to
tell each other the best that each has found by then.

A node in which a split is not allowed (a side would be empty, or smaller than a parameter wants) or
gains too little adds nothing, and is not split by it. It waits for the splits of later depths. So
every split of a tree is one that another policy could have made, and finished trees are trees like
others.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.parallel import barrier
from sklboost.tree.core import options
from sklboost.tree.core.frontier import is_worth_making, split_node
from sklboost.tree.core.gain_limits import BLOCK_BINS, limit_gains, sum_blocks
from sklboost.tree.core.machines import list_own_features
from sklboost.tree.core.splitting import fill_gains, is_plain, search_task
from sklboost.tree.core.workspace import FEATURES_AT_ONCE, LEFT
from sklboost.tree.options.scanning import (
    cells_of,
    draw_place,
    fill_special_gains,
    list_other_sums,
    n_numbers,
)

_ONE = np.uint64(1)
# A feature takes as long as so many blocks of its bins, and then each of these takes some time.
_BLOCKS_OF_FEATURE = np.int64(4)


@late()
def find_common_split(team, search, workspace):
    """Look for the split that is best for all nodes in ``tree.searched`` together.

    Each member of the team has its share of the features.
    """
    tree, columns, params = workspace.tree, search.columns, search.params
    if tree.counts[0].n_searched == 0:
        return
    features = columns.of_tree[: columns.n_of_tree[0]]
    if params.colsample_bylevel < 1.0 or params.colsample_bynode < 1.0:
        n_features = options.list_node_features(tree.searched[0], team.rank, tree, params, columns)
        features = columns.of_node[team.rank, :n_features]
    if workspace.machines.size > 1:
        own = columns.of_node[team.rank]
        features = own[: list_own_features(workspace.machines, features, own)]
    best = workspace.scratch.best[team.rank, 0]
    best.gain, best.n_listed = -np.inf, 0
    start, stop = share_of_features(team, search.matrix, features)
    if is_plain(search):
        scan_blocks_for_all(team, search, workspace, features[:stop], start, best)
    else:
        for feature in features[start:stop]:
            scan_for_all(search, workspace, team.rank, feature, best)
    workspace.scratch.candidates[team.rank] = best


@inlined
def share_of_features(team, matrix, features):
    """Return the range of a member's features, which take it about as long as others theirs."""
    total, before, start, stop = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for feature in features:
        total += n_blocks(matrix, feature) + _BLOCKS_OF_FEATURE
    for feature in features:
        before += n_blocks(matrix, feature) + _BLOCKS_OF_FEATURE
        start += before * team.size <= team.rank * total
        stop += before * team.size <= (team.rank + 1) * total
    return start, stop


@late()
def choose_common_split(search, workspace):
    """Fill ``tree.splits`` for all nodes in ``tree.searched``, after :func:`find_common_split`.

    They have one split in common, and each its own gain from it: -inf where it is not allowed.
    """
    candidates, counts, chosen = workspace.scratch.candidates, workspace.tree.counts[0], 0
    if counts.n_searched > 0:
        for task in range(1, counts.n_chunks):
            if candidates[task].gain > candidates[chosen].gain:
                chosen = task
        share_split(search, workspace, candidates[chosen])


@kernel
def scan_blocks_for_all(team, search, workspace, features, start, best):
    """Replace `best` if a split of a member's features, from `start` on, has a larger sum of gains.

    As in the search of one node, blocks of bins are passed over whose limits, of all nodes
    together, say that no split in them is better than the best known. To know a good one early, the
    splits before the first bin of each block are computed first, by all members.
    """
    matrix, special = search.matrix, workspace.special
    blocks, known = special.common_blocks[team.rank], special.common_known
    n_limits, least = len(special.common_limits) // len(matrix.places), -np.inf
    for first in range(start, len(features), FEATURES_AT_ONCE):
        some = features[first : first + FEATURES_AT_ONCE]
        least = max(least, limit_blocks(search, workspace, team.rank, some, first * n_limits))
    known[team.rank, 0] = least
    barrier(team)
    for rank in range(team.size):
        least = max(least, known[rank, 0])
    for first in range(start, len(features), FEATURES_AT_ONCE):
        some = features[first : first + FEATURES_AT_ONCE]
        n_listed = list_blocks(
            matrix, special, team.rank, some, first * n_limits, max(least, best.gain)
        )
        search_blocks(search, workspace, team.rank, blocks[:n_listed], best)


@kernel
def limit_blocks(search, workspace, rank, features, start):
    """Find limits of blocks, and return the best gain of a split before the first bin of one.

    All are sums over the nodes, of these features. The blocks have the places from `start` on.
    """
    tree, matrix, special = workspace.tree, search.matrix, workspace.special
    n_places, least_gain = np.int64(0), search.params.grow_gain
    limits = special.common_limits[start:]
    for feature in features:
        first = n_places
        n_places += n_blocks(matrix, feature)
        # of one block: to find its limit takes longer than to search it
        limits[first:n_places] = np.inf if n_places - first == 1 else 0.0
    sums = special.common_gains[rank, :n_places]
    sums[:] = -np.inf
    for index in range(tree.counts[0].n_searched):
        task = search_task(search, workspace, rank, tree.searched[index], rank)
        blocks, place = task.limits.blocks, np.uint64(0)
        for feature in features:
            if n_blocks(matrix, feature) == 1:
                task.sums[place] = 0
                place += _ONE
                continue
            cells, missing = cells_of(search, workspace, task, feature)
            for block in range(limit_gains(task.limits, cells, missing)):
                limit = blocks.limits[0, np.uint64(block)]
                # a node that gains too little, or cannot be split there, adds nothing
                limits[place] += max(limit, 0.0) if limit >= least_gain else 0.0
                task.sums[place] = blocks.sums[np.uint64(block)]
                place += _ONE
        fill_gains(search, task, task.sums[:n_places], np.int64(0), task.gains[0])
        add_gains(task.gains[0], least_gain, sums)
    # no limit is below a gain, so no sum of limits is below the sum of gains, rounded likewise
    least = -np.inf
    for known in sums:
        least = max(least, known)
    return least


@kernel
def search_blocks(search, workspace, rank, listed, best):
    """Replace `best` if a split in one of the listed blocks has a larger sum of gains."""
    matrix, tree, n_places = search.matrix, workspace.tree, np.int64(0)
    sums = workspace.special.common_gains[rank]
    for index in range(tree.counts[0].n_searched):
        task = search_task(search, workspace, rank, tree.searched[index], rank)
        n_places = list_places(search, workspace, task, listed)
        # one long loop for the blocks of all features
        fill_gains(search, task, task.sums[:n_places], np.int64(0), task.gains[0])
        if index == 0:
            sums[:n_places] = -np.inf
        add_gains(task.gains[0], search.params.grow_gain, sums[:n_places])
    place = np.uint64(0)
    for index in range(len(listed)):
        feature, block = listed[index, 0], listed[index, 1]
        for bin_ in range(block * BLOCK_BINS, (block + 1) * BLOCK_BINS):
            for default_left in range(1 + matrix.has_missing[feature]):
                if sums[place] > best.gain:
                    best.gain, best.default_left = sums[place], default_left
                    best.feature, best.bin = feature, bin_
                place += _ONE


@inlined
def list_blocks(matrix, special, rank, features, start, least):
    """List feature and number of each block whose limit is `least` or more; return how many.

    The blocks of the features have the places from `start` on.
    """
    blocks, n_listed, place = special.common_blocks[rank], np.int64(0), np.uint64(start)
    for feature in features:
        for block in range(n_blocks(matrix, feature)):
            blocks[n_listed, 0], blocks[n_listed, 1] = feature, block
            n_listed += special.common_limits[place] >= least
            place += _ONE
    return n_listed


@kernel
def list_places(search, workspace, task, listed):
    """Fill ``task.sums`` with the left sums of splits in the listed blocks; return how many.

    Before each bin, with missing values on the right and, if the feature has any, on the left.
    """
    blocks, sums, place, step = task.limits.blocks, task.sums, np.uint64(0), _ONE
    last, of_feature, missing = np.int64(-1), task.histogram, np.int64(0)
    for index in range(len(listed)):
        feature, block = listed[np.uint64(index), 0], listed[np.uint64(index), 1]
        if feature != last:
            last, step = feature, np.uint64(1 + search.matrix.has_missing[feature])
            of_feature, missing = cells_of(search, workspace, task, feature)
            sum_blocks(of_feature, blocks)
        before, first = blocks.sums[np.uint64(block)], np.uint64(block * BLOCK_BINS)
        is_cut = first + np.uint64(BLOCK_BINS) > np.uint64(len(of_feature))
        cells, first = (blocks.last, np.uint64(0)) if is_cut else (of_feature, first)
        for position in range(np.uint64(BLOCK_BINS)):
            sums[place] = before
            if step > _ONE:
                sums[place + _ONE] = before + missing
            place += step
            before += cells[first + position]
    return np.int64(place)


@inlined
def n_blocks(matrix, feature):
    """Return the number of blocks of a feature's bins."""
    return (n_numbers(matrix, feature) + BLOCK_BINS - 1) // BLOCK_BINS


@kernel
def scan_for_all(search, workspace, rank, feature, best):
    """Replace `best` if a split of `feature` has a larger sum of gains over the searched nodes."""
    matrix, tree, params = search.matrix, workspace.tree, search.params
    has_missing = matrix.has_missing[feature]
    first, stop = np.int64(0), np.int64(n_numbers(matrix, feature))
    if params.extra_trees == 1:
        first = draw_place(search, tree.counts[0].n_common, feature, 1 - has_missing, stop)
        stop = min(first + 1, stop)
    sums, n_places = workspace.special.common_gains[rank], stop - first
    sums[: 2 * n_places] = -np.inf
    for index in range(tree.counts[0].n_searched):
        task = search_task(search, workspace, rank, tree.searched[index], rank)
        missing = fill_node_gains(search, workspace, task, feature, (first, stop))
        for default_left in range(1 + has_missing):
            # without missing values the direction changes nothing
            of_node = task.gains[default_left if missing != 0 else 0]
            of_all = sums[default_left * n_places : (default_left + 1) * n_places]
            add_gains(of_node, params.grow_gain, of_all)
    for position in range(n_places):
        for default_left in range(1 + has_missing):
            if sums[default_left * n_places + position] > best.gain:
                best.gain = sums[default_left * n_places + position]
                best.feature, best.bin, best.default_left = feature, first + position, default_left


@kernel
def fill_node_gains(search, workspace, task, feature, places):
    """Fill ``task.gains`` for splits of a node before the bins ``[first, stop)`` of a feature.

    Also ``task.sums``, with the packed sum before each of all its bins, and behind them. Return the
    packed sum of the node's missing values: if it is 0, gains with these on the left are not
    filled.
    """
    n_bins, at = n_numbers(search.matrix, feature), search.matrix.places[feature]
    start, stop = at.first_cell, at.first_cell + n_bins - at.is_shared
    cells, missing = cells_of(search, workspace, task, feature)
    before, sums = np.int64(0), task.sums
    for bin_ in range(np.uint64(n_bins)):
        sums[bin_] = before
        before += cells[bin_]
    sums[n_bins] = before
    if workspace.tree.sums.shape[2] > 1:
        bins = workspace.special.bins[task.rank, :n_bins]
        for bin_ in range(n_bins):
            bins[bin_] = bin_
        list_other_sums(search, workspace, task, feature, (start, stop), bins)
    for default_left in range(2 if missing != 0 else 1):
        missing_cell = stop if default_left == 1 else np.int64(-1)
        fill_special_gains(search, workspace, task, feature, places, missing_cell)
    signs = search.columns.rules.signs
    if missing != 0 and len(signs) > 0 and signs[feature] != 0:
        # missing values alone have no order, but a threshold that is a number gives them one
        for place in range(max(places[0], 1), places[1]):
            if sums[place] == 0:
                task.gains[1, place - places[0]] = -np.inf
    return missing


@inlined
def add_gains(gains, least_gain, sums):
    """Add the gains of a node that are large enough to `sums`, which begin as -inf."""
    for position in range(len(sums)):
        index = np.uint64(position)
        gain = gains[index] if gains[index] >= least_gain else -np.inf
        # one of the two may be -inf; without a branch this becomes vector instructions
        both = gain + sums[index]
        sums[index] = both if both > -np.inf else max(gain, sums[index])


@kernel
def share_split(search, workspace, best):
    """Give every searched node the split that is best for all, with its own gain and left sum.

    It lies between two values that the nodes have, the nearest ones on both sides of the place.
    """
    matrix, tree, place = search.matrix, workspace.tree, best.bin
    n_searched = tree.counts[0].n_searched
    for index in range(n_searched):
        tree.splits[tree.searched[index]].gain = -np.inf
    if best.gain == -np.inf:
        return
    below, above = np.int64(-1), np.int64(n_numbers(matrix, best.feature) - 1)
    for index in range(n_searched):
        node = tree.searched[index]
        task = search_task(search, workspace, np.int64(0), node, np.int64(0))
        missing = fill_node_gains(search, workspace, task, best.feature, (place, place + 1))
        gains = task.gains[best.default_left if missing != 0 else 0]
        tree.splits[node].gain = gains[0]
        tree.sums[node, LEFT, 0] = task.sums[place] + missing * best.default_left
        last = place - 1
        while last > below and task.sums[last] == task.sums[last + 1]:
            last -= 1
        below, first = max(below, last), place
        while first < above and task.sums[first] == task.sums[first + 1]:
            first += 1
        above = min(above, first)
    for index in range(n_searched):
        node = tree.searched[index]
        split = tree.splits[node]
        split.feature, split.n_listed, split.default_left = best.feature, 0, best.default_left
        split.bin, split.below, split.left_sum = above, below, tree.sums[node, LEFT, 0]
        if tree.sums.shape[2] > 1:
            options.complete_split(node, np.int64(0), matrix, workspace)


@late()
def split_depth(search, workspace):
    """Split the searched nodes that gain from their common split; these are the frontier.

    The others stay in ``tree.searched`` with their histograms, before the children that follow.
    """
    tree, params, counts = workspace.tree, search.params, workspace.tree.counts[0]
    n_searched, n_waiting = counts.n_searched, np.int64(0)
    counts.n_frontier = 0
    counts.n_common += 1
    for index in range(n_searched):
        node = tree.searched[index]
        if not is_worth_making(tree.splits[node].gain, params):
            tree.searched[n_waiting] = node
            n_waiting += 1
            continue
        split_node(node, search, tree)
        if counts.n_common < params.max_depth:  # else its children are leaves for good
            tree.frontier[counts.n_frontier] = node
            counts.n_frontier += 1
    counts.n_searched = n_waiting
