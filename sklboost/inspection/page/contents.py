"""What a page shows of a model: trees, derivations, importances, learning curves.

All of it is dicts and lists, which the scripts of the page read as JSON.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from sklboost.engine.model import Model
from sklboost.inspection.derivation.derivation import Derivation
from sklboost.inspection.derivation.grown_tree import GrownTree, grown_tree
from sklboost.inspection.derivation.names import ModelNames
from sklboost.inspection.derivation.nodes import derive_node
from sklboost.inspection.derivation.verdicts import settings_of
from sklboost.inspection.importances import IMPORTANCE_TYPES, split_importances
from sklboost.inspection.page.folding import fold_derivations
from sklboost.inspection.page.tokens import column, token

_ABOUT = {
    "gain": "Average gain of the splits on a feature",
    "total_gain": "Total gain of the splits on a feature",
    "cover": "Average cover of the splits on a feature",
    "total_cover": "Total cover of the splits on a feature",
    "weight": "Number of splits on a feature",
}
_NODE_COLUMNS = ("left", "feature", "threshold", "gain", "missing_left", "removed", "cover")


def model_contents(model: Model, names: ModelNames, with_derivations: bool) -> dict[str, Any]:
    """Return what the page shows of the trees.

    Parameters
    ----------
    model : Model
    names : ModelNames
    with_derivations : bool
        Whether nodes can be unfolded.
    """
    trees = [grown_tree(model, tree) for tree in range(model.n_trees)]
    columns = tree_columns(trees, names)
    gains = [gain for gain, left in zip(columns["gain"], columns["left"], strict=True) if left > 0]
    derivations = fold_derivations(_derivations(trees, names)) if with_derivations else None
    values = columns["values"]
    return {
        "features": list(names.features),
        "outputs": [name or f"output {output}" for output, name in enumerate(names.outputs)],
        "n_outputs": model.n_outputs,
        "n_trees": model.n_trees,
        "is_vector": len(values) > 1,
        "gamma": settings_of(model.params_of(0)).gamma,
        "least_gain": min([0.0, *gains]),
        "largest_gain": max([0.0, *gains]),
        "largest_value": max(abs(value) for of_output in values for value in of_output),
        "trees": columns,
        "derivations": derivations,
    }


def _derivations(trees: Iterable[GrownTree], names: ModelNames) -> Iterator[Derivation]:
    for tree in trees:
        for node in range(len(tree.nodes)):
            yield derive_node(tree, node, names)


def tree_columns(trees: Iterable[GrownTree], names: ModelNames) -> dict[str, Any]:
    """Return the nodes of all trees as lists with an item for each node, tree after tree.

    Splits that pruning removed are among them, if the model has kept them.

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
    columns: dict[str, list[Any]] = {name: [] for name in _NODE_COLUMNS}
    values: list[list[float]] = []
    starts, conditions = [0], {}
    for tree in trees:
        nodes, start = tree.nodes, starts[-1]
        is_split = nodes.left >= 0
        # NaN stands for a set of categories, which is among the conditions
        thresholds = np.where(np.isfinite(nodes.threshold), nodes.threshold, 0.0).tolist()
        columns["left"] += np.maximum(nodes.left, 0).tolist()
        columns["feature"] += np.where(is_split, nodes.feature, 0).tolist()
        pairs = zip(np.where(is_split, nodes.feature, 0).tolist(), thresholds, strict=True)
        columns["threshold"] += [token(names.threshold_text(*pair)) for pair in pairs]
        columns["gain"] += [float(f"{gain:.12g}") for gain in nodes.gain.tolist()]
        columns["missing_left"] += nodes.default_left.tolist()
        columns["removed"] += (is_split & ~tree.is_split).astype(int).tolist()
        columns["cover"] += column(nodes.cover.tolist())
        values = values or [[] for _ in range(tree.values.shape[1])]
        for of_output, new in zip(values, tree.values.T.tolist(), strict=True):
            of_output += column(new)
        for node in np.flatnonzero(is_split & ~np.isfinite(nodes.threshold)).tolist():
            conditions[start + node] = names.condition(tree, node)
        starts.append(start + len(nodes))
    return {"starts": starts, **columns, "values": values, "conditions": conditions}


def importances_of_splits(model: Model) -> list[dict[str, Any]]:
    """Return importances of all XGBoost's types, which the splits of the trees give."""
    return [
        importance(kind, _ABOUT[kind], split_importances(model, kind)) for kind in IMPORTANCE_TYPES
    ]


def importance(name: str, about: str, values: np.ndarray) -> dict[str, Any]:
    """Return one type of importance, with `values` of shape (n_features,)."""
    return {"name": name, "about": about, "values": column(values.tolist())}


def curve_contents(
    log: Mapping[str, Mapping[str, Any]], first_round: int, best: int | None
) -> dict[str, Any]:
    """Return learning curves.

    Parameters
    ----------
    log : mapping of str to mapping of str to list of float
        By set of rows and metric, as in ``evals_result_``.
    first_round : int
        The first round of the log.
    best : int or None
        The best round.
    """
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for rows, metrics in log.items():
        for name, values in metrics.items():
            known = [value if math.isfinite(value) else None for value in column(values)]
            by_metric.setdefault(name, []).append({"name": rows, "values": known})
    charts = [{"name": name, "sets": sets} for name, sets in by_metric.items()]
    return {"first_round": first_round, "best": best, "metrics": charts}
