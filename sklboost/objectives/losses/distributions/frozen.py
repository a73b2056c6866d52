"""Zero-inflated distributions with the methods of a frozen distribution of scipy.stats."""

from typing import Any

import numpy as np


class FrozenZeroInflated:
    """A mixture of 0 and of a distribution of numbers >= 0, as scipy.stats has frozen ones.

    Parameters
    ----------
    base : frozen distribution of scipy.stats
    inflation : ndarray of float64, shape (n_samples,)
        Probability of a 0 besides those of `base`.
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
        with np.errstate(divide="ignore"):
            return np.log(self.sf(x))

    def pmf(self, k: Any) -> Any:
        """Return the probability of `k`; of amounts, it is above 0 for 0 only."""
        rest = (1.0 - self.inflation) * self.base.pmf(k) if self.is_discrete else 0.0
        return np.where(np.asarray(k) == 0.0, self.inflation, 0.0) + rest

    def logpmf(self, k: Any) -> Any:
        """Return the logarithm of `pmf`."""
        with np.errstate(divide="ignore"):
            return np.log(self.pmf(k))

    def pdf(self, x: Any) -> Any:
        """Return the density of amounts above 0; 0 has the probability ``pmf(0)`` instead."""
        self._check_amounts("pdf")
        rest = (1.0 - self.inflation) * self.base.pdf(x)
        return np.where(np.asarray(x) > 0.0, rest, 0.0)[()]

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of `pdf`."""
        with np.errstate(divide="ignore"):
            return np.log(self.pdf(x))

    def ppf(self, q: Any) -> Any:
        """Return the smallest value of which the probability of at most it is `q` or more."""
        q = np.asarray(q, dtype=np.float64)
        # rounding may leave a little less than 0, where the quantile is 0 as well
        rest = np.clip((q - self.inflation) / (1.0 - self.inflation), 0.0, 1.0)
        quantile = np.maximum(self.base.ppf(rest), 0.0)
        return np.where((q >= 0.0) & (q <= 1.0), quantile, np.nan)[()]

    def isf(self, q: Any) -> Any:
        """Return ``ppf(1 - q)``."""
        return self.ppf(1.0 - np.asarray(q, dtype=np.float64))

    def mean(self) -> Any:
        """Return the mean."""
        return (1.0 - self.inflation) * self.base.mean()

    def var(self) -> Any:
        """Return the variance."""
        mean, rest = self.base.mean(), 1.0 - self.inflation
        return rest * (self.base.var() + self.inflation * mean * mean)

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
        """Draw values; `size` as NumPy's: the last axes are those of the rows."""
        generator = np.random.default_rng(random_state)
        shape = self.inflation.shape if size is None else size
        drawn = self.base.rvs(size=shape, random_state=generator)
        return np.where(generator.random(shape) < self.inflation, 0, drawn)[()]

    def _check_amounts(self, method: str) -> None:
        if self.is_discrete:
            raise AttributeError(f"counts have no {method}: call pmf")
