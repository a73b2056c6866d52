"""Column sampling: which features a split may be on.

In: a key for the tree, the fractions. Out: for each tree some features, for each depth some of
these, for each node some of the latter.

The one idea: nothing is drawn from a stream. A feature's luck is a hash of the tree, the depth or
the node, and of itself, so it does not depend on which thread searches which node, or in what
order. Exactly so many are chosen as the fraction says, at least one.
"""

from typing import NamedTuple

import numpy as np

from sklboost.compiling import kernel
from sklboost.hashing import hash_key, mix_bits

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
        Of this tree.
    of_node : ndarray of int64, shape (n_threads, n_features)
        Scratch: those of the node that a thread is at.
    """

    of_tree: np.ndarray
    n_of_tree: np.ndarray
    key: np.ndarray
    of_node: np.ndarray


def allocate_column_sample(n_features: int, n_threads: int) -> ColumnSample:
    """Make room for draws of features; until the first one all may be split on."""
    return ColumnSample(
        of_tree=np.arange(n_features),
        n_of_tree=np.array([n_features]),
        key=np.zeros(1, dtype=np.int64),
        of_node=np.empty((n_threads, n_features), dtype=np.int64),
    )


@kernel
def choose_some(features, fraction, key):
    """Move a fraction of `features` to the front, in their order; return how many those are.

    Selection sampling (Knuth, The Art of Computer Programming, volume 2, algorithm 3.4.2 S): of the
    `n_left` that are not looked at yet, `n_needed` must be chosen, so each has that chance. What
    lies behind those chosen is left in disorder.
    """
    n_left = len(features)
    # the smallest surplus of a product that should be whole, such as 0.29 * 100, is rounding
    n_needed = max(1, int(fraction * n_left + 1e-9))
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


@kernel
def choose_tree_features(key, params, sample):
    """Choose the features of a tree; one member of the team calls it.

    Parameters
    ----------
    key : int64
        Of the tree, from 0 to 2^32 - 1.
    params : TreeParams
    sample : ColumnSample
        `of_tree`, `n_of_tree` and `key` are filled.
    """
    sample.key[0] = key
    if params.colsample_bytree < 1.0:
        for feature in range(len(sample.of_tree)):
            sample.of_tree[feature] = feature
        own_key = hash_key(key, _OF_TREE, np.int64(0))
        sample.n_of_tree[0] = choose_some(sample.of_tree, params.colsample_bytree, own_key)


@kernel
def list_node_features(node, depth, params, sample, features):
    """List the features that `node` may be split on, in increasing order; return how many.

    The same for every part of the node's search, whoever makes it.

    Parameters
    ----------
    node, depth : int
    params : TreeParams
    sample : ColumnSample
        Of the tree.
    features : ndarray of int64, shape (n_features,)
        Filled from the front.
    """
    n_features = sample.n_of_tree[0]
    for index in range(n_features):
        features[index] = sample.of_tree[index]
    if params.colsample_bylevel < 1.0:
        key = hash_key(sample.key[0], _OF_DEPTH, depth)
        n_features = choose_some(features[:n_features], params.colsample_bylevel, key)
    if params.colsample_bynode < 1.0:
        key = hash_key(sample.key[0], _OF_NODE, node)
        n_features = choose_some(features[:n_features], params.colsample_bynode, key)
    return n_features
