"""Split search: the best split of each node from its histogram.

In: the histograms of the nodes in ``tree.searched``. Out: their ``tree.splits``.

The one idea: go through a feature's occupied bins in order with the sums of all bins before; each
occupied bin is a place to split. Missing values on the left are the same scan from another start
value (Chen & Guestrin 2016, Algorithm 3). Bins that are empty in the node are passed over, so a
split lies between two values that the node really has. A feature none of whose splits can reach the
best gain so far is found out by a cheap bound, and only the others' gains are computed.

Ties: only a strictly larger gain replaces, in the order of features, then bins, then missing right
before missing left, so the first of these wins on any number of threads.
"""

from typing import NamedTuple

import numpy as np

from sklboost.compiling import inlined, kernel
from sklboost.hashing import hash_key, mix_bits
from sklboost.instructions import trailing_zeros
from sklboost.parallel import barrier, next_task
from sklboost.structs import FeatureRules, TrainingBins, TreeParams
from sklboost.tree.column_sampling import list_node_features
from sklboost.tree.formulas import Inherited, child_weight, similarity_at, split_gain
from sklboost.tree.quantization import hessian_of, unpack
from sklboost.tree.workspace import SearchScratch

_COUNTER = np.int64(2)


# Listing few occupied bins pays where a node has less than a quarter as many rows as bins.
_FEW = 4
_BIT = np.uint64(1) << np.arange(64, dtype=np.uint64)
# Far more than rounding can change a sum of two similarities, relative to it.
_SLACK = 1e-9
# Less than every gain, and unlike -inf still a number when multiplied by 0.
_NO_GAIN = -1e300
# In a key: what is drawn are thresholds, not features.
_THRESHOLDS = np.int64(3)
_TWO_32 = 2.0**32


class SearchedNode(NamedTuple):
    """What split search knows of a node."""

    packed_sum: int
    n_rows: int
    similarity: float
    inherited: Inherited  # by its children
    key: int  # of its random thresholds


class Search(NamedTuple):
    """What split search reads, the same for all nodes of a tree."""

    matrix: TrainingBins
    steps: tuple[float, float]  # of quantised gradient and hessian
    params: TreeParams
    rules: FeatureRules


@kernel
def list_many(cells, bins, sums):
    """List the occupied bins of a feature and the sum of all before each; return how many.

    Parameters
    ----------
    cells : ndarray of int64, shape (n_bins,)
        The feature's part of a histogram, the missing bin left out.
    bins : ndarray of int64
        Filled with bin numbers.
    sums : ndarray of int64
        Filled with packed sums.
    """
    n_occupied = np.uint64(0)
    before = np.int64(0)
    for bin_ in range(len(cells)):
        content = cells[np.uint64(bin_)]
        # written always, kept if the bin is occupied: no branch to mispredict
        bins[n_occupied] = bin_
        sums[n_occupied] = before
        before += content
        n_occupied += np.uint64(content != 0)
    return np.int64(n_occupied)


@kernel
def occupied_bits(cells):
    """Give 64 bits, of which bit i is 1 if cell i is occupied."""
    bits = np.uint64(0)
    for bin_ in range(len(cells)):
        bits |= _BIT[bin_] if cells[bin_] != 0 else np.uint64(0)
    return bits


@kernel
def list_few(cells, bins, sums):
    """Do what :func:`list_many` does, faster where few bins are occupied.

    Eight cells are compared at once, then only the occupied ones are visited.
    """
    n_occupied = np.uint64(0)
    before = np.int64(0)
    for first in range(0, len(cells), 64):
        bits = occupied_bits(cells[first : min(first + 64, len(cells))])
        while bits != np.uint64(0):
            bin_ = np.uint64(first) + trailing_zeros(bits)
            bins[n_occupied] = np.int64(bin_)
            sums[n_occupied] = before
            before += cells[bin_]
            n_occupied += np.uint64(1)
            bits &= bits - np.uint64(1)
    return np.int64(n_occupied)


@kernel
def may_improve(search, total, left_start, sums, least):
    """Tell whether a split with ``left_start + sums`` on the left may have similarities of `least`.

    G^2 / (H + lambda) is the similarity of a side, and more than that if a penalty, a bound or the
    parent holds the leaf weight back. Both sides' sum is compared with `least` multiplied out:
    without divisions this takes a quarter of the time of the gains, and most features are done.
    """
    steps, params = search.steps, search.params
    gradient, hessian = unpack(total, steps)
    n_better = 0
    for position in range(len(sums)):
        left_gradient, left_hessian = unpack(left_start + sums[np.uint64(position)], steps)
        right_gradient, right_hessian = gradient - left_gradient, hessian - left_hessian
        left_divisor = left_hessian + params.reg_lambda
        right_divisor = right_hessian + params.reg_lambda
        sides = left_gradient**2 * right_divisor + right_gradient**2 * left_divisor
        is_allowed = min(left_hessian, right_hessian) >= params.min_child_weight
        n_better += is_allowed & (sides > least * (left_divisor * right_divisor))
    return n_better > 0


@kernel
def compute_gains(search, node, sign, left_start, sums, gains):
    """Fill `gains` for splits with ``left_start + sums`` on the left; -inf where not allowed.

    Allowed is a split whose children both have a positive hessian sum, at least `min_child_weight`,
    and whose leaf weights are in the order that `sign` asks for.
    """
    steps, params = search.steps, search.params
    for position in range(len(sums)):
        before = sums[np.uint64(position)]
        left = left_start + before
        left_gradient, left_hessian = unpack(left, steps)
        right_gradient, right_hessian = unpack(node.packed_sum - left, steps)
        smaller = min(left_hessian, right_hessian)
        is_allowed = (smaller > 0.0) & (smaller >= params.min_child_weight)
        # The gain is computed even where it is not allowed: with a branch this would not become
        # vector instructions. The filler then keeps 0 / 0 away.
        filler = 0.0 if smaller > 0.0 else 1.0
        left_hessian += filler
        right_hessian += filler
        left_weight = child_weight(left_gradient, left_hessian, node.inherited, params)
        right_weight = child_weight(right_gradient, right_hessian, node.inherited, params)
        gain = split_gain(
            similarity_at(left_gradient, left_hessian, left_weight, params),
            similarity_at(right_gradient, right_hessian, right_weight, params),
            node.similarity,
        )
        # missing values alone are neither below nor above the others
        is_allowed &= (sign * (right_weight - left_weight) >= 0.0) | (before == 0)
        gains[np.uint64(position)] = gain if is_allowed else -np.inf


@kernel
def draw_place(feature, node, first, stop):
    """Draw one of the places ``[first, stop)`` at which a feature may be split in a node."""
    bits = mix_bits(np.uint64(feature) ^ node.key)
    return first + np.int64(np.float64(bits) / _TWO_32 * (stop - first))


@inlined
def scan_feature(search, node, histogram, feature, scratch, best):
    """Replace `best` if a split of `feature` has a larger gain.

    Parameters
    ----------
    search : Search
    node : SearchedNode
    histogram : ndarray of int64, shape (n_cells,)
        The node's.
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
    cells = histogram[start:stop]
    if _FEW * node.n_rows < len(cells):
        n_occupied = list_few(cells, scratch.bins, scratch.sums)
    else:
        n_occupied = list_many(cells, scratch.bins, scratch.sums)
    first = np.int64(0)  # the first place, and the one after the last
    stop = np.int64(n_occupied)
    if search.params.extra_trees == 1:
        first = draw_place(feature, node, np.int64(missing == 0), stop)
        stop = min(first + 1, stop)
    sums, gains = scratch.sums[first:stop], scratch.gains
    # rounding must not hide a split that is better by the last bit
    least = max(best.gain, _NO_GAIN) + node.similarity
    least -= _SLACK * abs(least)
    n_directions = 2 if missing != 0 else 1
    may_be_better = False
    for default_left in range(n_directions):
        left_start = missing * default_left
        may_be_better |= may_improve(search, node.packed_sum, left_start, sums, least)
    if not may_be_better:
        return
    sign = search.rules.signs[feature]
    for default_left in range(n_directions):
        compute_gains(search, node, sign, missing * default_left, sums, gains[default_left])
    best_gain, best_position, best_direction = best.gain, -1, 0
    for position in range(stop - first):
        for default_left in range(n_directions):
            gain = gains[np.uint64(default_left), np.uint64(position)]
            if gain > best_gain:
                best_gain, best_position, best_direction = gain, position, default_left
    if best_position >= 0:
        place = first + best_position
        best.gain = best_gain
        best.left_sum = missing * best_direction + sums[best_position]
        best.feature = feature
        best.bin = scratch.bins[place]
        best.below = scratch.bins[place - 1] if place > 0 else -1
        best.default_left = best_direction


@inlined
def search_task(search, workspace, columns, task, rank):
    """Find the best split of one node among one chunk of the features."""
    tree, scratch = workspace.tree, workspace.scratch
    n_chunks = tree.counts[0].n_chunks
    node, chunk = tree.searched[task // n_chunks], task % n_chunks
    own = SearchScratch(
        scratch.candidates,
        scratch.best[rank],
        scratch.sums[rank],
        scratch.bins[rank],
        scratch.gains[rank],
    )
    best = own.best[0]
    best.gain = -np.inf
    growth = tree.growth[node]
    histogram = workspace.pool.histograms[growth.slot]
    gradient, hessian = unpack(growth.packed_sum, search.steps)
    searched = SearchedNode(
        growth.packed_sum,
        growth.n_rows,
        similarity_at(gradient, hessian, growth.weight, search.params),
        Inherited(growth.weight, growth.lower, growth.upper),
        hash_key(columns.key[0], _THRESHOLDS, node),
    )
    features = columns.of_node[rank]
    n_features = list_node_features(node, rank, tree, search.params, columns)
    for index in range(n_features * chunk // n_chunks, n_features * (chunk + 1) // n_chunks):
        scan_feature(search, searched, histogram, features[index], own, best)
    scratch.candidates[task] = best


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
        for index in range(counts.n_searched):
            node = tree.searched[index]
            tree.splits[node] = candidates[index * counts.n_chunks]
            for chunk in range(1, counts.n_chunks):
                candidate = candidates[index * counts.n_chunks + chunk]
                if candidate.gain > tree.splits[node].gain:
                    tree.splits[node] = candidate


@kernel
def can_be_split(packed_sum, n_rows, steps, params):
    """Tell whether a node's cover leaves room for two children."""
    _, cover = unpack(packed_sum, steps)
    return n_rows >= 2 and hessian_of(packed_sum) >= 2 and cover >= 2.0 * params.min_child_weight
