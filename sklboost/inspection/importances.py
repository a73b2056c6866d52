"""Feature importances from the splits of a model."""

import numpy as np

from sklboost.model import Model


def gain_importance(model: Model) -> np.ndarray:
    """Give each feature's average gain per split, scaled to sum 1 (XGBoost's ``"gain"``).

    Returns
    -------
    ndarray of float64, shape (n_features,)
        All 0 if no tree has a split.
    """
    splits = model.nodes[model.nodes.left >= 0]
    gain = np.bincount(splits.feature, weights=splits.gain, minlength=model.n_features)
    n_splits = np.bincount(splits.feature, minlength=model.n_features)
    # with pruning="full" the gains of kept splits can add up to less than 0: no importance
    average = np.maximum(gain, 0.0) / np.maximum(n_splits, 1)
    return average / (average.sum() or 1.0)
