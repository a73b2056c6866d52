"""Prediction: from raw feature values to raw scores or leaves.

In: a model and raw values. Out: the sum of the leaf values for each row, or the leaf each row
reaches in each tree.

Rows are taken in blocks: a tree's nodes stay in the cache while the block's rows pass through it,
and the block's values stay while the trees pass over them.
"""

from sklboost.compiling import kernel
from sklboost.parallel import next_task

_BLOCK_ROWS = 64


@kernel
def find_leaf(nodes, root, raw, first):
    """Follow one row from `root` to its leaf; return the leaf's position in `nodes`.

    `first` is the position of the row's first feature in ``raw.values``.
    """
    node = root
    while nodes[node].left >= 0:
        value = raw.values[first + nodes[node].feature * raw.feature_step]
        goes_left = value < nodes[node].threshold
        if value != value:
            goes_left = nodes[node].default_left == 1
        node = root + (nodes[node].left if goes_left else nodes[node].right)
    return node


@kernel
def add_trees(team, model, raw, trees, raw_score):
    """Add the leaf values of some trees to the raw scores; every member takes blocks of rows.

    Parameters
    ----------
    team : Team
    model : Model
    raw : RawMatrix
    trees : tuple of int
        Start and stop.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Added to in place, tree after tree, so in the same order for any number of threads.
    """
    n_outputs = raw_score.shape[0]
    n_blocks = -(-raw.n_samples // _BLOCK_ROWS)
    block = next_task(team, 0)
    while block < n_blocks:
        start = block * _BLOCK_ROWS
        stop = min(start + _BLOCK_ROWS, raw.n_samples)
        for tree in range(trees[0], trees[1]):
            root = model.tree_starts[tree]
            for row in range(start, stop):
                leaf = find_leaf(model.nodes, root, raw, row * raw.row_step)
                raw_score[tree % n_outputs, row] += model.nodes[leaf].value
        block = next_task(team, 0)


@kernel
def find_leaves(team, model, raw, leaves):
    """Fill ``leaves[row, tree]`` with the number of the leaf, counted from the tree's root."""
    n_blocks = -(-raw.n_samples // _BLOCK_ROWS)
    block = next_task(team, 0)
    while block < n_blocks:
        start = block * _BLOCK_ROWS
        stop = min(start + _BLOCK_ROWS, raw.n_samples)
        for tree in range(leaves.shape[1]):
            root = model.tree_starts[tree]
            for row in range(start, stop):
                leaf = find_leaf(model.nodes, root, raw, row * raw.row_step)
                leaves[row, tree] = leaf - root
        block = next_task(team, 0)
