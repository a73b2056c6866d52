"""Losses of targets that cannot be negative: counts, costs, durations. Predictions are ``e^z``.

Negative log-likelihoods, less what does not depend on z, of distributions of mean ``m = e^z``:

======= ============================= ================ ================= =============
loss    value                         gradient         hessian           variance
======= ============================= ================ ================= =============
Poisson m - y z                       m - y            m                 m
gamma   y / m + z                     1 - y / m        y / m             m^2 x constant
Tweedie m^(2-a)/(2-a) - y m^(1-a)/(1-a)  see its class                   m^a x constant
======= ============================= ================ ================= =============

Tweedie's power a goes from 1, which is Poisson, to 2, which is gamma. The best constant of all is
the logarithm of the mean target. Source: Dunn & Smyth (2018), "Generalized linear models with
examples in R", chapters 10 to 12.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp
from sklboost.objectives.domains import check_within
from sklboost.objectives.losses.rows import RowLoss
from sklboost.objectives.losses.squared_error import known_means

# Where all targets are 0 the best constant is infinite.
_LEAST_START = -16.0


class _LogLinkLoss(RowLoss):
    """What these losses share: the link."""

    link = "log"
    # The parabola is far from e^z after a step or two: where a leaf's mean is 100 times what was
    # predicted, Newton's step would multiply predictions by e^99, not by 100.
    largest_step = 2.0

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Give the logarithms of the mean targets."""
        means = known_means(y, weight)
        return np.where(means > 0.0, np.log(np.where(means > 0.0, means, 1.0)), _LEAST_START)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target below 0."""
        check_within(y, name, self.name, 0.0)


class Poisson(_LogLinkLoss):
    """For counts: the variance is the mean."""

    name = "count:poisson"

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Give ``m - y`` and ``m``."""
        mean = exp(z)
        return mean - y, mean

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Give ``m - y z``."""
        return exp(z) - y * z


class Gamma(_LogLinkLoss):
    """For positive amounts: the standard deviation is proportional to the mean."""

    name = "reg:gamma"

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Give ``1 - y / m`` and ``y / m``."""
        ratio = y * exp(-z)
        return 1.0 - ratio, ratio

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Give ``y / m + z``."""
        return y * exp(-z) + z

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target that is not above 0."""
        check_within(y, name, self.name, 0.0, excluded=True)


class Tweedie(_LogLinkLoss):
    """For amounts of which many are 0, such as claims: between Poisson and gamma."""

    name = "reg:tweedie"
    parameter = "tweedie_variance_power"

    @staticmethod
    @inlined
    def derivatives(y, z, power):
        """Give ``m^(2-a) - y m^(1-a)`` and ``(2-a) m^(2-a) + (a-1) y m^(1-a)``."""
        first, second = exp((2.0 - power) * z), y * exp((1.0 - power) * z)
        return first - second, (2.0 - power) * first + (power - 1.0) * second

    @staticmethod
    @inlined
    def row_value(y, z, power):
        """Give ``(m^(2-a) - 1) / (2-a) - y (m^(1-a) - 1) / (1-a)``: both have a limit at 0."""
        return power_term(2.0 - power, z) - y * power_term(1.0 - power, z)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target below 0, or if the power is 2 for one of 0."""
        check_within(y, name, self.name, 0.0, excluded=bool((self.parameters == 2.0).any()))


@inlined
def power_term(exponent, z):
    """Give ``(e^(b z) - 1) / b``, or its limit z for an exponent b of 0."""
    divisor = exponent if exponent != 0.0 else 1.0
    return (exp(exponent * z) - 1.0) / divisor if exponent != 0.0 else z
