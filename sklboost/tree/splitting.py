"""Split search: the best split of each node from its histogram.

In: the histograms of the nodes in ``tree.searched``. Out: their ``tree.splits``.

The one idea: go through a feature's occupied bins in order with the sums of all bins before; each
occupied bin is a place to split. Missing values on the left are the same scan from another start
value (Chen & Guestrin 2016, Algorithm 3). Bins that are empty in the node are passed over, so a
split lies between two values that the node really has.

Ties: only a strictly larger gain replaces, in the order of features, then bins, then missing right
before missing left, so the first of these wins on any number of threads.
"""

from typing import NamedTuple

import numpy as np

from sklboost.compiling import kernel
from sklboost.parallel import barrier, next_task
from sklboost.structs import TrainingBins, TreeParams
from sklboost.tree.formulas import similarity, split_gain
from sklboost.tree.quantization import hessian_of, unpack
from sklboost.tree.workspace import SearchScratch

_COUNTER = np.int64(2)


class Search(NamedTuple):
    """What split search reads, the same for all nodes of a tree."""

    matrix: TrainingBins
    steps: tuple[float, float]  # of quantised gradient and hessian
    params: TreeParams


@kernel
def list_occupied(histogram, start, stop, bins, sums):
    """List the occupied bins of a feature and the sum of all before each; return how many.

    Parameters
    ----------
    histogram : ndarray of int64, shape (n_cells,)
    start, stop : int
        The cells of the feature's values (the missing bin left out).
    bins : ndarray of int64
        Filled with bin numbers, counted from `start`.
    sums : ndarray of int64
        Filled with packed sums.
    """
    n_occupied = 0
    before = np.int64(0)
    for cell in range(start, stop):
        content = histogram[np.uint64(cell)]
        # written always, kept if the bin is occupied: no branch to mispredict
        bins[np.uint64(n_occupied)] = cell - start
        sums[np.uint64(n_occupied)] = before
        before += content
        n_occupied += content != 0
    return n_occupied


@kernel
def compute_gains(search, total, left_start, sums, gains):
    """Fill `gains` for splits with ``left_start + sums`` on the left; -inf where not allowed.

    Allowed is a split whose children both have a positive hessian sum, at least
    `min_child_weight`.
    """
    steps, params = search.steps, search.params
    gradient, hessian = unpack(total, steps)
    parent = similarity(gradient, hessian, params)
    for position in range(len(sums)):
        left = left_start + sums[np.uint64(position)]
        left_gradient, left_hessian = unpack(left, steps)
        right_gradient, right_hessian = unpack(total - left, steps)
        smaller = min(left_hessian, right_hessian)
        is_allowed = (smaller > 0.0) & (smaller >= params.min_child_weight)
        # The gain is computed even where it is not allowed: with a branch this would not become
        # vector instructions. The filler then keeps 0 / 0 away.
        filler = 0.0 if smaller > 0.0 else 1.0
        gain = split_gain(
            similarity(left_gradient, left_hessian + filler, params),
            similarity(right_gradient, right_hessian + filler, params),
            parent,
        )
        gains[np.uint64(position)] = gain if is_allowed else -np.inf


@kernel
def scan_feature(search, histogram, total, feature, scratch, best):
    """Replace `best` if a split of `feature` has a larger gain.

    Parameters
    ----------
    search : Search
    histogram : ndarray of int64, shape (n_cells,)
        The node's.
    total : int
        The node's packed sum.
    feature : int
    scratch : SearchScratch
        One thread's rows of it.
    best : record of SPLIT_DTYPE
        Modified in place.
    """
    matrix = search.matrix
    start, stop = matrix.cell_starts[feature], matrix.cell_starts[feature + 1]
    missing = np.int64(0)
    if matrix.has_missing[feature] == 1:
        stop -= 1
        missing = histogram[stop]
    n_occupied = list_occupied(histogram, start, stop, scratch.bins, scratch.sums)
    n_directions = 2 if missing != 0 else 1
    for default_left in range(n_directions):
        compute_gains(
            search,
            total,
            missing * default_left,
            scratch.sums[:n_occupied],
            scratch.gains[default_left],
        )
    gains = scratch.gains
    best_gain, best_position, best_direction = best.gain, -1, 0
    for position in range(n_occupied):
        for default_left in range(n_directions):
            gain = gains[np.uint64(default_left), np.uint64(position)]
            if gain > best_gain:
                best_gain, best_position, best_direction = gain, position, default_left
    if best_position >= 0:
        best.gain = best_gain
        best.left_sum = missing * best_direction + scratch.sums[best_position]
        best.feature = feature
        best.bin = scratch.bins[best_position]
        best.below = scratch.bins[best_position - 1] if best_position > 0 else -1
        best.default_left = best_direction


@kernel
def search_task(search, workspace, task, rank):
    """Find the best split of one node among one chunk of the features."""
    tree, scratch = workspace.tree, workspace.scratch
    n_chunks = tree.counts[0].n_chunks
    n_features = search.matrix.rows.shape[1]
    node, chunk = tree.searched[task // n_chunks], task % n_chunks
    own = SearchScratch(
        scratch.candidates, scratch.sums[rank], scratch.bins[rank], scratch.gains[rank]
    )
    best = scratch.candidates[task]
    best.gain = -np.inf
    histogram = workspace.pool.histograms[tree.growth[node].slot]
    total = tree.growth[node].packed_sum
    for feature in range(n_features * chunk // n_chunks, n_features * (chunk + 1) // n_chunks):
        scan_feature(search, histogram, total, feature, own, best)


@kernel
def find_splits(team, search, workspace):
    """Fill ``tree.splits`` for all nodes in ``tree.searched``; ends when all members may read them.

    A task is a node, or where there are few nodes a chunk of the features of one.
    """
    tree, candidates = workspace.tree, workspace.scratch.candidates
    counts = tree.counts[0]
    n_tasks = counts.n_searched * counts.n_chunks
    task = next_task(team, _COUNTER)
    while task < n_tasks:
        search_task(search, workspace, task, team.rank)
        task = next_task(team, _COUNTER)
    barrier(team)
    if team.rank == 0:
        for index in range(counts.n_searched):
            node = tree.searched[index]
            tree.splits[node] = candidates[index * counts.n_chunks]
            for chunk in range(1, counts.n_chunks):
                candidate = candidates[index * counts.n_chunks + chunk]
                if candidate.gain > tree.splits[node].gain:
                    tree.splits[node] = candidate
    barrier(team)


@kernel
def can_be_split(packed_sum, n_rows, steps, params):
    """Tell whether a node's cover leaves room for two children."""
    _, cover = unpack(packed_sum, steps)
    return n_rows >= 2 and hessian_of(packed_sum) >= 2 and cover >= 2.0 * params.min_child_weight
