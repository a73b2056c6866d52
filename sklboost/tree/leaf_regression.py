"""The ridge regression of one leaf on the features of its path.

In: the leaf's rows, raw values, derivatives. Out: slopes, and the range in which they hold.

A leaf minimises over its rows the same loss that the tree was grown for,

    sum of g f(x) + h f(x)^2 / 2  +  reg_lambda w^2 / 2  +  linear_lambda / 2 sum (slope_j d_j)^2

over functions ``f(x) = w + sum of slope_j (x_j - centre_j)``. The centre is the mean of the rows,
weighted by h, so that w is the leaf weight that there was, and the slopes solve a system of their
own. d_j is the feature's standard deviation within the leaf: its unit does not matter, and
`linear_lambda`, like `reg_lambda`, is an amount of hessian that speaks for no change.

Source: Shi, Li & Li (2019), "Gradient Boosting With Piece-Wise Linear Regression Trees", and
LightGBM's `linear_tree`, whose rule for missing values this is: a row that misses one of the leaf's
features gets the constant. New are d_j, and that a line ends where the leaf's rows end.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.compiling import kernel
from sklboost.data.raw import RawMatrix
from sklboost.structs import TreeParams
from sklboost.tree.formulas import leaf_weight
from sklboost.tree.quantization import Derivatives

# A feature of whose variance the features before it leave less than this part is one of them in
# other words. float64 sums of squares are good to about 1e-15.
_LEAST_PIVOT = 1e-10


class LeafTask(NamedTuple):
    """What the leaves of one tree are fitted to.

    Attributes
    ----------
    nodes : recarray of NODE_DTYPE, shape (n_nodes,)
    raw : RawMatrix
    derivatives : Derivatives
        A hessian of 0: the row is not counted.
    params : TreeParams
    """

    nodes: np.recarray
    raw: RawMatrix
    derivatives: Derivatives
    params: TreeParams


class LeafScratch(NamedTuple):
    """What a leaf's regression writes on the way; the first axis is threads.

    Attributes
    ----------
    kept : ndarray of int64, shape (n_threads, most_terms or more)
        Numbers of the terms that vary.
    values : ndarray of float64, shape (n_threads, most_terms or more)
        Of one row, centred and scaled.
    target, slopes : ndarray of float64, shape (n_threads, most_terms or more)
    matrix : ndarray of float64, shape (n_threads, most_terms or more, most_terms)
        Lower triangle: sums of products, then their Cholesky factor.
    """

    kept: np.ndarray
    values: np.ndarray
    target: np.ndarray
    slopes: np.ndarray
    matrix: np.ndarray


@kernel
def value_at(raw, row, feature):
    """Give one value as float64."""
    return np.float64(raw.values[row * raw.row_step + feature * raw.feature_step])


@kernel
def weighted(derivatives, row):
    """Give gradient and hessian of a row times its weight."""
    weight = 1.0
    if len(derivatives.weight) > 0:
        weight = derivatives.weight[row] * derivatives.unit
    return derivatives.gradient[row] * weight, derivatives.hessian[row] * weight


@kernel
def measure_ranges(raw, order, terms, kept):
    """Fill the terms' smallest and largest finite value; give how many terms are to be `kept`.

    A feature without two values, or whose range is no finite number, can have no slope.
    """
    for term in terms:
        term.lower, term.upper = np.inf, -np.inf
        term.slope, term.centre = 0.0, 0.0
    for row in order:
        for term in terms:
            value = value_at(raw, np.int64(row), term.feature)
            if abs(value) < np.inf:
                term.lower = min(term.lower, value)
                term.upper = max(term.upper, value)
    n_kept = 0
    for index in range(len(terms)):
        if 0.0 < terms[index].upper - terms[index].lower < np.inf:
            kept[n_kept] = index
            n_kept += 1
    return n_kept


@kernel
def is_complete(raw, row, terms, kept):
    """Tell whether a row has a finite value of each kept feature."""
    for index in kept:
        if not abs(value_at(raw, row, terms[index].feature)) < np.inf:
            return False
    return True


@kernel
def find_centres(task, order, terms, kept):
    """Fill the centres; give G and H of the complete rows, and how many those are."""
    gradient, hessian, n_complete = 0.0, 0.0, 0
    for number in order:
        row = np.int64(number)
        if is_complete(task.raw, row, terms, kept):
            g, h = weighted(task.derivatives, row)
            gradient, hessian, n_complete = gradient + g, hessian + h, n_complete + 1
            for index in kept:
                term = terms[index]
                # from the smallest value on: terms of one sign lose no digits
                term.centre += h * (value_at(task.raw, row, term.feature) - term.lower)
    for index in kept:
        term = terms[index]
        if n_complete > 0:
            term.centre = term.lower + term.centre / hessian
    return gradient, hessian, n_complete


@kernel
def add_products(task, order, terms, kept, own):
    """Fill matrix and target of the slopes, in units of one over the feature's range."""
    own.matrix[: len(kept)] = 0.0
    own.target[: len(kept)] = 0.0
    for number in order:
        row = np.int64(number)
        if not is_complete(task.raw, row, terms, kept):
            continue
        g, h = weighted(task.derivatives, row)
        for place in range(len(kept)):
            term = terms[kept[place]]
            value = value_at(task.raw, row, term.feature) - term.centre
            own.values[place] = value / (term.upper - term.lower)
        for place in range(len(kept)):
            value = own.values[place]
            own.target[place] -= g * value
            for other in range(place + 1):
                own.matrix[place, other] += h * value * own.values[other]


@kernel
def solve(matrix, ridge, target, slopes):
    """Fill `slopes` with the solution of ``(A + ridge * diagonal of A) slopes = target``.

    By a Cholesky factor, which overwrites the lower triangle of A. A feature that the ones before
    it determine gets slope 0.

    Parameters
    ----------
    matrix : ndarray of float64, shape (n, n) or more columns
        Lower triangle of A, symmetric and not negative. Overwritten.
    ridge : float
    target, slopes : ndarray of float64, shape (n,)
    """
    n_slopes = len(slopes)
    for row in range(n_slopes):
        diagonal = matrix[row, row]
        matrix[row, row] *= 1.0 + ridge
        for column in range(row + 1):
            total = matrix[row, column]
            for before in range(column):
                total -= matrix[row, before] * matrix[column, before]
            if column < row:
                pivot = matrix[column, column]
                matrix[row, column] = total / pivot if pivot > 0.0 else 0.0
            else:
                is_new = total > _LEAST_PIVOT * diagonal
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
def allowed_part(weight, params, terms, kept, slopes):
    """Give the part of the slopes, at most 1, with which the leaf keeps within `max_delta_step`.

    Whatever the row: the line ends where the leaf's rows end. 0 if a slope is not a number.
    """
    reach = 0.0
    for place in range(len(kept)):
        term = terms[kept[place]]
        width = max(term.upper - term.centre, term.centre - term.lower)
        reach += abs(slopes[place]) * width / (term.upper - term.lower)
    if not reach < np.inf:
        return 0.0
    room = params.max_delta_step - abs(weight)
    return 1.0 if reach <= room else room / reach


@kernel
def fit_leaf(task, leaf, order, own, linear):
    """Fill the terms and the shift of one leaf.

    Parameters
    ----------
    task : LeafTask
    leaf : int
    order : ndarray of uint32
        The leaf's rows.
    own : LeafScratch
        One thread's.
    linear : LinearLeaves
    """
    params = task.params
    terms = linear.terms[linear.starts[leaf] : linear.starts[leaf + 1]]
    kept = own.kept[: measure_ranges(task.raw, order, terms, own.kept)]
    gradient, hessian, n_complete = find_centres(task, order, terms, kept)
    if len(kept) == 0 or n_complete == 0:
        return
    add_products(task, order, terms, kept, own)
    slopes = own.slopes[: len(kept)]
    solve(own.matrix, params.linear_lambda / hessian, own.target, slopes)
    weight = leaf_weight(gradient, hessian, params)
    factor = params.learning_rate * allowed_part(weight, params, terms, kept, slopes)
    if not factor > 0.0:
        return
    for place in range(len(kept)):
        term = terms[kept[place]]
        term.slope = factor * slopes[place] / (term.upper - term.lower)
        if term.slope != 0.0 and n_complete < len(order):
            linear.shifts[leaf] = params.learning_rate * weight - task.nodes[leaf].value
