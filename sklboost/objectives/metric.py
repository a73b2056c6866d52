"""What a metric is.

A metric knows nothing of trees or losses. It turns targets and predictions into one number. Most
are means of a loss of a row: these have one formula, for predictions that come from Python and for
the raw scores of every round alike.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklboost.objectives.means import MeanLoss, allocate_sums, mean_losses, mean_of_rows

# function(y, prediction, weight) -> value, see Metric.
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], float]


class Metric(NamedTuple):
    """A metric of predictions.

    Attributes
    ----------
    name : str
    greater_is_better : bool
    function : callable
        ``function(y, prediction, weight) -> float``. `y` is float64, shape (n_samples,) or
        (n_samples, n_targets): targets, NaN where not known, or numbers of classes. `prediction` is
        float64: shape (n_samples,) or (n_samples, n_outputs) for regression and several labels,
        (n_samples,) with the probability of class 1 for two classes, (n_samples, n_classes) for
        more. `weight` is float64, shape (n_samples,) or (0,): all 1. It only reads them, and raises
        a ValueError for what is outside its domain.
    mean_loss : MeanLoss or None
        What it is the mean of, if it is one; of the predictions that users see.
    """

    name: str
    greater_is_better: bool
    function: Function
    mean_loss: MeanLoss | None = None


class RoundMetric(NamedTuple):
    """A metric as the rounds of boosting use it: of raw scores.

    Where there is a mean of losses, of raw scores, :mod:`sklboost.objectives.means`
    gives the same value inside the team's own kernel. `value` need then only be called where that
    is NaN: it raises the error.

    Attributes
    ----------
    name : str
    greater_is_better : bool
    mean_loss : MeanLoss or None
    value : callable
        ``value(y, raw_score, weight) -> float``, with `y` and `weight` as in :class:`Metric` and
        `raw_score` float64 of shape (n_outputs, n_samples). It only reads them.
    """

    name: str
    greater_is_better: bool
    mean_loss: MeanLoss | None
    value: Function


def mean_metric(name: str, mean_loss: MeanLoss) -> Metric:
    """Make a metric of the mean of a loss of predictions: the smaller the better."""
    domains = mean_loss.formula.targets, mean_loss.formula.predictions

    def function(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
        domains[0].check(name, "target", y)
        domains[1].check(name, "prediction", prediction)
        targets, scores = as_rows(y), as_rows(prediction)
        metrics = mean_losses([mean_loss], len(scores))
        sums = allocate_sums(1, len(y), 1)
        rows = (targets, scores, weight)
        return float(mean_of_rows(metrics, rows, sums.scratch[0], sums.blocks[0]))

    return Metric(name, False, function, mean_loss)


def as_rows(columns: np.ndarray) -> np.ndarray:
    """Give targets or predictions as a new array, an output a row, as kernels want them."""
    return np.array(np.atleast_2d(columns.T), dtype=np.float64, order="C")
