"""Frozen distributions as scipy.stats has them, and right where SciPy's own are not.

SciPy's quantile of probability 0 of counts is -1; of large means it is NaN, of some negative
binomial distributions it is never found, and Student's t's of probabilities below 1e-100 may have
the wrong sign. In the probabilities of large counts, logarithms of factorials cancel.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from sklboost.objectives.losses.distributions.counts import log_of_negative_binomial, log_of_poisson

# Of means: beyond, NumPy's counts could be too large for int64.
_LARGEST_DRAWN = 1e12
# Of entropies: so many counts one by one, and so many steps for those after them.
_N_COUNTS, _N_STEPS = 512, 4096
# Of Student's t: smaller probabilities and values further out come from the tail's series.
_LEAST_CHANCE, _FARTHEST = 1e-100, 1e100


# --- counts


@np.errstate(all="ignore")
def _first(holds: Callable[[Any, Any], Any], near: Any) -> Any:
    """Return the smallest whole numbers >= 0 from which on a condition holds, beginning `near`.

    ``holds(k, at)`` tests numbers that belong to the places `at` of the flat result.
    """
    high = np.floor(np.clip(near, 0.0, 1e300)).ravel()
    low, step, at = np.full(len(high), -1.0), 1.0, np.arange(len(high))
    while len(at := at[~holds(high[at], at) & (high[at] < np.inf)]):
        low[at] = high[at]
        high[at] = np.maximum(high[at] + step, np.nextafter(high[at], np.inf))
        step *= 2.0
    # where it mostly does not hold
    just_below = np.maximum(np.minimum(high - 2.0, np.nextafter(high, 0.0)), 0.0)
    middle = np.where(low < 0.0, just_below, low + np.floor(0.5 * (high - low)))
    at = np.arange(len(high))
    while len(at := at[(low[at] < middle[at]) & (middle[at] < high[at])]):
        is_enough = holds(middle[at], at)
        high[at] = np.where(is_enough, middle[at], high[at])
        low[at] = np.where(is_enough, low[at], middle[at])
        middle[at] = low[at] + np.floor(0.5 * (high[at] - low[at]))
    return high.reshape(np.shape(near))


class _Counts(stats.rv_discrete):
    """A distribution of counts; the mean is its first parameter."""

    def ppf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return quantiles, 0 for q = 0."""
        return np.maximum(super().ppf(q, *args, **kwds), 0.0)

    def isf(self, q: Any, *args: Any, **kwds: Any) -> Any:
        """Return quantiles by the probability of more, 0 for q = 1."""
        return np.maximum(super().isf(q, *args, **kwds), 0.0)

    def rvs(self, *args: Any, **kwds: Any) -> Any:
        """Draw counts: integers, or floats if they could be beyond integers."""
        if np.max(args[0]) <= _LARGEST_DRAWN:
            return super().rvs(*args, **kwds)
        return super(stats.rv_discrete, self).rvs(*args, **kwds)

    def _rvs(self, *parameters: Any, size: Any = None, random_state: Any = None) -> Any:
        if np.max(parameters[0]) <= _LARGEST_DRAWN:
            return self._draw(random_state, *parameters, size)
        return super()._rvs(*parameters, size=size, random_state=random_state)

    def _pmf(self, k: Any, *parameters: Any) -> Any:
        return np.exp(self._logpmf(k, *parameters))

    def _logcdf(self, k: Any, *parameters: Any) -> Any:
        at_most = self._cdf(k, *parameters)
        with np.errstate(divide="ignore"):
            return np.where(at_most < 0.5, np.log(at_most), np.log1p(-self._sf(k, *parameters)))

    def _ppf(self, q: Any, *parameters: Any) -> Any:  # SciPy's arguments have one dimension
        q, *own = np.broadcast_arrays(q, *parameters)
        near = self._quantile_near(special.ndtri(q), *own)
        return _first(lambda k, at: self._cdf(k, *(each[at] for each in own)) >= q[at], near)

    def _isf(self, q: Any, *parameters: Any) -> Any:
        q, *own = np.broadcast_arrays(q, *parameters)
        near = self._quantile_near(-special.ndtri(q), *own)
        return _first(lambda k, at: self._sf(k, *(each[at] for each in own)) <= q[at], near)

    def _quantile_near(self, z: Any, *parameters: Any) -> Any:
        """Return about the quantile, from the standard normal's (Cornish & Fisher 1938)."""
        mean, variance, skewness, _ = self._stats(*parameters)
        return mean + np.sqrt(variance) * (z + skewness * (z * z - 1.0) / 6.0)

    def _entropy(self, *parameters: Any) -> Any:
        """Return it as a sum over counts, and from some on as an integral by the midpoint rule."""
        first = self.ppf(1e-18, *parameters)
        length = self.isf(1e-18, *parameters) - first + 1.0
        counts, widths = np.arange(min(length, _N_COUNTS)), np.ones(1)
        if length > _N_COUNTS:
            start = _N_COUNTS - 0.5
            step = np.log(length / start) / _N_STEPS
            later = start * np.exp(step * (np.arange(_N_STEPS) + 0.5))
            widths = np.concatenate([np.ones(_N_COUNTS), step * later])
            counts = np.concatenate([counts, later])
        return (widths * special.entr(self._pmf(first + counts, *parameters))).sum()


class _Poisson(_Counts):
    """The Poisson distribution."""

    def _logpmf(self, k: Any, mean: Any) -> Any:
        return log_of_poisson(k, mean)

    def _cdf(self, k: Any, mean: Any) -> Any:
        return special.pdtr(np.floor(k), mean)

    def _sf(self, k: Any, mean: Any) -> Any:
        return special.pdtrc(np.floor(k), mean)

    def _stats(self, mean: Any) -> Any:
        return mean, mean, 1.0 / np.sqrt(mean), 1.0 / mean

    def _draw(self, random_state: Any, mean: Any, shape: Any) -> Any:
        return random_state.poisson(mean, shape)


def _by_smaller(one: Any, other: Any, above: Any, mean: Any, size: Any) -> Any:
    """Return a function of p or, if that is less, the other function of 1 - p."""
    p, rest = size / (size + mean), mean / (size + mean)
    is_less = np.broadcast_to(p < rest, np.broadcast_shapes(np.shape(above), np.shape(p)))
    value = np.empty(is_less.shape)
    one(size, above, p, where=is_less, out=value)
    return other(above, size, rest, where=~is_less, out=value)


class _NegativeBinomial(_Counts):
    """The negative binomial distribution, by its mean and size."""

    def _logpmf(self, k: Any, mean: Any, size: Any) -> Any:
        return log_of_negative_binomial(k, mean, size)

    def _cdf(self, k: Any, mean: Any, size: Any) -> Any:
        return _by_smaller(special.betainc, special.betaincc, np.floor(k) + 1.0, mean, size)

    def _sf(self, k: Any, mean: Any, size: Any) -> Any:
        return _by_smaller(special.betaincc, special.betainc, np.floor(k) + 1.0, mean, size)

    def _stats(self, mean: Any, size: Any) -> Any:
        chance, scale = size / (size + mean), np.sqrt(mean) * np.sqrt(1.0 + mean / size)
        kurtosis = 6.0 / size + chance / mean
        return mean, mean * (1.0 + mean / size), (1.0 + 2.0 * mean / size) / scale, kurtosis

    def _draw(self, random_state: Any, mean: Any, size: Any, shape: Any) -> Any:
        return random_state.negative_binomial(size, size / (size + mean), shape)


poisson = _Poisson(name="poisson", shapes="mu")
negative_binomial = _NegativeBinomial(name="nbinom", shapes="mean, n")


# --- amounts, and all numbers


class _Gamma(type(stats.gamma)):  # type: ignore[misc]
    """The gamma distribution."""

    def _logpdf(self, x: Any, a: Any) -> Any:
        is_inside = (x > 0.0) & (x < np.inf)
        near = np.where(is_inside, x, 1.0)
        at_ends = np.where(x == np.inf, -np.inf, super()._logpdf(np.where(is_inside, 1.0, 0.0), a))
        return np.where(is_inside, log_of_poisson(a, near) + np.log(a / near), at_ends)


class _Lognormal(type(stats.lognorm)):  # type: ignore[misc]
    """The lognormal distribution."""

    @np.errstate(all="ignore")
    def _stats(self, s: Any) -> Any:
        power, excess = np.exp(s * s), np.expm1(s * s)  # less 1, of which no digit is lost
        kurtosis = excess * (power * (power * (power + 3.0) + 6.0) + 6.0)
        return np.sqrt(power), power * excess, np.sqrt(excess) * (power + 2.0), kurtosis


gamma = _Gamma(a=0.0, name="gamma")
lognormal = _Lognormal(a=0.0, name="lognorm")


class _StudentT(type(stats.t)):  # type: ignore[misc]
    """Student's t distribution."""

    def _cdf(self, x: Any, df: Any) -> Any:
        half = 0.5 * df
        with np.errstate(all="ignore"):
            log_share = np.log(df) - 2.0 * np.log(np.abs(x))
            tail = 0.5 * np.exp(half * log_share - np.log(half) - special.betaln(half, 0.5))
        return np.where(x < -_FARTHEST, tail, super()._cdf(x, df))

    def _sf(self, x: Any, df: Any) -> Any:
        return self._cdf(-x, df)

    def _ppf(self, q: Any, df: Any) -> Any:
        """Return the quantile; far out by the series of the incomplete beta function.

        With ``z = n / (n + x^2)`` and a = n / 2 the tail is ``z^a 2F1(a, 1/2; a + 1; z) / (2 a
        B(a, 1/2))``, and the hypergeometric function of a tiny part of z is all that changes.
        """
        half = 0.5 * df
        with np.errstate(all="ignore"):
            log_power = np.log(2.0 * q) + np.log(half) + special.betaln(half, 0.5)
            log_share = log_power / half
            for _ in range(4):
                series = special.hyp2f1(half, 0.5, half + 1.0, np.exp(log_share))
                log_share = (log_power - np.log(series)) / half
            far = -np.sqrt(-df * np.expm1(log_share)) * np.exp(-0.5 * log_share)
        return np.where(q < _LEAST_CHANCE, far, super()._ppf(q, df))

    def _isf(self, q: Any, df: Any) -> Any:
        return -self._ppf(q, df)


student_t = _StudentT(name="t")

# From the parameters of a loss, by its name.
FROZEN: dict[str, Callable[..., Any]] = {
    "normal": stats.norm,
    "laplace": stats.laplace,
    "student_t": student_t,
    "gamma": lambda mean, shape: gamma(shape, scale=mean / shape),
    "lognormal": lambda loc, scale: lognormal(s=scale, scale=np.exp(loc)),
    "poisson": poisson,
    "negative_binomial": negative_binomial,
}


# --- distributions with more zeros


def _probabilities(q: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, 0.5 for those that are no probabilities, and which are."""
    q = np.asarray(q, dtype=np.float64)
    is_valid = (q >= 0.0) & (q <= 1.0)
    return np.where(is_valid, q, 0.5), is_valid


class FrozenZeroInflated:
    """A mixture of 0 and of a distribution of numbers >= 0, as scipy.stats has frozen ones.

    Parameters
    ----------
    base : frozen distribution of scipy.stats
    inflation : ndarray of float64, shape (n_samples,)
        Probability of a 0, in addition to the zeros of `base`.
    is_discrete : bool
        Whether `base` is of counts.
    """

    def __init__(self, base: Any, inflation: Any, is_discrete: bool):
        self.base = base
        self.inflation = np.asarray(inflation)
        self.is_discrete = is_discrete

    def cdf(self, x: Any) -> Any:
        """Return the probability of at most `x`."""
        rest = (1.0 - self.inflation) * self.base.cdf(x)
        return np.where(np.asarray(x) >= 0.0, self.inflation + rest, 0.0)[()]

    def sf(self, x: Any) -> Any:
        """Return the probability of more than `x`."""
        rest = (1.0 - self.inflation) * self.base.sf(x)
        return np.where(np.asarray(x) >= 0.0, rest, 1.0)[()]

    def logcdf(self, x: Any) -> Any:
        """Return the logarithm of `cdf`."""
        with np.errstate(divide="ignore"):
            return np.log(self.cdf(x))

    def logsf(self, x: Any) -> Any:
        """Return the logarithm of `sf`."""
        rest = np.log1p(-self.inflation) + self.base.logsf(x)
        return np.where(np.asarray(x) >= 0.0, rest, 0.0)[()]

    def pmf(self, k: Any) -> Any:
        """Return the probability of `k`; of amounts, it is above 0 for 0 only."""
        rest = (1.0 - self.inflation) * self.base.pmf(k) if self.is_discrete else 0.0
        return np.where(np.asarray(k) == 0.0, self.inflation, 0.0) + rest

    def logpmf(self, k: Any) -> Any:
        """Return the logarithm of `pmf`."""
        inflation = np.where(np.asarray(k) == 0.0, np.log(self.inflation), -np.inf)
        if not self.is_discrete:
            return inflation[()]
        return np.logaddexp(inflation, np.log1p(-self.inflation) + self.base.logpmf(k))

    def pdf(self, x: Any) -> Any:
        """Return the density of amounts above 0; 0 has the probability ``pmf(0)`` instead."""
        self._check_amounts("pdf")
        rest = (1.0 - self.inflation) * self.base.pdf(x)
        return np.where(np.asarray(x) > 0.0, rest, 0.0)[()]

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of `pdf`."""
        self._check_amounts("logpdf")
        rest = np.log1p(-self.inflation) + self.base.logpdf(x)
        return np.where(np.asarray(x) > 0.0, rest, -np.inf)[()]

    def ppf(self, q: Any) -> Any:
        """Return the smallest value of which the probability of at most it is `q` or more."""
        q, is_valid = _probabilities(q)
        # rounding may leave a little less than 0, where the quantile is 0 as well
        rest = np.clip((q - self.inflation) / (1.0 - self.inflation), 0.0, 1.0)
        quantile = self.base.ppf(rest)
        if self.is_discrete:  # rounding may be a count
            q_at, part = self._parts(q, quantile)
            exact = _first(lambda k, at: part(at).cdf(k) >= q_at[at], quantile)
            quantile = np.where(q < 1.0, exact, np.inf)
        return np.where(is_valid, quantile, np.nan)[()]

    def isf(self, q: Any) -> Any:
        """Return the smallest value of which the probability of more is `q` or less."""
        q, is_valid = _probabilities(q)
        quantile = self.base.isf(np.minimum(q / (1.0 - self.inflation), 1.0))
        if self.is_discrete:
            q_at, part = self._parts(q, quantile)
            exact = _first(lambda k, at: part(at).sf(k) <= q_at[at], quantile)
            quantile = np.where(q > 0.0, exact, np.inf)
        return np.where(is_valid, quantile, np.nan)[()]

    def _parts(self, q: Any, quantile: Any) -> tuple[Any, Callable[[Any], Any]]:
        """Return probabilities, flat, and what gives the distributions that they are of."""
        q, inflation, *parameters = (
            np.broadcast_to(each, np.shape(quantile)).ravel()
            for each in (q, self.inflation, *self.base.args)
        )
        dist = self.base.dist

        def part(at: Any) -> FrozenZeroInflated:
            return FrozenZeroInflated(dist(*(each[at] for each in parameters)), inflation[at], True)

        return q, part

    def mean(self) -> Any:
        """Return the mean."""
        return (1.0 - self.inflation) * self.base.mean()

    def var(self) -> Any:
        """Return the variance."""
        mean, rest = self.base.mean(), 1.0 - self.inflation
        return rest * (self.base.var() + self.inflation * mean * mean)

    def moment(self, order: int) -> Any:
        """Return the mean of this power of the values."""
        return (1.0 - self.inflation) * self.base.moment(order) if order else 1.0

    def entropy(self) -> Any:
        """Return the entropy; of amounts, 0 counts by its probability, others by density."""
        rest = 1.0 - self.inflation
        of_zero = self.base.pmf(0.0) if self.is_discrete else 0.0
        zero = self.inflation + rest * of_zero
        others = rest * (self.base.entropy() - special.entr(of_zero))
        return special.entr(zero) + (1.0 - of_zero) * special.entr(rest) + others

    def std(self) -> Any:
        """Return the standard deviation."""
        return np.sqrt(self.var())

    def median(self) -> Any:
        """Return the median."""
        return self.ppf(0.5)

    def interval(self, confidence: Any) -> tuple[Any, Any]:
        """Return the ends of the central interval of this probability."""
        outside = 0.5 * (1.0 - np.asarray(confidence, dtype=np.float64))
        return self.ppf(outside), self.ppf(1.0 - outside)

    def support(self) -> tuple[Any, Any]:
        """Return the smallest and the largest value."""
        return np.zeros(self.inflation.shape)[()], self.base.support()[1]

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Draw values; `size` as NumPy's: the last axes are the rows'."""
        generator = np.random.default_rng(random_state)
        shape = self.inflation.shape if size is None else size
        drawn = self.base.rvs(size=shape, random_state=generator)
        return np.where(generator.random(shape) < self.inflation, 0, drawn)[()]

    def _check_amounts(self, method: str) -> None:
        if self.is_discrete:
            raise AttributeError(f"counts have no {method}: call pmf")
