"""The sums of gradients of XGBoost's nodes, which its files do not have.

A leaf weight is ``w = -G / (H + λ)``, and the file has w, times the learning rate η for leaves, and
H. G of a split is the sum of its children's, so that::

    w (H + λ) = w_L (H_L + λ) + w_R (H_R + λ)

which is linear in λ, 1 / η and λ / η. If some λ and η make this true of all splits, these are those
that the model was trained with; where leaf weights depend on more (`reg_alpha`, `max_delta_step`,
constraints), there are none.
"""

from collections.abc import Sequence

import numpy as np

from sklboost.files.xgboost.tree_reading import XGBoostTree

_SAME = 1e-5  # of the largest term; terms are products of float32
_NOISE = 1e-7  # of the largest term of all splits
_MOST_TREES = 200  # that are looked at
_DIGITS = (2, 3, 4, 6)  # of what users write, and of what float32 knows


@np.errstate(all="ignore")
def find_settings(
    trees: Sequence[XGBoostTree], candidates: Sequence[tuple[float, float]]
) -> tuple[float, float] | None:
    """Return η of leaf values, and λ; None if nothing explains all leaf weights.

    Parameters
    ----------
    trees : sequence of XGBoostTree
    candidates : sequence of tuple of float
        Pairs of η and λ that may be those of the training.
    """
    splits = [_equations(tree) for tree in trees[:_MOST_TREES]]
    terms = np.concatenate(splits, axis=1)
    if terms.shape[1] == 0:
        return None
    return next((pair for pair in [*candidates, *_solve(terms)] if _explains(terms, *pair)), None)


def _equations(tree: XGBoostTree) -> np.ndarray:
    """Return the weight, cover and "is a leaf" of each split, its left and its right child.

    Shape (9, n_splits * n_outputs).
    """
    is_leaf = tree.left < 0
    parents = np.flatnonzero(~is_leaf)
    # links are checked later; those that lead nowhere say nothing
    parents = parents[np.maximum(tree.left, tree.right)[parents] < len(is_leaf)]
    parents = parents[tree.right[parents] >= 0]
    rows = []
    for nodes in (parents, tree.left[parents], tree.right[parents]):
        weights = tree.weights[nodes]
        covers = np.broadcast_to(tree.cover[nodes, np.newaxis], weights.shape)
        leaves = np.broadcast_to(is_leaf[nodes, np.newaxis], weights.shape)
        rows += [weights.ravel(), covers.ravel(), leaves.ravel()]
    return np.array(rows, dtype=np.float64)


def _explains(terms: np.ndarray, rate: float, reg_lambda: float) -> bool:
    if not (rate > 0.0 and reg_lambda >= 0.0):
        return False
    w, H, is_leaf = terms[0::3], terms[1::3], terms[2::3]
    sums = np.where(is_leaf == 1.0, w / rate, w) * (H + reg_lambda)
    size = np.abs(sums).max(axis=0)
    return bool((np.abs(sums[0] - sums[1] - sums[2]) <= _SAME * size + _NOISE * size.max()).all())


def _solve(terms: np.ndarray) -> list[tuple[float, float]]:
    """Return η and λ of least squares, rounded to a few digits and to more."""
    w, H, is_leaf = terms[0::3], terms[1::3], terms[2::3]
    sign = np.array([[1.0], [-1.0], [-1.0]])
    inner, leaves = sign * w * (1.0 - is_leaf), sign * w * is_leaf
    matrix = np.column_stack([inner.sum(axis=0), (leaves * H).sum(axis=0), leaves.sum(axis=0)])
    target = -(inner * H).sum(axis=0)
    if not (np.isfinite(matrix).all() and np.isfinite(target).all()):
        return []
    solution, _, rank, _ = np.linalg.lstsq(matrix, target, rcond=1e-6)
    if rank < 3 or solution[1] <= 0.0:
        return []
    rate, reg_lambda = 1.0 / solution[1], max(solution[0], 0.0)
    return [(_rounded(rate, digits), _rounded(reg_lambda, digits)) for digits in _DIGITS]


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")
