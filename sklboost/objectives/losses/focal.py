"""Focal loss: log loss in which rows that are predicted well count less.

With q the probability that the model gives to what did not happen, and p = 1 - q:
``-q^gamma log(p)``. Gamma 0 is log loss; with gamma 2 a row of q = 0.1 counts a hundredth. In the
log-odds m of what happened:

    first derivative    q^gamma (gamma p log(p) - q)
    second              p q^gamma (q (1 + 2 gamma) + gamma log(p) (q - gamma p))

The second is negative where the model is badly wrong. Its terms with log(p) are of either sign;
what stands in its place is at least ``p q^(1 + gamma)``, the hessian of log loss times the weight
of the row. Source: Lin, Goyal, Girshick, He & Dollar (2017), "Focal loss for dense object
detection".

Probabilities are ``1 / (1 + e^-z)``, as for log loss, but closer to 1/2 than what happens: the loss
asks which class it is, and not how sure that is.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp_of_negative, log_of_one_plus
from sklboost.objectives.domains import check_labels
from sklboost.objectives.losses.two_classes import LogLoss
from sklboost.objectives.start_values import find_constants

_LARGEST_START = 16.0


class FocalLoss(LogLoss):
    """Focal loss of two classes; y is 0 or 1."""

    name = "binary:focal"
    parameter = "focal_gamma"
    hessian_is_bound = True

    @staticmethod
    @inlined
    def derivatives(y, z, gamma):
        """Give the derivatives in z, of the sign of the label."""
        sign = 2.0 * y - 1.0
        p, q, log_p, log_q = chances(sign * z)
        weight = exp_of_negative(gamma * log_q)
        slope = weight * (gamma * p * log_p - q)
        bend = weight * p * (q * (1.0 + 2.0 * gamma) + gamma * log_p * (q - gamma * p))
        return sign * slope, max(bend, weight * p * q)

    @staticmethod
    @inlined
    def row_value(y, z, gamma):
        """Give ``-q^gamma log(p)``."""
        _, _, log_p, log_q = chances((2.0 * y - 1.0) * z)
        return -exp_of_negative(gamma * log_q) * log_p

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the constants at which the mean gradients are 0."""
        constants = find_constants(self, np.atleast_2d(y), weight)
        return np.clip(constants, -_LARGEST_START, _LARGEST_START)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target that is neither 0 nor 1."""
        check_labels(y, name, self.name)


@inlined
def chances(margin):
    """Give p, q = 1 - p and the logarithms of both for log-odds of p; none is rounded to 1 or 0."""
    decay = exp_of_negative(-abs(margin))
    larger, smaller = 1.0 / (1.0 + decay), decay / (1.0 + decay)
    log_larger = -log_of_one_plus(decay)
    log_smaller = log_larger - abs(margin)
    is_right = margin >= 0.0
    p = larger if is_right else smaller
    q = smaller if is_right else larger
    log_p = log_larger if is_right else log_smaller
    log_q = log_smaller if is_right else log_larger
    return p, q, log_p, log_q
