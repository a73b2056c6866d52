"""The model that a fit continues: `init_model`, or with `warm_start` the estimator's own.

In: the estimator and what it is given. Out: a :class:`Continued`, or None for a fresh start.
"""

import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from sklboost.data.encoding import Encoding
from sklboost.engine.model import Model
from sklboost.estimators.input.feature_names import Encodings, are_comparable
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.objectives.loss import Loss
from sklboost.objectives.registry import TASK_WORDS


class Continued(NamedTuple):
    """What new rounds are added to.

    Attributes
    ----------
    estimator : estimator
        Fitted; a shallow copy, as it was before this fit.
    name : str
        For errors.
    is_warm_start : bool
    """

    estimator: Any
    name: str
    is_warm_start: bool

    @property
    def model(self) -> Model:
        """Its trees."""
        return self.estimator.model_


def continued_model(estimator: Any, init_model: Any) -> Continued | None:
    """Give what is to be continued; `init_model` goes before `warm_start`."""
    if init_model is not None:
        # a copy: it may be the estimator itself, which fit is about to empty
        return Continued(copy.copy(init_model), "init_model", False)
    if estimator.warm_start and hasattr(estimator, "model_"):
        return Continued(copy.copy(estimator), "the model of warm_start=True", True)
    return None


def encodings_of(continued: Continued | None) -> Encodings:
    """Give what the features of the continued model become numbers by: new ones do the same."""
    if continued is None:
        return None
    known = getattr(continued.estimator, "_encodings", None)
    n_features = getattr(continued.estimator, "n_features_in_", 0)  # it may not be fitted
    return (Encoding(),) * n_features if known is None else known


def check_continued(continued: Continued | None, estimator: Any, X: Any) -> None:
    """Raise ValueError unless the model to be continued fits the estimator and the data.

    Raises
    ------
    TypeError
        If it is another kind of estimator.
    ValueError
        If features or classes differ, or there are no rounds left to add.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    if continued is None:
        return
    other, name, _ = continued
    if type(other) is not type(estimator):
        raise TypeError(
            f"{name}={other!r}: it must be a fitted {type(estimator).__name__}, "
            "whose trees the new ones are added to"
        )
    check_is_fitted(other)
    if other.n_features_in_ != estimator.n_features_in_:
        raise ValueError(
            f"X has {estimator.n_features_in_} features, but {name} was fitted with "
            f"{other.n_features_in_}: continue with the same features"
        )
    names = estimator._fitted_features.listed_names
    other_names = other._fitted_features.listed_names
    if names != other_names and are_comparable(names, other_names):
        raise ValueError(
            f"X has the features {names}, but {name} was fitted with {other_names}: "
            "continue with the same features, in the same order"
        )


def check_same_classes(continued: Continued | None, classes: list) -> None:
    """Raise ValueError unless the labels are those that the continued model knows."""
    if continued is None:
        return
    known = continued.estimator.classes_.tolist()
    if classes != known:
        raise ValueError(
            f"y has the classes {classes}, but {continued.name} was fitted with {known}: "
            "continue with the same classes, or fit anew"
        )


def check_same_outputs(continued: Continued | None, estimator: Any, loss: Loss) -> None:
    """Raise ValueError unless the continued model has the same kind and number of outputs."""
    if continued is None:
        return
    other = continued.estimator
    theirs, ours = (other._task, other._loss.n_outputs), (estimator._task, loss.n_outputs)
    if theirs != ours:
        words = (f"{TASK_WORDS[task]} with {n} raw score(s) a row" for task, n in (ours, theirs))
        raise ValueError(
            f"this fit is for {next(words)}, but {continued.name} for {next(words)}: continue with "
            "the same targets, and the same number of levels of a quantile"
        )


def check_margin_given(continued: Continued | None, margin: np.ndarray) -> None:
    """Raise ValueError if the continued model's scores start from margins, and there are none."""
    if continued is not None and continued.estimator._has_margin and len(margin) == 0:
        raise ValueError(
            f"{continued.name} was fitted with base_margin, and its scores start from it: pass it "
            "here, too"
        )


def rounds_to_do(continued: Continued | None, n_estimators: int) -> range:
    """Give the numbers of the new rounds.

    `n_estimators` counts new rounds for `init_model` and all of them for `warm_start`, as in
    scikit-learn.

    Raises
    ------
    ValueError
        If `warm_start` already has more rounds than that.
    """
    if continued is None:
        return range(n_estimators)
    n_before = continued.model.n_rounds
    if not continued.is_warm_start:
        return range(n_before, n_before + n_estimators)
    if n_estimators < n_before:
        raise ValueError(
            f"n_estimators={n_estimators}: with warm_start=True it must be at least the "
            f"{n_before} rounds that the model already has"
        )
    if n_estimators == n_before:
        warn_user(
            f"n_estimators={n_estimators} is what the model already has: with warm_start=True "
            "there is nothing to fit"
        )
    return range(n_before, n_estimators)
