"""The mathematics of a leaf and of a split, one small function each.

A node has a gradient sum G and a hessian sum H (float64). From these and the tree's settings follow
its leaf weight, its similarity and the gain of a split. The same functions serve training,
inspection and tests. The last three say how large a gain can be; training skips by them what cannot
be the best split.

Source: Chen & Guestrin (2016), "XGBoost: A Scalable Tree Boosting System", equations 5 to 7; the
factor 1/2 of the paper is dropped and gamma is not subtracted from the gain, as in XGBoost's code,
so that the parameter ``gamma`` means the same.
"""

import math
from typing import NamedTuple

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


class Sides(NamedTuple):
    """The sums on which the similarities of both sides depend, wherever a node is split.

    With D = H + 2 lambda, L = H_left + lambda and R = D - L they are together

        G_left^2 / L + (G - G_left)^2 / R  =  (G_left - L G / D)^2 D / (L R)  +  G^2 / D

    The functions below are about the first term on the right, the *excess*. Where alpha or
    `max_delta_step` holds the leaf weights back, similarities are lower still.
    """

    divisor: float  # ``D``
    slope: float  # ``G / D``
    reg_lambda: float


@inlined
def sides_of(gradient, hessian, reg_lambda):
    """Return what the similarities of the sides of a node with these sums depend on."""
    divisor = hessian + 2.0 * reg_lambda
    return Sides(divisor, gradient / divisor, reg_lambda)


@inlined
def largest_excess(gradients, hessians, sides):
    """Return the most that the excess can be for G_left and H_left within two ranges.

    In units in which no row has a hessian below 1. The square is largest at an end of the range of
    G_left - L G / D, and D / (L R), which is 1 / L + 1 / R, at an end of the range of L.
    """
    (lowest, highest), divisor, slope = gradients, sides.divisor, sides.slope
    least, most = hessians[0] + sides.reg_lambda, hessians[1] + sides.reg_lambda
    # L R is at least 1 where a split is allowed
    product = max(min(least * (divisor - least), most * (divisor - most)), 1.0)
    highest -= min(slope * least, slope * most)
    lowest -= max(slope * least, slope * most)
    return max(highest**2, lowest**2) * divisor / product


@inlined
def has_excess(gradient, hessian, wanted, sides):
    """Whether the excess of a left side with these sums is above ``wanted * D``.

    Multiplied out: without divisions this takes a quarter of the time of a gain.
    """
    left = hessian + sides.reg_lambda
    return (gradient - sides.slope * left) ** 2 > wanted * (left * (sides.divisor - left))
