"""Pruning after growth: splits whose gain is below gamma, and branches that gain too little, go.

From the bottom up a split is compared with gamma once both its children are leaves. So a split of
small gain stays if one below it is worth keeping, which is the difference from refusing it at once.
With `ccp_alpha` the gain of a whole branch counts: it may go although each of its last splits gains
enough.
"""

from sklboost.engine.compiling import kernel, late
from sklboost.tree.core import options
from sklboost.tree.core.frontier import make_leaf


@kernel
def prune(tree, params):
    """Collapse every split of two leaves whose gain is below ``params.prune_gain``.

    Children have larger numbers than their parent, so one pass down the numbers meets them first.
    """
    nodes = tree.nodes
    for node in range(tree.counts[0].n_nodes - 1, -1, -1):
        left, right = nodes[node].left, nodes[node].right
        if left < 0 or nodes[left].left >= 0 or nodes[right].left >= 0:
            continue
        if nodes[node].gain < params.prune_gain:
            make_leaf(nodes[node])


@kernel
def name_final_leaves(tree):
    """Set ``growth.final`` to the node itself, or to the leaf that swallowed it; and ``values``.

    Also counts the splits that pruning took, and the leaves that it left.
    """
    nodes, growth, counts = tree.nodes, tree.growth, tree.counts[0]
    growth[0].final = 0
    n_kept = 1
    for node in range(1, counts.n_nodes):
        parent = growth[node].parent
        if growth[parent].final == parent and nodes[parent].left >= 0:
            growth[node].final = node
            n_kept += 1
        else:
            growth[node].final = growth[parent].final
            make_leaf(nodes[node])  # a split that went with the branch of one above
    counts.n_pruned = (counts.n_nodes - n_kept) // 2
    counts.n_leaves = (n_kept + 1) // 2
    set_values(tree)


@kernel
def set_values(tree):
    """Set ``tree.values`` to what is added to the raw scores of the rows that reached a node."""
    for output in range(tree.values.shape[0]):
        for node in range(tree.counts[0].n_nodes):
            tree.values[output, node] = tree.outputs[tree.growth[node].final, output].value


@kernel
def close_gaps(tree):
    """Number the nodes that are left from 0, in the same order, and move them there."""
    nodes, growth, counts = tree.nodes, tree.growth, tree.counts[0]
    n_kept = 0
    for node in range(counts.n_nodes):
        if growth[node].final == node:
            # n_kept <= node, so nothing is overwritten before it is read; parents come before their
            # children, and are told here where these go
            nodes[n_kept] = nodes[node]
            if tree.categories.shape[1] > 0:
                options.copy_split(node, n_kept, tree)
            for output in range(tree.outputs.shape[1]):
                tree.outputs[n_kept, output] = tree.outputs[node, output]
            parent = growth[node].parent
            if parent >= 0:
                moved_parent = growth[parent].final
                if nodes[moved_parent].left == node:
                    nodes[moved_parent].left = n_kept
                else:
                    nodes[moved_parent].right = n_kept
            growth[node].final = n_kept
            n_kept += 1
    counts.n_nodes = n_kept


@late()
def prune_weakest_links(tree, params):
    """Leave the smallest subtree of the least cost, a leaf costing alpha.

    A branch is worth the gain of its splits, less alpha for each; one that is worth nothing goes.
    From the bottom up this is the subtree that repeatedly collapsing the weakest link ends with
    (Breiman et al. 1984, theorem 3.10). Alpha is ``params.ccp_alpha`` times the root's cover:
    times the number of rows for squared error, where gain is what the sum of squared errors loses.
    """
    nodes, growth = tree.nodes, tree.growth
    alpha = params.ccp_alpha * nodes[0].cover
    for node in range(tree.counts[0].n_nodes - 1, -1, -1):
        growth[node].worth = 0.0
        left, right = nodes[node].left, nodes[node].right
        if left < 0:
            continue
        growth[node].worth = nodes[node].gain - alpha + growth[left].worth + growth[right].worth
        if growth[node].worth <= 0.0:
            growth[node].worth = 0.0
            make_leaf(nodes[node])
