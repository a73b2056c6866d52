"""The classifier."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from sklboost.data.frames.adapter import may_be_rounded
from sklboost.estimators.base import BaseBooster
from sklboost.estimators.input.rows import row_weights, score_arguments
from sklboost.estimators.input.targets import ClassTargets, LabelTargets, places_among
from sklboost.estimators.parameters.boosters import ClassifierParameters
from sklboost.estimators.parameters.docstrings import documented
from sklboost.estimators.predict.fitted_model import FittedModel, by_partitions, from_raw_scores
from sklboost.objectives.loss import by_rows


@documented(init=False)
class XGBClassifierLite(ClassifierParameters, ClassifierMixin, BaseBooster):
    """Gradient boosted classification trees: log loss for two classes, softmax for more.

    Multilabel classification, too: then `y` has a column of 0 and 1 for each label. If `y` has only
    one class, as it may in a fold, this class is predicted for every row.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklboost import XGBClassifierLite
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = XGBClassifierLite(n_estimators=50, learning_rate=0.1, max_depth=3)
    >>> print(cross_val_score(model, X, y).mean() > 0.95)
    True

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The labels, sorted. Multilabel: the numbers of the columns of `y`.
    """

    classes_: np.ndarray
    _kind = ClassTargets
    _parameter_group = ClassifierParameters

    @property
    def n_classes_(self) -> int:
        """Number of classes, or of labels: the length of `classes_`."""
        check_is_fitted(self)
        return len(self.classes_)

    @by_partitions
    def decision_function(
        self, X: Any, *, base_margin: Any = None, iteration_range: tuple[int, int] | None = None
    ) -> np.ndarray:
        """Compute the raw scores: log-odds of ``classes_[1]``, or a score per class or label.

        Returns
        -------
        ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
        """
        return by_rows(self._scored(X, base_margin, iteration_range)[1])

    @by_partitions
    def predict_proba(
        self,
        X: Any,
        validate_features: bool = True,
        base_margin: Any = None,
        iteration_range: tuple[int, int] | None = None,
    ) -> np.ndarray:
        """Predict the probability of each class.

        Returns
        -------
        ndarray of float64, shape (n_samples, n_classes)
            Columns are in the order of `classes_`. With several labels, each has a probability of
            its own, shape (n_samples, n_labels).
        """
        fitted, raw_score = self._scored(X, base_margin, iteration_range, validate_features)
        return fitted.predictions(raw_score)

    @from_raw_scores
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows whose class is predicted.

        Parameters
        ----------
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes. Of several labels all that are known must be predicted; NaN is not known, and
            a row with no known label does not count.

        Returns
        -------
        float
        """
        y, sample_weight = score_arguments(y, sample_weight, numeric=False)
        if isinstance(self._fitted.targets, LabelTargets) and np.ndim(y) == 2:
            y = self._fitted.targets.encode(y, "y")
            if (is_unknown := np.isnan(y)).any():
                prediction = self.predict(X)
                check_consistent_length(prediction, y)
                is_right = ((prediction == y) | is_unknown).all(axis=1)
                weight = row_weights(1.0 if sample_weight is None else sample_weight, y)
                weight = weight * ~is_unknown.all(axis=1)
                if not weight.any():
                    raise ValueError(
                        "y is NaN, not known, in every row of positive weight: there is nothing to "
                        "score"
                    )
                return float(np.average(is_right, weights=weight))
        classes = self.classes_
        is_large = classes.dtype.kind in "iuf" and may_be_rounded(classes.astype(np.float64))
        if not is_large or y.dtype.kind not in "iuf" or y.dtype == classes.dtype:
            return super().score(X, y, sample_weight)
        # NumPy would compare integers with floats as float64, in which different ones are the same
        one, other = (
            places_among(classes, labels) for labels in (column_or_1d(y), self.predict(X))
        )
        return float(np.average(one == other, weights=sample_weight))

    def staged_predict_proba(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the probabilities of the classes after 1, 2, ... rounds.

        Yields
        ------
        ndarray of float64, shape (n_samples, n_classes)
        """
        for fitted, raw_score in self._staged_scores(X, base_margin):
            yield fitted.predictions(raw_score)

    def staged_decision_function(self, X: Any, *, base_margin: Any = None) -> Iterator[np.ndarray]:
        """Yield the raw scores after 1, 2, ... rounds.

        Yields
        ------
        ndarray of float64, shape (n_samples,) or (n_samples, n_classes)
        """
        for _, raw_score in self._staged_scores(X, base_margin):
            yield by_rows(raw_score)

    def _predictions(self, fitted: FittedModel, raw_score: np.ndarray) -> np.ndarray:
        assert isinstance(fitted.targets, ClassTargets | LabelTargets)
        return fitted.predictions(raw_score, fitted.targets.labels)

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: a row may have several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
