"""Metrics: the record, and the means of losses that most metrics are.

A metric makes one number of targets, predictions and weights. Most are means of a loss: these have
one formula of a row, which the kernel of the rounds reads in blocks of 256 rows, without coming
back to Python. The sum of each block is one number, and these are added in order, so a mean does
not depend on the number of threads. With several outputs it is over all of them; a target of NaN is
not known, and not counted.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from sklboost.engine.backend import BACKEND, Backend
from sklboost.engine.compiling import kernel
from sklboost.engine.elementary import log
from sklboost.objectives.blocks import (
    BLOCK_ROWS,
    LEAST_PROBABILITY,
    LOG_1P,
    Formula,
    address_of_losses,
    call_metric,
    two_matrices,
)
from sklboost.objectives.domains import (
    ABOVE_MINUS_1,
    IDENTITY,
    LOG,
    LOG_ODDS,
    POSITIVE,
    SHARES,
    SOFTMAX,
    check_metric_domain,
)

# function(y, prediction, weight) -> value, see Metric.
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], float]

# By what a formula reads: the predictions that it is for, and the remedy for others.
_PREDICTIONS = {
    LOG: (POSITIVE, "an objective of positive predictions, such as 'count:poisson'"),
    LOG_ODDS: (SHARES, "an objective of probabilities, such as 'reg:logistic'"),
    LOG_1P: (ABOVE_MINUS_1, "fit log1p(y) with the metric rmse"),
}
# Rows of scratch: a block's losses, two for what leads to them, weights.
_WEIGHTS = 3


class Metric(NamedTuple):
    """A metric: the registry's are of predictions; the rounds give raw scores to `value`."""

    name: str
    greater_is_better: bool
    # ``function(y, prediction, weight) -> float``. `y` is float64, shape (n_samples,) or
    # (n_samples, n_targets): targets, NaN where not known, or numbers of classes. `prediction` is
    # float64: shape (n_samples,) or (n_samples, n_outputs) for regression and several labels,
    # (n_samples,) with the probability of class 1 for two classes, (n_samples, n_classes) for more.
    # `weight` is float64, shape (n_samples,) or (0,): all 1. It only reads them, and raises a
    # ValueError for what is outside its domain.
    function: Function
    # what makes these predictions of raw scores, shape (n_outputs, n_samples); None: `function`
    # reads what it is given
    predict: Callable[[np.ndarray], np.ndarray] | None = None
    # If it is a mean: the formula of a row's loss, and its parameters, one for all outputs or one
    # for each. The rounds compute it by a kernel, and ask the function for an error if it is NaN.
    formula: Formula | None = None
    parameters: tuple[float, ...] = ()
    factor: float = 1.0  # that the mean is multiplied by
    is_root: bool = False  # whether the metric is the root of that

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the metric of raw scores."""
        return self.function(y, self.predict(raw_score) if self.predict else raw_score, weight)

    def check_targets(self, y: np.ndarray) -> None:
        """Raise ValueError for the first target that the metric is not defined for."""
        if self.formula is not None:
            remedy = "leave these rows out"
            check_metric_domain(self.name, "target", y, self.formula.targets, remedy)


@kernel
def fill_logarithms(probabilities, logarithms):
    """Fill with logarithms, of the least probability at least: NumPy's differ among processors."""
    for output in range(probabilities.shape[0]):
        for row in range(probabilities.shape[1]):
            logarithms[output, row] = log(max(probabilities[output, row], LEAST_PROBABILITY))


def mean_metric(
    name: str,
    formula: Formula,
    parameters: tuple[float, ...],
    factor: float,
    *,
    is_root: bool,
    is_of_probabilities: bool,
) -> Metric:
    """Make a metric of the mean of a loss of predictions: the smaller the better."""

    def function(y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
        metric.check_targets(y)
        scores, link = as_rows(prediction), IDENTITY
        if formula.reads == SOFTMAX:
            probabilities, link = scores, SOFTMAX
            scores = np.empty(probabilities.shape)
            fill_logarithms(probabilities, scores)
        elif is_of_probabilities and formula.reads == LOG_ODDS:
            scores = np.clip(scores, 0.0, 1.0)  # which rounding may have left
        elif formula.reads in _PREDICTIONS:
            check_metric_domain(name, "prediction", prediction, *_PREDICTIONS[formula.reads])
        return mean_of_rows(metric, link, as_rows(y), scores, weight)

    metric = Metric(
        name,
        greater_is_better=False,
        function=function,
        formula=formula,
        parameters=parameters,
        factor=factor,
        is_root=is_root,
    )
    return metric


def as_rows(columns: np.ndarray) -> np.ndarray:
    """Return targets or predictions as a new array, an output a row, as kernels want them."""
    return np.array(np.atleast_2d(columns.T), dtype=np.float64, order="C")


# --- means


class CompiledMetrics(NamedTuple):
    """The metrics that are means, as kernels compute them of one set of rows."""

    # int64, shape (n_metrics,): of their blocks; the blocks themselves where nothing is compiled
    addresses: np.ndarray
    factors: np.ndarray  # float64, shape (n_metrics,)
    are_roots: np.ndarray  # bool, shape (n_metrics,)
    # int64, shape (n_metrics,): how many outputs have losses of their own: all, or only the first
    # where a block reads them together
    n_sums: np.ndarray
    parameters: np.ndarray  # float64, shape (n_metrics, n_outputs)
    y: np.ndarray  # float64, shape (n_targets, n_samples)
    weight: np.ndarray  # float64, shape (n_samples,) or (0,)
    # float64, shape (n_rounds * n_metrics, n_blocks, 2): sums of weighted losses and of weights
    sums: np.ndarray
    # float64, shape (n_threads, 4, BLOCK_ROWS): for losses, what leads to them, and weights
    scratch: np.ndarray
    values: np.ndarray  # float64, shape (n_rounds, n_metrics): filled


def compile_metrics(
    metrics: Sequence[Metric],
    link: str,
    rows: tuple[np.ndarray, np.ndarray],
    n_outputs: int,
    *,
    n_rounds: int = 1,
    n_threads: int = 1,
) -> CompiledMetrics:
    """Compile the metrics that are means for raw scores of this link; `rows`: y and weight."""
    y, weight = rows
    means = [(metric, metric.formula) for metric in metrics if metric.formula is not None]
    parameters = np.empty((len(means), n_outputs))
    for row, (metric, _) in zip(parameters, means, strict=True):
        row[:] = metric.parameters
    addresses = [address_of_losses(formula, link) for _, formula in means]
    n_sums = [1 if formula.is_block else n_outputs for _, formula in means]
    return CompiledMetrics(
        np.array(addresses, dtype=object if BACKEND is Backend.INTERPRETER else np.int64),
        np.array([metric.factor for metric, _ in means], dtype=np.float64),
        np.array([metric.is_root for metric, _ in means], dtype=np.bool_),
        np.array(n_sums, dtype=np.int64),
        parameters,
        y,
        weight,
        sums=np.empty((n_rounds * len(means), -(-y.shape[1] // BLOCK_ROWS), 2)),
        scratch=np.empty((n_threads, _WEIGHTS + 1, BLOCK_ROWS)),
        values=np.empty((n_rounds, len(means))),
    )


def mean_of_rows(
    metric: Metric, link: str, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray
) -> float:
    """Return the value of a mean, by one thread; arrays as in `CompiledMetrics`."""
    compiled = compile_metrics([metric], link, (y, weight), len(raw_score))
    return float(_finish_alone(compiled, raw_score))


def losses_of_rows(
    formula: Formula, parameters: np.ndarray, y: np.ndarray, raw_score: np.ndarray
) -> np.ndarray:
    """Return the loss of each row and output; one a row where a block reads them together."""
    targets, scores = two_matrices(y, raw_score)
    losses = np.empty((1 if formula.is_block else len(scores), scores.shape[1]))
    scratch = np.empty((_WEIGHTS + 1, BLOCK_ROWS))
    address = address_of_losses(formula, formula.reads)
    _fill_losses(address, targets, scores, parameters, scratch, losses)
    return losses


@kernel
def add_losses(metrics, index, block, raw_score, scratch, sums):
    """Fill ``sums[block]`` of a metric and a block of 256 rows; the scratch is this member's."""
    y, weight = metrics.y, metrics.weight
    start, stop = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, y.shape[1])
    address, parameters = metrics.addresses[index], metrics.parameters[index]
    losses, weights = scratch[0], scratch[_WEIGHTS]
    total, total_weight = 0.0, 0.0
    for output in range(metrics.n_sums[index]):
        call_metric(address, (start, stop), output, y, raw_score, parameters, scratch)
        targets = y[output % y.shape[0], start:stop]
        total_weight += _weigh(targets, weight[start:stop], losses, weights)
        total += _fold(losses, stop - start)
    sums[block, 0] = total
    sums[block, 1] = total_weight


@kernel
def finish_metric(metrics, index, sums):
    """Return the value of a metric from the sums of all members: a barrier must be between."""
    total, total_weight = 0.0, 0.0
    for block in range(len(sums)):
        total += sums[block, 0]
        total_weight += sums[block, 1]
    value = metrics.factors[index] * (total / total_weight)
    return math.sqrt(value) if metrics.are_roots[index] else value


@kernel
def _finish_alone(metrics, raw_score):
    """Return the value of the only metric."""
    for block in range(metrics.sums.shape[1]):
        add_losses(metrics, 0, block, raw_score, metrics.scratch[0], metrics.sums[0])
    return finish_metric(metrics, 0, metrics.sums[0])


@kernel
def _fill_losses(address, y, raw_score, parameters, scratch, losses):
    """Fill the losses of a formula, shape (n_sums, n_samples)."""
    for output in range(losses.shape[0]):
        for start in range(0, losses.shape[1], BLOCK_ROWS):
            some = losses[output, start : start + BLOCK_ROWS]
            rows = (start, start + len(some))
            call_metric(address, rows, output, y, raw_score, parameters, scratch)
            for row in range(len(some)):
                some[row] = scratch[0, row]


@kernel
def _weigh(y, weight, losses, weights):
    """Multiply the losses of a block by the weights, 0 for unknown targets; return these' sum."""
    if len(weight) == 0:
        n_known = 0
        for row in range(len(y)):
            is_known = y[row] == y[row]
            losses[row] = losses[row] if is_known else 0.0
            n_known += is_known
        return float(n_known)
    for row in range(len(y)):
        is_known = y[row] == y[row]
        weights[row] = weight[row] if is_known else 0.0
        losses[row] = losses[row] * weight[row] if is_known else 0.0
    return _fold(weights, len(y))


@kernel
def _fold(values, n_values):
    """Return the sum of the first values of a block, adding halves until one value is left.

    Halves are added by vector instructions, one running sum would not be; and eight roundings are
    less than 256. `values`, shape (BLOCK_ROWS,), is overwritten.
    """
    values[n_values:] = 0.0
    half = BLOCK_ROWS // 2
    while half > 0:
        lower, upper = values[:half], values[half : 2 * half]
        for row in range(len(lower)):
            lower[row] += upper[row]
        half //= 2
    return values[0]
