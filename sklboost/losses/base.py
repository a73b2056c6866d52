"""What a loss is, and the one sum that start values need.

A loss knows nothing of trees: it turns targets and raw scores into gradients and hessians.
"""

from typing import Protocol

import numpy as np

SQUARED_ERROR, LOG_LOSS, SOFTMAX = range(3)
# Losses of several outputs go through the rows in blocks that stay in the first-level cache.
BLOCK_ROWS = 256


class Loss(Protocol):
    """The contract of a loss. Raw scores have shape (n_outputs, n_samples).

    Attributes
    ----------
    code : int
        By which :func:`~sklboost.losses.gradients.fill_gradients` knows it.
    n_outputs : int
        Raw scores per row, so trees per round.
    """

    code: int
    n_outputs: int

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the constant raw scores of least loss, shape (n_outputs,); no weights: all 1."""

    def raw_of(self, prediction: float) -> np.ndarray:
        """Give the raw scores, shape (n_outputs,), that stand for this prediction."""

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Give the mean loss; no weights: all 1."""


class ClassLoss(Loss, Protocol):
    """The contract of a loss of class probabilities."""

    def probabilities(self, raw_score: np.ndarray) -> np.ndarray:
        """Give the probabilities of the classes, shape (n_samples, n_classes)."""


def exact_sum(values: np.ndarray) -> float:
    """Add float64 values so that their order does not matter, as whole numbers of a fine step.

    The step is 2^-61 of a bound on the sum, the largest value times their number: a value as large
    as the largest keeps 52 bits of 500 values and 41 bits of a million.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    _, exponent = np.frexp(largest * len(values))
    shift = 61 - int(exponent)
    return float(np.ldexp(float(np.rint(np.ldexp(values, shift)).astype(np.int64).sum()), -shift))


def weighted_mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Give the mean, the same for every order of the rows; no weights: all 1."""
    if len(weight) == 0:
        return exact_sum(values) / len(values)
    return exact_sum(values * weight) / exact_sum(weight)
