"""Linear leaves: the leaves of a grown tree become linear functions of their path's features.

The tree is grown with constant leaves, as always. Then this file finds the rows and the features of
each leaf, :mod:`sklboost.tree.options.leaf_regression` fits the leaf's function to them, and the
result, :class:`~sklboost.engine.model.LinearLeaves`, is added to raw scores by
:mod:`sklboost.tree.predict.prediction`.

Source: Shi, Li & Li (2019), "Gradient Boosting With Piece-Wise Linear Regression Trees", in the
form of LightGBM's `linear_tree`.
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
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import find_leaves, linear_part
from sklboost.tree.predict.trees import join_linear

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
    model = assemble_model(trees, np.zeros(len(raw_score)), raw.n_features)
    leaves = np.empty((raw.n_samples, model.n_trees), dtype=np.int32)
    find_leaves(team, model, raw, leaves)
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
        linear = _allocate_leaves(task, int(model.depths[output]))
        linear = _fit_tree(team, task, leaves[:, output].copy(), linear, raw_score[output])
        parts.append((linear, len(nodes)))
    joined = join_linear(parts)
    assert joined is not None
    return joined


def _allocate_leaves(task: LeafTask, depth: int) -> LinearLeaves:
    """Return linear leaves whose terms have their features, but no slopes yet."""
    n_nodes = len(task.nodes)
    most_terms = (n_nodes + 1) // 2 * min(depth, task.raw.n_features)  # each feature once
    starts, limits = np.empty(n_nodes + 1, dtype=np.int64), np.zeros((n_nodes, 2))
    terms = records(most_terms, LINEAR_TERM_DTYPE)
    linear = LinearLeaves(starts, np.zeros(n_nodes), limits, terms)
    list_features(task.nodes, np.empty(n_nodes, dtype=np.int64), linear)
    return linear


def _fit_tree(
    team: ThreadTeam,
    task: LeafTask,
    leaf_of: np.ndarray,
    linear: LinearLeaves,
    raw_score: np.ndarray,
) -> LinearLeaves:
    order = np.empty(len(leaf_of), dtype=np.uint32)
    rows = LeafRows(leaf_of, order, np.zeros(len(task.nodes) + 2, dtype=np.int64))
    most = int(np.diff(linear.starts).max())
    wide = (team.size, most + FAR_APART)
    kept, matrix = np.empty(wide, dtype=np.int64), np.empty((*wide, most))
    lower, upper, reach, values, target, slopes = np.empty((6, *wide))
    scratch = LeafScratch(kept, lower, upper, reach, values, target, slopes, matrix)
    team.run(fit_leaves, task, rows, scratch, linear)
    linear = _without_empty_terms(linear)
    team.run(add_linear_parts, task, rows, linear, raw_score)
    return linear


def _without_empty_terms(linear: LinearLeaves) -> LinearLeaves:
    """Drop the terms that got no slope."""
    terms = linear.terms[: linear.starts[-1]].view(np.recarray)
    is_kept = ~np.isnan(terms.slope)
    n_kept_before = np.concatenate([[0], np.cumsum(is_kept)])
    return linear._replace(starts=n_kept_before[linear.starts], terms=terms[is_kept])


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
