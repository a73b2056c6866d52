"""What a metric is.

A metric knows nothing of trees or losses. It turns targets and predictions into one number; those
that are wanted after every round have a compiled form besides, which starts from raw scores.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

# The compiled forms, by which :mod:`sklboost.metrics.compiled` knows them.
NOT_COMPILED, RMSE, MAE, LOGLOSS, ERROR, MLOGLOSS, MERROR = range(-1, 6)


class Metric(NamedTuple):
    """A metric of predictions.

    Attributes
    ----------
    name : str
    greater_is_better : bool
    function : callable
        ``function(y, prediction, weight) -> float``. `y` is float64, shape (n_samples,): targets,
        or numbers of classes. `prediction` is float64: shape (n_samples,) for regression,
        (n_samples,) with the probability of class 1 for two classes, (n_samples, n_classes) for
        more. `weight` is float64, shape (n_samples,) or (0,): all 1.
    code : int
        Of the compiled form, or `NOT_COMPILED`.
    """

    name: str
    greater_is_better: bool
    function: Callable[[np.ndarray, np.ndarray, np.ndarray], float]
    code: int = NOT_COMPILED


class RoundMetric(NamedTuple):
    """A metric as the rounds of boosting use it: of raw scores.

    Where `code` is not `NOT_COMPILED`, :mod:`sklboost.metrics.compiled` gives the same value inside
    the team's own kernel, and `value` need not be called.

    Attributes
    ----------
    name : str
    greater_is_better : bool
    code : int
    value : callable
        ``value(y, raw_score, weight) -> float``, with `y` and `weight` as in :class:`Metric` and
        `raw_score` float64 of shape (n_outputs, n_samples). It only reads them.
    """

    name: str
    greater_is_better: bool
    code: int
    value: Callable[[np.ndarray, np.ndarray, np.ndarray], float]


def mean(values: np.ndarray, weight: np.ndarray) -> float:
    """Give the weighted mean; no weights: all 1."""
    return float(np.average(values, weights=weight if len(weight) else None))
