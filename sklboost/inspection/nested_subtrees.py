"""Minimal cost-complexity pruning: the nested subtrees of a tree, from all of it to its root.

A tree on gradients g and hessians h is a regression tree for the targets ``-g / h`` with the
weights ``h``. A leaf of output w has the penalised sum of squared errors ``sum h (-g/h - w)^2 +
lambda w^2``, which is ``sum g^2 / h`` less its similarity. For squared error and lambda 0 that is
CART.

Source: Breiman, Friedman, Olshen & Stone (1984), "Classification and Regression Trees", sections
3.3 and 8.5.
"""

import heapq
from typing import NamedTuple

import numpy as np

from sklboost.engine.structs import TreeParams
from sklboost.tree.core.formulas import similarity


class PruningPath(NamedTuple):
    """Nested subtrees, from the whole tree to its root alone.

    Attributes
    ----------
    alphas : ndarray of float64, shape (n_subtrees,)
        0, then for each further subtree the least penalty of a leaf that makes it the best one.
    impurities : ndarray of float64, shape (n_subtrees,)
        Of all leaves of each subtree together, divided by the sum of all hessians.
    """

    alphas: np.ndarray
    impurities: np.ndarray


@np.errstate(all="ignore")
def pruning_path(
    nodes: np.recarray,
    leaf: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    params: TreeParams,
) -> PruningPath:
    """Collapse the weakest link again and again: the split whose branch gains least per leaf.

    Of several that are equally weak, the first is collapsed, in the order root, left branch, right
    branch; as in scikit-learn, each collapse gives a subtree.

    Parameters
    ----------
    nodes : recarray of NODE_DTYPE, shape (n_nodes,)
        Of the tree, parents before their children.
    leaf : ndarray of int, shape (n_samples,)
        The node that each row ends in.
    gradient, hessian : ndarray of float64, shape (n_samples,)
        Of each row, times its weight.
    params : TreeParams
    """
    parent, rank = parents_and_ranks(nodes)
    impurity = impurities_of_nodes(nodes, leaf, gradient, hessian, params)
    branch, n_leaves = impurity.copy(), np.ones(len(nodes), dtype=np.int64)
    splits = np.flatnonzero(nodes.left >= 0)
    for node in splits[::-1]:
        children = [nodes.left[node], nodes.right[node]]
        branch[node], n_leaves[node] = branch[children].sum(), n_leaves[children].sum()

    def link(node: int) -> tuple[float, int, int]:
        return (impurity[node] - branch[node]) / (n_leaves[node] - 1), rank[node], node

    # A heap with an entry for every state that a split has been in. An entry of a former state, or
    # of a split below a collapsed one, is skipped when it comes up.
    links = [link(node) for node in splits.tolist()]
    heapq.heapify(links)
    path = [(0.0, branch[0])]
    while n_leaves[0] > 1:
        weakest = heapq.heappop(links)
        alpha, _, node = weakest
        if n_leaves[node] == 1 or weakest != link(node) or is_swallowed(node, parent, n_leaves):
            continue
        rise, n_fewer = impurity[node] - branch[node], n_leaves[node] - 1
        above: int = node
        while above >= 0:
            branch[above] += rise
            n_leaves[above] -= n_fewer
            if n_leaves[above] > 1:
                heapq.heappush(links, link(above))
            above = int(parent[above])
        path.append((alpha, branch[0]))
    alphas, impurities = np.array(path).T
    return PruningPath(alphas, impurities)


def parents_and_ranks(nodes: np.recarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each node's parent, -1 for the root, and its place in the order root, left, right."""
    parent, rank = np.full((2, len(nodes)), -1)
    waiting = [0]
    for place in range(len(nodes)):
        node = waiting.pop()
        rank[node] = place
        if nodes.left[node] >= 0:
            children = [nodes.right[node], nodes.left[node]]
            parent[children] = node
            waiting += children
    return parent, rank


def is_swallowed(node: int, parent: np.ndarray, n_leaves: np.ndarray) -> bool:
    """Whether a node lies below one that has become a leaf."""
    above = parent[node]
    while above >= 0 and n_leaves[above] > 1:
        above = parent[above]
    return bool(above >= 0)


def impurities_of_nodes(
    nodes: np.recarray,
    leaf: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    params: TreeParams,
) -> np.ndarray:
    """Return ``(sum g^2 / h - similarity) / H`` of every node, H being the root's.

    From the rows themselves: the sums that a node keeps are those of rounded gradients.
    """
    terms = (gradient, hessian, gradient * (gradient / hessian))  # a square may be out of range
    sums = np.array([np.bincount(leaf, values, len(nodes)) for values in terms])
    for node in np.flatnonzero(nodes.left >= 0)[::-1]:
        sums[:, node] = sums[:, nodes.left[node]] + sums[:, nodes.right[node]]
    similarities = np.array([similarity(g, h, params) for g, h in sums[:2].T.tolist()])
    return (sums[2] - similarities) / sums[1, 0]
