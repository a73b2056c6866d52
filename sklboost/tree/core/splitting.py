"""Split search: the best split of each node from its histogram.

A feature's bins are gone through in order, with the sums of all bins before; each bin is a place to
split. Missing values on the left are the same scan from another start value (Chen & Guestrin 2016,
Algorithm 3). A split before an empty bin has the sums of one before the next occupied bin, and is
stored as that: it lies between two values that the node really has.

Ties: only a strictly larger gain replaces, in the order of features, then bins, then missing right
before missing left, so the first of these wins on any number of threads.

Bins are scanned in blocks of eight, and most blocks are passed over: a bound on their gains, from
:mod:`~sklboost.tree.core.gain_limits`, says that no split in them is better than the best so far.
That saves time and changes no split.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.parallel import next_task
from sklboost.engine.structs import TrainingBins, TreeParams
from sklboost.tree.core import options
from sklboost.tree.core.formulas import similarity, split_gain
from sklboost.tree.core.gain_limits import (
    BLOCK_BINS,
    GainLimits,
    limit_gains,
    limits_of_node,
    may_improve,
)
from sklboost.tree.core.machines import list_own_features
from sklboost.tree.core.quantization import Derivatives, scales_of, unpack
from sklboost.tree.core.workspace import LEFT, OWN

if TYPE_CHECKING:
    from sklboost.tree.options.column_sampling import ColumnSample

COUNTER = np.int64(2)  # of the team: it hands out the tasks


class SplitInputs(NamedTuple):
    """The inputs of split search, the same for all nodes of a tree."""

    matrix: TrainingBins
    derivatives: Derivatives  # all but the weights are overwritten when they are quantised
    packed: np.ndarray  # this and the scales as in Gradients
    scales: np.ndarray
    params: TreeParams
    columns: "ColumnSample"


class SearchTask(NamedTuple):
    """One thread's search for the best split of a node among some of the features."""

    number: int
    rank: int  # of the thread
    node: int
    total: int  # packed sum of the node's rows, of the first output
    similarity: float  # of the node as a leaf
    limits: GainLimits
    # int64, shape (n_cells * n_lanes,): the node's, of the first strip of outputs
    histogram: np.ndarray
    # the thread's rows of :class:`SearchScratch`
    sums: np.ndarray
    gains: np.ndarray


@kernel
def find_splits(team, search, workspace):
    """Look for the best split of each node in ``tree.searched``; found when the team has met.

    A task is a node, or where there are few nodes a chunk of the features of one.
    """
    if search.params.symmetric == 1:
        options.find_common_split(team, search, workspace)
        return
    n_searched, n_chunks = workspace.tree.counts[0].n_searched, workspace.tree.counts[0].n_chunks
    n_tasks = n_searched * n_chunks
    task = next_task(team, COUNTER, n_tasks)
    while task < n_tasks:
        # a chunk of features of two siblings: a member's share are mostly the columns that it has
        # just added up, and subtracted from their parent's
        of_pair, before = 2 * n_chunks, task // (2 * n_chunks) * 2
        n_siblings = min(2, n_searched - before)
        chunk, index = task % of_pair // n_siblings, before + task % of_pair % n_siblings
        search_node(search, workspace, index * n_chunks + chunk, team.rank)
        task = next_task(team, COUNTER, n_tasks)


@kernel
def choose_splits(search, workspace):
    """Fill ``tree.splits`` for all nodes in ``tree.searched``: the best of what was found for each.

    A serial step, after :func:`find_splits`.
    """
    tree, found, counts = workspace.tree, workspace.scratch.candidates, workspace.tree.counts[0]
    if search.params.symmetric == 1:
        options.choose_common_split(search, workspace)
        return
    for index in range(counts.n_searched):
        node, chosen = tree.searched[index], index * counts.n_chunks
        for task in range(chosen + 1, (index + 1) * counts.n_chunks):
            if found[task].gain > found[chosen].gain:
                chosen = task
        split = found[chosen]
        tree.splits[node] = split
        tree.sums[node, LEFT, 0] = split.left_sum
        if split.n_listed > 0 or tree.sums.shape[2] > 1:
            options.complete_split(node, chosen, search.matrix, workspace)


@inlined
def search_node(search, workspace, number, rank):
    """Find the best split of one node among one chunk of the features."""
    tree, scratch, columns = workspace.tree, workspace.scratch, search.columns
    params, n_chunks = search.params, tree.counts[0].n_chunks
    node, chunk = tree.searched[number // n_chunks], number % n_chunks
    features = columns.of_tree[: columns.n_of_tree[0]]
    is_drawn = params.colsample_bylevel < 1.0 or params.colsample_bynode < 1.0
    if is_drawn or len(columns.rules.groups) > 0:
        n_features = options.list_node_features(node, rank, tree, params, columns)
        features = columns.of_node[rank, :n_features]
    if workspace.machines.size > 1:
        own = columns.of_node[rank]
        features = own[: list_own_features(workspace.machines, features, own)]
    n_features = len(features)
    task = search_task(search, workspace, number, node, rank)
    best = scratch.best[rank, 0]
    best.gain, best.n_listed = -np.inf, 0
    start, stop = n_features * chunk // n_chunks, n_features * (chunk + 1) // n_chunks
    scan_features(search, workspace, task, features[start:stop], best)
    scratch.candidates[number] = best


@inlined
def search_task(search, workspace, number, node, rank):
    """Return the task of a thread's search in one node."""
    tree, scratch = workspace.tree, workspace.scratch
    growth, total = tree.growth[node], tree.sums[node, OWN, 0]
    return SearchTask(
        number,
        rank,
        node,
        total,
        growth.similarity,
        limits_of_node(search, total, growth.similarity, scratch.blocks, rank),
        workspace.pool.histograms[growth.slot, 0],
        scratch.sums[rank],
        scratch.gains[rank],
    )


@kernel
def scan_features(search, workspace, task, features, best):
    """Replace `best`, a record of SPLIT_DTYPE, if a split of one of `features` is better."""
    matrix, is_plain_tree = search.matrix, is_plain(search)
    for feature in features:
        has_column = matrix.places[feature].is_shared == 0
        if is_plain_tree and has_column and matrix.n_categories[feature] == 0:
            scan_feature(search, task, feature, best)
        else:
            options.scan_special_feature(search, workspace, task, feature, best)


@inlined
def is_plain(search):
    """Whether a tree has one free output, and splits need only a gain and their sides' covers."""
    params = search.params
    is_free = len(search.scales) == 1 and len(search.columns.rules.signs) == 0
    is_free &= params.path_smooth == 0.0 and params.extra_trees == 0
    return is_free and params.min_child_samples == 0


@inlined
def scan_feature(search, task, feature, best):
    """Replace `best` if a split of `feature` has a larger gain."""
    matrix, missing = search.matrix, np.int64(0)
    start = matrix.places[feature].first_cell
    stop = start + matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
    if matrix.has_missing[feature] == 1:
        stop -= 1  # the last bin
        missing = task.histogram[stop]
    cells = task.histogram[start:stop]
    for block in range(limit_gains(task.limits, cells, missing)):
        if task.limits.blocks.limits[0, np.uint64(block)] > best.gain:
            scan_block(search, task, feature, cells, block, missing, best)


@inlined
def scan_block(search, task, feature, cells, block, missing, best):
    """Replace `best` if a split of `feature` within a block of its cells has a larger gain."""
    blocks, sums, first = task.limits.blocks, task.sums[:BLOCK_BINS], block * BLOCK_BINS
    before = blocks.sums[block]
    of_block = cells[first:] if first + BLOCK_BINS <= len(cells) else blocks.last
    for place in range(BLOCK_BINS):
        sums[np.uint64(place)] = before
        before += of_block[np.uint64(place)]
    if not may_improve(task.limits, sums, missing, best.gain):
        return
    for default_left in range(2 if missing != 0 else 1):
        fill_gains(search, task, sums, missing * default_left, task.gains[default_left])
    # Behind the last bin only missing values are left for the right side. The split is the
    # one of missing values left, all others right, which came before and has the same gain.
    place = choose_place(task, sums, missing, best)
    if place >= 0:
        best.feature, best.n_listed = feature, 0
        best.bin = next_occupied(cells, first + place, 1)
        best.below = next_occupied(cells, first + place - 1, -1)


@inlined
def fill_gains(search, task, sums, left_start, gains):
    """Fill `gains` for splits with ``left_start + sums`` on the left; -inf where not allowed.

    Allowed is a split whose children both have rows and a cover of at least `min_child_weight`.
    """
    scales, params = scales_of(search.scales, 0), search.params
    hessian_of_one = scales[1]  # no row has less
    least_hessian = max(params.min_child_weight, hessian_of_one)
    for position in range(len(sums)):
        left_sum = left_start + sums[np.uint64(position)]
        left_gradient, left_hessian = unpack(left_sum, scales)
        right_gradient, right_hessian = unpack(task.total - left_sum, scales)
        # an empty side would be 0 / 0; with a branch this would not become vector instructions
        left = similarity(left_gradient, max(left_hessian, hessian_of_one), params)
        right = similarity(right_gradient, max(right_hessian, hessian_of_one), params)
        is_allowed = min(left_hessian, right_hessian) >= least_hessian
        gain = split_gain(left, right, task.similarity)
        gains[np.uint64(position)] = gain if is_allowed else -np.inf


@inlined
def choose_place(task, sums, missing, best):
    """Return the position of the largest gain, -1 if `best` has as large a gain.

    If it is larger, gain, direction and left sum of `best` are set.
    """
    best_gain, best_position, best_direction = best.gain, -1, 0
    for position in range(len(sums)):
        for default_left in range(2 if missing != 0 else 1):
            gain = task.gains[np.uint64(default_left), np.uint64(position)]
            if gain > best_gain:
                best_gain, best_position, best_direction = gain, position, default_left
    if best_position >= 0:
        best.gain, best.default_left = best_gain, best_direction
        best.left_sum = missing * best_direction + sums[best_position]
    return best_position


@inlined
def next_occupied(cells, bin_, step):
    """Return the first occupied bin from one on, up (1) or down (-1); down from the first: -1."""
    while 0 <= bin_ < len(cells) and cells[bin_] == 0:
        bin_ += step
    return bin_
