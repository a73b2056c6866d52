"""The metrics wanted after every round, compiled: the rounds need not leave their kernel for them.

In: a metric's code, targets, raw scores, weights. Out: its value. The rows are cut into blocks of
fixed size; each block's sum is one number, and the sums are added in order. So the value does not
depend on how many threads there are.
"""

import math
from typing import NamedTuple

import numpy as np

from sklboost.compiling import kernel
from sklboost.elementary import exp_of_negative, log_of_one_plus
from sklboost.metrics.base import ERROR, LOGLOSS, MAE, MLOGLOSS, RMSE

# Small enough for the first-level cache, and a power of two, see _fold.
_BLOCK_ROWS = 256


class LossSums(NamedTuple):
    """Where :func:`add_losses` leaves what :func:`finish_metric` needs.

    Attributes
    ----------
    blocks : ndarray of float64, shape (n_blocks, 2), or (n_metrics, n_blocks, 2)
        Sum of weighted losses and of weights.
    scratch : ndarray of float64, shape (n_threads, 3, _BLOCK_ROWS)
        A block's losses, and two numbers a row for what leads to them.
    """

    blocks: np.ndarray
    scratch: np.ndarray


def allocate_sums(n_metrics: int, n_rows: int, n_threads: int) -> LossSums:
    """Make the sums of some metrics for one set of rows."""
    n_blocks = -(-n_rows // _BLOCK_ROWS)
    return LossSums(np.empty((n_metrics, n_blocks, 2)), np.empty((n_threads, 3, _BLOCK_ROWS)))


@kernel
def sums_of_metric(sums, index):
    """Give the sums of one metric."""
    return LossSums(sums.blocks[index], sums.scratch)


@kernel
def add_losses(team, code, block, y, raw_score, weight, sums):
    """Fill ``sums.blocks[block]``.

    Parameters
    ----------
    team : Team
    code : int
        ``Metric.code``, not `NOT_COMPILED`.
    block : int
        Of 256 rows.
    y : ndarray of float64, shape (n_samples,)
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Empty: all 1.
    sums : LossSums
    """
    scratch = sums.scratch[team.rank]
    rows = (block * _BLOCK_ROWS, min((block + 1) * _BLOCK_ROWS, len(y)))
    n_rows = rows[1] - rows[0]
    _fill_losses(code, rows, y, raw_score, scratch)
    total_weight = float(n_rows)
    if len(weight) > 0:
        _weigh(weight[rows[0] : rows[1]], scratch[0], scratch[1])
        total_weight = _fold(scratch[1], n_rows)
    sums.blocks[block, 0] = _fold(scratch[0], n_rows)
    sums.blocks[block, 1] = total_weight


@kernel
def finish_metric(code, sums):
    """Give the metric's value, from the sums of all members: a barrier must be between.

    Parameters
    ----------
    code : int
    sums : LossSums

    Returns
    -------
    float
        The same on every member that asks.
    """
    total, total_weight = 0.0, 0.0
    for block in range(len(sums.blocks)):
        total += sums.blocks[block, 0]
        total_weight += sums.blocks[block, 1]
    mean = total / total_weight
    return math.sqrt(mean) if code == RMSE else mean


@kernel
def _fill_losses(code, rows, y, raw_score, scratch):
    """Fill ``scratch[0]`` with the losses of the rows ``[start, stop)``, not weighted."""
    start, stop = rows
    targets, losses = y[start:stop], scratch[0, : stop - start]
    score = raw_score[0, start:stop]
    if code == RMSE:
        for row in range(len(targets)):
            losses[row] = (targets[row] - score[row]) ** 2
    elif code == MAE:
        for row in range(len(targets)):
            losses[row] = abs(targets[row] - score[row])
    elif code == LOGLOSS:
        _fill_log_losses(targets, score, losses)
    elif code == ERROR:
        for row in range(len(targets)):
            # class 1 is predicted above 0; y is 0 or 1
            losses[row] = 1.0 - targets[row] if score[row] > 0.0 else targets[row]
    elif code == MLOGLOSS:
        _fill_softmax_losses(rows, y, raw_score, scratch)
    else:
        _fill_class_errors(rows, y, raw_score, scratch)


@kernel
def _fill_log_losses(y, score, losses):
    """Fill ``-y z + log(1 + e^z)``, written so that nothing overflows or cancels."""
    # two loops: in one the processor waits for one row's logarithm before the next row's
    for row in range(len(y)):
        losses[row] = exp_of_negative(-abs(score[row]))
    for row in range(len(y)):
        losses[row] = max(score[row], 0.0) - y[row] * score[row] + log_of_one_plus(losses[row])


@kernel
def _fill_softmax_losses(rows, y, raw_score, scratch):
    """Fill ``log(sum of e^z_k) - z_y``, output by output as the gradients of softmax."""
    start, stop = rows
    n_rows = stop - start
    targets, losses = y[start:stop], scratch[0, :n_rows]
    largest, others = scratch[1, :n_rows], scratch[2, :n_rows]
    largest[:] = -np.inf
    for output in range(raw_score.shape[0]):
        own_score = raw_score[output, start:stop]
        for row in range(len(targets)):
            largest[row] = max(largest[row], own_score[row])
    others[:] = -1.0  # the largest has the term 1: what is left is the sum of the others' terms
    losses[:] = 0.0
    for output in range(raw_score.shape[0]):
        own_score, number = raw_score[output, start:stop], float(output)
        for row in range(len(targets)):
            below = largest[row] - own_score[row]
            others[row] += exp_of_negative(-below)
            losses[row] += below if targets[row] == number else 0.0
    for row in range(len(targets)):
        losses[row] += log_of_one_plus(max(others[row], 0.0))


@kernel
def _fill_class_errors(rows, y, raw_score, scratch):
    """Fill 1 where the class of largest raw score, the first of equals, is another, else 0."""
    start, stop = rows
    n_rows = stop - start
    targets, losses = y[start:stop], scratch[0, :n_rows]
    largest, best = scratch[1, :n_rows], scratch[2, :n_rows]
    largest[:] = -np.inf
    for output in range(raw_score.shape[0]):
        own_score, number = raw_score[output, start:stop], float(output)
        for row in range(len(targets)):
            # read before it is known whether it is needed: a vector of rows, not a branch for each
            own, top, class_ = own_score[row], largest[row], best[row]
            best[row] = number if own > top else class_
            largest[row] = max(own, top)
    for row in range(len(targets)):
        losses[row] = 0.0 if best[row] == targets[row] else 1.0


@kernel
def _weigh(weight, losses, weights):
    """Multiply the losses of a block by the rows' weights, and copy these for :func:`_fold`."""
    for row in range(len(weight)):
        losses[row] *= weight[row]
        weights[row] = weight[row]


@kernel
def _fold(values, n_values):
    """Give the sum of the first values of a block, adding halves until one value is left.

    Halves are added by vector instructions, one running sum would not be; and eight roundings are
    less than 256. `values`, shape (_BLOCK_ROWS,), is overwritten.
    """
    values[n_values:] = 0.0
    half = _BLOCK_ROWS // 2
    while half > 0:
        lower, upper = values[:half], values[half : 2 * half]
        for row in range(len(lower)):
            lower[row] += upper[row]
        half //= 2
    return values[0]
