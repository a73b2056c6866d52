"""Interaction constraints: which features may follow on a path.

The features on the way from the root are read off the tree, and the groups that contain all of them
are still open. A feature may follow if it is in an open group, or is on the way already. This is
XGBoost's rule; a feature of no group is alone. Nothing is kept from node to node.
"""

import numpy as np

from sklboost.engine.compiling import kernel, late

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
    """Move those of `features` that `node` may be split on to the front; return how many.

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
