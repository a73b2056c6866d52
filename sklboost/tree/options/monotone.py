"""Monotone constraints: the bounds between which leaf weights keep their order.

Where the two sides of a split must be in order, a bound lies halfway between the weights of the two
children. All leaf weights beneath one child stay below it, those beneath the other above. So
whatever is split later, each node has only its own two bounds to keep.
"""

import numpy as np

from sklboost.engine.compiling import kernel, late
from sklboost.tree.options.inherited_weights import clip_to_bounds


@late()
def narrow_bounds(node, tree, rules):
    """Set the bounds of the two children of a node, whose weights are known."""
    outputs, split = tree.outputs, tree.nodes[node]
    left, right = np.int64(split.left), np.int64(split.right)
    # where only missing values go left, nothing is below or above
    sign = 0
    if len(rules.signs) > 0 and split.threshold > -np.inf:
        sign = rules.signs[split.feature]
    below, above = (left, right) if sign > 0 else (right, left)
    for output in range(outputs.shape[1]):
        parent, lesser, greater = (
            outputs[node, output],
            outputs[below, output],
            outputs[above, output],
        )
        lesser.lower, lesser.upper = parent.lower, parent.upper
        greater.lower, greater.upper = parent.lower, parent.upper
        if sign != 0:
            lesser.upper = greater.lower = 0.5 * (lesser.weight + greater.weight)


@kernel
def order_renewed_leaves(tree, rules, params):
    """Clip the leaf weights of a pruned tree that were renewed, and set the leaf values.

    The old bounds came from gradients, which may be of quite another size than residuals. So each
    node above first gets the mean of its leaves, weighted by cover, and new bounds are set from the
    root down. Without constraints they are infinite, and leaf weights stay as they are.
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
        for index in range(outputs.shape[1]):
            output = outputs[node, index]
            if left < 0:
                output.weight = clip_to_bounds(output.weight, output.lower, output.upper)
                output.value = params.learning_rate * output.weight
                continue
            for child in range(left, left + 2):
                below = outputs[child, index]
                below.weight = clip_to_bounds(below.weight, output.lower, output.upper)
        if left < 0:
            nodes[node].value = outputs[node, 0].value
        else:
            narrow_bounds(node, tree, rules)


@kernel
def average_children(node, output, tree):
    """Set the weight of a node to the mean of its children, weighted by cover."""
    left, right = tree.nodes[node].left, tree.nodes[node].right
    left_cover, right_cover = tree.nodes[left].cover, tree.nodes[right].cover
    total = left_cover * tree.outputs[left, output].weight
    total += right_cover * tree.outputs[right, output].weight
    tree.outputs[node, output].weight = total / (left_cover + right_cover)
