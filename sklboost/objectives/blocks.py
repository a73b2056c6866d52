"""Blocks: the loop over rows around the formula of one, as compiled code.

In: a formula of one row's numbers. Out: a kernel that fills the derivatives of a range of rows.
"""

import math
from collections.abc import Callable

import numpy as np

from sklboost.engine.compiling import inlined, made_kernel

# What a block gives if all is as it should be, and what a call of it gives if it raised.
NO_FAULT, RAISED = -1, -2
# Derivatives are float32 and sums of them must be numbers; and no cover is 0, as in XGBoost.
LARGEST, LEAST_HESSIAN = 1e37, 1e-16
# Losses of several outputs go through the rows in blocks that stay in the first-level cache.
BLOCK_ROWS = 256


@inlined
def limited(derivative, least):
    """Keep a derivative between `least` and the largest that sums can be made of."""
    return min(max(derivative, least), LARGEST)


@inlined
def are_usable(gradient, hessian):
    """Tell whether a tree can be grown on a row's derivatives: no NaN, nothing infinite, h >= 0."""
    return abs(gradient) < math.inf and 0.0 <= hessian < math.inf


def gradient_block(formula: Callable, name: str | None, *, is_checked: bool = False) -> Callable:
    """Make the block of a loss from the formula of its derivatives.

    Parameters
    ----------
    formula : kernel
        ``formula(target, raw_score, parameter) -> (gradient, hessian)``, all float64.
    name : str or None
        As in :func:`~sklboost.engine.compiling.made_kernel`.
    is_checked : bool
        Whether the block looks for the first row whose derivatives are not usable, and gives its
        number.
    """

    def fill_block(rows, y, raw_score, parameters, gradient, hessian, scratch):
        fault = NO_FAULT
        for output in range(raw_score.shape[0]):
            # slices, so that the compiler sees that no index is negative and makes vectors of
            # the loop
            target = y[output % y.shape[0], rows[0] - rows[2] : rows[1] - rows[2]]
            score = raw_score[output, rows[0] : rows[1]]
            own_gradient = gradient[output, rows[0] : rows[1]]
            own_hessian = hessian[output, rows[0] : rows[1]]
            parameter = parameters[output]
            for row in range(len(target)):
                first, second = formula(target[row], score[row], parameter)
                # a target that is not known has no say; it is NaN, which equals nothing
                is_known = target[row] == target[row]
                if is_checked and is_known and not are_usable(first, second):
                    fault = rows[0] + row if fault == NO_FAULT else min(fault, rows[0] + row)
                own_gradient[row] = limited(first, -LARGEST) if is_known else 0.0
                own_hessian[row] = limited(second, LEAST_HESSIAN) if is_known else 0.0
        return fault

    return made_kernel(fill_block, name)


def users_block(function: Callable) -> Callable:
    """Make the block of a function of one row's numbers that a user has compiled with numba.

    Its code is not kept on disk: what the function calls may change without a trace in it.

    Parameters
    ----------
    function : function compiled with numba
        ``function(y_true, y_pred) -> (gradient, hessian)``
    """

    def formula(target, score, parameter):
        gradient, hessian = function(target, score)
        return float(gradient), float(hessian)

    return gradient_block(made_kernel(formula, None), None, is_checked=True)


def derivatives_by_block(
    block: Callable, parameters: np.ndarray, y: np.ndarray, raw_score: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Give gradient and hessian of all rows, as a block fills them, in float64.

    Parameters
    ----------
    block : kernel
    parameters : ndarray of float64, shape (n_outputs,)
    y : ndarray of float64, shape (n_targets, n_samples) or (n_samples,)
    raw_score : ndarray of float64, shape (n_outputs, n_samples)

    Returns
    -------
    tuple of ndarray of float64, each of shape (n_outputs, n_samples)
    """
    gradient, hessian = np.empty((2, *raw_score.shape))
    rows, scratch = (0, raw_score.shape[1], 0), np.empty((2, BLOCK_ROWS))
    block(rows, np.atleast_2d(y), raw_score, parameters, gradient, hessian, scratch)
    return gradient, hessian
