"""Feature importances from the splits of a model, of XGBoost's five types."""

import numpy as np

from sklboost.engine.model import Model

# XGBoost's names. The first is the default.
IMPORTANCE_TYPES = ("gain", "total_gain", "cover", "total_cover", "weight")


@np.errstate(all="ignore")
def split_importances(model: Model, importance_type: str) -> np.ndarray:
    """Return the importance of each feature, as XGBoost's ``get_score`` does.

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


@np.errstate(all="ignore")
def scaled_to_one(importances: np.ndarray) -> np.ndarray:
    """Return importances divided by their sum; negative ones count as 0, and 0 stays 0."""
    # with pruning="full" the gains of kept splits can add up to less than 0: no importance
    importances = np.maximum(importances, 0.0)
    return importances / (importances.sum() or 1.0)
