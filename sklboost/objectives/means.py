"""Metrics that are means of a loss of a row, compiled: rounds need not leave their kernel for them.

In: metrics by the address of their code, targets, raw scores, weights. Out: their values. The rows
are cut into blocks of fixed size; each block's sum is one number, and the sums are added in order.
So the value does not depend on how many threads there are. With several outputs the mean is over
all of them; a target of NaN is not known, and not counted.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.objectives.metrics.blocks import address_of_losses, call_metric
from sklboost.objectives.metrics.formulas import Formula

# Small enough for the first-level cache, and a power of two, see _fold.
BLOCK_ROWS = 256
# Rows of scratch: a block's losses; two for what leads to them; weights.
_WEIGHTS = 3


class MeanLoss(NamedTuple):
    """A metric that is the mean of a formula's losses, or the root of one.

    Attributes
    ----------
    formula : Formula
    is_root : bool
    parameters : tuple of float
        Of the formula: one for all outputs, or one for each.
    scale : str
        Of the predictions or raw scores that it is computed of, see
        :mod:`sklboost.objectives.metrics.scales`.
    """

    formula: Formula
    is_root: bool
    parameters: tuple[float, ...]
    scale: str


class MeanLosses(NamedTuple):
    """Some metrics as kernels know them.

    Attributes
    ----------
    addresses : ndarray of int64, shape (n_metrics,)
        Of their blocks; the blocks themselves where nothing is compiled.
    are_roots : ndarray of bool, shape (n_metrics,)
        Whether the root of the mean is taken.
    n_sums : ndarray of int64, shape (n_metrics,)
        How many outputs have losses of their own: all, or of classes only the first.
    parameters : ndarray of float64, shape (n_metrics, n_outputs)
    """

    addresses: np.ndarray
    are_roots: np.ndarray
    n_sums: np.ndarray
    parameters: np.ndarray


def mean_losses(metrics: Sequence[MeanLoss], n_outputs: int) -> MeanLosses:
    """Give metrics the form that kernels know."""
    parameters = np.empty((len(metrics), n_outputs))
    for own, metric in zip(parameters, metrics, strict=True):
        own[:] = metric.parameters
    addresses = [address_of_losses(metric.formula, metric.scale) for metric in metrics]
    n_sums = [1 if metric.formula.is_of_classes else n_outputs for metric in metrics]
    return MeanLosses(
        np.array(addresses, dtype=object if numba.config.DISABLE_JIT else np.int64),
        np.array([metric.is_root for metric in metrics], dtype=np.bool_),
        np.array(n_sums, dtype=np.int64),
        parameters,
    )


class LossSums(NamedTuple):
    """Where :func:`add_losses` leaves what :func:`finish_metric` needs.

    Attributes
    ----------
    blocks : ndarray of float64, shape (n_values, n_blocks, 2)
        For each metric (and round): sum of weighted losses and of weights.
    scratch : ndarray of float64, shape (n_threads, 4, BLOCK_ROWS)
        For losses, what leads to them, and weights.
    """

    blocks: np.ndarray
    scratch: np.ndarray


def allocate_sums(n_values: int, n_rows: int, n_threads: int) -> LossSums:
    """Make the sums of some metrics for one set of rows."""
    n_blocks = -(-n_rows // BLOCK_ROWS)
    scratch = np.empty((n_threads, _WEIGHTS + 1, BLOCK_ROWS))
    return LossSums(np.empty((n_values, n_blocks, 2)), scratch)


@kernel
def add_losses(metrics, index, block, rows, scratch, sums):
    """Fill ``sums[block]``.

    Parameters
    ----------
    metrics : MeanLosses
    index : int
        Of the metric.
    block : int
        Of 256 rows.
    rows : tuple of ndarray of float64
        Targets, shape (1 or n_outputs, n_samples); raw scores, shape (n_outputs, n_samples);
        weights, shape (n_samples,) or (0,), which is all 1.
    scratch : ndarray of float64, shape (4, BLOCK_ROWS)
        This member's own.
    sums : ndarray of float64, shape (n_blocks, 2)
    """
    y, raw_score, weight = rows
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
def finish_metric(is_root, sums):
    """Give the metric's value, from the sums of all members: a barrier must be between.

    Parameters
    ----------
    is_root : bool
        As in :class:`MeanLosses`.
    sums : ndarray of float64, shape (n_blocks, 2)

    Returns
    -------
    float
        The same on every member that asks.
    """
    total, total_weight = 0.0, 0.0
    for block in range(len(sums)):
        total += sums[block, 0]
        total_weight += sums[block, 1]
    mean = total / total_weight
    return math.sqrt(mean) if is_root else mean


@kernel
def mean_of_rows(metrics, rows, scratch, sums):
    """Give the value of the first metric; arguments as those of :func:`add_losses`."""
    for block in range(len(sums)):
        add_losses(metrics, 0, block, rows, scratch, sums)
    return finish_metric(metrics.are_roots[0], sums)


@kernel
def _weigh(y, weight, losses, weights):
    """Multiply the losses of a block by the weights; targets that are not known have none.

    Gives the sum of weights. `weights` is scratch.
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
    """Give the sum of the first values of a block, adding halves until one value is left.

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
