"""What a page shows of a model: trees, derivations, importances, learning curves.

In: a model and what its numbers mean. Out: dicts and lists, which the scripts of the page read.
"""

import math
from collections.abc import Iterator, Mapping
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
from sklboost.inspection.page.tokens import column
from sklboost.inspection.page.tree_columns import tree_columns

_ABOUT = {
    "gain": "Average gain of the splits of a feature",
    "total_gain": "Gain of all splits of a feature together",
    "cover": "Average cover of the nodes that a feature splits",
    "total_cover": "Cover of all nodes that a feature splits, together",
    "weight": "Number of splits of a feature",
}


def model_contents(model: Model, names: ModelNames, with_derivations: bool) -> dict[str, Any]:
    """Give what the page shows of the trees.

    Parameters
    ----------
    model : Model
    names : ModelNames
    with_derivations : bool
        Whether nodes can be unfolded.
    """
    columns = tree_columns(_trees(model), names)
    gains = [gain for gain, left in zip(columns["gain"], columns["left"], strict=True) if left > 0]
    derivations = fold_derivations(_derivations(model, names)) if with_derivations else None
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
        "largest_value": max(abs(value) for own in values for value in own),
        "trees": columns,
        "derivations": derivations,
    }


def _trees(model: Model) -> Iterator[GrownTree]:
    return (grown_tree(model, tree) for tree in range(model.n_trees))


def _derivations(model: Model, names: ModelNames) -> Iterator[Derivation]:
    for tree in _trees(model):
        for node in range(len(tree.nodes)):
            yield derive_node(tree, node, names)


def importances_of_splits(model: Model) -> list[dict[str, Any]]:
    """Give importances in all kinds that the splits of the trees tell, XGBoost's."""
    return [
        importance(kind, _ABOUT[kind], split_importances(model, kind)) for kind in IMPORTANCE_TYPES
    ]


def importance(name: str, about: str, values: np.ndarray) -> dict[str, Any]:
    """Give one kind of importance, shape (n_features,)."""
    return {"name": name, "about": about, "values": column(values.tolist())}


def curve_contents(
    log: Mapping[str, Mapping[str, Any]], first_round: int, best: int | None
) -> dict[str, Any]:
    """Give learning curves.

    Parameters
    ----------
    log : mapping of str to mapping of str to list of float
        By set of rows and metric, as in ``evals_result_``.
    first_round : int
        That the log begins with.
    best : int or None
        The best round.
    """
    by_metric: dict[str, list] = {}
    for rows, metrics in log.items():
        for name, values in metrics.items():
            known = [value if math.isfinite(value) else None for value in column(values)]
            by_metric.setdefault(name, []).append({"name": rows, "values": known})
    charts = [{"name": name, "sets": sets} for name, sets in by_metric.items()]
    return {"first_round": first_round, "best": best, "metrics": charts}
