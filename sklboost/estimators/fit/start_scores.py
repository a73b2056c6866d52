"""The raw scores that training starts from, where the user says so.

In: `base_score`, predictions as users know them. Out: raw scores of a loss.
"""

from typing import Any

import numpy as np

from sklboost.objectives.loss import Loss


def check_prior(base_score: Any) -> None:
    """Raise ValueError unless it is None, a probability, or a list of probabilities."""
    if base_score is None or all(0.0 < own < 1.0 for own in np.ravel(base_score)):
        return
    raise ValueError(
        f"base_score={base_score!r}: for two classes, or labels, it is a probability, so it must "
        "be between 0 and 1, both excluded"
    )


def raw_base_score(base_score: Any, loss: Loss, n_targets: int) -> np.ndarray:
    """Give the raw scores that stand for a prediction.

    Parameters
    ----------
    base_score : float or sequence of float
        One for all targets, or one for each.
    loss : Loss
    n_targets : int

    Returns
    -------
    ndarray of float64, shape (n_outputs,)

    Raises
    ------
    ValueError
        If there are too few or too many, or one is no prediction that the loss can give.
    """
    if np.ndim(base_score) > 0 and len(base_score) != n_targets:
        raise ValueError(
            f"base_score={base_score!r}: y has {n_targets} target(s), so it must be one number, "
            "or a list of one for each target"
        )
    values = np.ravel(base_score).astype(np.float64)
    raw = np.array([loss.raw_of(float(value)) for value in values])
    outputs = np.arange(loss.n_outputs)
    return raw[outputs % len(values), outputs]  # output o has target o % n_targets
