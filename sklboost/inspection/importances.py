"""Feature importances from the splits of a model, in XGBoost's five kinds.

In: a model. Out: one number a feature.
"""

import numpy as np

from sklboost.engine.model import Model

# XGBoost's names. The first is the default.
IMPORTANCE_TYPES = ("gain", "total_gain", "cover", "total_cover", "weight")


def split_importances(model: Model, importance_type: str) -> np.ndarray:
    """Give what the splits of each feature have, as XGBoost's ``get_score`` counts it.

    Parameters
    ----------
    model : Model
    importance_type : str
        ``"weight"``: their number. ``"total_gain"`` and ``"total_cover"``: the sums of their gains,
        and of the covers of the nodes that they split. ``"gain"`` and ``"cover"``: these sums
        divided by the number.

    Returns
    -------
    ndarray of float64, shape (n_features,)
        0 for a feature without splits.
    """
    splits = model.nodes[model.nodes.left >= 0]
    n_splits = np.bincount(splits.feature, minlength=model.n_features)
    if importance_type == "weight":
        return n_splits.astype(np.float64)
    counted = splits.gain if importance_type.endswith("gain") else splits.cover
    total = np.bincount(splits.feature, weights=counted, minlength=model.n_features)
    return total if importance_type.startswith("total") else total / np.maximum(n_splits, 1)


def scaled_to_one(importances: np.ndarray) -> np.ndarray:
    """Scale importances to sum 1; those below 0 count as 0, and all are 0 if none is above."""
    # with pruning="full" the gains of kept splits can add up to less than 0: no importance
    importances = np.maximum(importances, 0.0)
    return importances / (importances.sum() or 1.0)
