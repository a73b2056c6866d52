"""Links: what raw scores are, and the predictions that come of them.

In: raw scores, shape (n_outputs, n_samples). Out: numbers of the same shape.
"""

from collections.abc import Callable

import numpy as np

from sklboost.objectives.domains import check_base_score

_LARGEST = 700.0  # e^700 is 1e304


def chances(log_odds: np.ndarray) -> np.ndarray:
    """Give ``1 / (1 + e^-z)``, written so that nothing overflows or cancels."""
    decay = np.exp(-np.abs(log_odds))
    return np.where(log_odds >= 0.0, 1.0 / (1.0 + decay), decay / (1.0 + decay))


def shares(logarithms: np.ndarray) -> np.ndarray:
    """Give ``e^z / (sum of e^z over the outputs)``."""
    terms = np.exp(logarithms - logarithms.max(axis=0))
    return terms / terms.sum(axis=0)


def exponentials(logarithms: np.ndarray) -> np.ndarray:
    """Give ``e^z``; where that leaves the range of numbers, one at its end."""
    return np.exp(np.clip(logarithms, -_LARGEST, _LARGEST))


PREDICTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "identity": np.array,
    "log": exponentials,
    "logit": chances,
    "softmax": shares,
}


def predictions_of(link: str, raw_score: np.ndarray) -> np.ndarray:
    """Give the predictions that raw scores stand for; a new array."""
    return PREDICTIONS[link](raw_score)


def raw_score_of(link: str, prediction: float, objective: str) -> float:
    """Give the raw score that stands for a prediction; for softmax, they all are worth the same.

    Raises
    ------
    ValueError
        If there is none; `objective` is the name of the loss in the error.
    """
    if link == "log":
        check_base_score(prediction, objective, 0.0)
        return float(np.log(prediction))
    if link == "logit":
        check_base_score(prediction, objective, 0.0, 1.0)
        return float(np.log(prediction) - np.log1p(-prediction))
    return prediction
