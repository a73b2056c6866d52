"""All losses, by XGBoost's names.

To add one: a class in one of the files beside this, and a line in :data:`OBJECTIVES`.
"""

import difflib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sklboost.objectives.custom import FunctionLoss, check_loss_fits
from sklboost.objectives.loss import Loss
from sklboost.objectives.losses.counts import Gamma, Poisson, Tweedie
from sklboost.objectives.losses.expectile import ExpectileError
from sklboost.objectives.losses.focal import FocalLoss
from sklboost.objectives.losses.hinge import HingeLoss
from sklboost.objectives.losses.one_vs_rest import OneVsRest
from sklboost.objectives.losses.quantiles import AbsoluteError, QuantileError
from sklboost.objectives.losses.relative import AbsolutePercentageError
from sklboost.objectives.losses.robust import Fair, Huber, LogCosh, PseudoHuber
from sklboost.objectives.losses.several_classes import Softmax
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.losses.squared_log_error import SquaredLogError
from sklboost.objectives.losses.two_classes import LogisticRegression, LogLoss


class Objective(NamedTuple):
    """A loss that can be asked for.

    Attributes
    ----------
    name : str
    make : callable
        ``make(size, parameters) -> Loss``. `size` is the number of targets, or for more than two
        classes that of classes; `parameters` are those of the estimator, by name.
    aliases : tuple of str
        Other names: those of LightGBM and scikit-learn, and XGBoost's for another task that mean
        the same.
    """

    name: str
    make: Callable[[int, Mapping[str, Any]], Loss]
    aliases: tuple[str, ...] = ()


def _of_rows(loss: Any, *aliases: str) -> Objective:
    """Make the objective of a loss of rows; its parameter can be one number or several."""

    def make(n_targets: int, parameters: Mapping[str, Any]) -> Loss:
        if not loss.parameter:
            return loss(n_targets)
        value = parameters[loss.parameter]
        values = value if isinstance(value, list | tuple) else [value]
        return loss(n_targets, tuple(float(one) for one in values))

    return Objective(loss.name, make, aliases)


def _of_classes(loss: Any, *aliases: str) -> Objective:
    """Make the objective of a loss that knows nothing but the number of classes."""
    return Objective(loss.name, lambda n_classes, _: loss(n_classes), aliases)


# The first of each task is its default.
OBJECTIVES: dict[str, tuple[Objective, ...]] = {
    "regression": (
        _of_rows(SquaredError, "squared_error", "regression", "l2", "mse", "reg:linear"),
        _of_rows(AbsoluteError, "absolute_error", "regression_l1", "l1", "mae"),
        _of_rows(QuantileError, "quantile"),
        _of_rows(ExpectileError, "expectile"),
        _of_rows(Huber, "huber"),
        _of_rows(PseudoHuber, "pseudo_huber"),
        _of_rows(LogCosh, "logcosh"),
        _of_rows(Fair, "fair"),
        _of_rows(AbsolutePercentageError, "mape", "mean_absolute_percentage_error"),
        _of_rows(SquaredLogError, "msle", "squared_log_error"),
        _of_rows(Poisson, "poisson"),
        _of_rows(Gamma, "gamma"),
        _of_rows(Tweedie, "tweedie"),
        _of_rows(LogisticRegression, "binary:logistic", "cross_entropy", "xentropy"),
    ),
    "binary": (
        _of_rows(
            LogLoss,
            *("log_loss", "binary", "multi:softprob", "multi:softmax"),
            *("multi:onevsrest", "multiclassova"),
        ),
        _of_rows(FocalLoss, "focal"),
        _of_rows(HingeLoss, "hinge"),
    ),
    "multilabel": (
        _of_rows(LogLoss, "log_loss", "binary"),
        _of_rows(FocalLoss, "focal"),
        _of_rows(HingeLoss, "hinge"),
    ),
    "multiclass": (
        _of_classes(Softmax, "multi:softmax", "log_loss", "multiclass", "binary:logistic"),
        _of_classes(OneVsRest, "multiclassova", "multiclass_ova", "ova", "ovr"),
    ),
}

TASK_WORDS = {
    "regression": "regression",
    "binary": "two classes",
    "multilabel": "several labels",
    "multiclass": "more than two classes",
}


def make_loss(objective: Any, task: str, size: int, parameters: Mapping[str, Any]) -> Loss:
    """Make the loss of what an estimator was given as `objective`.

    Parameters
    ----------
    objective : None, str, callable or Loss
    task : {"regression", "binary", "multilabel", "multiclass"}
    size : int
        The number of targets or labels, for more than two classes that of classes.
    parameters : mapping of str to object
        Those of the estimator.
    """
    if isinstance(objective, Loss):
        check_loss_fits(objective, task, size)
        return objective
    if callable(objective):
        return FunctionLoss(objective, task, size)
    return find_objective(objective, task).make(size, parameters)


def find_objective(name: str | None, task: str) -> Objective:
    """Give the objective of this name, the task's default for None.

    Raises
    ------
    ValueError
        If the task has no such objective; the text lists its objectives, and names the task that
        has it or the nearest name.
    """
    if name is None:
        return OBJECTIVES[task][0]
    found = _named(name, task)
    if found is not None:
        return found
    known = ", ".join(own.name for own in OBJECTIVES[task])
    tasks = [words for other, words in TASK_WORDS.items() if _named(name, other)]
    if tasks:
        raise ValueError(
            f"objective={name!r} is for {' and '.join(tasks)}, not for {TASK_WORDS[task]}: choose "
            f"one of {known}"
        )
    candidates = [word for own in OBJECTIVES[task] for word in (own.name, *own.aliases)]
    nearest = difflib.get_close_matches(str(name), candidates, n=1, cutoff=0.0)[0]
    raise ValueError(
        f"objective={name!r} is not known; did you mean {nearest!r}? The objectives for "
        f"{TASK_WORDS[task]} are {known}"
    )


def _named(name: str, task: str) -> Objective | None:
    for objective in OBJECTIVES[task]:
        if name == objective.name or name in objective.aliases:
            return objective
    return None
