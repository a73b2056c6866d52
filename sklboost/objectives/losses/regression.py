"""Losses of regression: quantiles, robust, relative, and of counts and amounts."""

import math
from functools import partial
from typing import Any

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.elementary import exp, exp_of_negative, log, log_of_factorial, log_of_one_plus
from sklboost.engine.structs import RemoteColumn
from sklboost.objectives.blocks import mean_of_log
from sklboost.objectives.domains import (
    ABOVE_MINUS_1,
    NOT_NEGATIVE,
    POSITIVE,
    check_base_score,
    check_domain,
    refuse_first,
)
from sklboost.objectives.loss import RowLoss, by_rows, row_formula
from sklboost.objectives.start_values import (
    each_target,
    find_constants,
    hessian_at,
    known_means,
    mean_over_targets,
    weighted_quantile,
    weighted_quantiles,
)


class OrderedAlphas(RowLoss):
    """A loss of one alpha or several: an output for each, predictions from lowest to highest."""

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.5,)):
        super().__init__(n_targets, tuple(sorted(parameters)))
        self._n_alphas = len(parameters)
        if self._n_alphas > 1:
            self.link = "other"  # they are put in order

    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        """Return them in order, shape (n_samples,) or (n_samples, n_alphas * n_targets)."""
        alphas = raw_score.reshape(self._n_alphas, -1, raw_score.shape[1])
        return by_rows(np.sort(alphas, axis=0).reshape(raw_score.shape))

    def d2(self, y: np.ndarray, prediction: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean D2 of all alphas and targets, each from the known values."""
        found = []
        for output, alpha in enumerate(self.parameters):
            target = y[output % len(y)]
            known = ~np.isnan(target)
            if known.any():
                loss, rows = type(self)(1, (alpha,)), target[np.newaxis, known]
                weights = weight[known] if len(weight) else weight
                of_model = loss.value(rows, prediction[np.newaxis, output, known], weights)
                constants = np.full(rows.shape, loss.start(rows, weights))
                of_constant = loss.value(rows, constants, weights)
                if rows.min() == rows.max():  # 1 for no error, else 0
                    of_model, of_constant = float(of_model != 0.0), 1.0
                found.append(1.0 - of_model / of_constant)
        return float(np.mean(found))


class QuantileError(OrderedAlphas):
    """The loss of quantiles; one output for each alpha, from the lowest to the highest."""

    name = "reg:quantileerror"
    parameter = "quantile_alpha"
    hessian_is_bound = True
    hessian_is_one = True

    def __init__(self, n_targets: int = 1, parameters: tuple[float, ...] = (0.5,)):
        super().__init__(n_targets, parameters)
        self.renewal = self.parameters

    @row_formula
    def derivatives(y, p, alpha):
        """Return ``1 - a`` above the target and ``-a`` below; 1 for the hessian."""
        gradient = (1.0 if p > y else 0.0) - alpha
        return 0.0 if p == y else gradient, 1.0

    @row_formula
    def row_value(y, p, alpha):
        """Return the distance times a below the target, ``1 - a`` above."""
        difference = y - p
        return max(alpha * difference, (alpha - 1.0) * difference)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        alphas = self.parameters[:: self.n_outputs // self._n_alphas]
        of_targets = [weighted_quantiles(*known, alphas) for known in each_target(y, weight)]
        return np.array(of_targets).T.ravel()


class AbsoluteError(QuantileError):
    """The absolute error, whose best constant is the median."""

    name = "reg:absoluteerror"
    parameter = ""
    d2 = None  # type: ignore[assignment]  # as scikit-learn: absolute errors are scored by R²

    @row_formula
    def derivatives(y, p, alpha):
        """Return the sign of ``p - y``; 1 for the hessian."""
        return (1.0 if p > y else 0.0) - (1.0 if p < y else 0.0), 1.0

    @row_formula
    def row_value(y, p, alpha):
        """Return ``|y - p|``."""
        return abs(y - p)


class ExpectileError(OrderedAlphas):
    """The loss of expectiles; one output for each alpha, from the lowest to the highest."""

    name = "reg:expectileerror"
    parameter = "expectile_alpha"

    @row_formula
    def derivatives(y, p, alpha):
        """Return the residual times 2 a below the target, ``2 (1 - a)`` above; this factor."""
        hessian = 2.0 * (alpha if y > p else 1.0 - alpha)
        return hessian * (p - y), hessian

    @row_formula
    def row_value(y, p, alpha):
        """Return the squared distance times a below the target, ``1 - a`` above."""
        difference = y - p
        return (alpha if difference > 0.0 else 1.0 - alpha) * difference * difference


# Beyond, log(cosh(r)) is a straight line, and cosh(r) would overflow.
_FAR = 600.0
# Below it tanh(r) / r is its series: r^4 is less than rounding there, and nothing is divided by 0
_SMALL = 1e-4
# Of the weight, which the hessian is at least.
_SHARE = 0.25
# The least hessian of losses whose hessians are about 1 / size of a target, of 1e30 at most.
_LEAST_OF_LARGE = 1e-34


class _RobustLoss(RowLoss):
    """Base of losses whose hessians are no less than a share of the weight ``g / r``."""

    hessian_is_bound = True
    least_hessian = _LEAST_OF_LARGE

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the constants at which the mean gradients are 0, found from the medians."""
        medians = [weighted_quantile(*known, 0.5) for known in each_target(y, weight)]
        return find_constants(self, y, weight, np.array(medians))

    def unit(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        """Return the mean hessian at the best constant: tiny, if residuals are large there.

        The loss depends on differences only, so what scores explain of the targets is taken off.
        """
        targets: Any = y - raw_score if raw_score.size > 0 else y
        is_remote = isinstance(targets, RemoteColumn)
        weight = weight if is_remote else np.asarray(weight)
        settings: dict[str, Any] = {"loss": self, "score": self.start(targets, weight)}
        of_rows = partial(targets.apply, hessian_at) if is_remote else partial(hessian_at, targets)
        hessian = of_rows(**settings)
        return mean_over_targets(hessian, targets, weight)


class Huber(_RobustLoss):
    """Huber's loss: squared error up to a residual of `huber_slope`, absolute error beyond."""

    name = "reg:huber"
    parameter = "huber_slope"

    @row_formula
    def derivatives(y, p, slope):
        """Return the residual within ``+-slope``; 1 up to there, then a share of the weight."""
        size = abs(p - y)
        weight = slope / max(size, slope)
        return weight * (p - y), max(1.0 if size <= slope else 0.0, _SHARE * weight)

    @row_formula
    def row_value(y, p, slope):
        """Return ``r^2 / 2``, and beyond the slope the straight line that continues it."""
        size = abs(p - y)
        within = min(size, slope)
        return within * (size - 0.5 * within)


class PseudoHuber(_RobustLoss):
    """A smooth Huber loss, XGBoost's."""

    name = "reg:pseudohubererror"
    parameter = "huber_slope"

    @row_formula
    def derivatives(y, p, slope):
        """Return ``r w`` and ``w^3`` with ``w = 1 / sqrt(1 + (r/d)^2)``."""
        share = (p - y) / slope
        weight = 1.0 / math.sqrt(1.0 + share * share)
        return weight * (p - y), weight * max(weight * weight, _SHARE)

    @row_formula
    def row_value(y, p, slope):
        """Return ``d^2 (sqrt(1 + (r/d)^2) - 1)``, written so that nothing cancels."""
        share = (y - p) / slope
        square = share * share
        return slope * slope * square / (math.sqrt(1.0 + square) + 1.0)


class LogCosh(_RobustLoss):
    """The logarithm of the hyperbolic cosine of the residual."""

    name = "reg:logcosh"

    @row_formula
    def derivatives(y, p, parameter):
        """Return ``tanh(r)`` and ``1 - tanh(r)^2``."""
        size = abs(p - y)
        decay = exp_of_negative(-2.0 * size)
        large = (1.0 - decay) / ((1.0 + decay) * max(size, _SMALL))
        weight = large if size > _SMALL else 1.0 - size * size / 3.0
        bend = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))
        return weight * (p - y), max(bend, _SHARE * weight)

    @row_formula
    def row_value(y, p, parameter):
        """Return ``log(cosh(r))``, of ``cosh(r) - 1`` so that no digit of a small r is lost."""
        size = abs(y - p)
        near = min(_FAR, size)
        decay = exp_of_negative(-near)
        excess = (1.0 - decay) * (1.0 - decay) / (2.0 * decay)
        return log_of_one_plus(excess) + (size - near)


class Fair(_RobustLoss):
    """Fair's loss, LightGBM's: its gradient goes to its limit more slowly than the others'."""

    name = "reg:fair"
    parameter = "fair_c"

    @row_formula
    def derivatives(y, p, scale):
        """Return ``r w`` and ``w^2`` with ``w = 1 / (1 + |r|/c)``."""
        weight = scale / (scale + abs(p - y))
        return weight * (p - y), weight * max(weight, _SHARE)

    @row_formula
    def row_value(y, p, scale):
        """Return ``c^2 (|r|/c - log(1 + |r|/c))``."""
        share = abs(y - p) / scale
        return scale * scale * (share - log_of_one_plus(share))


_LARGEST = 700.0  # of raw scores: beyond, e^z leaves the range of numbers
# As scikit-learn: stands for a target of 0, which only the metric has.
_LEAST_SIZE = float(np.finfo(np.float64).eps)


class SquaredLogError(RowLoss):
    """Half the squared error of logarithms, ``(log(1 + p) - log(1 + y))^2 / 2``: errors as factors.

    In ``z = log(1 + p)`` it is the squared error of ``log(1 + y)``: gradient ``z - log(1 + y)``,
    hessian 1, best constant the mean. XGBoost has the prediction itself for its raw score, in which
    the loss is not convex, so that it has to replace negative second derivatives by some number.
    """

    name = "reg:squaredlogerror"
    hessian_is_one = True
    link = "other"
    targets = ABOVE_MINUS_1

    @row_formula
    def derivatives(y, z, parameter):
        """Return ``z - log(1 + y)`` and 1."""
        return z - log_of_one_plus(y), 1.0

    @row_formula
    def row_value(y, z, parameter):
        """Return ``(z - log(1 + y))^2 / 2``."""
        return 0.5 * (z - log_of_one_plus(y)) ** 2

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the means of ``log(1 + y)``."""
        return known_means(np.log1p(y), weight)

    def raw_of(self, prediction: float) -> np.ndarray:
        check_base_score(prediction, self.name, ABOVE_MINUS_1)
        return np.full(self.n_outputs, np.log1p(prediction))

    @np.errstate(all="ignore")
    def predictions(self, raw_score: np.ndarray) -> np.ndarray:
        return by_rows(np.expm1(np.minimum(raw_score, _LARGEST)))


class AbsolutePercentageError(RowLoss):
    """The absolute error over the size of the target, ``|y - p| / |y|``.

    It is the absolute error of rows that weigh ``u = 1 / |y|``, so the best constant and the best
    leaf are weighted medians: gradient ``u sign(p - y)``; u stands for the hessian while a tree is
    grown, and leaves are renewed. Small targets weigh most. LightGBM divides by ``max(1, |y|)``
    instead, which is another loss for targets below 1; here a target of 0, for which there is no
    percentage, is an error.
    """

    name = "reg:mape"
    hessian_is_bound = True
    least_hessian = _LEAST_OF_LARGE

    def __init__(self, n_targets: int = 1):
        super().__init__(n_targets)
        self.renewal = np.full(self.n_outputs, 0.5)

    @row_formula
    def derivatives(y, p, parameter):
        """Return the sign of ``p - y`` over ``|y|``; ``1 / |y|`` for the hessian."""
        share = 1.0 / abs(y)
        return share * ((1.0 if p > y else 0.0) - (1.0 if p < y else 0.0)), share

    @row_formula
    def row_value(y, p, parameter):
        """Return ``|y - p| / |y|``, with 2e-16 in the place of y = 0."""
        return abs(y - p) / max(abs(y), _LEAST_SIZE)

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the medians of the targets, weighted with ``1 / |y|``."""
        medians = []
        for target, weights in each_target(y, weight):
            weights = (weights if len(weights) else 1.0) / np.abs(target)
            medians.append(weighted_quantile(target, weights, 0.5))
        return np.array(medians)

    def unit(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        return mean_over_targets(1.0 / np.abs(y), y, weight)

    def check_targets(self, y: np.ndarray, name: str) -> None:
        why = (
            f"objective={self.name!r} divides by the targets; leave such rows out, or choose "
            "'reg:absoluteerror' with a sample_weight of 1 / |y|, bounded"
        )
        refuse_first(y == 0.0, y, name, why)


# Where all targets are 0 the best constant is infinite.
_LEAST_START = -16.0
# Stands for 0 where a logarithm is multiplied by 0.
_TINY = 1e-290


class _LogLinkLoss(RowLoss):
    """Base of losses whose raw scores are logarithms of means."""

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

    @row_formula
    def derivatives(y, z, parameter):
        """Return ``m - y`` and ``m``."""
        mean = exp(z)
        return mean - y, mean

    @row_formula
    def row_value(y, z, parameter):
        """Return ``m - y z``."""
        return mean_of_log(z) - y * z

    @row_formula
    def least_value(y, parameter):
        """Return ``y - y log(y)``."""
        return y - y * log(max(y, _TINY))

    @row_formula
    def log_of_base(y, parameter):
        """Return ``-log(y!)``, which the log-likelihood has besides."""
        return -log_of_factorial(y)


class Gamma(_LogLinkLoss):
    """For positive amounts: the standard deviation is proportional to the mean."""

    name = "reg:gamma"
    targets = POSITIVE

    @row_formula
    def derivatives(y, z, parameter):
        """Return ``1 - y / m`` and ``y / m``."""
        ratio = y * exp(-z)
        return 1.0 - ratio, ratio

    @row_formula
    def row_value(y, z, parameter):
        """Return ``y / m + z``."""
        return y * mean_of_log(-z) + z

    @row_formula
    def least_value(y, parameter):
        """Return ``1 + log(y)``."""
        return 1.0 + log(y)


class Tweedie(_LogLinkLoss):
    """For amounts of which many are 0, such as claims: between Poisson and gamma."""

    name = "reg:tweedie"
    parameter = "tweedie_variance_power"

    @row_formula
    def derivatives(y, z, power):
        """Return ``m^(2-a) - y m^(1-a)`` and ``(2-a) m^(2-a) + (a-1) y m^(1-a)``."""
        first, second = exp((2.0 - power) * z), y * exp((1.0 - power) * z)
        return first - second, (2.0 - power) * first + (power - 1.0) * second

    @row_formula
    def row_value(y, z, power):
        """Return ``m^(2-a) / (2-a) - y m^(1-a) / (1-a)``: Poisson for a = 1, gamma for 2."""
        return _power_term(z, 2.0 - power) - y * _power_term(z, 1.0 - power)

    @row_formula
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
