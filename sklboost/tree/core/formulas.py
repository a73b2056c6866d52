"""The mathematics of a leaf and of a split, one small function each.

In: a node's gradient sum G and hessian sum H (float64) and the tree's settings. Out: leaf weight,
similarity, gain. The same functions serve training, inspection and tests.

Source: Chen & Guestrin (2016), "XGBoost: A Scalable Tree Boosting System", equations 5 to 7; the
factor 1/2 of the paper is dropped and gamma is not subtracted from the gain, as in XGBoost's code,
so that the parameter ``gamma`` means the same.
"""

import math
from typing import NamedTuple

from sklboost.engine.compiling import inlined

# A gain smaller than this part of the two similarities it is the difference of is rounding error.
# float64 sums of a handful of terms are good to about 1e-15.
_GAIN_PRECISION = 1e-12


class Inherited(NamedTuple):
    """What a node passes on to its children.

    Attributes
    ----------
    weight : float
        Its own leaf weight, which the children's lean on.
    lower, upper : float
        The least and the largest leaf weight that monotone constraints leave below it.
    path_smooth : float
        How much the children lean on it; 0: not at all.
    """

    weight: float
    lower: float
    upper: float
    path_smooth: float


@inlined
def inherited_from(node, path_smooth):
    """Return what a node, a record that has the other fields of :class:`Inherited`, passes on."""
    return Inherited(node.weight, node.lower, node.upper, path_smooth)


@inlined
def soft_threshold(gradient, reg_alpha):
    """Move G towards 0 by alpha, and not beyond: the effect of an L1 penalty on the leaf weight."""
    # one of the two terms is always 0; without a branch the compiler can vectorise
    return max(gradient - reg_alpha, 0.0) + min(gradient + reg_alpha, 0.0)


@inlined
def leaf_weight(gradient, hessian, params):
    """Give the output that minimises ``G w + (H + lambda) w^2 / 2 + alpha |w|`` (eq. 5).

    Within ``+-max_delta_step``. The leaf value is the learning rate times this.
    """
    weight = -soft_threshold(gradient, params.reg_alpha) / (hessian + params.reg_lambda)
    return min(max(weight, -params.max_delta_step), params.max_delta_step)


@inlined
def clip_to_bounds(weight, lower, upper):
    """Move a leaf weight to the nearest one between its node's bounds."""
    return min(max(weight, lower), upper)


@inlined
def smooth(weight, hessian, parent_weight, path_smooth):
    """Let a leaf weight lean on that of the parent, the more the smaller H is.

    ``s w + (1 - s) w_parent`` with ``s = H / (H + path_smooth)``: LightGBM's formula, with H where
    LightGBM has the number of rows. With squared error and no weights the two are one.
    """
    if path_smooth == 0.0:
        return weight
    share = hessian / (hessian + path_smooth)
    return share * weight + (1.0 - share) * parent_weight


@inlined
def child_weight(gradient, hessian, inherited, params):
    """Give the leaf weight of a child: the best one, smoothed, then within the bounds."""
    weight = leaf_weight(gradient, hessian, params)
    weight = smooth(weight, hessian, inherited.weight, inherited.path_smooth)
    return clip_to_bounds(weight, inherited.lower, inherited.upper)


@inlined
def similarity_at(gradient, hessian, weight, params):
    """Give twice the loss that a leaf of a given weight removes; less than 0 if it adds to it.

    ``-(2 G w + (H + lambda) w^2 + 2 alpha |w|)``, whatever has set the weight.
    """
    penalised = gradient + math.copysign(params.reg_alpha, weight)
    return -(2.0 * penalised + (hessian + params.reg_lambda) * weight) * weight


@inlined
def similarity(gradient, hessian, params):
    """Give twice the loss a leaf removes (eq. 6): ``G^2 / (H + lambda)`` when nothing clips it."""
    return similarity_at(gradient, hessian, leaf_weight(gradient, hessian, params), params)


@inlined
def split_gain(left, right, parent):
    """Give the gain of a split from the three similarities (eq. 7); rounding errors count as 0."""
    gain = left + right - parent
    return gain if abs(gain) > _GAIN_PRECISION * (abs(left) + abs(right)) else 0.0
