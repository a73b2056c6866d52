"""Pruning after growth: from the bottom up, splits that are not worth gamma go.

In: a grown tree. Out: the same with collapsed nodes marked as leaves, and for every node the number
of the leaf that swallowed it.

A split is looked at only when both its children are leaves. So a split of small gain stays if one
below it is worth keeping, which is the difference from refusing it at once.
"""

from sklboost.compiling import kernel
from sklboost.tree.frontier import make_leaf


@kernel
def prune(tree, params):
    """Collapse every split of two leaves whose gain is below ``params.prune_gain``.

    Sets ``counts.n_pruned``. Children have larger numbers than their parent, so one pass down the
    numbers meets them first.
    """
    nodes, counts = tree.nodes, tree.counts[0]
    counts.n_pruned = 0
    for node in range(counts.n_nodes - 1, -1, -1):
        left, right = nodes[node].left, nodes[node].right
        if left < 0 or nodes[left].left >= 0 or nodes[right].left >= 0:
            continue
        if nodes[node].gain < params.prune_gain:
            make_leaf(nodes[node])
            counts.n_pruned += 1
            counts.n_leaves -= 1


@kernel
def name_final_leaves(tree):
    """Set ``growth.final`` to the node itself, or to the leaf that swallowed it; and ``values``."""
    nodes, growth = tree.nodes, tree.growth
    growth[0].final = 0
    for node in range(1, tree.counts[0].n_nodes):
        parent = growth[node].parent
        if growth[parent].final == parent and nodes[parent].left >= 0:
            growth[node].final = node
        else:
            growth[node].final = growth[parent].final
    set_values(tree)


@kernel
def set_values(tree):
    """Set ``tree.values`` to what rows that reached a node get."""
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
            # forwards: n_kept <= node, so nothing unread is overwritten, and a parent, which comes
            # before its children, learns here where they go
            nodes[n_kept] = nodes[node]
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
        # a swallowed node's `final` keeps the old number of its leaf: nobody asks any more
    counts.n_nodes = n_kept
