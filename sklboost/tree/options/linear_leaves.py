"""Linear leaves: the leaves of a grown tree become linear functions of their path's features.

In: a tree with constant leaves, raw values, derivatives. Out: :class:`LinearLeaves`, what the
leaves add to their values, and raw scores that have it. What a leaf does is in
:mod:`sklboost.tree.options.leaf_regression`; here is which rows and features it does it with.

Source: Shi, Li & Li (2019), "Gradient Boosting With Piece-Wise Linear Regression Trees", in the
form of LightGBM's `linear_tree`: the tree is grown as always, and then its leaves are fitted.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import RawMatrix
from sklboost.engine.compiling import kernel
from sklboost.engine.model import LINEAR_TERM_DTYPE, LinearLeaves, Trees
from sklboost.engine.parallel import FAR_APART, ThreadTeam, assemble, barrier, next_task, share
from sklboost.engine.structs import TreeParams, records
from sklboost.tree.core.quantization import Derivatives
from sklboost.tree.options.leaf_regression import LeafScratch, LeafTask, fit_leaf, set_limits
from sklboost.tree.predict.category_bits import is_listed
from sklboost.tree.predict.linear_prediction import add_linear_parts
from sklboost.tree.predict.trees import join_linear


class LeafRows(NamedTuple):
    """Which rows each leaf has.

    Attributes
    ----------
    leaf_of : ndarray of int32, shape (n_samples,)
    order : ndarray of uint32, shape (n_samples,)
        The rows that are counted, leaf after leaf, in increasing order.
    starts : ndarray of int64, shape (n_nodes + 2,)
        Node k has ``order[starts[k]:starts[k + 1]]``.
    """

    leaf_of: np.ndarray
    order: np.ndarray
    starts: np.ndarray


def fit_linear_leaves(
    team: ThreadTeam,
    trees: Trees,
    raw: RawMatrix,
    derivatives: Derivatives,
    params: TreeParams,
    raw_score: np.ndarray,
) -> LinearLeaves:
    """Make the leaves of the trees of one round linear, one tree for each output.

    Parameters
    ----------
    team : ThreadTeam
    trees : Trees
    raw : RawMatrix
        The values that the trees were grown on.
    derivatives : Derivatives
        Of all outputs. A hessian of 0: the row is not counted.
    params : TreeParams
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Has the trees' values; the linear parts are added in place.
    """
    parts, bits = [], trees.bits
    for output in range(len(raw_score)):
        start, stop = trees.starts[output], trees.starts[output + 1]
        nodes = trees.nodes[start:stop].view(np.recarray)
        own = derivatives._replace(
            gradient=derivatives.gradient[output], hessian=derivatives.hessian[output]
        )
        own_bits = bits._replace(starts=bits.starts[start : stop + 1])
        task = LeafTask(nodes, own_bits, raw, own, params)
        parts.append((_fit_tree(team, task, raw_score[output]), len(nodes)))
    linear = join_linear(parts)
    assert linear is not None
    return linear


def _fit_tree(team: ThreadTeam, task: LeafTask, raw_score: np.ndarray) -> LinearLeaves:
    n_nodes, n_samples = len(task.nodes), len(raw_score)
    parents, depths = np.empty((2, n_nodes), dtype=np.int64)
    find_parents(task.nodes, parents, depths)
    most_terms = np.minimum(depths, task.raw.n_features)  # each feature once
    n_terms = int(most_terms[task.nodes.left < 0].sum())
    starts, limits = np.empty(n_nodes + 1, dtype=np.int64), np.zeros((n_nodes, 2))
    terms = records(n_terms, LINEAR_TERM_DTYPE)
    linear = LinearLeaves(starts, np.zeros(n_nodes), limits, terms)
    list_features(task.nodes, parents, linear)
    rows = LeafRows(
        np.empty(n_samples, dtype=np.int32),
        np.empty(n_samples, dtype=np.uint32),
        np.zeros(n_nodes + 2, dtype=np.int64),
    )
    most = int(np.diff(starts).max())
    wide = (team.size, most + FAR_APART)
    kept, matrix = np.empty(wide, dtype=np.int64), np.empty((*wide, most))
    lower, upper, reach, values, target, slopes = np.empty((6, *wide))
    scratch = LeafScratch(kept, lower, upper, reach, values, target, slopes, matrix)
    team.run(fit_leaves, task, rows, scratch, linear)
    linear = _without_empty_terms(linear)
    team.run(add_lines, task, rows, linear, raw_score)
    return linear


def _without_empty_terms(linear: LinearLeaves) -> LinearLeaves:
    """Drop the terms that got no slope."""
    terms = linear.terms[: linear.starts[-1]].view(np.recarray)
    is_kept = ~np.isnan(terms.slope)
    n_kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    return linear._replace(starts=n_kept_before[linear.starts], terms=terms[is_kept])


@kernel
def find_parents(nodes, parents, depths):
    """Fill the parent of every node, -1 for the root, and its depth."""
    parents[0], depths[0] = -1, 0
    for node in range(len(nodes)):
        if nodes[node].left >= 0:  # children lie behind their parent
            for child in (nodes[node].left, nodes[node].right):
                parents[child], depths[child] = node, depths[node] + 1


@kernel
def list_features(nodes, parents, linear):
    """Fill ``linear.starts``, and for each leaf its path's features, once each, without slope.

    Features of numbers: the codes of levels are no numbers to multiply.
    """
    n_terms = 0
    for leaf in range(len(nodes)):
        linear.starts[leaf] = n_terms
        if nodes[leaf].left >= 0:
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
def find_leaf(nodes, bits, raw, row):
    """Give the leaf that a row reaches."""
    node = np.int64(0)
    while nodes[node].left >= 0:
        split = nodes[node]
        value = raw.values[row * raw.row_step + split.feature * raw.feature_step]
        goes_right = (value >= split.threshold) | ((value != value) & (split.default_left == 0))
        if np.isnan(split.threshold) and value == value:
            goes_right = not is_listed(np.int64(value), bits, node)
        node = np.int64(split.right if goes_right else split.left)
    return node


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
def fit_leaves(team, task, rows, scratch, linear):
    """Fill the linear leaves of a tree, whose terms have their features; and ``rows``.

    A leaf is one thread's, and its rows are added in their order: the same sums for any number of
    threads.
    """
    if not assemble(team):
        return
    start, stop = share(team, len(rows.leaf_of))
    for row in range(start, stop):
        rows.leaf_of[row] = find_leaf(task.nodes, task.bits, task.raw, row)
    barrier(team)
    if team.rank == 0:
        sort_rows(task.derivatives, rows)
    barrier(team)
    own = LeafScratch(
        scratch.kept[team.rank],
        scratch.lower[team.rank],
        scratch.upper[team.rank],
        scratch.reach[team.rank],
        scratch.values[team.rank],
        scratch.target[team.rank],
        scratch.slopes[team.rank],
        scratch.matrix[team.rank],
    )
    leaf = next_task(team, 0)
    while leaf < len(task.nodes):
        order = rows.order[rows.starts[leaf] : rows.starts[leaf + 1]]
        if linear.starts[leaf] < linear.starts[leaf + 1] and len(order) > 0:
            fit_leaf(task, leaf, order, own, linear)
        leaf = next_task(team, 0)


@kernel
def add_lines(team, task, rows, linear, raw_score):
    """Set the limits of the linear leaves and add what they give each row to the raw scores."""
    if not assemble(team):
        return
    leaf = next_task(team, 0)
    while leaf < len(task.nodes):
        if linear.starts[leaf] < linear.starts[leaf + 1]:
            order = rows.order[rows.starts[leaf] : rows.starts[leaf + 1]]
            set_limits(task, leaf, order, linear)
        leaf = next_task(team, 0)
    barrier(team)
    add_linear_parts(team, linear, rows.leaf_of, task.raw, raw_score)
