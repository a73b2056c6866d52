"""Leaf renewal: leaf values that are quantiles of residuals, where a hessian says nothing.

Rows count with whole numbers, whose sums are exact in any order. One machine selects a leaf's
quantile among its rows; several find it digit by digit, from sums of weights over all of them.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import IN_MEMORY, RowArrays
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.elementary import power_of_2_in
from sklboost.engine.parallel import barrier, next_task, reset_tasks, share
from sklboost.engine.sorting import key_of
from sklboost.tree.core.machines import QUANTILES, WEIGHTS, exchange_together
from sklboost.tree.core.partition import add_values
from sklboost.tree.core.pruning import set_values
from sklboost.tree.options.constrained_weights import order_renewed_leaves

# The weights of a leaf come to less than twice this: float64 holds every whole number up to there.
_WEIGHT_OF_LEAF = 2.0**51
_LEAST_WEIGHT = 2.0**-1022
# Relative, of an alpha and of its product with a weight.
_PRECISION = 2.0**-52


@inlined
def wanted_weights(alpha, weight, n_rows):
    """Return the two weights that a quantile is found by, in values of `n_rows` rows.

    It is the mean of the smallest values up to which the weights come to the first, and to the
    second. Where they come to ``alpha * weight`` at some value, these are that value and the next,
    else they are one. So the quantile of alpha 1/2 is the median, and weight 2 is the value twice
    (as NumPy's method "averaged_inverted_cdf"). Weights are whole numbers of which each may be
    rounded by 1/2.
    """
    wanted = alpha * weight
    rounding = _PRECISION * wanted + 0.5 * n_rows
    first = max(1.0, np.ceil(wanted - rounding))
    return first, min(weight, np.floor(wanted + rounding) + 1.0)


@kernel
def largest_of(weights):
    """Return the largest weight, 0 of none."""
    largest = 0.0
    for weight in weights:
        largest = max(largest, weight)
    return largest


@kernel
def round_weights(weights, largest, n_samples):
    """Turn weights of a leaf into whole numbers, 1 or more; return their sum.

    `largest` is the largest of all machines, which have `n_samples` rows together.
    """
    unit = power_of_2_in(max(largest, _LEAST_WEIGHT))
    room = power_of_2_in(_WEIGHT_OF_LEAF / n_samples)
    total = 0.0
    for place in range(len(weights)):
        weights[place] = max(1.0, np.rint(weights[place] / unit * room))
        total += weights[place]
    return total


@kernel
def select_quantile(values, weights, alpha, weight):
    """Return the quantile of some values, whose weights are whole numbers > 0 and sum to `weight`.

    Both arrays are put in another order.
    """
    first, second = wanted_weights(alpha, weight, len(values))
    lower, above, up_to_lower = select_value(values, weights, np.int64(0), 0.0, first)
    if second <= up_to_lower:
        return lower
    return 0.5 * lower + 0.5 * select_value(values, weights, above, up_to_lower, second)[0]


@kernel
def select_value(values, weights, start, below, wanted):
    """Return the smallest value up to which the weights come to `wanted`, more than `below`.

    The values before `start` are smaller than those from there on, and weigh `below`. Behind the
    value: where larger ones begin now, and what the weights come to up to there.
    """
    stop = len(values)
    while True:
        first, second, third = values[start], values[(start + stop) // 2], values[stop - 1]
        pivot = max(min(first, second), min(max(first, second), third))  # the middle one
        first_equal, first_above = divide_values(values, weights, start, stop, pivot)
        smaller = below + total_of(weights, start, first_equal)
        if wanted <= smaller:
            stop = first_equal
            continue
        up_to_pivot = smaller + total_of(weights, first_equal, first_above)
        if wanted <= up_to_pivot:
            return pivot, first_above, up_to_pivot
        start, below = first_above, up_to_pivot


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
def total_of(weights, start, stop):
    """Return the sum of the weights ``[start, stop)``."""
    total = 0.0
    for position in range(start, stop):
        total += weights[position]
    return total


_SELECT_COUNTER = np.int64(1)

# --- among several machines

# Leaves whose quantiles are found together: what is exchanged takes little memory.
_LEAVES_AT_ONCE = 128
_DIGIT_BITS = np.uint64(8)
_N_DIGITS = 256
_LAST_DIGIT = np.uint64(_N_DIGITS - 1)
_N_PASSES = 8  # of the digits of a float64
_SIGN = np.uint64(1 << 63)
_INFINITY, _NAN = (np.uint64(bits) for bits in np.array([np.inf, np.nan]).view(np.uint64))


class Selection(NamedTuple):
    """Quantiles that machines find together; all empty on one machine.

    Each leaf has two, see :func:`wanted_weights`.
    """

    largest: np.ndarray  # float64, shape (capacity,): the largest weight in each leaf
    leaves: np.ndarray  # int64, shape (n_at_once,): whose quantiles are being found
    n_leaves: np.ndarray  # int64, shape (1,): how many of these
    # float64, shape (n_at_once, 2): what the weights are to come to, less that of smaller values
    wanted: np.ndarray
    keys: np.ndarray  # uint64, shape (n_at_once, 2): the first digits of the values' keys
    # float64, shape (n_at_once, 2, 256): weights of the rows with these first digits, by the next
    sums: np.ndarray


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
    keys: np.ndarray  # uint64: the same memory as `values`
    selection: Selection


def allocate_renewal(
    alphas: np.ndarray,
    n_samples: int,
    capacity: int,
    n_threads: int,
    arrays: RowArrays = IN_MEMORY,
    n_machines: int = 1,
) -> Renewal:
    """Allocate the renewal of trees of at most `capacity` nodes; empty without any `alphas`."""
    n_rows = n_samples if len(alphas) else 0
    n_at_once = min(capacity, _LEAVES_AT_ONCE) if n_rows and n_machines > 1 else 0
    values = arrays.empty((n_rows,))
    return Renewal(
        residual=arrays.empty((len(alphas), n_rows)),
        alpha=alphas,
        leaf=arrays.empty((1, n_rows)),
        counts=np.empty((n_threads, capacity + 1 if n_rows else 0), dtype=np.int64),
        values=values,
        weights=arrays.empty((n_rows,)),
        keys=values.view(np.uint64),
        selection=Selection(
            largest=np.empty(capacity if n_at_once > 0 else 0),
            leaves=np.empty(n_at_once, dtype=np.int64),
            n_leaves=np.zeros(1, dtype=np.int64),
            wanted=np.empty((n_at_once, 2)),
            keys=np.empty((n_at_once, 2), dtype=np.uint64),
            sums=np.empty((n_at_once, 2, _N_DIGITS)),
        ),
    )


@late()
def fill_residuals(y, raw_score, renewal, rows):
    """Fill the residuals of rows ``[start, stop)``."""
    start, stop = rows
    for output in range(renewal.residual.shape[0]):
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
        renewal.keys,
        renewal.selection,
    )


@late()
def renew_leaves(team, matrix, derivatives, renewal, rules, params, workspace):
    """Renew the values of the leaves of ``workspace.tree``; every member of the team calls it.

    Rows count with weight times hessian. A leaf keeps its value if none of its rows has a residual.
    Monotone constraints hold for the new values, too.
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
    if workspace.machines.size > 1:
        select_together(team, output, renewal, ends, params, workspace)
        return
    leaf = next_task(team, _SELECT_COUNTER, n_nodes)
    while leaf < n_nodes:
        first, last = ends[leaf], ends[leaf + 1]
        values, weights = renewal.values[first:last], renewal.weights[first:last]
        if first < last:
            weight = round_weights(weights, largest_of(weights), workspace.machines.n_samples)
            step = select_quantile(values, weights, renewal.alpha[output], weight)
            renew_leaf(leaf, output, step, params, tree)
        leaf = next_task(team, _SELECT_COUNTER, n_nodes)
    barrier(team)
    if team.rank == 0:
        reset_tasks(team)
    barrier(team)


@inlined
def renew_leaf(leaf, output, step, params, tree):
    """Set the weight of an output of a leaf."""
    # 0.0 in the place of -0.0, which equals it, so that either may be found
    step = min(max(step + 0.0, -params.max_delta_step), params.max_delta_step)
    tree.outputs[leaf, output].weight = step


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


@late()
def select_together(team, output, renewal, ends, params, workspace):
    """Renew the leaf weights of one output from the rows of all machines.

    A value's key, a whole number in the order of floats, is found from its first digit on: each
    machine adds up the weights of its rows by the next digit, and the sums of all tell which it is.
    """
    tree, selection, machines = workspace.tree, renewal.selection, workspace.machines
    n_at_once = len(selection.leaves)
    leaf = next_task(team, _SELECT_COUNTER, tree.counts[0].n_nodes)
    while leaf < tree.counts[0].n_nodes:
        selection.largest[leaf] = largest_of(renewal.weights[ends[leaf] : ends[leaf + 1]])
        leaf = next_task(team, _SELECT_COUNTER, tree.counts[0].n_nodes)
    exchange_together(team, machines, WEIGHTS)
    for first in range(0, tree.counts[0].n_leaves, n_at_once):
        if team.rank == 0:
            list_leaves(tree, first, selection)
        for pass_ in range(_N_PASSES):
            if team.rank == 0:
                reset_tasks(team)
            barrier(team)
            shift = _DIGIT_BITS * np.uint64(_N_PASSES - 1 - pass_)
            index = next_task(team, _SELECT_COUNTER, selection.n_leaves[0])
            while index < selection.n_leaves[0]:
                leaf = selection.leaves[index]
                if pass_ == 0:
                    weights = renewal.weights[ends[leaf] : ends[leaf + 1]]
                    round_weights(weights, selection.largest[leaf], machines.n_samples)
                add_digits(renewal, (ends[leaf], ends[leaf + 1]), index, pass_ == 0, shift)
                index = next_task(team, _SELECT_COUNTER, selection.n_leaves[0])
            exchange_together(team, machines, QUANTILES)
            if team.rank == 0:
                choose_digits(selection, renewal.alpha[output], pass_ == 0)
            barrier(team)
        if team.rank == 0:
            for index in range(selection.n_leaves[0]):
                if selection.wanted[index, 0] > 0.0:  # else no machine has a row of it
                    lower, upper = selection.keys[index, 0], selection.keys[index, 1]
                    step = value_of(lower)
                    if upper != lower:
                        step = 0.5 * step + 0.5 * value_of(upper)
                    renew_leaf(selection.leaves[index], output, step, params, tree)
    if team.rank == 0:
        reset_tasks(team)
    barrier(team)


@kernel
def list_leaves(tree, first, selection):
    """List leaves of the pruned tree, from the one of number `first` on, while there is room."""
    number, count = np.int64(0), np.int64(0)
    for node in range(tree.counts[0].n_nodes):
        if tree.growth[node].final == node and tree.nodes[node].left < 0:
            if first <= number < first + len(selection.leaves):
                selection.leaves[count] = node
                count += 1
            number += 1
    selection.n_leaves[0] = count


@kernel
def add_digits(renewal, rows, index, is_first, shift):
    """Fill the sums of a leaf from the rows ``[start, stop)``, by their digit at `shift`.

    At the first digit the second half of the sums counts rows.
    """
    sums, keys = renewal.selection.sums[index], renewal.selection.keys[index]
    sums[:] = 0.0
    for place in range(rows[0], rows[1]):
        if is_first:
            renewal.keys[place] = key_of(renewal.keys[place], _SIGN, _INFINITY, _NAN)
        weight, key = renewal.weights[place], renewal.keys[place] >> shift
        digit, known = key & _LAST_DIGIT, key >> _DIGIT_BITS
        if is_first or known == keys[0]:
            sums[0, digit] += weight
        if is_first or known == keys[1]:
            sums[1, digit] += 1.0 if is_first else weight


@kernel
def choose_digits(selection, alpha, is_first):
    """Put the next digits behind the keys of all leaves, by the sums of all machines."""
    for index in range(selection.n_leaves[0]):
        sums, wanted, keys = selection.sums[index], selection.wanted[index], selection.keys[index]
        if is_first:
            weight, n_rows = total_of(sums[0], 0, _N_DIGITS), total_of(sums[1], 0, _N_DIGITS)
            wanted[0], wanted[1] = wanted_weights(alpha, weight, n_rows)
            keys[:] = np.uint64(0)
            if weight == 0.0:
                wanted[:] = 0.0
        for side in range(2):
            place, digit = 0 if is_first else side, np.int64(0)
            while digit < _N_DIGITS - 1 and sums[place, digit] < wanted[side]:
                wanted[side] -= sums[place, digit]
                digit += 1
            keys[side] = (keys[side] << _DIGIT_BITS) | np.uint64(digit)


@inlined
def value_of(key):
    """Return the float of a key."""
    return np.uint64(key ^ (_SIGN if key & _SIGN else ~np.uint64(0))).view(np.float64)
