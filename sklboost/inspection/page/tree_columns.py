"""The nodes of all trees as columns: what the page needs to draw a tree and to prune it.

In: trees, with the splits that pruning removed as far as they are remembered. Out: lists with an
item for each node, tree after tree.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from sklboost.inspection.derivation.grown_tree import GrownTree
from sklboost.inspection.derivation.names import ModelNames
from sklboost.inspection.page.tokens import column, compared


def tree_columns(trees: Iterable[GrownTree], names: ModelNames) -> dict[str, Any]:
    """Give the columns.

    Parameters
    ----------
    trees : iterable of GrownTree
    names : ModelNames

    Returns
    -------
    dict
        ``starts``: where each tree begins, and the end of the last. ``left``: first child, counted
        from the tree's root, the second one follows it; 0 for a leaf. ``feature``, ``threshold``
        (the rows below it go to the first child), ``gain``, 0 for a leaf. ``missing_left``: 1 if
        missing values go to the first child. ``removed``: 1 for a split that the model no longer
        has. ``cover``. ``values``: a list for each output of a tree. ``conditions``: the splits on
        categories or on missing values, in words, by node.
    """
    numbers = ("left", "feature", "threshold", "gain", "missing_left", "removed", "cover")
    columns: dict[str, list] = {name: [] for name in numbers}
    values: list[list] = []
    starts, conditions = [0], {}
    for tree in trees:
        nodes, start = tree.nodes, starts[-1]
        is_split = nodes.left >= 0
        # NaN stands for a set of categories, which is among the conditions
        thresholds = np.where(np.isfinite(nodes.threshold), nodes.threshold, 0.0).tolist()
        columns["left"] += np.maximum(nodes.left, 0).tolist()
        columns["feature"] += np.where(is_split, nodes.feature, 0).tolist()
        columns["threshold"] += list(map(compared, thresholds))
        columns["gain"] += [float(f"{gain:.12g}") for gain in nodes.gain.tolist()]
        columns["missing_left"] += nodes.default_left.tolist()
        columns["removed"] += (is_split & ~tree.is_split).astype(int).tolist()
        columns["cover"] += column(nodes.cover.tolist())
        values = values or [[] for _ in range(tree.values.shape[1])]
        for own, of_output in zip(values, tree.values.T.tolist(), strict=True):
            own += column(of_output)
        for node in np.flatnonzero(is_split & ~np.isfinite(nodes.threshold)).tolist():
            conditions[start + node] = names.condition(tree, node)
        starts.append(start + len(nodes))
    return {"starts": starts, **columns, "values": values, "conditions": conditions}
