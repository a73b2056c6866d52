"""Estimators that a scikit-learn scorer sees in training: they know one set of predictions.

They answer with the raw scores that the validation rows have after the round, so nothing is
predicted again; they know no other rows, and no features.
"""

from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from sklboost.estimators.input.target_kinds import ClassTargets, LabelTargets, Targets
from sklboost.objectives.loss import Loss

_NO_FEATURES = (
    "a scorer given as eval_metric sees the predictions of all validation rows, not their "
    "features: pass X on to estimator.predict, predict_proba or decision_function as it is"
)


class ValidationRows:
    """The validation rows as the scorer's `X`: their number, but no features."""

    def __init__(self, n_rows: int):
        self._n_rows = n_rows

    def __len__(self) -> int:
        return self._n_rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse to become an array of features."""
        raise TypeError(_NO_FEATURES)

    def __getitem__(self, key: Any) -> NoReturn:
        """Refuse to give some of the rows or columns."""
        raise TypeError(_NO_FEATURES)


class _ScoredEstimator(BaseEstimator):
    """The raw scores of the validation rows, shape (n_outputs, n_samples), and what they mean."""

    def __init__(self, raw_score: Any = None, targets: Any = None, loss: Any = None):
        self.raw_score = raw_score
        self.targets = targets
        self.loss = loss

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _raw_scores(self, X: Any) -> np.ndarray:
        if not isinstance(X, ValidationRows):
            raise TypeError(_NO_FEATURES)
        return self.raw_score

    def _linked(self, X: Any) -> np.ndarray:
        return np.array(self.targets.link(self.loss)(self._raw_scores(X)))


class ScoredRegressor(RegressorMixin, _ScoredEstimator):
    """A regressor that has predicted the validation rows."""

    def predict(self, X: Any) -> np.ndarray:
        """Return the predictions, shape (n_samples,) or (n_samples, n_outputs)."""
        return self._linked(X)


class ScoredClassifier(ClassifierMixin, _ScoredEstimator):
    """A classifier, of one label a row or of several, that has predicted the validation rows."""

    @property
    def classes_(self) -> np.ndarray | list[np.ndarray]:
        """The labels, sorted; 0 and 1 for each of several labels, as scorers know these."""
        if isinstance(self.targets, LabelTargets):
            return [np.arange(2) for _ in self.raw_score]
        return self.targets.classes

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the raw scores, shape (n_samples,) or (n_samples, n_outputs)."""
        raw_score = self._raw_scores(X)
        return np.array(raw_score[0] if len(raw_score) == 1 else raw_score.T)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probabilities, shape (n_samples, n_classes) or (n_samples, n_labels)."""
        return self._linked(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each row, or which labels are likelier than not."""
        return self.targets.labels(self._raw_scores(X))


def scored_estimator(raw_score: np.ndarray, targets: Targets, loss: Loss) -> _ScoredEstimator:
    """Return an estimator that has predicted these raw scores, shape (n_outputs, n_samples)."""
    is_classifier = isinstance(targets, ClassTargets | LabelTargets)
    kind = ScoredClassifier if is_classifier else ScoredRegressor
    return kind(raw_score, targets, loss)
