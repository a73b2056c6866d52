"""The gradients of every loss behind one kernel, so that rounds of boosting need not leave it.

In: the loss's code, targets and raw scores. Out: gradient and hessian of each row, not weighted.
"""

import numpy as np

from sklboost.compiling import kernel
from sklboost.losses.base import BLOCK_ROWS, LOG_LOSS, SQUARED_ERROR
from sklboost.losses.log_loss import log_loss_gradients
from sklboost.losses.softmax import softmax_gradients
from sklboost.losses.squared_error import squared_error_gradients


def allocate_scratch(n_threads: int) -> np.ndarray:
    """Make the scratch of :func:`fill_gradients`: two numbers for each row of a block."""
    return np.empty((n_threads, 2, BLOCK_ROWS))


@kernel
def fill_gradients(team, loss, y, raw_score, gradient, hessian, scratch):
    """Fill gradient and hessian of this member's share of the rows.

    Parameters
    ----------
    team : Team
    loss : int
        ``Loss.code``.
    y : ndarray of float64, shape (n_samples,)
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    gradient, hessian : ndarray of float32, shape (n_outputs, n_samples)
        Filled.
    scratch : ndarray of float64
        From :func:`allocate_scratch`.
    """
    if loss == SQUARED_ERROR:
        squared_error_gradients(team, y, raw_score[0], gradient[0], hessian[0])
    elif loss == LOG_LOSS:
        log_loss_gradients(team, y, raw_score[0], gradient[0], hessian[0])
    else:
        softmax_gradients(team, y, raw_score, gradient, hessian, scratch)
