"""Sums over the rows of nodes: those of inner nodes, and of gradients, which no library saves."""

import numpy as np

from sklboost.files.foreign import ForeignTree

# Relative to the gain and to the similarities, of which it is a difference: other libraries round
# gradients to float32, and LightGBM writes gains with six digits.
_OF_GAIN, _OF_SIMILARITIES = 1e-3, 1e-5


def add_up(left: np.ndarray, right: np.ndarray, of_leaves: np.ndarray) -> np.ndarray:
    """Return sums of all nodes, whose children come behind them.

    Parameters
    ----------
    left, right : ndarray of int64, shape (n_nodes,)
        Child nodes; -1 for a leaf.
    of_leaves : ndarray of float64, shape (n_leaves,)
        In the order of the nodes.
    """
    sums = np.zeros(len(left))
    is_leaf = left < 0
    sums[is_leaf] = of_leaves
    for node in np.flatnonzero(~is_leaf)[::-1].tolist():
        sums[node] = sums[left[node]] + sums[right[node]]
    return sums


def with_gradients(tree: ForeignTree, reg_lambda: float) -> ForeignTree:
    """Return the tree with the sums of gradients from which its leaf values follow.

    Leaf weights are ``-G / (H + lambda)`` unless other parameters changed them, so G follows from
    the weights and H. It is kept only if the gains computed from G and H are those of the library;
    then these gains and the values of inner nodes replace the library's, which may be rounded.
    Else the tree is returned as it is.

    Parameters
    ----------
    tree : ForeignTree
        Of one output, with gains and its learning rate; children come behind their parents.
    reg_lambda : float
    """
    rate, penalised = tree.learning_rate or np.nan, tree.cover + reg_lambda
    is_split = tree.left >= 0
    of_leaves = -(tree.value[:, 0] / rate * penalised)[~is_split]
    gradient = add_up(tree.left, tree.right, of_leaves)
    similarity = gradient**2 / penalised
    parts = similarity[tree.left] + similarity[tree.right]
    gain = np.where(is_split, parts - similarity, 0.0)
    room = _OF_GAIN * np.abs(tree.gain) + _OF_SIMILARITIES * (parts + similarity)
    if not (np.abs(gain - tree.gain) <= room)[is_split].all() or not is_split.any():
        return tree
    value = np.where(is_split, -rate * gradient / penalised, tree.value[:, 0])
    return tree._replace(gradient=gradient, gain=np.maximum(gain, 0.0), value=value[:, np.newaxis])
