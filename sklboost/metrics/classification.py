"""Metrics of predicted probabilities, each equal to scikit-learn's function.

Probabilities of two classes come as that of class 1, shape (n_samples,); of more as one column a
class.
"""

import numpy as np

from sklboost.metrics.base import mean

# As scikit-learn: the logarithm of 0 would make one row count more than all others.
_LEAST_PROBABILITY = np.finfo(np.float64).eps


def logloss(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean of -log of the probability of what happened; at least 2e-16, as scikit-learn.

    The compiled form takes raw scores, so that it needs no such limit.
    """
    probability = np.where(y == 1.0, prediction, 1.0 - prediction)
    return mean(-np.log(np.maximum(probability, _LEAST_PROBABILITY)), weight)


def mlogloss(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the same for more than two classes."""
    probability = prediction[np.arange(len(y)), y.astype(np.intp)]
    return mean(-np.log(np.maximum(probability, _LEAST_PROBABILITY)), weight)


def error(
    y: np.ndarray, prediction: np.ndarray, weight: np.ndarray, *, threshold: float = 0.5
) -> float:
    """Give the share of rows on the wrong side: class 1 is predicted above `threshold`."""
    return mean(((prediction > threshold) != (y == 1.0)).astype(np.float64), weight)


def merror(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the share of rows whose most probable class is another; of equals the first counts."""
    return mean((prediction.argmax(axis=1) != y).astype(np.float64), weight)


def brier(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean of ``(y - p)^2``."""
    return mean((y - prediction) ** 2, weight)
