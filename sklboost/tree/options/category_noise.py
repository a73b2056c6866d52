"""What the gain of a split on categories would be if their weights were not partly noise.

The categories of a node are sorted by the means of their gradients, so the best split also follows
the noise of these means, the more the more categories there are. Each mean is therefore moved
towards that of all by the part of it that is noise, an empirical Bayes estimate from the node
itself, and gains are those of the sums that follow::

    phi    = spread within categories / degrees of freedom       G of a category varies by phi H
    tau^2  = what the means vary beyond that                     0 or more
    noise  = k / (H + k)   with   k = max(phi / tau^2, cat_smooth)

Without noise, phi is 0 and a category of four rows is known as well as it ever will be; with noise
and no effect, tau^2 is 0 and the gain of all splits is that of none. Only the choice of the split
depends on it: leaf weights, and the gain that the model keeps, are those of the rows.

Source: the analysis of variance with random effects; Efron and Morris (1973), "Stein's Estimation
Rule and Its Competitors". In LightGBM and CatBoost, the prior is a parameter.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel, late
from sklboost.tree.core.quantization import gradient_of, hessian_of, pack, scales_of, unpack
from sklboost.tree.options.feature_cells import missing_cell_of

# A feature of numbers is chosen for the luck of its best place, too: so many categories are free.
_FREE = 2.0
# Weights are added up as whole numbers of this, so that no order of the rows changes the sum.
_WEIGHT_STEP = 2.0**-16
_GRADIENT_LIMIT = 2.0**31 - 1.0


@kernel
def sum_spread(derivatives, packed, workspace, node, output):
    """Return two sums over a node's rows, as integers: ``g^2 / h``, and the weights."""
    tree, partition = workspace.tree, workspace.partition
    lists, weights = partition.lists[tree.growth[node].depth % 2], derivatives.weight
    spread, weight = np.int64(0), np.int64(0)
    for block in range(partition.n_counted):
        row_list = lists[partition.start[block, node] : partition.stop[block, node]]
        for row in row_list:
            value = packed[output, np.uint64(row)]
            gradient = np.float64(gradient_of(value))
            # of one output of several, a target may be unknown: no gradient and no hessian
            spread += np.int64(gradient * gradient / max(hessian_of(value), 1) + 0.5)
            if len(weights) > 0:
                weight += np.int64(weights[np.uint64(row)] / _WEIGHT_STEP + 0.5)
        if len(weights) == 0:
            weight += np.int64(len(row_list) / _WEIGHT_STEP)
    return spread, weight


@kernel
def keep_spread(derivatives, scales, known, sums):
    """Keep the sums of :func:`sum_spread` as numbers; `known` is of the node and the output."""
    known.spread = sums[0] * scales[0] * scales[0] / scales[1]
    known.total_weight = sums[1] * _WEIGHT_STEP * derivatives.weight_scale


@kernel
def sum_spreads(derivatives, workspace, sums):
    """Fill `sums`, int64 of shape (n_searched, n_outputs, 2), with those of each searched node.

    Python calls it and :func:`keep_spreads` where the rows are on several machines.
    """
    packed = workspace.gradients.packed
    for index in range(sums.shape[0]):
        node = workspace.tree.searched[index]
        for output in range(sums.shape[1]):
            spread, weight = sum_spread(derivatives, packed, workspace, node, output)
            sums[index, output, 0], sums[index, output, 1] = spread, weight


@kernel
def keep_spreads(derivatives, workspace, sums):
    """Keep what :func:`sum_spreads` has filled, of all machines."""
    tree = workspace.tree
    for index in range(sums.shape[0]):
        for output in range(sums.shape[1]):
            known = tree.outputs[tree.searched[index], output]
            pair = sums[index, output, 0], sums[index, output, 1]
            keep_spread(derivatives, scales_of(workspace.gradients.scales, output), known, pair)


@kernel
def spread_of(search, workspace, node, output):
    """Return the sum of ``g^2 / h`` of a node's rows, and the sum of their weights.

    They are kept in ``tree.outputs`` for other features of the node. Members that search these at
    the same time may each find them: then both write the same numbers, and none reads one that is
    not there yet.
    """
    known, derivatives = workspace.tree.outputs[node, output], search.derivatives
    if known.spread < 0.0 or known.total_weight < 0.0:
        sums = sum_spread(derivatives, search.packed, workspace, node, output)
        keep_spread(derivatives, scales_of(search.scales, output), known, sums)
    return known.spread, known.total_weight


@inlined
def noise_strength(moments, of_missing, spread, total_weight, cat_smooth):
    """Return ``1 / k``.

    `moments` are sums over the categories: their number, G, H, G^2 / H and H^2; `of_missing` is
    G^2 / H of missing values, which are one more category, or -1 if there are none.
    """
    n_categories, gradient, hessian, similarities, squares = moments
    between = similarities - gradient * gradient / hessian
    within = max(spread - similarities - max(of_missing, 0.0), 0.0)
    freedom = max(total_weight - n_categories - (of_missing >= 0.0), 0.0)
    # one row more, as spread as all are: where each category has one, nothing is known of `within`
    of_all = (within + between) / max(total_weight - 1.0, 1.0)
    noise = (within + of_all) / (freedom + 1.0)
    excess = max(between - (n_categories - 1.0) * noise, 0.0)
    room = noise * (hessian - squares / hessian)
    return excess / room if excess * cat_smooth < room else 1.0 / cat_smooth


@late()
def shrink_sums(search, workspace, node, output, feature, bins, sums):
    """Replace the sums before each category of the scan by those without noise.

    Parameters
    ----------
    search : Search
    workspace : Workspace
        What is known of the node's spread is kept in ``tree.outputs``.
    node, output, feature : int
    bins : ndarray of int64, shape (n_categories,)
        The categories that the node has, in the order of the scan.
    sums : ndarray of int64
        Packed sums of the output before each of them. The gradients are modified.
    """
    cat_smooth, matrix = search.params.cat_smooth, search.matrix
    charged = 1.0 - _FREE / max(len(bins) - 1.0, 1.0)
    if cat_smooth == 0.0 or charged <= 0.0:
        return
    histogram, scales = workspace.pool.histograms, scales_of(search.scales, output)
    n_lanes = histogram.shape[2] // matrix.cell_starts[-1]
    strip = histogram[workspace.tree.growth[node].slot, output // n_lanes]
    first = matrix.places[feature].first_cell * n_lanes + output % n_lanes
    moments = sum_moments(strip[first:], n_lanes, scales, bins)
    of_missing = -1.0
    if matrix.has_missing[feature] == 1:
        missing = strip[missing_cell_of(matrix, feature) * n_lanes + output % n_lanes]
        gradient, hessian = unpack(missing, scales)
        of_missing = gradient * gradient / hessian if missing != 0 else -1.0
    if moments[2] == 0.0:
        return  # the targets of this output are unknown in all rows of the node
    spread, total_weight = spread_of(search, workspace, node, output)
    strength = noise_strength(moments, of_missing, spread, total_weight, cat_smooth)
    shrink_with(strip[first:], n_lanes, scales, (strength, charged), bins, sums)


@kernel
def sum_moments(numbers, n_lanes, scales, bins):
    """Return the number of categories and the sums of G, H, G^2 / H and H^2 over them."""
    gradients, hessians, similarities, squares = 0.0, 0.0, 0.0, 0.0
    for bin_ in bins:
        gradient, hessian = unpack(numbers[bin_ * n_lanes], scales)
        gradients += gradient
        hessians += hessian
        similarities += gradient * gradient / max(hessian, scales[1])
        squares += hessian * hessian
    return np.float64(len(bins)), gradients, hessians, similarities, squares


@kernel
def shrink_with(numbers, n_lanes, scales, prior, bins, sums):
    """Move the gradients of categories towards their mean, and add them up in `sums`.

    What is left of a category's difference from the mean is ``1 - charged / (1 + strength H)``.
    """
    strength, charged = prior
    gradients, hessians, left_gradients, left_hessians = 0.0, 0.0, 0.0, 0.0
    for bin_ in bins:
        gradient, hessian = unpack(numbers[bin_ * n_lanes], scales)
        left = 1.0 - charged / (1.0 + strength * hessian)
        gradients += gradient
        hessians += hessian
        left_gradients += left * gradient
        left_hessians += left * hessian
    # weighted so that the sum over all categories stays what it is
    mean, middle = gradients / hessians, left_gradients / left_hessians
    before, hessian_before = 0.0, np.int64(0)
    for position in range(len(bins)):
        whole = np.round(before / scales[0])
        sums[position] = pack(min(max(whole, -_GRADIENT_LIMIT), _GRADIENT_LIMIT), hessian_before)
        number = numbers[bins[position] * n_lanes]
        gradient, hessian = unpack(number, scales)
        left = 1.0 - charged / (1.0 + strength * hessian)
        before += hessian * mean + left * (gradient - hessian * middle)
        hessian_before += hessian_of(number)
