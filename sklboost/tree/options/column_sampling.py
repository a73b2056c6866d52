"""Column sampling: which features a split may be on.

In: a key for the tree, the fractions. Out: for each tree some features, for each depth some of
these, for each node some of the latter.

The one idea: nothing is drawn from a stream. A feature's luck is a hash of the tree, the depth or
the node, and of itself, so it does not depend on which thread searches which node, or in what
order. Exactly so many are chosen as the fraction says, at least one.

Source of the draw by weights: Efraimidis & Spirakis (2006), "Weighted random sampling with a
reservoir". Every feature waits for a random time, exponential with its weight as the rate; those
that come first are chosen.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.hashing import hash_key, mix_bits
from sklboost.engine.structs import FeatureRules
from sklboost.tree.options.interactions import keep_allowed

_OF_TREE, _OF_DEPTH, _OF_NODE = np.int64(0), np.int64(1), np.int64(2)
_TWO_32 = 2.0**32


class ColumnSample(NamedTuple):
    """The features that may be split on.

    Attributes
    ----------
    of_tree : ndarray of int64, shape (n_features,)
        The first `n_of_tree` are those of this tree, in increasing order.
    n_of_tree : ndarray of int64, shape (1,)
    key : ndarray of int64, shape (1,)
        Of this tree, from 0 to 2^32 - 1.
    of_node : ndarray of int64, shape (n_threads, n_features)
        Scratch: those of the node that a thread is at.
    times : ndarray of float64, shape (n_threads, n_features)
        Scratch of the draw by weights.
    open_groups : ndarray of uint64, shape (n_threads, n_words)
        Scratch of the interaction constraints.
    rules : FeatureRules
    """

    of_tree: np.ndarray
    n_of_tree: np.ndarray
    key: np.ndarray
    of_node: np.ndarray
    times: np.ndarray
    open_groups: np.ndarray
    rules: FeatureRules


def allocate_column_sample(rules: FeatureRules, n_features: int, n_threads: int) -> ColumnSample:
    """Make room for draws of features; until the first one all may be split on."""
    return ColumnSample(
        of_tree=np.arange(n_features),
        n_of_tree=np.array([n_features]),
        key=np.zeros(1, dtype=np.int64),
        of_node=np.empty((n_threads, n_features), dtype=np.int64),
        times=np.empty((n_threads, n_features)),
        open_groups=np.empty((n_threads, rules.groups.shape[1]), dtype=np.uint64),
        rules=rules,
    )


@kernel
def nth_smallest(values, n):
    """Give the n-th smallest value, counted from 0, putting the values in disorder.

    Quickselect (Hoare 1961): divide around a value, go on in the part that has the n-th place.
    """
    first, last = 0, len(values) - 1
    while first < last:
        pivot = values[(first + last) // 2]
        left, right = first, last
        while left <= right:
            while values[left] < pivot:
                left += 1
            while values[right] > pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left, right = left + 1, right - 1
        if n <= right:
            last = right
        elif n >= left:
            first = left
        else:
            break  # between the parts: as large as the pivot
    return values[n]


@inlined
def waiting_time(feature, weight, key):
    """Give a random time, exponential with rate `weight`."""
    uniform = (np.float64(mix_bits(np.uint64(feature) ^ key)) + 0.5) / _TWO_32
    return -math.log(uniform) / weight


@kernel
def choose_by_weight(features, n_needed, key, weights, times):
    """Move `n_needed` of `features` to the front, in their order; return how many those are.

    Drawn one after the other without replacement, each with a chance in proportion to its weight.
    """
    if n_needed >= len(features):
        return len(features)
    for position in range(len(features)):
        feature = features[position]
        times[position] = waiting_time(feature, weights[feature], key)
    last_time = nth_smallest(times[: len(features)], n_needed - 1)
    n_chosen = 0
    for position in range(len(features)):
        feature = features[position]
        # two features that come at the same time must not make it one too many
        if n_chosen < n_needed and waiting_time(feature, weights[feature], key) <= last_time:
            features[n_chosen] = feature
            n_chosen += 1
    return n_chosen


@late("int64")
def choose_some(features, fraction, key, weights, times):
    """Move a fraction of `features` to the front, in their order; return how many those are.

    With equal chances, or by weights if there are any.

    Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2 S): of the
    `n_left` that are not looked at yet, `n_needed` must be chosen, so each has that chance. What
    lies behind those chosen is left in disorder.
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
        if np.float64(bits) * n_left < n_needed * _TWO_32:
            features[n_chosen] = feature
            n_chosen += 1
            n_needed -= 1
        n_left -= 1
    return n_chosen


@late()
def choose_tree_features(params, sample):
    """Choose the features of a tree; one member of the team calls it.

    Parameters
    ----------
    params : TreeParams
    sample : ColumnSample
        `of_tree` and `n_of_tree` are filled; `key` is that of the tree.
    """
    for feature in range(len(sample.of_tree)):
        sample.of_tree[feature] = feature
    tree_key = hash_key(sample.key[0], _OF_TREE, np.int64(0))
    weights, times = sample.rules.weights, sample.times[0]
    fraction = params.colsample_bytree
    sample.n_of_tree[0] = choose_some(sample.of_tree, fraction, tree_key, weights, times)


@late("int64")
def list_node_features(node, rank, tree, params, sample):
    """List the features that `node` may be split on, in increasing order; return how many.

    The same for every part of the node's search, whoever makes it. Those of a node are drawn from
    what interaction constraints leave, so that a small group is not drawn empty.

    Parameters
    ----------
    node, rank : int
    tree : GrowingTree
    params : TreeParams
    sample : ColumnSample
        Of the tree. ``of_node[rank]`` is filled from the front.
    """
    features, times, rules = sample.of_node[rank], sample.times[rank], sample.rules
    n_features = sample.n_of_tree[0]
    for index in range(n_features):
        features[index] = sample.of_tree[index]
    if params.colsample_bylevel < 1.0:
        key = hash_key(sample.key[0], _OF_DEPTH, tree.growth[node].depth)
        fraction = params.colsample_bylevel
        n_features = choose_some(features[:n_features], fraction, key, rules.weights, times)
    if len(rules.groups) > 0:
        own = features[:n_features]
        n_features = keep_allowed(own, node, tree, rules, sample.open_groups[rank])
    if params.colsample_bynode < 1.0:
        key = hash_key(sample.key[0], _OF_NODE, node)
        fraction = params.colsample_bynode
        n_features = choose_some(features[:n_features], fraction, key, rules.weights, times)
    return n_features
