"""The gradients of every loss behind one kernel, so that rounds of boosting need not leave it.

In: the loss's code, targets and raw scores. Out: gradient and hessian of each row, not weighted.
"""

from sklboost.compiling import kernel
from sklboost.losses.base import LOG_LOSS, SQUARED_ERROR
from sklboost.losses.log_loss import log_loss_gradients
from sklboost.losses.softmax import softmax_gradients
from sklboost.losses.squared_error import squared_error_gradients


@kernel
def fill_gradients(team, loss, y, raw_score, gradient, hessian):
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
    """
    if loss == SQUARED_ERROR:
        squared_error_gradients(team, y, raw_score[0], gradient[0], hessian[0])
    elif loss == LOG_LOSS:
        log_loss_gradients(team, y, raw_score[0], gradient[0], hessian[0])
    else:
        softmax_gradients(team, y, raw_score, gradient, hessian)
