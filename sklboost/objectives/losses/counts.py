"""Losses of targets that cannot be negative: counts, costs, durations. Predictions are ``e^z``.

Negative log-likelihoods, less what does not depend on z, of distributions of mean ``m = e^z``:

======= ================================ ================================ ================
loss    value                            gradient                         variance
======= ================================ ================================ ================
Poisson m - y z                          m - y                            m
gamma   y / m + z                        1 - y / m                        m^2 x constant
Tweedie m^(2-a)/(2-a) - y m^(1-a)/(1-a)  m^(2-a) - y m^(1-a)              m^a x constant
======= ================================ ================================ ================

Tweedie's power a goes from 1, which is Poisson, to 2, which is gamma. The best constant of all is
the logarithm of the mean target. Twice the value less the least value that the target allows, which
is at m = y, is the deviance. Source: Dunn & Smyth (2018), "Generalized linear models with examples
in R", chapters 10 to 12.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp, log, log_of_factorial
from sklboost.objectives.domains import NOT_NEGATIVE, POSITIVE, check_domain
from sklboost.objectives.links import mean_of_log
from sklboost.objectives.loss import RowLoss
from sklboost.objectives.start_values import known_means

# Where all targets are 0 the best constant is infinite.
_LEAST_START = -16.0
# Stands for 0 where a logarithm is multiplied by 0.
_TINY = 1e-290


class _LogLinkLoss(RowLoss):
    """What these losses share: the link."""

    link = "log"
    targets = NOT_NEGATIVE
    # The parabola is far from e^z after a step or two: where a leaf's mean is 100 times what was
    # predicted, Newton's step would multiply predictions by e^99, not by 100.
    largest_step = 2.0

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the logarithms of the mean targets."""
        means = known_means(y, weight)
        return np.where(means > 0.0, np.log(np.where(means > 0.0, means, 1.0)), _LEAST_START)


class Poisson(_LogLinkLoss):
    """For counts: the variance is the mean."""

    name = "count:poisson"

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Return ``m - y`` and ``m``."""
        mean = exp(z)
        return mean - y, mean

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Return ``m - y z``."""
        return mean_of_log(z) - y * z

    @staticmethod
    @inlined
    def least_value(y, parameter):
        """Return ``y - y log(y)``."""
        return y - y * log(max(y, _TINY))

    @staticmethod
    @inlined
    def log_of_base(y, parameter):
        """Return ``-log(y!)``, which the log-likelihood has besides."""
        return -log_of_factorial(y)


class Gamma(_LogLinkLoss):
    """For positive amounts: the standard deviation is proportional to the mean."""

    name = "reg:gamma"
    targets = POSITIVE

    @staticmethod
    @inlined
    def derivatives(y, z, parameter):
        """Return ``1 - y / m`` and ``y / m``."""
        ratio = y * exp(-z)
        return 1.0 - ratio, ratio

    @staticmethod
    @inlined
    def row_value(y, z, parameter):
        """Return ``y / m + z``."""
        return y * mean_of_log(-z) + z

    @staticmethod
    @inlined
    def least_value(y, parameter):
        """Return ``1 + log(y)``."""
        return 1.0 + log(y)


class Tweedie(_LogLinkLoss):
    """For amounts of which many are 0, such as claims: between Poisson and gamma."""

    name = "reg:tweedie"
    parameter = "tweedie_variance_power"

    @staticmethod
    @inlined
    def derivatives(y, z, power):
        """Return ``m^(2-a) - y m^(1-a)`` and ``(2-a) m^(2-a) + (a-1) y m^(1-a)``."""
        first, second = exp((2.0 - power) * z), y * exp((1.0 - power) * z)
        return first - second, (2.0 - power) * first + (power - 1.0) * second

    @staticmethod
    @inlined
    def row_value(y, z, power):
        """Return ``m^(2-a) / (2-a) - y m^(1-a) / (1-a)``: Poisson for a = 1, gamma for 2."""
        return _power_term(z, 2.0 - power) - y * _power_term(z, 1.0 - power)

    @staticmethod
    @inlined
    def least_value(y, power):
        """Return ``-y^(2-a) / ((1-a) (2-a))``, for 1 < a < 2."""
        value = exp((2.0 - power) * log(max(y, _TINY))) / ((power - 1.0) * (2.0 - power))
        return value if y > 0.0 else 0.0

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for a target below 0, or if the power is 2 for one of 0."""
        has_power_2 = bool((self.parameters == 2.0).any())
        check_domain(y, POSITIVE if has_power_2 else NOT_NEGATIVE, name, self.name)


@inlined
def _power_term(z, exponent):
    """Return ``m^b / b``, or for an exponent b of 0, where only differences count, z."""
    return z if exponent == 0.0 else mean_of_log(exponent * z) / exponent
