"""Linear leaves: the leaves of a grown tree become linear functions of their path's features.

What is added up over the rows of a leaf is cut to whole numbers of a fine step before, so no
sum depends on the order of the rows, nor on how threads and machines divide them. The step comes
from a bound on the sum. What that leaves is added up in the same way, in finer steps: few rows
may be far larger than all others, and a sum of small numbers has to be as good as in float64.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import power_of_2_in
from sklboost.engine.model import LINEAR_TERM_DTYPE, LinearLeaves, Trees
from sklboost.engine.parallel import FAR_APART, ThreadTeam, assemble, barrier, next_task, share
from sklboost.engine.structs import TreeParams, records
from sklboost.tree.core.formulas import leaf_weight
from sklboost.tree.core.quantization import Derivatives
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import find_leaves, linear_part
from sklboost.tree.predict.trees import join_linear

# A feature gets no slope if the features before it explain all but this part of its variance.
# Squares in float64 are good to about 1e-15.
_LEAST_PIVOT = 1e-10
# Differences of values below this, and their products with slopes, are finite.
_LARGEST_VALUE = 1e150
# A mean square distance from the centre, as part of the reach's square, that is rounding error.
_LEAST_SQUARE = 1e-14
# Sums have fewer than twice as many steps, so int64 holds them.
_MOST_STEPS = 2.0**61
# Derivatives below this count as this where a step is chosen, so that it is a float64.
_LEAST_BOUND = 2.0**-900


Exchange = Callable[[np.ndarray], np.ndarray]


class LeafTask(NamedTuple):
    """The tree whose leaves are fitted, and the data."""

    nodes: np.recarray
    raw: RawMatrix
    derivatives: Derivatives  # A hessian of 0: the row is not counted
    params: TreeParams
    n_samples: int  # rows of all machines


class LeafRows(NamedTuple):
    """Which rows each leaf has."""

    leaf_of: np.ndarray  # int32, shape (n_samples,)
    # uint32, shape (n_samples,): the rows that are counted, leaf after leaf
    order: np.ndarray
    starts: np.ndarray  # int64, shape (n_nodes + 2,): node k has ``order[starts[k]:starts[k + 1]]``


# Of a leaf: numbers of rows, and sums over those that have a finite value of each term: in steps,
# and of what is left in finer ones.
TOTALS_DTYPE = np.dtype(
    [(name, np.int64, 2) for name in ("gradient", "hessian")]
    + [(name, np.int64) for name in ("absolute_gradient", "n_complete", "n_incomplete")]
)


class LeafSums(NamedTuple):
    """What is known of the rows of each leaf: first of this machine's, then of all machines'."""

    largest: np.ndarray  # float64, shape (n_nodes, 2): |gradient| and hessian
    ranges: np.ndarray  # float64, shape (n_terms, 2): minus the smallest value, and the largest
    n_varying: np.ndarray  # int64, shape (n_nodes,): number of terms that vary, which come first
    totals: np.recarray  # shape (n_nodes,)
    # int64, shape (n_terms, 2): sums of the hessian times (value - smallest) / (largest - smallest)
    means: np.ndarray
    reach: np.ndarray  # float64, shape (n_terms,): the largest distance from the centre
    # int64, shape (n_products, 2): from ``first_products[k]`` on those of node k: for each of its
    # terms the sums of the gradient times the term, then of the hessian times the term times each
    # up to this one
    products: np.ndarray
    first_products: np.ndarray


class LeafScratch(NamedTuple):
    """Scratch of a leaf's regression.

    The first axis is threads, the second of length `most_terms` or more: places of terms.
    """

    # float64
    values: np.ndarray  # of one row: distances from the centre as parts of the reach
    target: np.ndarray
    slopes: np.ndarray
    # with a third axis of length `most_terms`: lower triangle: sums of products, then their
    # Cholesky factor
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


@inlined
def steps_of_1(largest, n_samples):
    """Return how many steps 1 has in a sum of at most `n_samples` numbers up to `largest`."""
    return power_of_2_in(_MOST_STEPS / n_samples) / power_of_2_in(max(largest, _LEAST_BOUND))


@inlined
def steps_of_step(total, n_rows):
    """Return how many finer steps a step has in a sum of parts of the numbers in `total`."""
    # whose fractions were left out
    return _MOST_STEPS / power_of_2_in(np.float64(total + n_rows))


@inlined
def finer_steps(n_samples):
    """Return how many finer steps a step has in a sum of what is left of `n_samples` numbers."""
    return power_of_2_in(_MOST_STEPS / n_samples)  # less than a step of each


@inlined
def add_steps(sums, steps, finer):
    """Add a number of steps to a sum: whole ones, and what is left in finer ones."""
    whole = np.int64(steps)
    sums[0] += whole
    sums[1] += np.int64((steps - np.float64(whole)) * finer)


@inlined
def steps_in(sums, finer):
    """Return a sum as a number of steps, float64."""
    return sums[0] + sums[1] / finer


@kernel
def is_complete(raw, row, terms):
    """Whether a row has a finite value of each term."""
    whole = True
    for place in range(len(terms)):
        whole &= abs(value_at(raw, row, terms[place].feature)) < np.inf
    return whole


@kernel
def find_ranges(task, leaf, order, linear, sums):
    """Find the largest derivatives of a leaf, and the ranges of the finite values of its terms."""
    largest = sums.largest[leaf]
    for row in order:
        gradient, hessian = weighted(task.derivatives, np.int64(row))
        largest[0], largest[1] = max(largest[0], abs(gradient)), max(largest[1], hessian)
    for index in range(linear.starts[leaf], linear.starts[leaf + 1]):
        lower, upper = np.inf, -np.inf
        for row in order:
            value = value_at(task.raw, np.int64(row), linear.terms[index].feature)
            if abs(value) < np.inf:
                lower, upper = min(lower, value), max(upper, value)
        sums.ranges[index, 0], sums.ranges[index, 1] = -lower, upper


@kernel
def keep_varying(leaf, linear, sums):
    """Put the terms of a leaf that can have a slope before the others.

    A feature without two different finite values cannot, nor one whose sums might overflow.
    """
    first, largest, n_varying = linear.starts[leaf], sums.largest[leaf], np.int64(0)
    for index in range(first, linear.starts[leaf + 1]):
        lower, upper = -sums.ranges[index, 0], sums.ranges[index, 1]
        is_finite = max(-lower, upper) < _LARGEST_VALUE and max(largest[0], largest[1]) < np.inf
        if lower < upper and is_finite:
            place = first + n_varying
            linear.terms[place].feature = linear.terms[index].feature
            sums.ranges[place, 0], sums.ranges[place, 1] = -lower, upper
            n_varying += 1
    sums.n_varying[leaf] = n_varying


@kernel
def add_means(task, leaf, order, linear, sums):
    """Add up the derivatives of a leaf's complete rows, and the means of its terms."""
    if sums.n_varying[leaf] == 0:
        return
    terms = linear.terms[linear.starts[leaf] :][: sums.n_varying[leaf]]
    ranges, means = sums.ranges[linear.starts[leaf] :], sums.means[linear.starts[leaf] :]
    largest, totals = sums.largest[leaf], sums.totals[leaf]
    gradient_steps = steps_of_1(largest[0], task.n_samples)
    hessian_steps, finer = steps_of_1(largest[1], task.n_samples), finer_steps(task.n_samples)
    for number in order:
        row = np.int64(number)
        if not is_complete(task.raw, row, terms):
            totals.n_incomplete += 1
            continue
        g, h = weighted(task.derivatives, row)
        g, h = g * gradient_steps, h * hessian_steps
        add_steps(totals.gradient, g, finer)
        add_steps(totals.hessian, h, finer)
        totals.absolute_gradient += np.int64(abs(g))
        totals.n_complete += 1
        for place in range(len(terms)):
            lower, upper = -ranges[place, 0], ranges[place, 1]
            value = value_at(task.raw, row, terms[place].feature)
            add_steps(means[place], h * ((value - lower) / (upper - lower)), finer)


@kernel
def find_centres(task, leaf, linear, sums):
    """Fill the centres of a leaf's terms and the reach."""
    first, finer = linear.starts[leaf], finer_steps(task.n_samples)
    hessian = steps_in(sums.totals[leaf].hessian, finer)
    for index in range(first, first + sums.n_varying[leaf]):
        lower, upper = -sums.ranges[index, 0], sums.ranges[index, 1]
        mean = steps_in(sums.means[index], finer) / hessian if hessian > 0.0 else 0.0
        centre = lower + mean * (upper - lower)
        linear.terms[index].centre = centre
        sums.reach[index] = max(upper - centre, centre - lower)


@inlined
def product_steps(task, leaf, sums):
    """Return how many steps 1 has in the sums of products of gradients, and of hessians."""
    largest, totals = sums.largest[leaf], sums.totals[leaf]
    gradient_steps = steps_of_step(totals.absolute_gradient, totals.n_complete)
    hessian_steps = steps_of_step(totals.hessian[0], totals.n_complete)
    gradient_steps *= steps_of_1(largest[0], task.n_samples)
    return gradient_steps, hessian_steps * steps_of_1(largest[1], task.n_samples)


@kernel
def add_products(task, leaf, order, linear, sums, values):
    """Add up the system that the slopes solve, in units of the reach; `values` is scratch."""
    if sums.totals[leaf].n_complete == 0:
        return
    terms = linear.terms[linear.starts[leaf] :][: sums.n_varying[leaf]]
    reach, products = sums.reach[linear.starts[leaf] :], sums.products[sums.first_products[leaf] :]
    gradient_steps, hessian_steps = product_steps(task, leaf, sums)
    finer = finer_steps(task.n_samples)
    for number in order:
        row = np.int64(number)
        if not is_complete(task.raw, row, terms):
            continue
        g, h = weighted(task.derivatives, row)
        g, h = g * gradient_steps, h * hessian_steps
        for place in range(len(terms)):
            distance = value_at(task.raw, row, terms[place].feature) - terms[place].centre
            values[place] = distance / reach[place]
        index = 0
        for place in range(len(terms)):
            add_steps(products[index], g * values[place], finer)
            for other in range(place + 1):
                product = h * values[place] * values[other]
                add_steps(products[index + 1 + other], product, finer)
            index += place + 2


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
def fit_leaf(task, leaf, linear, sums, scratch):
    """Fill slopes and shift of one leaf.

    A term whose slope stays NaN will be no term of the leaf: its values may be missing.
    """
    params, totals, finer = task.params, sums.totals[leaf], finer_steps(task.n_samples)
    hessian = steps_in(totals.hessian, finer)
    hessian /= steps_of_1(sums.largest[leaf, 1], task.n_samples)
    if not hessian > 0.0 or hessian < params.min_child_weight:
        return
    terms = linear.terms[linear.starts[leaf] :][: sums.n_varying[leaf]]
    reach = sums.reach[linear.starts[leaf] :]
    gradient_steps, hessian_steps = product_steps(task, leaf, sums)
    index = sums.first_products[leaf]
    for place in range(len(terms)):
        scratch.target[place] = -steps_in(sums.products[index], finer) / gradient_steps
        for other in range(place + 1):
            total = steps_in(sums.products[index + 1 + other], finer)
            scratch.matrix[place, other] = total / hessian_steps
        index += place + 2
    slopes = scratch.slopes[: len(terms)]
    least = _LEAST_SQUARE * hessian
    solve(scratch.matrix, params.linear_lambda, least, scratch.target, slopes)
    for place in range(len(terms)):
        if not abs(slopes[place]) / reach[place] < np.inf:
            return
    is_linear = False
    for place in range(len(terms)):
        if scratch.matrix[place, place] > 0.0:
            # by pivots, since a slope of 0 here may be 1e-17 elsewhere, and the shift is large
            terms[place].slope = params.learning_rate * slopes[place] / reach[place]
            is_linear = True
    if is_linear and totals.n_incomplete > 0:
        # from the leaf's own weight, which the value may not be: path_smooth moves it
        gradient = steps_in(totals.gradient, finer)
        gradient /= steps_of_1(sums.largest[leaf, 0], task.n_samples)
        weight = leaf_weight(gradient, hessian, params)
        weight -= leaf_weight(task.nodes[leaf].gradient, task.nodes[leaf].cover, params)
        linear.shifts[leaf] = params.learning_rate * weight


_COUNTER = np.int64(0)  # of the team: it hands out the leaves
# The steps of the fit of a leaf, after all but the last of which machines exchange what they have.
_RANGES, _MEANS, _PRODUCTS, _SLOPES = (np.int64(step) for step in range(4))
_N_STEPS = 4


@kernel
def fit_leaves(team, steps, task, rows, linear, sums, scratches):
    """Do the steps ``[first, stop)`` of the fit of a tree's leaves; the first sorts the rows, too.

    The terms have their features.
    """
    if not assemble(team):
        return
    if steps[0] == _RANGES:
        if team.rank == 0:
            sort_rows(task.derivatives, rows)
        barrier(team)
    scratch = LeafScratch(
        scratches.values[team.rank],
        scratches.target[team.rank],
        scratches.slopes[team.rank],
        scratches.matrix[team.rank],
    )
    leaf = next_task(team, _COUNTER, len(task.nodes))
    while leaf < len(task.nodes):
        order = rows.order[rows.starts[leaf] : rows.starts[leaf + 1]]
        if linear.starts[leaf] < linear.starts[leaf + 1]:
            # one after the other: the rows of the leaf are in the cache
            for step in range(steps[0], steps[1]):
                if step == _RANGES:
                    find_ranges(task, leaf, order, linear, sums)
                elif step == _MEANS:
                    keep_varying(leaf, linear, sums)
                    add_means(task, leaf, order, linear, sums)
                elif step == _PRODUCTS:
                    find_centres(task, leaf, linear, sums)
                    add_products(task, leaf, order, linear, sums, scratch.values)
                else:
                    fit_leaf(task, leaf, linear, sums, scratch)
        leaf = next_task(team, _COUNTER, len(task.nodes))


@kernel
def find_limits(team, task, rows, linear, parts):
    """Find what the lines give the rows of each leaf: minus the smallest, or 0, and the largest."""
    if not assemble(team):
        return
    leaf = next_task(team, _COUNTER, len(task.nodes))
    while leaf < len(task.nodes):
        if linear.starts[leaf] < linear.starts[leaf + 1]:
            least, most = 0.0, 0.0
            for row in rows.order[rows.starts[leaf] : rows.starts[leaf + 1]]:
                part = linear_part(linear, leaf, task.raw, np.int64(row))
                least, most = min(least, part), max(most, part)
            parts[leaf, 0], parts[leaf, 1] = -least, most
        leaf = next_task(team, _COUNTER, len(task.nodes))


@kernel
def add_linear_parts(team, raw, leaf_of, linear, raw_score):
    """Add to each row's raw score what its leaf adds to its value."""
    if not assemble(team):
        return
    start, stop = share(team, len(leaf_of))
    for row in range(start, stop):
        raw_score[row] += linear_part(linear, np.int64(leaf_of[row]), raw, row)


def fit_linear_leaves(
    team: ThreadTeam,
    trees: Trees,
    raw: RawMatrix,
    derivatives: Derivatives,
    params: TreeParams,
    raw_score: np.ndarray,
    n_samples: int,
    everywhere: tuple[Exchange, ...] | None,
) -> LinearLeaves:
    """Make the leaves of the trees of one round linear, one tree for each output.

    `raw` are the values that the trees were grown on, `derivatives` are of all outputs; a row of
    hessian 0 is not counted. `raw_score`, float64 of shape (n_outputs, n_samples), has the trees'
    values; the linear parts are added in place. `everywhere` returns the elementwise maximum of an
    array of float64, and the sum of one of int64, over all machines, which have `n_samples` rows;
    None: there is one machine.
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
        task = LeafTask(nodes, raw, derivatives_of_output, params, n_samples)
        # each feature once
        most_terms = (len(nodes) + 1) // 2 * min(int(model.depths[output]), raw.n_features)
        leaf_of = leaves[:, output].copy()
        linear = _fit_tree(team, task, leaf_of, most_terms, everywhere)
        team.run(add_linear_parts, raw, leaf_of, linear, raw_score[output])
        parts.append((linear, len(nodes)))
    joined = join_linear(parts)
    assert joined is not None
    return joined


def _fit_tree(
    team: ThreadTeam,
    task: LeafTask,
    leaf_of: np.ndarray,
    most_terms: int,
    everywhere: tuple[Exchange, ...] | None,
) -> LinearLeaves:
    n_nodes = len(task.nodes)
    starts, unlimited = np.empty(n_nodes + 1, dtype=np.int64), np.full((n_nodes, 2), np.inf)
    unlimited[:, 0] = -np.inf
    terms = records(most_terms, LINEAR_TERM_DTYPE)
    linear = LinearLeaves(starts, np.zeros(n_nodes), unlimited, terms)
    list_features(task.nodes, np.empty(n_nodes, dtype=np.int64), linear)
    order = np.empty(len(leaf_of), dtype=np.uint32)
    rows = LeafRows(leaf_of, order, np.zeros(n_nodes + 2, dtype=np.int64))
    most = int(np.diff(starts).max())
    wide = (team.size, most + FAR_APART)
    values, target, slopes = np.empty((3, *wide))
    scratch = LeafScratch(values, target, slopes, np.empty((*wide, most)))
    n_terms, n_totals = np.diff(starts), n_nodes * TOTALS_DTYPE.itemsize // 8
    first_products = np.concatenate([[0], np.cumsum(n_terms * (n_terms + 3) // 2)])
    maxima = np.full((n_nodes + starts[-1], 2), -np.inf)
    counts = np.zeros(n_totals + 2 * starts[-1], dtype=np.int64)
    sums = LeafSums(
        largest=maxima[:n_nodes],
        ranges=maxima[n_nodes:],
        n_varying=np.zeros(n_nodes, dtype=np.int64),
        totals=counts[:n_totals].view(TOTALS_DTYPE).view(np.recarray),
        means=counts[n_totals:].reshape(-1, 2),
        reach=np.empty(starts[-1]),
        products=np.zeros((first_products[-1], 2), dtype=np.int64),
        first_products=first_products,
    )
    first = _RANGES
    if everywhere is not None:
        largest, total = everywhere
        team.run(fit_leaves, (_RANGES, _MEANS), task, rows, linear, sums, scratch)
        maxima[:] = largest(maxima)
        team.run(fit_leaves, (_MEANS, _PRODUCTS), task, rows, linear, sums, scratch)
        counts[:] = total(counts)
        team.run(fit_leaves, (_PRODUCTS, _SLOPES), task, rows, linear, sums, scratch)
        # of the terms that vary, which come first
        n_products, n_used = np.diff(first_products), sums.n_varying * (sums.n_varying + 3) // 2
        places = np.arange(first_products[-1]) - np.repeat(first_products[:-1], n_products)
        is_used = places < np.repeat(n_used, n_products)
        sums.products[is_used] = total(sums.products[is_used].ravel()).reshape(-1, 2)
        first = _SLOPES
    team.run(fit_leaves, (first, _N_STEPS), task, rows, linear, sums, scratch)
    # no term without slope, since rows may miss its feature
    found = linear.terms[: starts[-1]].view(np.recarray)
    has_slope = ~np.isnan(found.slope)
    n_before = np.concatenate([[0], np.cumsum(has_slope)])
    linear = linear._replace(starts=n_before[starts], terms=found[has_slope])
    parts = np.zeros((n_nodes, 2))
    team.run(find_limits, task, rows, linear, parts)
    if everywhere is not None:
        parts = everywhere[0](parts)
    least, most = (parts * [-1.0, 1.0] + 0.0).T  # 0.0 in the place of -0.0
    # within `max_delta_step`, unless the leaf is constant
    step, values = task.params.learning_rate * task.params.max_delta_step, task.nodes.value
    # a rate of 0 times a step without limit is NaN, and no limit
    limits = np.column_stack([np.fmax(least, -step - values), np.fmin(most, step - values)])
    return linear._replace(limits=np.where(np.diff(linear.starts)[:, np.newaxis] > 0, limits, 0.0))


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
