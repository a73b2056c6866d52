"""The estimator of distributions."""

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from sklboost.data.frames import read_values
from sklboost.estimators.input.rows import row_weights
from sklboost.estimators.input.targets import DistributionTargets
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.kinds import DistributionParameters
from sklboost.estimators.parameters.rules import PROBABILITY, check_value
from sklboost.estimators.predict.fitted_model import by_partitions, from_raw_scores
from sklboost.estimators.regressor import XGBRegressorLite


@documented(init=False)
class XGBDistributionLite(DistributionParameters, XGBRegressorLite):
    """Gradient boosted distributions: all parameters of a distribution, by natural gradients.

    Predictions are a whole distribution for each row: not only the mean, but also how far the
    target may be from it. Every leaf has a step for each parameter of the distribution, the natural
    gradient of the log-likelihood of its rows, as in NGBoost.

    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import train_test_split
    >>> from sklboost import XGBDistributionLite
    >>> X, y = load_diabetes(return_X_y=True)
    >>> X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    >>> model = XGBDistributionLite(n_estimators=40).fit(X, y)
    >>> interval = model.predict_interval(X_test, coverage=0.9)
    >>> is_inside = (interval[:, 0] <= y_test) & (y_test <= interval[:, 1])
    >>> print(round(is_inside.mean(), 1))
    0.9
    """

    _kind = DistributionTargets
    _parameter_group = DistributionParameters

    def predict_dist(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> Any:
        """Predict the distribution of the target of each row.

        Returns
        -------
        frozen distribution
            As `scipy.stats` has them, such as ``scipy.stats.norm(loc, scale)`` with arrays of shape
            (n_samples,): ``pdf`` or ``pmf``, ``cdf``, ``ppf``, ``interval``, ``mean``, ``std``,
            ``rvs`` and others. For "negative_binomial" with mean m and size k it is
            ``nbinom(k, k / (k + m))``, with ``args`` m and k. The zero-inflated ones have the same
            methods and attributes ``base`` and ``inflation``; for amounts, 0 has the probability
            ``pmf(0)``.
        """
        fitted, raw_score = self._scored(X, base_margin, iteration_range)
        return fitted.loss.frozen(fitted.loss.parameters_of(raw_score))  # type: ignore[attr-defined]

    @by_partitions
    def predict_quantile(
        self,
        X: Any,
        q: Any,
        *,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Predict quantiles of the target of each row.

        Parameters
        ----------
        q : float or array-like of shape (n_quantiles,)
            Probabilities, from 0 to 1: 0.5 is the median.

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_quantiles)
            A column per probability if `q` is an array.

        Raises
        ------
        ValueError
            If `q` is no probability.
        """
        values, missing = read_values(q)
        levels = np.asarray(values)
        is_valid = levels.ndim <= 1 and levels.size > 0 and levels.dtype.kind in "biuf"
        is_valid = is_valid and not np.any(missing)
        if not is_valid or not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(
                f"q={q!r:.100}: it must be a number from 0 to 1, or a list of such numbers"
            )
        distribution = self.predict_dist(
            X, base_margin=base_margin, iteration_range=iteration_range
        )
        with np.errstate(over="ignore"):  # of amounts whose logarithms vary by hundreds
            quantiles = distribution.ppf(levels.astype(np.float64)[..., np.newaxis])
        return np.ascontiguousarray(quantiles.T, dtype=np.float64)

    @by_partitions
    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Predict the central interval that has the target of a row with some probability.

        Parameters
        ----------
        coverage : float, default=0.9
            The probability, from 0 to 1. Equal parts of the rest are below and above, except for
            counts and zeros, where the interval can have more than the coverage.

        Returns
        -------
        ndarray of float64, shape (n_samples, 2)
            Ends of the intervals, both included.

        Raises
        ------
        ValueError
            If `coverage` is no probability.
        """
        check_value("coverage", coverage, PROBABILITY)
        ends = [0.5 - 0.5 * coverage, 0.5 + 0.5 * coverage]
        return self.predict_quantile(
            X, ends, base_margin=base_margin, iteration_range=iteration_range
        )

    @from_raw_scores
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the mean log-likelihood of targets: the metric "nll" with the other sign.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets.

        Returns
        -------
        float
            The greater the better, as scikit-learn wants it; of densities it can be any number. It
            is not R², which is ``sklearn.metrics.r2_score(y, model.predict(X))``.
        """
        fitted, raw_score = self._scored(X)
        y = DistributionTargets.read(y, "y").astype(np.float64)
        targets = fitted.targets.encode(y, "y")
        check_consistent_length(raw_score.T, targets)
        fitted.loss.check_targets(targets, "y")
        weight = row_weights(sample_weight, raw_score.T)
        return -fitted.loss.value(targets, raw_score, weight)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: one target, above 0 for some distributions; no R²."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        tags.target_tags.single_output = True
        tags.target_tags.positive_only = self.distribution not in ("normal", "student_t", "laplace")
        tags.regressor_tags.poor_score = True  # `score` is no R²
        return tags
