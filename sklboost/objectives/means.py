"""Means of the losses of rows: most metrics, computed without leaving the kernel of the rounds.

Rows are cut into blocks of 256. The sum of each block is one number, and these are added in order,
so a mean does not depend on the number of threads. With several outputs it is over all of them; a
target of NaN is not known, and not counted.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sklboost.engine.backend import BACKEND, Backend
from sklboost.engine.compiling import kernel
from sklboost.objectives.blocks import (
    BLOCK_ROWS,
    Formula,
    address_of_losses,
    call_metric,
    two_matrices,
)

# Rows of scratch: a block's losses, two for what leads to them, weights.
_WEIGHTS = 3


class MeanLoss(NamedTuple):
    """A metric that is a multiple of the mean of a formula's losses, or the root of it."""

    formula: Formula
    parameters: tuple[float, ...]  # of the formula: one for all outputs, or one for each
    scale: str  # of the predictions or raw scores it is computed of
    factor: float = 1.0
    is_root: bool = False


class MeanLosses(NamedTuple):
    """Some metrics as kernels know them."""

    # int64, shape (n_metrics,): of their blocks; the blocks themselves where nothing is compiled
    addresses: np.ndarray
    factors: np.ndarray  # float64, shape (n_metrics,)
    are_roots: np.ndarray  # bool, shape (n_metrics,)
    # int64, shape (n_metrics,): how many outputs have losses of their own: all, or of classes only
    # the first
    n_sums: np.ndarray
    parameters: np.ndarray  # float64, shape (n_metrics, n_outputs)


def mean_losses(metrics: Sequence[MeanLoss], n_outputs: int) -> MeanLosses:
    """Compile metrics for so many outputs."""
    parameters = np.empty((len(metrics), n_outputs))
    for row, metric in zip(parameters, metrics, strict=True):
        row[:] = metric.parameters
    addresses = [address_of_losses(metric.formula, metric.scale) for metric in metrics]
    n_sums = [1 if metric.formula.is_of_classes else n_outputs for metric in metrics]
    return MeanLosses(
        np.array(addresses, dtype=object if BACKEND is Backend.INTERPRETER else np.int64),
        np.array([metric.factor for metric in metrics], dtype=np.float64),
        np.array([metric.is_root for metric in metrics], dtype=np.bool_),
        np.array(n_sums, dtype=np.int64),
        parameters,
    )


class LossSums(NamedTuple):
    """Where :func:`add_losses` leaves what :func:`finish_metric` needs."""

    # float64, shape (n_values, n_blocks, 2): for each metric (and round): sum of weighted losses
    # and of weights
    blocks: np.ndarray
    # float64, shape (n_threads, 4, BLOCK_ROWS): for losses, what leads to them, and weights
    scratch: np.ndarray


def allocate_sums(n_values: int, n_rows: int, n_threads: int) -> LossSums:
    """Allocate the sums of some metrics for one set of rows."""
    n_blocks = -(-n_rows // BLOCK_ROWS)
    scratch = np.empty((n_threads, _WEIGHTS + 1, BLOCK_ROWS))
    return LossSums(np.empty((n_values, n_blocks, 2)), scratch)


def mean_of_rows(metric: MeanLoss, y: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """Return the value of one metric, by one thread; the arrays are those of `add_losses`."""
    metrics, sums = mean_losses([metric], len(score)), allocate_sums(1, score.shape[1], 1)
    return float(_finish_alone(metrics, (y, score, weight), sums))


def losses_of_rows(
    formula: Formula, parameters: np.ndarray, y: np.ndarray, score: np.ndarray
) -> np.ndarray:
    """Return the loss of each row, shape (n_outputs, n_samples), or (1, n_samples) of classes.

    `y` has shape (n_targets, n_samples) or (n_samples,); `score`, on the scale that the formula
    reads, (n_outputs, n_samples).
    """
    metric = MeanLoss(formula, tuple(parameters.tolist()), formula.reads)
    metrics = mean_losses([metric], len(score))
    losses = np.empty((int(metrics.n_sums[0]), score.shape[1]))
    scratch = allocate_sums(1, 0, 1).scratch[0]
    _fill_losses(metrics, *two_matrices(y, score), scratch, losses)
    return losses


@kernel
def add_losses(metrics, index, block, rows, scratch, sums):
    """Fill ``sums[block]``, shape (n_blocks, 2), of a metric and a block of 256 rows.

    `rows` are the targets, shape (n_targets, n_samples), the scores, shape (n_outputs, n_samples),
    and the weights, shape (n_samples,) or (0,), which is all 1. `scratch` is this member's, shape
    (4, BLOCK_ROWS).
    """
    y, score, weight = rows
    start, stop = block * BLOCK_ROWS, min((block + 1) * BLOCK_ROWS, y.shape[1])
    address, parameters = metrics.addresses[index], metrics.parameters[index]
    losses, weights = scratch[0], scratch[_WEIGHTS]
    total, total_weight = 0.0, 0.0
    for output in range(metrics.n_sums[index]):
        call_metric(address, (start, stop), output, y, score, parameters, scratch)
        targets = y[output % y.shape[0], start:stop]
        total_weight += _weigh(targets, weight[start:stop], losses, weights)
        total += _fold(losses, stop - start)
    sums[block, 0] = total
    sums[block, 1] = total_weight


@kernel
def finish_metric(metrics, index, sums):
    """Return the value of a metric from the sums of all members: a barrier must be between.

    `sums` has shape (n_blocks, 2).
    """
    total, total_weight = 0.0, 0.0
    for block in range(len(sums)):
        total += sums[block, 0]
        total_weight += sums[block, 1]
    value = metrics.factors[index] * (total / total_weight)
    return math.sqrt(value) if metrics.are_roots[index] else value


@kernel
def _finish_alone(metrics, rows, sums):
    """Return the value of the only metric."""
    for block in range(sums.blocks.shape[1]):
        add_losses(metrics, 0, block, rows, sums.scratch[0], sums.blocks[0])
    return finish_metric(metrics, 0, sums.blocks[0])


@kernel
def _fill_losses(metrics, y, score, scratch, losses):
    """Fill the losses of the only metric, shape (n_sums, n_samples)."""
    for output in range(losses.shape[0]):
        for start in range(0, losses.shape[1], BLOCK_ROWS):
            some, parameters = losses[output, start : start + BLOCK_ROWS], metrics.parameters[0]
            rows = (start, start + len(some))
            call_metric(metrics.addresses[0], rows, output, y, score, parameters, scratch)
            for row in range(len(some)):
                some[row] = scratch[0, row]


@kernel
def _weigh(y, weight, losses, weights):
    """Multiply the losses of a block by the weights; targets that are not known have none.

    Returns the sum of weights. `weights` is scratch.
    """
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
