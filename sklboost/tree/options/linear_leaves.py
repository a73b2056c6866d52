"""Linear leaves: the leaves of a grown tree become linear functions of their path's features."""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.model import LINEAR_TERM_DTYPE, LinearLeaves, Trees
from sklboost.engine.parallel import FAR_APART, ThreadTeam, assemble, barrier, next_task, share
from sklboost.engine.structs import TreeParams, records
from sklboost.tree.core.formulas import leaf_weight
from sklboost.tree.core.quantization import Derivatives
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import find_leaves, linear_part
from sklboost.tree.predict.trees import join_linear

# A feature gets no slope if the features before it explain all but this part of its variance.
# float64 sums of squares are good to about 1e-15.
_LEAST_PIVOT = 1e-10
# Products of two values below this, a hessian and a weight are finite.
_LARGEST_VALUE = 1e150
# A mean square distance from the centre, as part of the reach's square, that is rounding error.
_LEAST_SQUARE = 1e-14


class LeafTask(NamedTuple):
    """The tree whose leaves are fitted, and the data."""

    nodes: np.recarray
    raw: RawMatrix
    derivatives: Derivatives  # A hessian of 0: the row is not counted
    params: TreeParams


class LeafScratch(NamedTuple):
    """Scratch of a leaf's regression.

    The first axis is threads, the second of length `most_terms` or more. Place i is for the term
    ``kept[i]``.
    """

    kept: np.ndarray  # int64: numbers of the terms that vary
    # float64: the smallest and the largest value
    lower: np.ndarray
    upper: np.ndarray
    reach: np.ndarray  # float64: the largest distance from the centre
    values: np.ndarray  # float64: of one row: distances from the centre as parts of the reach
    # float64
    target: np.ndarray
    slopes: np.ndarray
    # float64, with a third axis of length `most_terms`: lower triangle: sums of products, then
    # their Cholesky factor
    matrix: np.ndarray


@inlined
def value_at(raw, row, feature):
    """Return one value as float64."""
    return np.float64(raw.values[row * raw.row_step + feature * raw.feature_step])


@inlined
def weighted(derivatives, row):
    """Return gradient and hessian of a row, times its weight."""
    weight = 1.0
    if len(derivatives.weight) > 0:
        weight = derivatives.weight[row] * derivatives.weight_scale
    units = derivatives.units
    gradient, hessian = derivatives.gradient[row], derivatives.hessian[row]
    return gradient * (weight * units[0]), hessian * (weight * units[1])


@kernel
def keep_varying(raw, order, terms, scratch):
    """Fill ``scratch.kept`` with the terms that can have a slope; return how many. Also ranges.

    A feature without two different finite values cannot, nor one whose sums might overflow.
    """
    n_kept = 0
    for index in range(len(terms)):
        lower, upper = np.inf, -np.inf
        for row in order:
            value = value_at(raw, np.int64(row), terms[index].feature)
            if abs(value) < np.inf:
                lower, upper = min(lower, value), max(upper, value)
        if lower < upper and max(-lower, upper) < _LARGEST_VALUE:
            scratch.kept[n_kept], scratch.lower[n_kept], scratch.upper[n_kept] = index, lower, upper
            n_kept += 1
    return n_kept


@kernel
def is_complete(raw, row, terms, kept):
    """Whether a row has a finite value of each kept feature."""
    whole = True
    for index in kept:
        whole &= abs(value_at(raw, row, terms[index].feature)) < np.inf
    return whole


@kernel
def find_centres(task, order, terms, kept, scratch):
    """Fill the centres of the kept terms and the reach; return G, H and number of complete rows."""
    gradient, hessian, n_rows = 0.0, 0.0, 0
    means = scratch.values
    means[:] = 0.0
    for number in order:
        row = np.int64(number)
        if is_complete(task.raw, row, terms, kept):
            g, h = weighted(task.derivatives, row)
            gradient, hessian, n_rows = gradient + g, hessian + h, n_rows + 1
            for place in range(len(kept)):
                # from the smallest value on: terms of one sign lose no digits
                value = value_at(task.raw, row, terms[kept[place]].feature)
                means[place] += h * (value - scratch.lower[place])
    for place in range(len(kept)):
        centre = scratch.lower[place] + means[place] / max(hessian, 1e-300)
        terms[kept[place]].centre = centre
        scratch.reach[place] = max(scratch.upper[place] - centre, centre - scratch.lower[place])
    return gradient, hessian, n_rows


@kernel
def add_products(task, order, terms, kept, scratch):
    """Fill matrix and target of the system that the slopes solve, in units of the reach."""
    scratch.matrix[: len(kept)] = 0.0
    scratch.target[: len(kept)] = 0.0
    for number in order:
        row = np.int64(number)
        if not is_complete(task.raw, row, terms, kept):
            continue
        g, h = weighted(task.derivatives, row)
        for place in range(len(kept)):
            term = terms[kept[place]]
            distance = value_at(task.raw, row, term.feature) - term.centre
            scratch.values[place] = distance / scratch.reach[place]
        for place in range(len(kept)):
            value = scratch.values[place]
            scratch.target[place] -= g * value
            for other in range(place + 1):
                scratch.matrix[place, other] += h * value * scratch.values[other]


@kernel
def solve(matrix, penalty, least, target, slopes):
    """Fill `slopes` with the solution of ``(A + penalty * identity) slopes = target``.

    A is symmetric and positive semidefinite. Its lower triangle, in `matrix`, is overwritten with a
    Cholesky factor. A feature that the ones before it determine gets slope 0 and pivot 0, and so
    does one whose diagonal in A is not above `least`.
    """
    n_slopes = len(slopes)
    for row in range(n_slopes):
        varies = matrix[row, row] > least
        matrix[row, row] += penalty
        diagonal = matrix[row, row]
        for column in range(row + 1):
            total = matrix[row, column]
            for before in range(column):
                total -= matrix[row, before] * matrix[column, before]
            if column < row:
                pivot = matrix[column, column]
                matrix[row, column] = total / pivot if pivot > 0.0 else 0.0
            else:
                is_new = varies and total > _LEAST_PIVOT * diagonal
                matrix[row, row] = math.sqrt(total) if is_new else 0.0
    for row in range(n_slopes):
        total = target[row]
        for before in range(row):
            total -= matrix[row, before] * slopes[before]
        slopes[row] = total / matrix[row, row] if matrix[row, row] > 0.0 else 0.0
    for row in range(n_slopes - 1, -1, -1):
        total = slopes[row]
        for after in range(row + 1, n_slopes):
            total -= matrix[after, row] * slopes[after]
        slopes[row] = total / matrix[row, row] if matrix[row, row] > 0.0 else 0.0


@kernel
def fit_leaf(task, leaf, order, scratch, linear):
    """Fill slopes, centres and shift of one leaf, which has the rows `order`.

    A term whose slope stays NaN will be no term of the leaf: its values may be missing.
    """
    params = task.params
    terms = linear.terms[linear.starts[leaf] : linear.starts[leaf + 1]]
    kept = scratch.kept[: keep_varying(task.raw, order, terms, scratch)]
    gradient, hessian, n_rows = find_centres(task, order, terms, kept, scratch)
    if len(kept) == 0 or n_rows == 0 or hessian < params.min_child_weight:
        return
    add_products(task, order, terms, kept, scratch)
    slopes = scratch.slopes[: len(kept)]
    least = _LEAST_SQUARE * hessian
    solve(scratch.matrix, params.linear_lambda, least, scratch.target, slopes)
    for place in range(len(kept)):
        if not abs(slopes[place]) / scratch.reach[place] < np.inf:
            return
    is_linear = False
    for place in range(len(kept)):
        if scratch.matrix[place, place] > 0.0:
            # by pivots, since a slope of 0 here may be 1e-17 elsewhere, and the shift is large
            terms[kept[place]].slope = params.learning_rate * slopes[place] / scratch.reach[place]
            is_linear = True
    if is_linear and n_rows < len(order):
        # from the leaf's own weight, which the value may not be: path_smooth moves it
        weight = leaf_weight(gradient, hessian, params)
        weight -= leaf_weight(task.nodes[leaf].gradient, task.nodes[leaf].cover, params)
        linear.shifts[leaf] = params.learning_rate * weight


@kernel
def set_limits(task, leaf, order, linear):
    """Set the limits of a leaf to what its rows get, within `max_delta_step`.

    Called when terms without slope are dropped, since rows may miss their features.
    """
    value, params, limits = task.nodes[leaf].value, task.params, linear.limits[leaf]
    limits[0], limits[1] = -np.inf, np.inf
    least, most = 0.0, 0.0
    for row in order:
        part = linear_part(linear, leaf, task.raw, np.int64(row))
        least, most = min(least, part), max(most, part)
    largest = params.learning_rate * params.max_delta_step
    limits[0], limits[1] = max(least, -largest - value), min(most, largest - value)


_COUNTER = np.int64(0)  # of the team: it hands out the leaves


class LeafRows(NamedTuple):
    """Which rows each leaf has."""

    leaf_of: np.ndarray  # int32, shape (n_samples,)
    # uint32, shape (n_samples,): the rows that are counted, leaf after leaf, in increasing order
    order: np.ndarray
    starts: np.ndarray  # int64, shape (n_nodes + 2,): node k has ``order[starts[k]:starts[k + 1]]``


def fit_linear_leaves(
    team: ThreadTeam,
    trees: Trees,
    raw: RawMatrix,
    derivatives: Derivatives,
    params: TreeParams,
    raw_score: np.ndarray,
) -> LinearLeaves:
    """Make the leaves of the trees of one round linear, one tree for each output.

    `raw` are the values that the trees were grown on, `derivatives` are of all outputs; a row of
    hessian 0 is not counted. `raw_score`, float64 of shape (n_outputs, n_samples), has the trees'
    values; the linear parts are added in place.
    """
    model = assemble_model(trees, np.zeros(len(raw_score)), raw.n_features)
    leaves = find_leaves(team, model, raw)
    parts = []
    for output in range(len(raw_score)):
        start, stop = trees.starts[output], trees.starts[output + 1]
        nodes = model.nodes[start:stop].view(np.recarray)
        derivatives_of_output = derivatives._replace(
            gradient=derivatives.gradient[output],
            hessian=derivatives.hessian[output],
            units=derivatives.units[output],
        )
        task = LeafTask(nodes, raw, derivatives_of_output, params)
        # each feature once
        most_terms = (len(nodes) + 1) // 2 * min(int(model.depths[output]), raw.n_features)
        leaf_of = leaves[:, output].copy()
        linear = _fit_tree(team, task, leaf_of, most_terms, raw_score[output])
        parts.append((linear, len(nodes)))
    joined = join_linear(parts)
    assert joined is not None
    return joined


def _fit_tree(
    team: ThreadTeam,
    task: LeafTask,
    leaf_of: np.ndarray,
    most_terms: int,
    raw_score: np.ndarray,
) -> LinearLeaves:
    n_nodes = len(task.nodes)
    starts, limits = np.empty(n_nodes + 1, dtype=np.int64), np.zeros((n_nodes, 2))
    terms = records(most_terms, LINEAR_TERM_DTYPE)
    # the terms have their features, but no slopes yet
    linear = LinearLeaves(starts, np.zeros(n_nodes), limits, terms)
    list_features(task.nodes, np.empty(n_nodes, dtype=np.int64), linear)
    order = np.empty(len(leaf_of), dtype=np.uint32)
    rows = LeafRows(leaf_of, order, np.zeros(n_nodes + 2, dtype=np.int64))
    most = int(np.diff(linear.starts).max())
    wide = (team.size, most + FAR_APART)
    kept, matrix = np.empty(wide, dtype=np.int64), np.empty((*wide, most))
    lower, upper, reach, values, target, slopes = np.empty((6, *wide))
    scratch = LeafScratch(kept, lower, upper, reach, values, target, slopes, matrix)
    team.run(fit_leaves, task, rows, scratch, linear)
    found = linear.terms[: linear.starts[-1]].view(np.recarray)
    has_slope = ~np.isnan(found.slope)
    n_before = np.concatenate([[0], np.cumsum(has_slope)])
    linear = linear._replace(starts=n_before[linear.starts], terms=found[has_slope])
    team.run(add_linear_parts, task, rows, linear, raw_score)
    return linear


@kernel
def list_features(nodes, parents, linear):
    """Fill ``linear.starts``, and for each leaf its path's features, once each, without slope.

    Only features of numbers: the codes of categories are no numbers to multiply. `parents`, int64
    of shape (n_nodes,), is scratch.
    """
    n_terms = 0
    parents[0] = -1
    for leaf in range(len(nodes)):
        linear.starts[leaf] = n_terms
        if nodes[leaf].left >= 0:  # not a leaf; children lie behind their parent
            parents[nodes[leaf].left] = parents[nodes[leaf].right] = leaf
            continue
        node = parents[leaf]
        while node >= 0:
            is_new = not np.isnan(nodes[node].threshold)
            for term in linear.terms[linear.starts[leaf] : n_terms]:
                is_new = is_new and term.feature != nodes[node].feature
            if is_new:
                term = linear.terms[n_terms]
                term.feature, term.slope, term.centre = nodes[node].feature, np.nan, 0.0
                n_terms += 1
            node = parents[node]
    linear.starts[len(nodes)] = n_terms


@kernel
def sort_rows(derivatives, rows):
    """Fill ``rows.order`` and ``rows.starts``, which must be all 0, from ``rows.leaf_of``."""
    leaf_of, order, starts = rows.leaf_of, rows.order, rows.starts
    for row in range(len(leaf_of)):
        if derivatives.hessian[row] > 0.0:
            starts[leaf_of[row] + 2] += 1
    for place in range(2, len(starts)):
        starts[place] += starts[place - 1]
    # starts[k + 1] is where node k begins, and moves to its end
    for row in range(len(leaf_of)):
        if derivatives.hessian[row] > 0.0:
            place = leaf_of[row] + 1
            order[starts[place]] = row
            starts[place] += 1


@kernel
def fit_leaves(team, task, rows, scratches, linear):
    """Fill the linear leaves of a tree, whose terms have their features, and sort the rows.

    A leaf is one thread's, and its rows are added in their order: the same sums for any number of
    threads.
    """
    if not assemble(team):
        return
    if team.rank == 0:
        sort_rows(task.derivatives, rows)
    barrier(team)
    scratch = LeafScratch(
        scratches.kept[team.rank],
        scratches.lower[team.rank],
        scratches.upper[team.rank],
        scratches.reach[team.rank],
        scratches.values[team.rank],
        scratches.target[team.rank],
        scratches.slopes[team.rank],
        scratches.matrix[team.rank],
    )
    leaf = next_task(team, _COUNTER, len(task.nodes))
    while leaf < len(task.nodes):
        order = rows.order[rows.starts[leaf] : rows.starts[leaf + 1]]
        if linear.starts[leaf] < linear.starts[leaf + 1] and len(order) > 0:
            fit_leaf(task, leaf, order, scratch, linear)
        leaf = next_task(team, _COUNTER, len(task.nodes))


@kernel
def add_linear_parts(team, task, rows, linear, raw_score):
    """Set the limits of the linear leaves and add to each row's raw score what its leaf adds."""
    if not assemble(team):
        return
    leaf = next_task(team, _COUNTER, len(task.nodes))
    while leaf < len(task.nodes):
        if linear.starts[leaf] < linear.starts[leaf + 1]:
            order = rows.order[rows.starts[leaf] : rows.starts[leaf + 1]]
            set_limits(task, leaf, order, linear)
        leaf = next_task(team, _COUNTER, len(task.nodes))
    barrier(team)
    start, stop = share(team, len(rows.leaf_of))
    for row in range(start, stop):
        raw_score[row] += linear_part(linear, np.int64(rows.leaf_of[row]), task.raw, row)
