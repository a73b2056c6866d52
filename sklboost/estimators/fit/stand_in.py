"""What a scikit-learn scorer sees of a model in training: its predictions of this round.

In: raw scores of the validation rows. Out: an estimator that answers with them, so that nothing is
predicted anew. It knows no other rows, and no features.
"""

from typing import Any, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class ValidationRows:
    """Stands for the validation rows as the scorer's `X`; has no features to look at."""

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


_NO_FEATURES = (
    "a scorer given as eval_metric sees the predictions of all validation rows, not their "
    "features: pass X on to estimator.predict, predict_proba or decision_function as it is"
)


class StandIn(BaseEstimator):
    """Predictions of the validation rows."""

    def __init__(self, raw_score: Any = None):
        self.raw_score = raw_score

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def _raw_scores(self, X: Any) -> np.ndarray:
        if not isinstance(X, ValidationRows):
            raise TypeError(_NO_FEATURES)
        return self.raw_score


class RegressorStandIn(RegressorMixin, StandIn):
    """A regressor that has predicted the validation rows.

    Parameters
    ----------
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    link : callable
        From raw scores to predictions, shape (n_samples,) or (n_samples, n_outputs).
    """

    def __init__(self, raw_score: Any = None, link: Any = None):
        super().__init__(raw_score)
        self.link = link

    def predict(self, X: Any) -> np.ndarray:
        """Give the predictions, shape (n_samples,) or (n_samples, n_outputs)."""
        return np.array(self.link(self._raw_scores(X)))


class ClassifierStandIn(ClassifierMixin, StandIn):
    """A classifier that has predicted the validation rows.

    Parameters
    ----------
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
    link : callable
        From raw scores to probabilities, shape (n_samples, n_classes).
    classes : ndarray, shape (n_classes,)
        The labels, sorted.
    """

    def __init__(self, raw_score: Any = None, link: Any = None, classes: Any = None):
        super().__init__(raw_score)
        self.link = link
        self.classes = classes

    @property
    def classes_(self) -> np.ndarray:
        """The labels, sorted."""
        return self.classes

    def decision_function(self, X: Any) -> np.ndarray:
        """Give the raw scores, shape (n_samples,) or (n_samples, n_classes)."""
        raw_score = self._raw_scores(X)
        return np.array(raw_score[0] if len(raw_score) == 1 else raw_score.T)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probabilities, shape (n_samples, n_classes)."""
        return self.link(self._raw_scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Give the most probable class of each row, shape (n_samples,)."""
        raw_score = self._raw_scores(X)
        if len(raw_score) == 1:
            return self.classes[(raw_score[0] > 0.0).astype(np.intp)]
        return self.classes[raw_score.argmax(axis=0)]


class LabelsStandIn(ClassifierMixin, StandIn):
    """A classifier of several labels that has predicted the validation rows.

    Parameters
    ----------
    raw_score : ndarray of float64, shape (n_labels, n_samples)
    link : callable
        From raw scores to probabilities, shape (n_samples, n_labels).
    """

    def __init__(self, raw_score: Any = None, link: Any = None):
        super().__init__(raw_score)
        self.link = link

    @property
    def classes_(self) -> list[np.ndarray]:
        """0 and 1 for each label; from a list of arrays scorers see that there are several."""
        return [np.arange(2) for _ in self.raw_score]

    def decision_function(self, X: Any) -> np.ndarray:
        """Give the raw scores, shape (n_samples, n_labels)."""
        return np.array(self._raw_scores(X).T)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the probability of each label, shape (n_samples, n_labels)."""
        return self.link(self._raw_scores(X))

    def predict(self, X: Any) -> np.ndarray:
        """Give 1 where a label is likelier than not, else 0; shape (n_samples, n_labels)."""
        return (self._raw_scores(X).T > 0.0).astype(np.int64)
