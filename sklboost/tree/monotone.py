"""Monotone constraints: the bounds between which leaf weights keep their order.

In: leaf weights of the two children of a split. Out: bounds for all that lies beneath them.

The one idea: between two sides of a split that must be in order lies one number, halfway between
the weights of the two children. What is beneath the one side stays below it, what is beneath the
other above. So whatever comes later, each node has only its own two bounds to keep.
"""

import numpy as np

from sklboost.compiling import kernel
from sklboost.tree.formulas import clip_to_bounds


@kernel
def narrow_bounds(node, tree, rules):
    """Set the bounds of the two children of a node, whose weights are known."""
    growth, split = tree.growth, tree.nodes[node]
    left, right = np.int64(split.left), np.int64(split.right)
    for child in range(left, right + 1):
        growth[child].lower, growth[child].upper = growth[node].lower, growth[node].upper
    # where only missing values go left, nothing is below or above
    sign = rules.signs[split.feature] if split.threshold > -np.inf else 0
    if sign != 0:
        below, above = (left, right) if sign > 0 else (right, left)
        middle = 0.5 * (growth[below].weight + growth[above].weight)
        growth[below].upper, growth[above].lower = middle, middle


@kernel
def order_renewed_leaves(tree, rules, params):
    """Bring leaf weights that were renewed between new bounds, and set the leaf values.

    The old bounds came from gradients, which may be of quite another size than residuals. So each
    node above gets the mean of its leaves first, by their covers, and the bounds are drawn anew
    from the root down. Without constraints they are infinite, and leaves keep what they have.

    Parameters
    ----------
    tree : GrowingTree
        Pruned; ``growth.weight`` of its leaves is what they were renewed to. Modified.
    rules : FeatureRules
    params : TreeParams
    """
    nodes, growth = tree.nodes, tree.growth
    for node in range(tree.counts[0].n_nodes - 1, -1, -1):
        left, right = nodes[node].left, nodes[node].right
        if left >= 0:
            total = nodes[left].cover * growth[left].weight
            total += nodes[right].cover * growth[right].weight
            growth[node].weight = total / (nodes[left].cover + nodes[right].cover)
    for node in range(tree.counts[0].n_nodes):
        if growth[node].final != node:
            continue  # pruned
        own, left = growth[node], nodes[node].left
        if left < 0:
            own.weight = clip_to_bounds(own.weight, own.lower, own.upper)
            nodes[node].value = params.learning_rate * own.weight
            continue
        for child in range(left, left + 2):
            growth[child].weight = clip_to_bounds(growth[child].weight, own.lower, own.upper)
        narrow_bounds(node, tree, rules)
