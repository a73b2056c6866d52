"""Leaf weights that the node above has a say in: path smoothing and monotone constraints."""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core.formulas import leaf_weight, similarity_at, split_gain
from sklboost.tree.core.quantization import scales_of, sum_cells, unpack
from sklboost.tree.core.workspace import OWN


class Inherited(NamedTuple):
    """The weight and the bounds that a node passes on to its children."""

    weight: float  # its own leaf weight, towards which the children's are moved
    # the least and the largest leaf weight that monotone constraints leave below it
    lower: float
    upper: float
    path_smooth: float  # how far they are moved; 0: not at all


@inlined
def inherited_from(output, path_smooth):
    """Return what a node passes on; `output` is its record of GROWING_OUTPUT_DTYPE."""
    return Inherited(output.weight, output.lower, output.upper, path_smooth)


@inlined
def clip_to_bounds(weight, lower, upper):
    """Move a leaf weight to the nearest one between its node's bounds."""
    return min(max(weight, lower), upper)


@inlined
def smooth(weight, hessian, parent_weight, path_smooth):
    """Move a leaf weight towards the parent's, the more the smaller H is.

    ``s w + (1 - s) w_parent`` with ``s = H / (H + path_smooth)``: LightGBM's formula, with H where
    LightGBM has the number of rows. With squared error and no weights the two are one.
    """
    if path_smooth == 0.0:
        return weight
    share = hessian / (hessian + path_smooth)
    return share * weight + (1.0 - share) * parent_weight


@inlined
def constrained_weight(weight, hessian, inherited):
    """Return the leaf weight of a child whose best one is `weight`."""
    weight = smooth(weight, hessian, inherited.weight, inherited.path_smooth)
    return clip_to_bounds(weight, inherited.lower, inherited.upper)


@late()
def constrain_weights(node, search, tree):
    """Turn the best leaf weights of a node, one for each output, into the constrained ones."""
    parent = tree.growth[node].parent
    for index in range(tree.outputs.shape[1]):
        output = tree.outputs[node, index]
        if output.hessian > 0.0:
            inherited = inherited_from(tree.outputs[parent, index], search.params.path_smooth)
            output.weight = constrained_weight(output.weight, output.hessian, inherited)


@inlined
def weigh_side(gradient, hessian, inherited, params):
    """Return similarity and leaf weight of one side of a split."""
    weight = constrained_weight(leaf_weight(gradient, hessian, params), hessian, inherited)
    return similarity_at(gradient, hessian, weight, params), weight


@inlined
def weigh_sides(left_sum, total, scales, inherited, params):
    """Return the sum of an output's similarities as two, the leaf weights and the hessian sums.

    They are computed even if one side is empty: with a branch the loops that call this would not
    become vector instructions. It then counts as a row of the least hessian, as 0 / 0 is no number.
    """
    left_gradient, left_hessian = unpack(left_sum, scales)
    right_gradient, right_hessian = unpack(total - left_sum, scales)
    left, left_weight = weigh_side(left_gradient, max(left_hessian, scales[1]), inherited, params)
    right, right_weight = weigh_side(
        right_gradient, max(right_hessian, scales[1]), inherited, params
    )
    return left, right, left_weight, right_weight, left_hessian, right_hessian


@late()
def fill_constrained_gains(search, workspace, task, constraint, sums, gains):
    """Fill `gains` for splits with ``left_start + sums`` on the left; -inf where not allowed.

    `constraint` is the order that the leaf weights must have, 1, -1 or 0 for any, and `left_start`.
    `sums` are the first output's; what the others add is in ``special.of_others``.
    """
    if search.params.path_smooth == 0.0:
        # A constant: two of the four divisions of a split are then not in its loop.
        fill_gains_smoothed_by(search, workspace, task, constraint, sums, 0.0, gains)
    else:
        fill_smoothed_gains(search, workspace, task, constraint, sums, gains)


@late()
def fill_smoothed_gains(search, workspace, task, constraint, sums, gains):
    """Fill `gains` where leaf weights are moved towards the parent's."""
    path_smooth = search.params.path_smooth
    fill_gains_smoothed_by(search, workspace, task, constraint, sums, path_smooth, gains)


@inlined
def fill_gains_smoothed_by(search, workspace, task, constraint, sums, path_smooth, gains):
    """Fill `gains` from the sums of the first output and from what the others add to these."""
    (sign, left_start), of_others = constraint, workspace.special.of_others[task.rank]
    similarities, hessians = of_others[0], of_others[1]
    scales, outputs = scales_of(search.scales, 0), workspace.tree.outputs[task.node]
    inherited = inherited_from(outputs[0], path_smooth)
    total_hessian = 0.0
    for index in range(len(outputs)):
        total_hessian += outputs[index].hessian
    least_hessian = search.params.min_child_weight * len(outputs)  # of all outputs together
    for position in range(len(sums)):
        before, others = sums[np.uint64(position)], similarities[np.uint64(position)]
        left, right, left_weight, right_weight, left_hessian, right_hessian = weigh_sides(
            left_start + before, task.total, scales, inherited, search.params
        )
        gain = split_gain(left + others, right, task.similarity)
        left_total = left_hessian + hessians[np.uint64(position)]
        is_allowed = min(left_hessian, right_hessian) > 0.0
        is_allowed &= min(left_total, total_hessian - left_total) >= least_hessian
        # missing values alone are neither below nor above the others
        is_allowed &= (sign * (right_weight - left_weight) >= 0.0) | (before == 0)
        is_allowed &= others > -np.inf
        gains[np.uint64(position)] = gain if is_allowed else -np.inf


@late()
def add_other_outputs(search, workspace, task, sign, missing_cell, places):
    """Fill ``special.of_others`` for splits at the places ``[first, last)`` of a feature.

    The rows of `missing_cell` go left, too, unless it is -1.
    """
    tree, scratch = workspace.tree, workspace.special
    histogram = workspace.pool.histograms[tree.growth[task.node].slot]
    # whole rows: of a part of them the compiler would not know that it is contiguous
    of_others = scratch.of_others[task.rank]
    of_others[:, : places[1] - places[0]] = 0.0
    for output in range(1, len(search.scales)):
        left_start = np.int64(0)
        if missing_cell >= 0:
            left_start = sum_cells(search.matrix, histogram, output, missing_cell, missing_cell + 1)
        sums = scratch.sums[task.rank, output, places[0] : places[1]]
        add_output(search, tree, task, output, (sign, left_start), sums, of_others)


@kernel
def add_output(search, tree, task, output, constraint, sums, of_others):
    """Add what one output after the first contributes to splits.

    Its similarities are -inf where its leaf weights are not in the order that is asked for.
    """
    (sign, left_start), similarities, hessians = constraint, of_others[0], of_others[1]
    scales, total = scales_of(search.scales, output), tree.sums[task.node, OWN, output]
    inherited = inherited_from(tree.outputs[task.node, output], search.params.path_smooth)
    for position in range(len(sums)):
        before = sums[np.uint64(position)]
        left, right, left_weight, right_weight, left_hessian, _ = weigh_sides(
            left_start + before, total, scales, inherited, search.params
        )
        is_allowed = (sign * (right_weight - left_weight) >= 0.0) | (before == 0)
        similarities[np.uint64(position)] += left + right if is_allowed else -np.inf
        hessians[np.uint64(position)] += left_hessian


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
