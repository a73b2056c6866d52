"""Prediction of trees whose leaves are linear functions: the linear part after the constant one.

In: rows and the leaves they reach. Out: raw scores. The one idea: a linear leaf is its constant
value and something added to it, so that trees are grown, walked and laid out as all others are, and
a model without linear leaves knows nothing of this file.
"""

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import next_task, share
from sklboost.tree.predict.prediction import begin_block, walk_tree


@kernel
def linear_part(linear, leaf, raw, row):
    """Give what a linear leaf adds to its value for one row; 0 if a value is not finite."""
    total = linear.shifts[leaf]
    first = row * raw.row_step
    for index in range(linear.starts[leaf], linear.starts[leaf + 1]):
        term = linear.terms[index]
        value = np.float64(raw.values[first + term.feature * raw.feature_step])
        if not abs(value) < np.inf:
            return 0.0
        total += term.slope * (value - term.centre)
    return min(max(total, linear.limits[leaf, 0]), linear.limits[leaf, 1])


@kernel
def add_linear_parts(team, linear, leaf_of, raw, raw_score):
    """Add to each row's raw score the linear part of its leaf; each member takes a share of rows.

    Parameters
    ----------
    team : Team
    linear : LinearLeaves
    leaf_of : ndarray of int32, shape (n_samples,)
    raw : RawMatrix
    raw_score : ndarray of float64, shape (n_samples,)
        Added to in place.
    """
    start, stop = share(team, len(leaf_of))
    for row in range(start, stop):
        raw_score[row] += linear_part(linear, np.int64(leaf_of[row]), raw, row)


@kernel
def add_linear_trees(team, model, linear, raw, trees, prepared, raw_score):
    """Add values and linear parts of the leaves of some trees, as training does: one by one.

    Parameters
    ----------
    team : Team
    model : Model
        Without its linear leaves, as kernels know models.
    linear : LinearLeaves
    raw : RawMatrix
    trees : tuple of int
        Start and stop.
    prepared : tuple
        From :func:`~sklboost.tree.predict.prediction.prepare_prediction`.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Added to in place, tree after tree, so in the same order for any number of threads.
    """
    thresholds, scratch = prepared
    n_outputs, n_rows = raw_score.shape[0], scratch.positions.shape[1]
    start = next_task(team, 0) * n_rows
    while start < raw.n_samples:
        own = begin_block(team, model, raw, start, scratch)
        for tree in range(trees[0], trees[1]):
            walk_tree(model, thresholds, tree, raw, start, own)
            scores = raw_score[tree % n_outputs, start : start + len(own.positions)]
            for index in range(len(scores)):
                leaf = own.positions[index]
                scores[index] += model.values[0, leaf]
                scores[index] += linear_part(linear, leaf, raw, start + index)
        start = next_task(team, 0) * n_rows
