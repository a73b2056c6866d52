"""The mathematics of a leaf and of a split, one small function each.

A node has a gradient sum G and a hessian sum H (float64). From these and the tree's settings follow
its leaf weight, its similarity and the gain of a split. The same functions serve training,
inspection and tests.

Source: Chen & Guestrin (2016), "XGBoost: A Scalable Tree Boosting System", equations 5 to 7; the
factor 1/2 of the paper is dropped and gamma is not subtracted from the gain, as in XGBoost's code,
so that the parameter ``gamma`` means the same.
"""

import math

from sklboost.engine.compiling import inlined

# A gain below this part of its similarities is rounding error.
# float64 sums of a handful of terms are good to about 1e-15.
_GAIN_PRECISION = 1e-12


@inlined
def soft_threshold(gradient, reg_alpha):
    """Move G towards 0 by alpha, and not beyond: the effect of an L1 penalty on the leaf weight."""
    # one of the two terms is always 0; without a branch the compiler can vectorise
    return max(gradient - reg_alpha, 0.0) + min(gradient + reg_alpha, 0.0)


@inlined
def leaf_weight(gradient, hessian, params):
    """Return the output that minimises ``G w + (H + lambda) w^2 / 2 + alpha |w|`` (eq. 5).

    Within ``+-max_delta_step``. The leaf value is the learning rate times this.
    """
    weight = -soft_threshold(gradient, params.reg_alpha) / (hessian + params.reg_lambda)
    return min(max(weight, -params.max_delta_step), params.max_delta_step)


@inlined
def similarity_at(gradient, hessian, weight, params):
    """Return twice the loss that a leaf of a given weight removes; less than 0 if it adds to it.

    ``-(2 G w + (H + lambda) w^2 + 2 alpha |w|)``, whatever has set the weight.
    """
    penalised = gradient + math.copysign(params.reg_alpha, weight)
    return -(2.0 * penalised + (hessian + params.reg_lambda) * weight) * weight


@inlined
def similarity(gradient, hessian, params):
    """Return twice the loss that the best leaf weight removes (eq. 6).

    ``G^2 / (H + lambda)`` where neither alpha nor `max_delta_step` holds the weight back.
    """
    return similarity_at(gradient, hessian, leaf_weight(gradient, hessian, params), params)


@inlined
def split_gain(left, right, parent):
    """Return the gain of a split from the three similarities (eq. 7); rounding errors are 0."""
    gain = left + right - parent
    return gain if abs(gain) > _GAIN_PRECISION * (abs(left) + abs(right)) else 0.0
