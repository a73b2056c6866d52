"""The rows of a node, their gradients and hessians, from data that a user gives once more.

In: the arguments of `explain_split`. Out: :class:`NodeRows`. A model keeps sums, not rows; but as
all is the same bits again, the raw scores before any round are those of prediction.
"""

import itertools
from typing import Any

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import Features, raw_blocks, value_array
from sklboost.data.raw_values import value_column
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.fit.boosters import drops_rounds
from sklboost.estimators.fit.reading import as_learnt
from sklboost.estimators.input.arguments import GivenSet
from sklboost.estimators.input.check_features import features
from sklboost.estimators.input.feature_tables import feature_settings
from sklboost.estimators.input.rows import validation_rows
from sklboost.estimators.predict.raw_scores import add_rounds, starting_scores
from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.node_rows import NodeRows

_NOTHING = np.empty((0, 0))


def find_node_rows(estimator: Any, tree: GrownTree, node: int, given: GivenSet) -> NodeRows:
    """Find the rows that come to a node, and what they had when its tree was grown.

    Parameters
    ----------
    estimator : BaseBooster
        Fitted.
    tree : GrownTree
    node : int
    given : GivenSet
        Its `y` may be None: rows are only counted.
    """
    if given.y is None:
        X = features(estimator, given.X)
        why = "Pass y as well to see their gradients."
        return NodeRows(len(X), rows_of_node(tree, node, X), _NOTHING, _NOTHING, why)
    known = estimator._fitted_features
    settings = feature_settings(known.estimator_name, estimator)
    rows = validation_rows(given, known, settings, numeric=estimator._targets.numeric)
    loss, model = estimator._loss, estimator.model_
    rows = as_learnt(estimator, rows, loss, "y")
    is_here = rows_of_node(tree, node, rows.X)
    if drops_rounds(estimator):
        why = (
            "Their gradients are not known: the tree was grown without some earlier rounds, and "
            "which these were is not kept."
        )
        return NodeRows(len(rows.y), is_here, _NOTHING, _NOTHING, why)
    raw_score = starting_scores(model.base_score, rows.margin, len(rows.y))
    n_rounds = tree.number // model.trees_per_round
    if n_rounds > 0:
        add_rounds(model, rows.X, (0, n_rounds), raw_score, estimator.n_jobs)
    weight = rows.weight if len(rows.weight) > 0 else np.ones(len(rows.y))
    if loss.takes_weight:
        both = loss.gradients(rows.targets, raw_score, weight)
    else:
        both = tuple(weight * own for own in loss.gradients(rows.targets, raw_score))
    output = tree.number % model.n_outputs
    own = slice(None) if tree.sums.shape[1] > 1 else slice(output, output + 1)
    # of several targets those that are not known count for nothing
    gradients, hessians = (np.nan_to_num(of_all[own]) for of_all in both)
    return NodeRows(len(rows.y), is_here, gradients, hessians, "")


def rows_of_node(tree: GrownTree, node: int, X: Features) -> np.ndarray:
    """Tell which rows come to a node; bool, shape (n_samples,)."""
    path = tree.path(node)
    is_here = np.ones(len(X), bool)
    values = feature_values(X) if isinstance(X, BinnedMatrix) else X
    for above, below in itertools.pairwise(path):
        feature = int(tree.nodes.feature[above])
        # not as float32, which thresholds would be rounded to
        column = value_column(values, feature).astype(np.float64)
        goes_left = tree.goes_left(above, column)
        is_here &= goes_left if tree.nodes.left[above] == below else ~goes_left
    return is_here


def feature_values(X: Features) -> np.ndarray:
    """Give all values, as trees compare them: shape (n_samples, n_features)."""
    if not isinstance(X, BinnedMatrix):
        return value_array(X)
    values = np.empty(X.shape)
    with ThreadTeam(1) as team:
        for rows, raw in raw_blocks(team, X):
            values[rows] = raw.values.reshape(-1, raw.n_features)
    return values
