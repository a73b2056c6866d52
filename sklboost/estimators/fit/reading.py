"""What a fit was asked for: the user's arguments, checked and brought to the engine's form.

In: an estimator and the arguments of fit. Out: a :class:`FitTask`. The estimator gets what the
arguments decide about it: number and names of features, classes.
"""

from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping
from sklboost.data.features import Features
from sklboost.engine.structs import FeatureRules
from sklboost.estimators.fit.continuing import (
    Continued,
    check_continued,
    check_margin_given,
    check_same_classes,
    check_same_outputs,
    encodings_of,
)
from sklboost.estimators.fit.holdout import hold_out
from sklboost.estimators.fit.seeds import seeds
from sklboost.estimators.input.arguments import FitArguments, GivenSet, given_sets
from sklboost.estimators.input.check_features import check_has_values, check_is_dense
from sklboost.estimators.input.feature_rules import read_feature_rules
from sklboost.estimators.input.feature_tables import feature_settings
from sklboost.estimators.input.rows import (
    Rows,
    check_margin_outputs,
    training_rows,
    validation_rows,
)
from sklboost.estimators.input.target_kinds import RegressionTargets, learn_targets
from sklboost.estimators.input.targets import check_known
from sklboost.estimators.parameters.groups import ClassifierParameters
from sklboost.objectives.loss import Loss


class FitTask(NamedTuple):
    """What a fit was asked for.

    Attributes
    ----------
    loss : Loss
    rows : Rows
        To be trained on.
    validation : list of Rows
        To be scored after every round.
    names : list of str
        Of the validation sets.
    everything : Rows
        To be trained on once the best number of rounds is known, if that is asked for.
    continued : Continued or None
    rules : FeatureRules
    seeds : tuple of int
        Of the rounding of gradients, and of all that is drawn.
    """

    loss: Loss
    rows: Rows
    validation: list[Rows]
    names: list[str]
    everything: Rows
    continued: Continued | None
    rules: FeatureRules
    seeds: tuple[int, int]


def read_task(
    estimator: Any, X: Any, y: Any, given: FitArguments, continued: Continued | None
) -> FitTask:
    """Check the arguments of fit."""
    encodings = encodings_of(continued)
    numeric = not isinstance(estimator, ClassifierParameters)
    settings = feature_settings(type(estimator).__name__, estimator)
    rows, features = training_rows(X, y, given, settings, numeric=numeric, encodings=encodings)
    vars(estimator).update(features.attributes)
    check_continued(continued, estimator, rows.X)
    rules = read_feature_rules(estimator, features)
    targets = learn_targets(rows.y, rows.weight, estimator)
    estimator._targets = targets
    if not isinstance(targets, RegressionTargets):
        estimator.classes_ = targets.classes
        check_same_classes(continued, targets.classes.tolist())
    loss = targets.make_loss(estimator)
    if estimator.linear_tree:
        _check_linear(rows.X, loss, rules)
    check_same_outputs(continued, estimator, loss)
    rows = as_learnt(estimator, rows, loss, "y")
    check_margin_given(continued, rows.margin)
    sets = given_sets(given)
    validation = [_read_set(estimator, own, loss, rows) for own in sets]
    names = [own.name for own in sets]
    everything, early = rows, stops_early(estimator)
    own_seeds = seeds(estimator.random_state, estimator._is_sampling() or early)
    if early and not validation:
        if estimator.validation_split == "random" and len(rows.groups) == 0:
            rows = rows.repeat()
        held_out = _hold_out(estimator, rows, own_seeds[1])
        names, validation, rows = ["validation_0"], [rows.take(held_out)], rows.take(~held_out)
        _check_left(estimator, rows)
    elif early and estimator.refit:
        everything = rows.join(validation[-1])
    if estimator.subsample < 1.0:
        rows, everything = rows.repeat(), everything.repeat()
    return FitTask(loss, rows, validation, names, everything, continued, rules, own_seeds)


def _check_linear(X: Features, loss: Loss, rules: FeatureRules) -> None:
    """Raise ValueError unless leaves can be linear for such features, this loss, these rules."""
    check_has_values(X)
    check_is_dense(X)
    if rules.signs.any():
        raise ValueError(
            "linear_tree=True does not go with monotone_constraints, which linear leaves would not "
            "keep: set linear_tree=False, or monotone_constraints=None"
        )
    if len(loss.renewal) > 0:
        raise ValueError(
            f"linear_tree=True, but the leaves of objective={loss.name!r} are quantiles of "
            "residuals, and no regression gives those: set linear_tree=False, or another objective"
        )


def stops_early(estimator: Any) -> bool:
    """Tell whether early stopping was asked for."""
    return estimator.early_stopping_rounds is not None or any(
        isinstance(callback, EarlyStopping) for callback in estimator.callbacks or ()
    )


def as_learnt(estimator: Any, rows: Rows, loss: Loss, name: str) -> Rows:
    """Give the rows with targets as the loss has them, and the weights of their classes."""
    check_margin_outputs(rows.margin, loss.n_outputs)
    target, weight = estimator._targets.encode(rows.y, rows.weight, name)
    loss.check_targets(target, name)
    return rows._replace(y=target, weight=weight)


def _read_set(estimator: Any, given: GivenSet, loss: Loss, training: Rows) -> Rows:
    """Check one validation set; its rows are weighted like those of the training."""
    settings = feature_settings(type(estimator).__name__, estimator)
    features = estimator._fitted_features
    rows = validation_rows(given, features, settings, numeric=estimator._targets.numeric)
    if len(training.margin) > 0 and len(rows.margin) == 0:
        raise ValueError(
            f"base_margin is given for X, but not for {given.argument}: scores start from it, so "
            "pass base_margin_val, or base_margin_eval_set"
        )
    if len(training.margin) == 0 and len(rows.margin) > 0:
        raise ValueError(f"base_margin is given for {given.argument}, but not for X")
    return as_learnt(estimator, rows, loss, f"y of {given.argument}")


def _hold_out(estimator: Any, rows: Rows, seed: int) -> np.ndarray:
    return hold_out(
        rows.X,
        rows.y,
        rows.weight,
        fraction=estimator.validation_fraction,
        how=estimator.validation_split,
        groups=rows.groups if len(rows.groups) > 0 else None,
        stratified=_is_of_classes(estimator, rows),
        seed=seed,
    )


def _is_of_classes(estimator: Any, rows: Rows) -> bool:
    """Tell whether targets are numbers of classes."""
    return rows.y.ndim == 1 and not estimator._targets.numeric


def _check_left(estimator: Any, rows: Rows) -> None:
    check_known(
        rows.y,
        "all rows that are not held out for early stopping: pass X_val and y_val, or leave this "
        "target out",
    )
    if not _is_of_classes(estimator, rows):
        return
    left = np.bincount(rows.y.astype(np.intp), minlength=len(estimator.classes_)) > 0
    if not left.all():
        lost = estimator.classes_[~left].tolist()
        raise ValueError(
            f"all rows of the classes {lost} are held out for early stopping, so none are left to "
            "train on: pass X_val and y_val instead"
        )
