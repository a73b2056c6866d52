"""The classifier."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from sklboost.estimators.base import BaseBooster
from sklboost.estimators.fit.continuing import Continued, check_same_classes
from sklboost.estimators.fit.start_scores import check_prior
from sklboost.estimators.input.class_weights import (
    calibrate_prior,
    class_codes,
    class_multipliers,
    multiply_weights,
    prior_shift,
    refuse_class_weights,
)
from sklboost.estimators.input.labels import check_labels, read_indicator
from sklboost.estimators.input.several_targets import check_columns
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.parameters.groups import ClassifierParameters
from sklboost.estimators.predict.shap_values import check_one_kind, contributions
from sklboost.objectives.loss import Loss, by_rows
from sklboost.objectives.registry import make_loss

_CLASSES_OF_A_BYTE = 256


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

    _numeric_target = False
    classes_: np.ndarray
    _indicator_dtype: np.dtype | None  # of y in several columns; None: one label a row

    @property
    def _task(self) -> str:
        if self._indicator_dtype is not None:
            return "multilabel"
        return "binary" if len(self.classes_) == 2 else "multiclass"

    def _link(self, loss: Any) -> Callable[[np.ndarray], np.ndarray]:
        return loss.predictions if self._task == "multilabel" else loss.probabilities

    def _choose_loss(self, y: np.ndarray, weight: np.ndarray, continued: Continued | None) -> Loss:
        if y.ndim == 2:
            self._choose_labels(y)
        else:
            self._choose_classes(y, weight, continued)
        if self._task != "multiclass":
            check_prior(self.base_score)
        size = 1 if self._task == "binary" else len(self.classes_)
        loss = make_loss(self.objective, self._task, size, vars(self))
        if self.calibrated_prior and loss.link not in ("logit", "softmax"):
            raise ValueError(
                f"calibrated_prior=True: objective={loss.name!r} has no probabilities that a shift "
                "of the raw scores would correct; choose 'binary:logistic' or 'multi:softprob'"
            )
        return loss

    def _choose_classes(
        self, y: np.ndarray, weight: np.ndarray, continued: Continued | None
    ) -> None:
        check_labels(y)
        self._indicator_dtype = None
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_same_classes(continued, self.classes_.tolist())
        if len(self.classes_) == 1:
            (label,) = self.classes_.tolist()
            raise ValueError(
                f"y has only one class, {label!r}, in the rows of positive weight: "
                "a classifier needs at least 2 classes"
            )
        self._multipliers = class_multipliers(
            *(self.class_weight, self.scale_pos_weight, self.classes_, codes, weight)
        )

    def _choose_labels(self, y: np.ndarray) -> None:
        read_indicator(y, "y")
        refuse_class_weights(self.get_params(deep=False), y.shape[1])
        self._indicator_dtype = y.dtype if y.dtype.kind in "biuf" else np.dtype(np.float64)
        self.classes_ = np.arange(y.shape[1])  # as of scikit-learn's MLPClassifier

    def _targets(
        self, y: np.ndarray, weight: np.ndarray, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        if self._task == "multilabel":
            check_columns(y, len(self.classes_), name)
            return read_indicator(y, name), weight
        check_columns(y, 1, name)
        codes = class_codes(self.classes_, y, name)
        dtype = np.uint8 if len(self.classes_) <= _CLASSES_OF_A_BYTE else np.float64
        return codes.astype(dtype), multiply_weights(weight, self._multipliers, codes)

    @property
    def _is_shifted(self) -> bool:
        return self.calibrated_prior

    def _calibrated_shift(
        self, loss: Loss, raw_score: np.ndarray, y: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Give what makes the probabilities those of the data, not of the weighted classes."""
        codes = y.astype(np.intp)
        own_weight = weight / self._multipliers[codes] if len(weight) > 0 else weight
        return calibrate_prior(loss, raw_score, codes, own_weight, prior_shift(self._multipliers))

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

    def _labels(self, raw_score: np.ndarray) -> np.ndarray:
        if self._indicator_dtype is not None:
            return (raw_score.T > 0.0).astype(self._indicator_dtype, order="C")
        if len(raw_score) == 1:
            return self.classes_[(raw_score[0] > 0.0).astype(np.intp)]
        return self.classes_[raw_score.argmax(axis=0)]
