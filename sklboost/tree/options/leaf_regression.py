"""The ridge regression of one leaf on the features of its path.

The function f of a leaf minimises over its rows the loss that the tree was grown for,

    sum of g f(x) + h f(x)^2 / 2  +  reg_lambda w^2 / 2  +  linear_lambda / 2 sum (slope_j r_j)^2

where ``f(x) = w + sum of slope_j (x_j - centre_j)``. The centre is the mean of the rows, weighted
by h. So w is the weight of the constant leaf, and the slopes solve a system without it. r_j is the
largest distance from the centre: the unit of a feature does not matter then, and `linear_lambda`
limits the influence of a single row of tiny hessian, as `reg_lambda` does for w.

No row gets more from a leaf than the most, nor less than the least that one of the leaf's own rows
gets.

Source: Shi, Li & Li (2019), "Gradient Boosting With Piece-Wise Linear Regression Trees", and
LightGBM's `linear_tree`, whose rule for missing values this is: a row without a value of one of the
leaf's features gets the constant. r_j and the limits are new.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.structs import TreeParams
from sklboost.tree.core.formulas import leaf_weight
from sklboost.tree.core.quantization import Derivatives
from sklboost.tree.predict.prediction import linear_part

# A feature gets no slope if the features before it explain all but this part of its variance.
# float64 sums of squares are good to about 1e-15.
_LEAST_PIVOT = 1e-10
# Products of two values below this, a hessian and a weight are finite.
_LARGEST_VALUE = 1e150
# A mean square distance from the centre, as part of the reach's square, that is rounding error.
_LEAST_SQUARE = 1e-14


class LeafTask(NamedTuple):
    """What the leaves of one tree are fitted to."""

    nodes: np.recarray
    raw: RawMatrix
    derivatives: Derivatives  # A hessian of 0: the row is not counted
    params: TreeParams


class LeafScratch(NamedTuple):
    """What a leaf's regression writes on the way.

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


class Sums(NamedTuple):
    """Sums over the rows that have all values."""

    gradient: float
    hessian: float
    n_rows: int


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
    """Fill the centres of the kept terms and the reach; return the sums of the complete rows."""
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
    return Sums(gradient, hessian, n_rows)


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
    sums = find_centres(task, order, terms, kept, scratch)
    if len(kept) == 0 or sums.n_rows == 0 or sums.hessian < params.min_child_weight:
        return
    add_products(task, order, terms, kept, scratch)
    slopes = scratch.slopes[: len(kept)]
    least = _LEAST_SQUARE * sums.hessian
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
    if is_linear and sums.n_rows < len(order):
        # from the leaf's own weight, which the value may not be: path_smooth moves it
        weight = leaf_weight(sums.gradient, sums.hessian, params)
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
