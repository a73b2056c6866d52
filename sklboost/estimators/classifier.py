"""The classifier."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.target_kinds import ClassTargets, LabelTargets
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.groups import ClassifierParameters
from sklboost.estimators.predict.shap_values import check_one_kind, contributions
from sklboost.objectives.loss import by_rows


@documented
class XGBClassifierLite(ClassifierMixin, ClassifierParameters, BaseBooster):
    """Gradient boosted classification trees: log loss for two classes, softmax for more.

    Or several labels, each of which a row has or has not: `y` has a column of 0 and 1 for each.

    Attributes
    ----------
    n_features_in_
    feature_names_in_
    categories_
    classes_ : ndarray, shape (n_classes,)
        The labels, sorted. Where `y` has several columns, their numbers.
    model_
    n_estimators_
    stop_reason_
    best_iteration_
    best_score_
    evals_result_
    fit_report_

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

    classes_: np.ndarray
    _targets: ClassTargets | LabelTargets

    def decision_function(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Give the raw scores: log-odds of ``classes_[1]``, or one score a class or label.

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
            Columns in the order of `classes_`. Of several labels, each with a probability of its
            own, shape (n_samples, n_labels).
        """
        raw_score = self._raw_scores(X, base_margin, iteration_range)
        return self._link(self._loss)(raw_score)

    def predict(
        self,
        X: Any,
        *,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
        pred_contribs: bool = False,
        pred_interactions: bool = False,
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
        pred_contribs : bool, default=False
            Give what each feature adds to the raw score (:meth:`shap_values`), the last column
            being the mean raw score.
        pred_interactions : bool, default=False
            Give what each pair of features adds (:meth:`shap_interaction_values`), the last row and
            column being those of the mean raw score.

        Returns
        -------
        ndarray of the labels' dtype, shape (n_samples,)
            Several labels: 1 where one is likelier than not, else 0; shape (n_samples, n_labels).
            With `pred_contribs` shape (n_samples, n_features + 1), with `pred_interactions`
            (n_samples, n_features + 1, n_features + 1), of float64; the number of raw scores comes
            second if there are several.
        """
        if pred_contribs or pred_interactions:
            check_one_kind(pred_contribs, pred_interactions)
            return contributions(self, X, base_margin, iteration_range, pred_interactions)
        raw_score = self._raw_scores(X, base_margin, iteration_range)
        return self._targets.labels(raw_score)

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
            yield self._targets.labels(raw_score)

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
            yield self._link(self._loss)(raw_score)

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

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that a row may have several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
