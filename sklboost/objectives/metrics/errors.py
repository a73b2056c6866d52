"""Losses of a row that compare a prediction with its target.

All are called alike: target, prediction, the metric's parameter; they give the loss. Which scale
the prediction comes on, :mod:`sklboost.objectives.metrics.formulas` says. Outside its domain a loss
is NaN. Written so that a loop over rows becomes vector instructions.
"""

import math

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp_of_negative, log_of_one_plus

# As scikit-learn: stands for a target of 0 where errors are divided by the target.
_LEAST_SIZE = float(np.finfo(np.float64).eps)
# Within reach of exp_of_negative.
_FAR = 600.0


@inlined
def parameter_itself(prediction, parameter):
    """Give the parameter."""
    return parameter


@inlined
def squared_error(y, prediction, parameter):
    """Give ``(y - p)^2``; p may be a mean or a probability."""
    return (y - prediction) ** 2


@inlined
def squared_log_error(y, prediction, parameter):
    """Give ``(log(1 + y) - log(1 + p))^2``."""
    difference = log_of_one_plus(y) - log_of_one_plus(prediction)
    return difference * difference if min(y, prediction) > -1.0 else np.nan


@inlined
def absolute_error(y, prediction, parameter):
    """Give ``|y - p|``."""
    return abs(y - prediction)


@inlined
def percentage_error(y, prediction, parameter):
    """Give ``|y - p| / |y|``, with 2e-16 in the place of y = 0."""
    return abs(y - prediction) / max(abs(y), _LEAST_SIZE)


@inlined
def pseudo_huber_error(y, prediction, slope):
    """Give ``s^2 (sqrt(1 + (d / s)^2) - 1)`` with d = y - p and the slope s."""
    ratio = (y - prediction) / slope
    square = ratio * ratio
    # the difference of the root and 1, without loss of digits for small d
    return slope * slope * square / (math.sqrt(1.0 + square) + 1.0)


@inlined
def huber_error(y, prediction, slope):
    """Give ``d^2 / 2`` where ``|d| <= s``, else ``s (|d| - s / 2)``."""
    size = abs(y - prediction)
    near = min(size, slope)
    return near * (size - 0.5 * near)


@inlined
def fair_error(y, prediction, c):
    """Give ``c^2 (|d| / c - log(1 + |d| / c))``."""
    ratio = abs(y - prediction) / c
    return c * c * (ratio - log_of_one_plus(ratio))


@inlined
def log_cosh_error(y, prediction, parameter):
    """Give ``log(cosh(d))``."""
    size = abs(y - prediction)
    near = min(_FAR, size)
    decay = exp_of_negative(-near)
    # cosh d - 1; further out, log(cosh) is a straight line
    excess = (1.0 - decay) * (1.0 - decay) / (2.0 * decay)
    return log_of_one_plus(excess) + (size - near)


@inlined
def pinball_error(y, prediction, alpha):
    """Give ``a d`` where d = y - p > 0, else ``(a - 1) d``, for the level a."""
    difference = y - prediction
    return max(alpha * difference, (alpha - 1.0) * difference)


@inlined
def expectile_error(y, prediction, alpha):
    """Give ``a d^2`` where d = y - p > 0, else ``(1 - a) d^2``, for the level a."""
    difference = y - prediction
    return (alpha if difference > 0.0 else 1.0 - alpha) * difference * difference


@inlined
def wrong_side(y, prediction, threshold):
    """Give ``1 - y`` where the prediction is above the threshold, and class 1 it is, else y."""
    return 1.0 - y if prediction > threshold else y
