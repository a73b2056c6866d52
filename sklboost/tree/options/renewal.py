"""Leaf renewal: leaf values that are quantiles of residuals, where a hessian says nothing."""

from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import IN_MEMORY, RowArrays
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.parallel import barrier, next_task, reset_tasks, share
from sklboost.tree.core.partition import add_values
from sklboost.tree.core.pruning import set_values
from sklboost.tree.options.constrained_weights import order_renewed_leaves

# Of one addition of weights.
_PRECISION = 2.0**-52


@kernel
def select_quantile(values, weights, wanted):
    """Return the smallest value up to which the weights come to more than `wanted`.

    Where they come to exactly that at some value, up to rounding, it is the mean of this value
    and the next. So the quantile of alpha 1/2 is the median, and weight 2 is the value twice (as
    NumPy's method "averaged_inverted_cdf"). There is at least one value, weights are positive, and
    `wanted` is more than 0 and less than their sum. Both arrays are put in another order.
    """
    start, stop = 0, len(values)
    below = 0.0  # weight of all values before `start`
    rounding = _PRECISION * len(values) * wanted
    while True:
        first, second, third = values[start], values[(start + stop) // 2], values[stop - 1]
        pivot = max(min(first, second), min(max(first, second), third))  # the middle one
        first_equal, first_above = divide_values(values, weights, start, stop, pivot)
        smaller = below + total_of(weights, start, first_equal)
        if wanted < smaller - rounding and first_equal > start:
            stop = first_equal
            continue
        up_to_pivot = smaller + total_of(weights, first_equal, first_above)
        if wanted > up_to_pivot + rounding and first_above < stop:
            start, below = first_above, up_to_pivot
            continue
        if abs(wanted - smaller) <= rounding:
            return 0.5 * pivot + 0.5 * nearest(values, pivot, -1.0)
        if abs(wanted - up_to_pivot) <= rounding:
            return 0.5 * pivot + 0.5 * nearest(values, pivot, 1.0)
        return pivot


@kernel
def divide_values(values, weights, start, stop, pivot):
    """Move values below `pivot` to the front, those above to the end; return the bounds between.

    Weights move with their values. Source: Dijkstra's Dutch national flag.
    """
    first_equal, position, first_above = start, start, stop
    while position < first_above:
        value = values[position]
        if value < pivot:
            swap(values, position, first_equal)
            swap(weights, position, first_equal)
            first_equal += 1
            position += 1
        elif value > pivot:
            first_above -= 1
            swap(values, position, first_above)
            swap(weights, position, first_above)
        else:
            position += 1
    return first_equal, first_above


@inlined
def swap(values, first, second):
    """Exchange two elements."""
    values[first], values[second] = values[second], values[first]


@kernel
def nearest(values, pivot, direction):
    """Return the value next to `pivot`, above (direction 1) or below (-1); `pivot` if none is."""
    best = pivot
    for value in values:
        if direction * (value - pivot) > 0.0 and (
            best == pivot or direction * (best - value) > 0.0
        ):
            best = value
    return best


@kernel
def total_of(weights, start, stop):
    """Return the sum of the weights ``[start, stop)``, in their order."""
    total = 0.0
    for position in range(start, stop):
        total += weights[position]
    return total


_SELECT_COUNTER = np.int64(1)


class Renewal(NamedTuple):
    """Residuals from which leaves are renewed, and scratch; all empty if leaves are not renewed."""

    # float64, shape (n_outputs, n_samples): target minus raw score; NaN: not known
    residual: np.ndarray
    # float64, shape (n_outputs,): the quantile that each output is, between 0 and 1
    alpha: np.ndarray
    # float64, shape (1, n_samples): the leaf of each row, plus 1; 0 for rows that were not drawn
    leaf: np.ndarray
    # int64, shape (n_threads, capacity + 1): rows of each leaf in each thread's share; then where
    # these begin
    counts: np.ndarray
    # float64, shape (n_samples,): residuals and weights in the order of leaves
    values: np.ndarray
    weights: np.ndarray


def allocate_renewal(
    alphas: np.ndarray,
    n_samples: int,
    capacity: int,
    n_threads: int,
    arrays: RowArrays = IN_MEMORY,
) -> Renewal:
    """Allocate the renewal of trees of at most `capacity` nodes; empty without any `alphas`."""
    n_rows = n_samples if len(alphas) else 0
    return Renewal(
        residual=arrays.empty((len(alphas), n_rows)),
        alpha=alphas,
        leaf=arrays.empty((1, n_rows)),
        counts=np.empty((n_threads, capacity + 1 if n_rows else 0), dtype=np.int64),
        values=arrays.empty((n_rows,)),
        weights=arrays.empty((n_rows,)),
    )


@late()
def fill_residuals(team, y, raw_score, renewal):
    """Fill this member's share of the residuals, if leaves are renewed from them."""
    start, stop = share(team, renewal.residual.shape[1])
    for output in range(renewal.residual.shape[0] if start < stop else 0):
        target, score = y[output % y.shape[0], start:stop], raw_score[output, start:stop]
        residual = renewal.residual[output, start:stop]
        for row in range(len(residual)):
            residual[row] = target[row] - score[row]


@inlined
def renewal_of(renewal, first, stop):
    """Return what the leaves of a tree for the outputs ``[first, stop)`` are renewed from."""
    return Renewal(
        renewal.residual[first:stop],
        renewal.alpha[first:stop],
        renewal.leaf,
        renewal.counts,
        renewal.values,
        renewal.weights,
    )


@late()
def renew_leaves(team, matrix, derivatives, renewal, rules, params, workspace):
    """Renew the values of the leaves of ``workspace.tree``; every member of the team calls it.

    Rows count with weight times hessian. A leaf keeps its value if none of its rows has a residual
    and a weight. Monotone constraints hold for the new values, too.
    """
    for output in range(len(renewal.residual)):
        renew_output(team, matrix, derivatives, output, renewal, params, workspace)
    if team.rank == 0:
        order_renewed_leaves(workspace.tree, rules, params)
        set_values(workspace.tree)
    barrier(team)


@kernel
def renew_output(team, matrix, derivatives, output, renewal, params, workspace):
    """Renew the leaf weights of one output; every member of the team calls it."""
    tree, residual = workspace.tree, renewal.residual[output]
    n_nodes = tree.counts[0].n_nodes
    start, stop = share(team, len(residual))
    renewal.leaf[0, start:stop] = 0.0
    if team.rank == 0:
        for node in range(n_nodes):
            tree.values[0, node] = tree.growth[node].final + 1
    barrier(team)
    add_values(team, matrix, workspace, workspace.partition.n_counted, renewal.leaf)
    leaf_of_row = renewal.leaf[0]
    count_leaf_rows(residual, leaf_of_row, (start, stop), n_nodes, renewal.counts[team.rank])
    barrier(team)
    if team.rank == 0:
        reset_tasks(team)
        begin_stretches(renewal.counts, n_nodes)
    barrier(team)
    arrange_rows(derivatives, output, renewal, (start, stop), renewal.counts[team.rank])
    barrier(team)
    # each place in `counts` has moved on to the end of its stretch
    ends = renewal.counts[team.size - 1]
    leaf = next_task(team, _SELECT_COUNTER, n_nodes)
    while leaf < n_nodes:
        first, last = ends[leaf], ends[leaf + 1]
        values, weights = renewal.values[first:last], renewal.weights[first:last]
        total = total_of(weights, 0, len(weights))
        if total > 0.0:
            step = select_quantile(values, weights, renewal.alpha[output] * total)
            step = min(max(step, -params.max_delta_step), params.max_delta_step)
            tree.outputs[leaf, output].weight = step
        leaf = next_task(team, _SELECT_COUNTER, n_nodes)
    barrier(team)
    if team.rank == 0:
        reset_tasks(team)
    barrier(team)


@kernel
def count_leaf_rows(residual, leaf, rows, n_nodes, counts):
    """Count the rows ``[start, stop)`` of each leaf; rows of unknown residual go to leaf 0."""
    counts[: n_nodes + 1] = 0
    for row in range(rows[0], rows[1]):
        if residual[row] != residual[row]:
            leaf[row] = 0.0
        counts[np.int64(leaf[row])] += 1


@kernel
def begin_stretches(counts, n_nodes):
    """Turn counts into the places where each thread's rows of each leaf begin."""
    place = np.int64(0)
    for leaf in range(n_nodes + 1):
        for rank in range(counts.shape[0]):
            n_rows = counts[rank, leaf]
            counts[rank, leaf] = place
            place += n_rows


@kernel
def arrange_rows(derivatives, output, renewal, rows, places):
    """Copy residuals and weights of the rows ``[start, stop)`` to the stretches of their leaves."""
    hessian, weight = derivatives.hessian[output], derivatives.weight
    residual, leaf_of_row = renewal.residual[output], renewal.leaf[0]
    for row in range(rows[0], rows[1]):
        leaf = np.int64(leaf_of_row[row])
        place = places[leaf]
        places[leaf] = place + 1
        row_weight = np.float64(hessian[row])
        if len(weight) > 0:
            row_weight *= weight[row]
        renewal.values[place] = residual[row]
        renewal.weights[place] = row_weight
