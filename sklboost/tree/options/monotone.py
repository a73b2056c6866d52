"""Monotone constraints: the bounds between which leaf weights keep their order.

In: leaf weights of the two children of a split. Out: bounds for all that lies beneath them.

The one idea: between two sides of a split that must be in order lies one number, halfway between
the weights of the two children. What is beneath the one side stays below it, what is beneath the
other above. So whatever comes later, each node has only its own two bounds to keep.
"""

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.tree.core.formulas import clip_to_bounds


@kernel
def narrow_bounds(node, tree, rules):
    """Set the bounds of the two children of a node, whose weights are known."""
    outputs, split = tree.outputs, tree.nodes[node]
    left, right = np.int64(split.left), np.int64(split.right)
    # where only missing values go left, nothing is below or above
    sign = rules.signs[split.feature] if split.threshold > -np.inf else 0
    below, above = (left, right) if sign > 0 else (right, left)
    for output in range(outputs.shape[1]):
        own, lesser, greater = (
            outputs[node, output],
            outputs[below, output],
            outputs[above, output],
        )
        lesser.lower, lesser.upper = own.lower, own.upper
        greater.lower, greater.upper = own.lower, own.upper
        if sign != 0:
            middle = 0.5 * (lesser.weight + greater.weight)
            lesser.upper, greater.lower = middle, middle


@kernel
def order_renewed_leaves(tree, rules, params):
    """Bring leaf weights that were renewed between new bounds, and set the leaf values.

    The old bounds came from gradients, which may be of quite another size than residuals. So each
    node above gets the mean of its leaves first, by their covers, and the bounds are drawn anew
    from the root down. Without constraints they are infinite, and leaves keep what they have.

    Parameters
    ----------
    tree : GrowingTree
        Pruned; ``outputs.weight`` of its leaves is what they were renewed to. Modified.
    rules : FeatureRules
    params : TreeParams
    """
    nodes, growth, outputs = tree.nodes, tree.growth, tree.outputs
    for node in range(tree.counts[0].n_nodes - 1, -1, -1):
        if nodes[node].left >= 0:
            for output in range(outputs.shape[1]):
                average_children(node, output, tree)
    for node in range(tree.counts[0].n_nodes):
        if growth[node].final != node:
            continue  # pruned
        left = nodes[node].left
        for output in range(outputs.shape[1]):
            own = outputs[node, output]
            if left < 0:
                own.weight = clip_to_bounds(own.weight, own.lower, own.upper)
                own.value = params.learning_rate * own.weight
                continue
            for child in range(left, left + 2):
                below = outputs[child, output]
                below.weight = clip_to_bounds(below.weight, own.lower, own.upper)
        if left < 0:
            nodes[node].value = outputs[node, 0].value
        else:
            narrow_bounds(node, tree, rules)


@kernel
def average_children(node, output, tree):
    """Give a node the mean weight of its children, by their covers."""
    left, right = tree.nodes[node].left, tree.nodes[node].right
    left_cover, right_cover = tree.nodes[left].cover, tree.nodes[right].cover
    total = left_cover * tree.outputs[left, output].weight
    total += right_cover * tree.outputs[right, output].weight
    tree.outputs[node, output].weight = total / (left_cover + right_cover)
