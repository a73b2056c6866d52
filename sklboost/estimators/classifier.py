"""The classifier."""

from collections.abc import Callable, Iterator
from typing import Any, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.class_weights import (
    calibrate_prior,
    class_codes,
    class_multipliers,
    multiply_weights,
    prior_shift,
)
from sklboost.estimators.continuing import Continued, check_same_classes
from sklboost.estimators.parameters.about import documented
from sklboost.estimators.parameters.groups import ClassifierParameters
from sklboost.losses.base import ClassLoss, by_rows
from sklboost.losses.registry import find_objective


@documented
class XGBClassifierLite(ClassifierMixin, ClassifierParameters, BaseBooster):
    """Gradient boosted classification trees: log loss for two classes, softmax for more.

    Attributes
    ----------
    n_features_in_ : int
        Number of features at fit.
    feature_names_in_ : ndarray of str, shape (n_features_in_,)
        Names of the features, where `X` had names that are all strings.
    classes_ : ndarray, shape (n_classes,)
        The labels, sorted.
    model_ : Model
        The trees, as :class:`sklboost.structs.Model`.
    n_estimators_ : int
        Rounds of the model: fewer than `n_estimators` if training stopped early, more if it
        continued another model.
    stop_reason_ : str
        Why training ended: ``"completed"``, ``"early_stopping"`` (a callback of the user's
        included), ``"max_time"`` or ``"interrupted"`` (Ctrl-C).
    best_iteration_ : int
        The best round, from 0, as in XGBoost; the last of the model. Only with early stopping.
    best_score_ : float
        The metric at that round. Only with early stopping.
    evals_result_ : dict
        ``{"validation_0": {"logloss": [0.61, 0.55]}}``: a value for each round done.
    fit_report_ : FitReport
        Time by phase, rows, bins, trees, leaves, pruned splits, constant features, threads.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBClassifierLite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = XGBClassifierLite(n_estimators=50, learning_rate=0.1, max_depth=3)
    >>> print(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    _numeric_target = False
    classes_: np.ndarray
    _loss: ClassLoss

    def _link(self, loss: Any) -> Callable[[np.ndarray], np.ndarray]:
        return loss.probabilities

    def _choose_loss(
        self, y: np.ndarray, weight: np.ndarray, continued: Continued | None
    ) -> ClassLoss:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_same_classes(continued, self.classes_.tolist())
        n_classes = len(self.classes_)
        if n_classes == 1:
            (label,) = self.classes_.tolist()
            raise ValueError(
                f"y has only one class, {label!r}, in the rows of positive weight: "
                "a classifier needs at least 2 classes"
            )
        if n_classes == 2 and self.base_score is not None and not 0.0 < self.base_score < 1.0:
            raise ValueError(
                f"base_score={self.base_score!r}: for two classes it is a probability, "
                "so it must be between 0 and 1, both excluded"
            )
        self._multipliers = class_multipliers(
            *(self.class_weight, self.scale_pos_weight, self.classes_, codes, weight)
        )
        task, size = ("binary", 1) if n_classes == 2 else ("multiclass", n_classes)
        return cast(ClassLoss, find_objective(self.objective, task).make(size, vars(self)))

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        codes = class_codes(self.classes_, y, name)
        return codes.astype(np.float64), multiply_weights(weight, self._multipliers, codes)

    @property
    def _is_shifted(self) -> bool:
        return self.calibrated_prior

    def _calibrated_shift(
        self, loss: ClassLoss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Give what makes the probabilities those of the data, not of the weighted classes."""
        codes = y.astype(np.intp)
        own_weight = weight / self._multipliers[codes] if len(weight) > 0 else weight
        return calibrate_prior(loss, raw_score, codes, own_weight, prior_shift(self._multipliers))

    def decision_function(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the raw scores: log-odds of ``classes_[1]``, or one score a class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
        """
        return by_rows(self._raw_scores(X, base_margin, iteration_range))

    def predict_proba(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        raw_score = self._raw_scores(X, base_margin, iteration_range)
        return self._loss.probabilities(raw_score)

    def predict(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the most probable class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.
        iteration_range : tuple of int, optional
            Rounds to use: the first and the one after the last, ``(0, k)`` for the first k rounds;
            ``(0, 0)``: all.

        Returns
        -------
        ndarray of the labels' dtype, shape (n_samples,)
        """
        return self._labels(self._raw_scores(X, base_margin, iteration_range))

    def staged_predict(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the predicted classes after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of the labels' dtype, shape (n_samples,)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield self._labels(raw_score)

    def staged_predict_proba(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the probabilities of the classes after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of float64, shape (n_samples, n_classes)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield self._loss.probabilities(raw_score)

    def staged_decision_function(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the raw scores after 1, 2, ... rounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        base_margin : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
            Raw scores to start from, in place of those the model started from.

        Yields
        ------
        ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
        """
        for raw_score in self._staged_raw_scores(X, base_margin):
            yield by_rows(raw_score)

    def _labels(self, raw_score: np.ndarray) -> np.ndarray:
        if len(raw_score) == 1:
            return self.classes_[(raw_score[0] > 0.0).astype(np.intp)]
        return self.classes_[raw_score.argmax(axis=0)]
