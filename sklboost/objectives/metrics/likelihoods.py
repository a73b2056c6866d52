"""Losses of a row that are minus a log-likelihood, or a deviance: twice the distance to the best.

Called as those in :mod:`sklboost.objectives.metrics.errors`. They read log-odds z or the logarithm
z of a mean: with a log link it is the raw score itself, and no mean is too small to have a
logarithm.
"""

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp, exp_of_negative, log, log_of_factorial, log_of_one_plus
from sklboost.objectives.metrics.scales import mean_of_log

# Stands for 0 where a logarithm is multiplied by 0.
_TINY = 1e-290


@inlined
def decay(z, parameter):
    """Give ``e^-|z|``."""
    return exp_of_negative(-abs(z))


@inlined
def log_loss(y, z, decay):
    """Give ``-y z + log(1 + e^z)``, written so that nothing overflows or cancels."""
    return max(z, 0.0) - y * z + log_of_one_plus(decay)


@inlined
def divergence(y, z, decay):
    """Give the divergence of Kullback and Leibler: log loss less that of the prediction y."""
    rest = 1.0 - y
    entropy = y * log(max(y, _TINY)) + rest * log(max(rest, _TINY))
    return log_loss(y, z, decay) + entropy


@inlined
def poisson_likelihood(y, z, parameter):
    """Give ``p - y log p + log y!``."""
    return mean_of_log(z) - y * z + log_of_factorial(y)


@inlined
def poisson_deviance(y, z, parameter):
    """Give ``2 (y log(y / p) - y + p)``."""
    return 2.0 * (y * (log(max(y, _TINY)) - z) - y + mean_of_log(z))


@inlined
def gamma_likelihood(y, z, parameter):
    """Give ``y / p + log p``."""
    return y * mean_of_log(-z) + z


@inlined
def gamma_deviance(y, z, parameter):
    """Give ``2 (log(p / y) + y / p - 1)``."""
    return 2.0 * (z - log(y) + y * mean_of_log(-z) - 1.0)


@inlined
def tweedie_likelihood(y, z, power):
    """Give ``-y p^(1 - r) / (1 - r) + p^(2 - r) / (2 - r)`` for the power r, from 1 to 2.

    At the ends the terms that would be divided by 0 are logarithms: Poisson, and gamma.
    """
    return _power(z, 2.0 - power) - y * _power(z, 1.0 - power)


@inlined
def tweedie_deviance(y, z, power):
    """Give ``2 (y^(2-r) / ((1-r)(2-r)) - y p^(1-r) / (1-r) + p^(2-r) / (2-r))`` for 1 < r < 2."""
    best = exp((2.0 - power) * log(max(y, _TINY))) / ((1.0 - power) * (2.0 - power))
    return 2.0 * ((best if y > 0.0 else 0.0) + tweedie_likelihood(y, z, power))


@inlined
def _power(z, exponent):
    """Give ``p^exponent / exponent`` of z = log p; of exponent 0, z."""
    return z if exponent == 0.0 else mean_of_log(exponent * z) / exponent
