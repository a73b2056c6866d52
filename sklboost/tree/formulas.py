"""The mathematics of a leaf and of a split, one small function each.

In: a node's gradient sum G and hessian sum H (float64) and the tree's settings. Out: leaf weight,
similarity, gain. The same functions serve training, inspection and tests.

Source: Chen & Guestrin (2016), "XGBoost: A Scalable Tree Boosting System", equations 5 to 7; the
factor 1/2 of the paper is dropped and gamma is not subtracted from the gain, as in XGBoost's code,
so that the parameter ``gamma`` means the same.
"""

from sklboost.compiling import kernel

# A gain smaller than this part of the two similarities it is the difference of is rounding error.
# float64 sums of a handful of terms are good to about 1e-15.
_GAIN_PRECISION = 1e-12


@kernel
def soft_threshold(gradient, reg_alpha):
    """Move G towards 0 by alpha, and not beyond: the effect of an L1 penalty on the leaf weight."""
    # one of the two terms is always 0; without a branch the compiler can vectorise
    return max(gradient - reg_alpha, 0.0) + min(gradient + reg_alpha, 0.0)


@kernel
def leaf_weight(gradient, hessian, params):
    """Give the output that minimises ``G w + (H + lambda) w^2 / 2 + alpha |w|`` (eq. 5).

    Within ``+-max_delta_step``. The leaf value is the learning rate times this.
    """
    weight = -soft_threshold(gradient, params.reg_alpha) / (hessian + params.reg_lambda)
    return min(max(weight, -params.max_delta_step), params.max_delta_step)


@kernel
def similarity(gradient, hessian, params):
    """Give twice the loss a leaf removes (eq. 6): ``G^2 / (H + lambda)`` when nothing clips it.

    Written as ``-(2 G w + (H + lambda) w^2)`` it also holds for a weight that `max_delta_step`
    clipped.
    """
    weight = leaf_weight(gradient, hessian, params)
    threshold = soft_threshold(gradient, params.reg_alpha)
    return -(2.0 * threshold + (hessian + params.reg_lambda) * weight) * weight


@kernel
def split_gain(left, right, parent):
    """Give the gain of a split from the three similarities (eq. 7); rounding errors count as 0."""
    gain = left + right - parent
    return gain if abs(gain) > _GAIN_PRECISION * (left + right) else 0.0
