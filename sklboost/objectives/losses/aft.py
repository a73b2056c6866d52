"""Accelerated failure time: the logarithm of a time is a location plus noise of a known shape.

A row of raw score f, the more the sooner its event, has ``log T = -f + s e``, with the scale s and
the noise e from a distribution of density p and survival function S:

========= ==================== =======================
noise     p(z)                 S(z)
========= ==================== =======================
normal    standard normal      its upper tail
logistic  ``e^z / (1+e^z)^2``  ``1 / (1 + e^z)``
extreme   ``e^z e^(-e^z)``     ``e^(-e^z)``
========= ==================== =======================

With ``z = (log t + f) / s``, the loss of an event at t is ``-log(p(z) / (s t))``, and of an event
between two bounds ``-log(S(z_lower) - S(z_upper))``. All of it is computed of hazards
``k = p / S`` and ratios of survival functions, which are exact far out in both tails. Two bounds so
close that these cancel are an event in the middle of them.

Source: Barnwal, Cho & Hocking (2022), "Survival Regression with Accelerated Failure Time Model in
XGBoost"; the raw scores there are ``-f``.
"""

import math

import numpy as np
from scipy.special import logit, ndtri

from sklboost.engine.compiling import kernel
from sklboost.engine.elementary import HALF_LOG_2_PI, exp, log
from sklboost.objectives.blocks import LARGEST, LEAST_HESSIAN, NO_FAULT, limited
from sklboost.objectives.domains import POSITIVE, check_base_score, refuse_first
from sklboost.objectives.loss import Loss, meets
from sklboost.objectives.start_values import exact_sums, find_constants, weighted_mean

DISTRIBUTIONS = ("normal", "logistic", "extreme")
_NORMAL, _LOGISTIC = 0, 1
# Bounds closer than this, in units of the scale: the error of the middle is its square.
_NARROW = 1e-5
# Beyond this no square overflows.
_FARTHEST = 1e150
_GREATEST = 1e9


@kernel
def _normal_tail(z):
    """Return ``-log S``, the hazard k and ``k - z`` of the standard normal distribution.

    From 2 on by the continued fraction ``k = z + 1/(z + 2/(z + 3/(z + ...)))``, below by the series
    of ``z^(2n+1) / (2n+1)!!``. Source: Abramowitz & Stegun (1964), 26.2.14 and 26.2.11.
    """
    far = abs(z)
    if far >= 2.0:
        n_terms = 12 if far >= 8.0 else 60
        rest = 0.0
        for term in range(n_terms, 0, -1):
            rest = term / (far + rest)
        minus_log = 0.5 * far * far + HALF_LOG_2_PI + log(far + rest)
        if z > 0.0:
            return minus_log, far + rest, rest
        tail = exp(-minus_log)
        density = exp(-0.5 * far * far - HALF_LOG_2_PI)
        hazard = density / (1.0 - tail)
        return _log_of_one_less(tail), hazard, hazard + far
    term, total, n = z, z, 1.0
    while abs(term) > 1e-18:
        n += 2.0
        term *= z * z / n
        total += term
    density = exp(-0.5 * z * z - HALF_LOG_2_PI)
    tail = 0.5 - density * total
    hazard = density / tail
    return -log(tail), hazard, hazard - z


@kernel
def _log_of_one_less(x):
    """Return ``-log(1 - x)`` for x from 0 to 1."""
    if x < 1e-5:
        return x * (1.0 + x * (0.5 + x / 3.0))
    return -log(max(1.0 - x, 1e-300))


@kernel
def _one_less_exp(x):
    """Return ``1 - e^-x`` for x >= 0."""
    if x < 1e-5:
        return x * (1.0 - x * (0.5 - x / 6.0))
    return 1.0 - exp(-x)


@kernel
def _tail(z, kind):
    """Return ``-log S``, the hazard k and its derivative at z, which may be infinite."""
    if z == -math.inf:
        return 0.0, 0.0, 0.0
    z = min(max(z, -_FARTHEST), _FARTHEST)
    if kind == _NORMAL:
        minus_log, hazard, less = _normal_tail(z)
        return minus_log, hazard, hazard * less
    if kind == _LOGISTIC:
        share = 1.0 / (1.0 + exp(-z))
        minus_log = z + _log_of_sum(-z) if z > 0.0 else _log_of_sum(z)
        return minus_log, share, share / (1.0 + exp(z))
    hazard = exp(z)
    return hazard, hazard, hazard


@kernel
def _log_of_sum(z):
    """Return ``log(1 + e^z)`` for z <= 0."""
    part = exp(z)
    return part * (1.0 - 0.5 * part) if part < 1e-8 else log(1.0 + part)


@kernel
def _at(z, kind):
    """Return ``-log p`` at z, and its derivatives."""
    z = min(max(z, -_FARTHEST), _FARTHEST)
    if kind == _NORMAL:
        return 0.5 * z * z + HALF_LOG_2_PI, z, 1.0
    if kind == _LOGISTIC:
        share, other = 1.0 / (1.0 + exp(-z)), 1.0 / (1.0 + exp(z))
        return abs(z) + 2.0 * _log_of_sum(-abs(z)), share - other, 2.0 * share * other
    hazard = exp(z)
    return hazard - z, hazard - 1.0, hazard


@kernel
def _between(low, high, kind):
    """Return ``-log(S(low) - S(high))``, and its derivatives in a shift of both."""
    if high - low < _NARROW:
        value, first, second = _at(0.5 * (low + high), kind)
        return value - log(max(high - low, 1e-300)), first, second
    sign = 1.0
    if kind != 2 and low + high < 0.0:  # by symmetry: tails are exact on the right
        low, high, sign = -high, -low, -1.0
    minus_log, hazard, slope = _tail(low, kind)
    # so great a hazard leaves nothing behind the upper bound
    if high == math.inf or hazard > _GREATEST:
        return minus_log, sign * hazard, slope
    other_log, other_hazard, other_slope = _tail(high, kind)
    gap = other_log - minus_log
    ratio, share = exp(-gap), max(_one_less_exp(gap), 1e-300)
    if ratio < 1e-300:
        return minus_log, sign * hazard, slope
    first = (hazard - ratio * other_hazard) / share
    bent = (slope - hazard * hazard) - ratio * (other_slope - other_hazard * other_hazard)
    return minus_log - log(share), sign * first, first * first + bent / share


@kernel
def _in_score(first, second, scale):
    """Return derivatives in the score, from derivatives in z; none is larger than 1e300."""
    most = 1e300 * min(scale, 1.0)
    first = min(max(first, -most), most) / scale
    return first, min(second, most * min(scale, 1.0)) / (scale * scale)


@kernel
def _of_row(bounds, score, scale, kind):
    """Return the loss of a row and its derivatives in its score; `bounds` are of its time."""
    lower, upper = bounds
    if lower == upper:
        time = log(lower)
        value, first, second = _at((time + score) / scale, kind)
        return value + log(scale) + time, *_in_score(first, second, scale)
    low, high = -math.inf, math.inf
    if lower > 0.0:
        low = (log(lower) + score) / scale
    if upper < math.inf:
        high = (log(upper) + score) / scale
    if low == -math.inf and high == math.inf:
        return 0.0, 0.0, 0.0
    value, first, second = _between(low, high, kind)
    return value, *_in_score(first, second, scale)


@kernel
def _fill_block(rows, y, raw_score, parameters, gradient, hessian, scratch):
    """Fill gradient and hessian of the rows ``[start, stop)``; `y` has bounds from `first` on."""
    scale, kind = parameters[0], int(parameters[1])
    for row in range(rows[0], rows[1]):
        bounds = (y[0, row - rows[2]], y[1, row - rows[2]])
        _, first, second = _of_row(bounds, raw_score[0, row], scale, kind)
        gradient[0, row] = limited(first, -LARGEST)
        hessian[0, row] = limited(second, LEAST_HESSIAN)
    return NO_FAULT


@kernel
def _fill_values(y, raw_score, parameters, values):
    """Fill the losses of all rows."""
    scale, kind = parameters[0], int(parameters[1])
    for row in range(len(values)):
        values[row] = _of_row((y[0, row], y[1, row]), raw_score[row], scale, kind)[0]


@kernel
def _fill_hazards(log_times, raw_score, parameters, hazards):
    """Fill ``-log S`` of all rows at all times."""
    scale, kind = parameters[0], int(parameters[1])
    for row in range(len(raw_score)):
        for column in range(len(log_times)):
            z = (log_times[column] + raw_score[row]) / scale
            hazards[row, column] = _tail(z, kind)[0]


class AcceleratedFailureTime(Loss):
    """The likelihood of times of which bounds are known; predictions are ``-E log T``, the risk.

    `distribution`, one of `DISTRIBUTIONS`, and `scale` are of the noise.
    """

    name = "survival:aft"
    block = staticmethod(_fill_block)
    # Where a tail is flat a Newton step has no end, and beyond the other it overflows.
    largest_step = 2.0

    def __init__(self, distribution: str = "normal", scale: float = 1.0):
        self.distribution, self.scale = distribution, float(scale)
        used = min(max(self.scale, 1.0 / _FARTHEST), _FARTHEST)
        self.parameters = np.array([used, DISTRIBUTIONS.index(distribution)], np.float64)
        self.made_of = {
            "aft_loss_distribution": distribution,
            "aft_loss_distribution_scale": [self.scale],
        }

    def row_values(self, y: np.ndarray, raw_score: np.ndarray) -> np.ndarray:
        values = np.empty(raw_score.shape[1])
        _fill_values(np.ascontiguousarray(y), raw_score[0], self.parameters, values)
        return values

    def value(self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray) -> float:
        return float(weighted_mean(self.row_values(y, raw_score), weight))

    def start(self, y: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the best constant, from the middle of the bounds on."""
        n_bounds = 2 * y.shape[-1]
        middle = exact_sums(minus_logarithms, y, n_values=n_bounds) / n_bounds
        return find_constants(self, y, weight, guess=middle)

    def raw_of(self, prediction: float) -> np.ndarray:
        """Return the raw score of a time, which `base_score` is, as in XGBoost."""
        check_base_score(prediction, self.name, POSITIVE)
        return np.array([-np.log(prediction)])

    def cumulative_hazards(self, times: np.ndarray, raw_score: np.ndarray) -> np.ndarray:
        """Return the cumulative hazards of rows at times, shape (n_samples, n_times)."""
        hazards = np.empty((len(raw_score), len(times)))
        with np.errstate(divide="ignore"):
            log_times = np.log(times)
        _fill_hazards(log_times, raw_score, self.parameters, hazards)
        return hazards

    def quantiles(self, levels: np.ndarray, raw_score: np.ndarray) -> np.ndarray:
        """Return the times by which events have these probabilities, a column for each."""
        noise = {
            "normal": ndtri,
            "logistic": logit,
            "extreme": lambda level: np.log(-np.log1p(-level)),
        }[self.distribution](levels)
        with np.errstate(over="ignore"):
            times: np.ndarray = np.exp(self.parameters[0] * noise - raw_score[0][:, np.newaxis])
        return times

    def check_targets(self, y: np.ndarray, name: str) -> None:
        """Raise ValueError for an event at 0, and for entries and strata; shape (n_samples, 4)."""
        _, upper, entry, stratum = y.T
        refuse_first(upper == 0.0, upper, name, f"objective={self.name!r} needs times above 0")
        if (entry > -np.inf).any() or (stratum > 0.0).any():
            raise ValueError(
                f"{name} has entry times or strata, which objective={self.name!r} does not know: "
                "choose 'survival:cox', or leave them out"
            )

    def needs(self, y: np.ndarray) -> dict[str, np.ndarray]:
        """Return which rows keep times from being anything above, and anything below."""
        lower, upper, *_ = y.T
        return {"event": meets(upper < np.inf), "lower bound above 0": meets(lower > 0.0)}


def minus_logarithms(y: np.ndarray) -> np.ndarray:
    """Return minus the logarithms of the bounds of rows, 0 where they have none; in one row."""
    bounds = y[:2]
    finite = np.where(np.isfinite(bounds) & (bounds > 0.0), bounds, 1.0)
    return -np.log(finite).reshape(1, -1)
