"""The calibration of predicted distributions: how often targets fall where they should.

The probability integral transform (PIT) of a target is F(y), the distribution function predicted
for its row. If the distributions are right, it is uniform from 0 to 1. Where y has a probability of
its own, as counts have, all of F(y) - P(y) to F(y) is equally likely, and what is drawn is the mean
over it: Czado, Gneiting & Held (2009), "Predictive Model Assessment for Count Data".
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_consistent_length

from sklboost.displays.figures import BLUE, GREY, Display, function_of, hide_frame, literal
from sklboost.estimators.input.rows import row_weights
from sklboost.estimators.input.targets import RegressionTargets
from sklboost.estimators.parameters.rules import check_value, integer, one_of

_KINDS = one_of("coverage", "pit")
_BINS = integer(1, 1000)
_LEVELS = np.linspace(0.0, 1.0, 101)


@dataclass(eq=False, repr=False)
class CalibrationDisplay(Display):
    """How often targets are where predicted distributions say.

    Of the same name as scikit-learn's class for probabilities of classes. It is made by
    :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    lower, upper : ndarray of float64, shape (n_samples,)
        Probabilities of less than the target, and of at most the target.
    weight : ndarray of float64, shape (n_samples,)
    kind : {"coverage", "pit"}, default="coverage"
        "coverage": the share of targets in central intervals of each probability. "pit": a
        histogram of the distribution functions at the targets.
    bins : int, default=10
        Number of bars of the histogram.
    name : str, optional
        For the legend.

    Attributes
    ----------
    coverage_ : ndarray of float64, shape (101,)
        The share of targets in central intervals of probability 0, 0.01, ..., 1.
    heights_ : ndarray of float64, shape (bins,)
        Density of the PIT in each bar; 1 everywhere if distributions are right.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklboost import XGBDistributionLite
    >>> from sklboost.displays import CalibrationDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = XGBDistributionLite().fit(X[:300], y[:300])
    >>> display = CalibrationDisplay.from_estimator(model, X[300:], y[300:])
    >>> print(0.7 < display.coverage_[90] < 1.0)
    True
    """

    lower: np.ndarray
    upper: np.ndarray
    weight: np.ndarray
    kind: str = "coverage"
    bins: int = 10
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sample_weight: Any = None,
        kind: str = "coverage",
        bins: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw how the distributions that an estimator predicts are calibrated.

        Parameters
        ----------
        estimator : XGBDistributionLite
            Fitted; any estimator with a method `predict_dist`.
        X : array-like of shape (n_samples, n_features)
            Rows that it was not trained on.
        y : array-like of shape (n_samples,)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
        name : str, optional
            For the legend. None: the name of the estimator's class.

        Raises
        ------
        TypeError
            If the estimator predicts no distributions.
        ValueError
            If an argument is out of range.
        """
        if not hasattr(estimator, "predict_dist"):
            raise TypeError(
                f"{type(estimator).__name__} has no method predict_dist, so it predicts no "
                "distributions: pass a fitted XGBDistributionLite"
            )
        name = type(estimator).__name__ if name is None else name
        arguments = dict(sample_weight=sample_weight, kind=kind, bins=bins, name=name, ax=ax)
        return cls.from_predictions(y, estimator.predict_dist(X), **arguments)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        distribution: Any,
        *,
        sample_weight: Any = None,
        kind: str = "coverage",
        bins: int = 10,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw how predicted distributions are calibrated.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
            Targets.
        distribution : frozen distribution
            As `predict_dist` gives it: `cdf`, and `pmf` where single values have a probability.
        name : str, optional
            For the legend.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        check_value("kind", kind, _KINDS)
        check_value("bins", bins, _BINS)
        targets = RegressionTargets.read(y, "y").astype(np.float64)
        check_consistent_length(targets, np.ravel(distribution.mean()))
        upper = np.asarray(distribution.cdf(targets), dtype=np.float64)
        chance = distribution.pmf(targets) if hasattr(distribution, "pmf") else 0.0
        lower = np.maximum(upper - chance, 0.0)
        weight = np.ones(len(targets))
        if sample_weight is not None:
            weight = row_weights(sample_weight, targets)
        return cls(lower, upper, weight, kind, bins, name).plot(ax)

    def _size(self) -> tuple[float, float]:
        return (4.6, 4.6) if self.kind == "coverage" else (5.6, 4.0)

    def _draw(self, ax: Any) -> None:
        self.coverage_ = self._share_below(0.5 + 0.5 * _LEVELS) - self._share_below(
            0.5 - 0.5 * _LEVELS
        )
        edges = np.linspace(0.0, 1.0, self.bins + 1)
        self.heights_ = self.bins * np.diff(self._share_below(edges))
        label = None if self.name is None else literal(self.name)
        if self.kind == "coverage":
            ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linestyle="--", label="calibrated")
            ax.plot(_LEVELS, self.coverage_, color=BLUE, label=label)
            ax.set_xlabel("probability of the central interval")
            ax.set_ylabel("share of targets within")
            ax.set_aspect("equal")
        else:
            style = dict(align="edge", color=BLUE, edgecolor="white", linewidth=0.6)
            ax.bar(edges[:-1], self.heights_, 1.0 / self.bins, label=label, **style)
            ax.axhline(1.0, color=GREY, linestyle="--", label="calibrated")
            ax.set_xlabel("distribution function at the target (PIT)")
            ax.set_ylabel("density")
            ax.set_ylim(0.0, 1.2 * max(1.0, self.heights_.max()))  # with room for the legend
        ax.legend(loc="upper left", frameon=False, ncols=1 if self.kind == "coverage" else 2)
        hide_frame(ax)

    def _share_below(self, levels: np.ndarray) -> np.ndarray:
        """Return the expected share of the PIT up to each level."""
        width = self.upper - self.lower
        shares = np.empty(len(levels))
        for place, level in enumerate(levels):
            inside = (level - self.lower) / np.where(width > 0.0, width, 1.0)
            is_below = np.where(level >= self.upper, 1.0, np.clip(inside, 0.0, 1.0))
            shares[place] = np.average(
                np.where(width > 0.0, is_below, self.upper <= level), weights=self.weight
            )
        return shares


plot_calibration = function_of("plot_calibration", CalibrationDisplay.from_estimator)
