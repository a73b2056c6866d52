"""Minimal cost-complexity pruning: the nested subtrees of a tree, from all of it to its root.

A tree on gradients g and hessians h is a regression tree for the targets ``-g / h`` with the
weights ``h``. A leaf of output w has the penalised sum of squared errors ``sum h (-g/h - w)^2 +
lambda w^2``, which is ``sum g^2 / h`` less its similarity. For squared error and lambda 0 that is
CART.

Source: Breiman, Friedman, Olshen & Stone (1984), "Classification and Regression Trees", sections
3.3 and 8.5.
"""

import heapq

import numpy as np

from sklboost.engine.structs import TreeParams
from sklboost.tree.core.formulas import similarity


@np.errstate(all="ignore")
def pruning_path(
    nodes: np.recarray,
    leaf: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    params: TreeParams,
) -> tuple[np.ndarray, np.ndarray]:
    """Collapse the weakest link again and again: the split whose branch gains least per leaf.

    Returns the penalties of a leaf from which on each subtree is the best one, from 0, the whole
    tree, to the root alone; and the impurities of all leaves of each, divided by all hessians.

    Of several that are equally weak, the first is collapsed, in the order root, left branch, right
    branch; as in scikit-learn, each collapse gives a subtree.

    `nodes`, of NODE_DTYPE, has the nodes of a tree, parents before their children. `leaf` is the
    node that each row ends in; `gradient` and `hessian`, float64, are multiplied by the row's
    weight.
    """
    parent, rank = parents_and_ranks(nodes)
    children = np.stack([nodes.left, nodes.right], axis=1).tolist()
    impurity = impurities_of_nodes(children, leaf, gradient, hessian, params)
    branch, n_leaves = impurity.copy(), [1] * len(nodes)
    splits = np.flatnonzero(nodes.left >= 0).tolist()
    for node in reversed(splits):
        left, right = children[node]
        branch[node] = branch[left] + branch[right]
        n_leaves[node] = n_leaves[left] + n_leaves[right]

    def link(node: int) -> tuple[float, int, int]:
        return (impurity[node] - branch[node]) / (n_leaves[node] - 1), rank[node], node

    # A heap with an entry for every split, at its link or before it. A collapse makes no link above
    # it weaker, except by rounding: entries are put right when they come up.
    links = [link(node) for node in splits]
    heapq.heapify(links)
    listed = dict(zip(splits, links, strict=True))
    path = [(0.0, branch[0])]
    while n_leaves[0] > 1:
        weakest = heapq.heappop(links)
        alpha, _, node = weakest
        if n_leaves[node] == 1:
            continue
        if weakest != link(node):
            listed[node] = link(node)
            heapq.heappush(links, listed[node])
            continue
        rise, n_fewer = impurity[node] - branch[node], n_leaves[node] - 1
        below = [node]
        for own in below:  # splits that become leaves or go
            below += [child for child in children[own] if n_leaves[child] > 1]
            n_leaves[own] = 1
        branch[node] += rise
        above = parent[node]
        while above >= 0:
            branch[above] += rise
            n_leaves[above] -= n_fewer
            if n_leaves[above] > 1 and link(above) < listed[above]:
                listed[above] = link(above)
                heapq.heappush(links, listed[above])
            above = parent[above]
        path.append((alpha, branch[0]))
    alphas, impurities = np.array(path).T
    return alphas, impurities


def parents_and_ranks(nodes: np.recarray) -> tuple[list[int], list[int]]:
    """Return each node's parent, -1 for the root, and its place in the order root, left, right."""
    left, right = nodes.left.tolist(), nodes.right.tolist()
    parent, rank = [-1] * len(nodes), [-1] * len(nodes)
    waiting = [0]
    for place in range(len(nodes)):
        node = waiting.pop()
        rank[node] = place
        if left[node] >= 0:
            parent[left[node]] = parent[right[node]] = node
            waiting += [right[node], left[node]]
    return parent, rank


def impurities_of_nodes(
    children: list[list[int]],
    leaf: np.ndarray,
    gradient: np.ndarray,
    hessian: np.ndarray,
    params: TreeParams,
) -> list[float]:
    """Return ``(sum g^2 / h - similarity) / H`` of every node, H being the root's.

    From the rows themselves, since the sums that a node keeps are sums of rounded gradients.
    """
    terms = (gradient, hessian, gradient * (gradient / hessian))  # a square may be out of range
    sums = [np.bincount(leaf, values, len(children)).tolist() for values in terms]
    for node, (left, right) in reversed(list(enumerate(children))):
        if left >= 0:
            for values in sums:
                values[node] = values[left] + values[right]
    similarities = [similarity(g, h, params) for g, h in zip(*sums[:2], strict=True)]
    impurities: list[float] = ((np.array(sums[2]) - similarities) / sums[1][0]).tolist()
    return impurities
