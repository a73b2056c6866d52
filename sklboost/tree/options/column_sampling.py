"""Which features a split may be on: column sampling, and interaction constraints."""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import read_only
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.elementary import TWO_32, hash_key, log, mix_bits
from sklboost.engine.parallel import barrier, share
from sklboost.engine.structs import FeatureRules, TrainingBins, TreeParams
from sklboost.tree.options.renewal import select_value
from sklboost.tree.options.shared_columns import HistogramBins, join_columns, single_columns

_ALL_GROUPS = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def is_on_path(feature, node, tree):
    """Whether a node above `node` is split on `feature`."""
    ancestor = tree.growth[node].parent
    while ancestor >= 0 and tree.nodes[ancestor].feature != feature:
        ancestor = tree.growth[ancestor].parent
    return ancestor >= 0


@kernel
def open_groups_of(node, tree, rules, open_groups):
    """Fill the groups that contain all features of the node's path, as a set of bits.

    No group is open where the path has as many features as it may have.
    """
    open_groups[:] = _ALL_GROUPS
    n_together = 0
    ancestor = tree.growth[node].parent
    while ancestor >= 0:
        feature = np.int64(tree.nodes[ancestor].feature)
        for word in range(len(open_groups)):
            open_groups[word] &= rules.groups[feature, word]
        n_together += 0 if is_on_path(feature, ancestor, tree) else 1
        ancestor = tree.growth[ancestor].parent
    if n_together >= rules.most_together:
        open_groups[:] = np.uint64(0)


@late("int64")
def keep_allowed(features, node, tree, rules, open_groups):
    """Move the `features` that `node` may be split on to the front; return how many.

    They keep their order. `open_groups`, uint64 of shape (n_words,), is scratch.
    """
    if node == 0:
        return len(features)  # no path yet
    open_groups_of(node, tree, rules, open_groups)
    n_allowed = 0
    for position in range(len(features)):
        feature = features[position]
        is_allowed = is_on_path(feature, node, tree)
        for word in range(len(open_groups)):
            is_allowed |= rules.groups[feature, word] & open_groups[word] != np.uint64(0)
        if is_allowed:
            features[n_allowed] = feature
            n_allowed += 1
    return n_allowed


_OF_TREE, _OF_DEPTH, _OF_NODE = np.int64(0), np.int64(1), np.int64(2)
# Time to copy a bin, where an addition to a histogram takes 1.
_COPY = 1.0


class ColumnSample(NamedTuple):
    """The features that may be split on."""

    # int64, shape (n_features,): the first `n_of_tree` are of this tree, in increasing order
    of_tree: np.ndarray
    n_of_tree: np.ndarray  # int64, shape (1,)
    key: np.ndarray  # int64, shape (1,): of this tree, from 0 to 2^32 - 1
    # int64, shape (n_threads, n_features): scratch: of the node that a thread is at
    of_node: np.ndarray
    # float64, shape (n_threads, 2, n_features): scratch of the draw by weights: waiting times, and
    # behind them a 1 for each
    times: np.ndarray
    # uint64, shape (n_threads, n_words): scratch of the interaction constraints
    open_groups: np.ndarray
    rules: FeatureRules
    # uint8 or uint16, shape (n_samples, n_built) or (0, 0): the memory of ``HistogramBins.rows``
    # where that is a copy, to be written
    copy: np.ndarray


def allocate_column_sample(
    rules: FeatureRules, n_features: int, n_threads: int, copy: np.ndarray | None = None
) -> ColumnSample:
    """Allocate draws of features; before the first one all may be split on.

    `copy` is from :func:`allocate_bins`; None: nothing is copied.
    """
    return ColumnSample(
        of_tree=np.arange(n_features),
        n_of_tree=np.array([n_features]),
        key=np.zeros(1, dtype=np.int64),
        of_node=np.empty((n_threads, n_features), dtype=np.int64),
        times=np.ones((n_threads, 2, n_features)),
        open_groups=np.empty((n_threads, rules.groups.shape[1]), dtype=np.uint64),
        rules=rules,
        copy=np.empty((0, 0), np.uint8) if copy is None else copy,
    )


@inlined
def waiting_time(feature, weight, key):
    """Return a random time, exponential with rate `weight`."""
    uniform = (np.float64(mix_bits(np.uint64(feature) ^ key)) + 0.5) / TWO_32
    return -log(uniform) / weight


@late("int64")
def choose_by_weight(features, n_needed, key, weights, times):
    """Move `n_needed` of `features` to the front, in their order; return how many those are.

    Drawn one after the other without replacement, each with a chance in proportion to its weight;
    features of weight 0 never, so there may be fewer.
    """
    n_drawable = 0
    for position in range(len(features)):
        feature = features[position]
        if weights[feature] > 0.0:
            features[n_drawable] = feature
            n_drawable += 1
    if n_needed >= n_drawable:
        return n_drawable
    waiting, ones = times[0, :n_drawable], times[1, :n_drawable]
    for position in range(n_drawable):
        feature = features[position]
        waiting[position] = waiting_time(feature, weights[feature], key)
    last_time = select_value(waiting, ones, np.int64(0), 0.0, np.float64(n_needed))[0]
    n_chosen = 0
    for position in range(n_drawable):
        feature = features[position]
        # two features that come at the same time must not make it one too many
        if n_chosen < n_needed and waiting_time(feature, weights[feature], key) <= last_time:
            features[n_chosen] = feature
            n_chosen += 1
    return n_chosen


@late("int64")
def choose_some(features, fraction, key, weights, times):
    """Move a fraction of `features` to the front, in their order; return how many those are.

    With equal chances, or by `weights` if there are any. `times` is one thread's scratch.

    Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2 S): of the
    `n_left` features still to come, `n_needed` must be chosen, so each has that chance. Behind the
    chosen ones `features` is left in disorder.
    """
    n_left = len(features)
    # the smallest surplus of a product that should be whole, such as 0.29 * 100, is rounding
    n_needed = max(1, int(fraction * n_left + 1e-9))
    if len(weights) > 0:
        return choose_by_weight(features, n_needed, key, weights, times)
    n_chosen = 0
    for position in range(len(features)):
        feature = features[position]
        bits = mix_bits(np.uint64(feature) ^ key)
        if np.float64(bits) * n_left < n_needed * TWO_32:
            features[n_chosen] = feature
            n_chosen += 1
            n_needed -= 1
        n_left -= 1
    return n_chosen


@kernel
def choose_tree_features(params, sample):
    """Choose the features of the tree that ``sample.key`` is of; one member calls it."""
    for feature in range(len(sample.of_tree)):
        sample.of_tree[feature] = feature
    tree_key = hash_key(sample.key[0], _OF_TREE, np.int64(0))
    weights, times = sample.rules.weights, sample.times[0]
    fraction = params.colsample_bytree
    sample.n_of_tree[0] = choose_some(sample.of_tree, fraction, tree_key, weights, times)


@late()
def draw_columns(team, matrix, draws, params, workspace):
    """Choose the features of a tree, and copy the columns that they are in to ``columns.copy``.

    Of the rows that the root owns and that count; ends when all are done. An addition takes little
    more than half the time where the columns lie side by side and need not be looked up.
    """
    sample, partition, pool = draws.columns, workspace.partition, workspace.pool
    is_copied = sample.copy.shape[1] > 0
    if team.rank == 0:
        choose_tree_features(params, sample)
        if is_copied:
            list_columns(matrix, sample.of_tree[: sample.n_of_tree[0]], pool)
    barrier(team)
    first_block, stop_block = share(team, partition.n_counted if is_copied else 0)
    for block in range(first_block, stop_block):
        row_list = partition.lists[0, partition.start[block, 0] : partition.stop[block, 0]]
        copy_rows(matrix.rows, row_list, pool.columns[: pool.n_columns[0]], sample.copy)
    barrier(team)


@kernel
def list_columns(matrix, features, pool):
    """List the columns that `features` are in as those that histograms are built of."""
    columns, n_listed = pool.columns, 0
    columns[:] = 0
    for feature in features:
        columns[matrix.places[feature].column] = 1
    for column in range(len(columns)):
        if columns[column] == 1:  # the list never grows beyond what has been looked at
            columns[n_listed] = column
            pool.cells[0, n_listed] = pool.starts[column]
            pool.cells[1, n_listed] = pool.starts[column + 1]
            n_listed += 1
    pool.n_columns[0] = n_listed


@kernel
def copy_rows(source, row_list, columns, target):
    """Copy some columns of the listed rows to the first ones of `target`."""
    for position in range(len(row_list)):
        row = np.uint64(row_list[np.uint64(position)])
        row_bins, copied = source[row], target[row]
        for index in range(np.uint64(len(columns))):
            copied[index] = row_bins[np.uint64(columns[index])]


def allocate_bins(
    matrix: TrainingBins, params: TreeParams, n_outputs: int, *, are_on_disk: bool
) -> tuple[HistogramBins, np.ndarray]:
    """Return what histograms are built from, read-only, and the memory of a copy to be written.

    The rows of the matrix, with joint columns where these save time, and nothing to be written; or
    room for a copy: copying a tree's columns is worth its time if the additions that it saves would
    take longer. `n_outputs` is the number of those that one tree has values for.
    """
    n_samples, n_columns = matrix.rows.shape
    n_built = min(math.ceil(params.colsample_bytree * len(matrix.places)), n_columns)
    depth = min(params.max_depth, math.ceil(math.log2(params.max_leaves)))
    n_additions = (1 + depth) / 2  # of a row to a column: at the root, then every other level
    if are_on_disk or n_built * (n_additions + _COPY) >= n_columns * n_additions:
        can_join = n_outputs == 1 and params.min_child_samples == 0 and not are_on_disk
        bins = join_columns(matrix) if can_join else single_columns(matrix.rows)
        return bins, np.empty((0, 0), dtype=matrix.rows.dtype)
    copy = np.empty((n_samples, n_built), dtype=matrix.rows.dtype)
    return single_columns(read_only(copy)), copy


@late("int64")
def list_node_features(node, rank, tree, params, sample):
    """List the features that `node` may be split on, in increasing order; return how many.

    They are the first of ``sample.of_node[rank]``, the same on every thread that asks. Those of a
    node are drawn from what interaction constraints leave, so that a small group is not drawn
    empty. All nodes of a depth of a symmetric tree have one draw.
    """
    depth, number = tree.growth[node].depth, node
    if params.symmetric == 1:
        depth = number = tree.counts[0].n_common
    features, times, rules = sample.of_node[rank], sample.times[rank], sample.rules
    n_features = sample.n_of_tree[0]
    for index in range(n_features):
        features[index] = sample.of_tree[index]
    if params.colsample_bylevel < 1.0:
        key = hash_key(sample.key[0], _OF_DEPTH, depth)
        fraction = params.colsample_bylevel
        n_features = choose_some(features[:n_features], fraction, key, rules.weights, times)
    if len(rules.groups) > 0:
        open_groups = sample.open_groups[rank]
        n_features = keep_allowed(features[:n_features], node, tree, rules, open_groups)
    if params.colsample_bynode < 1.0:
        key = hash_key(sample.key[0], _OF_NODE, number)
        fraction = params.colsample_bynode
        n_features = choose_some(features[:n_features], fraction, key, rules.weights, times)
    return n_features
