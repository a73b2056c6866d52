"""Losses that users bring: functions, and instances of their own subclasses of Loss."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from sklboost.engine.cached import cached_property
from sklboost.engine.compiling import is_compiled_by_user, returns_two_numbers
from sklboost.objectives.blocks import users_block
from sklboost.objectives.derivative_checks import read_pair
from sklboost.objectives.links import PREDICTIONS
from sklboost.objectives.loss import Loss, by_rows

# Of the raw scores of a function: as for the default objective of the task.
_LINKS = {
    "regression": "identity",
    "binary": "logit",
    "multilabel": "logit",
    "multiclass": "softmax",
}


class FunctionLoss(Loss):
    """The loss of a function ``(y_true, y_pred[, sample_weight]) -> (gradient, hessian)``.

    The function gets copies, shape (n_samples,), or (n_samples, n_outputs) for more than two
    classes, or several targets or labels, where the result must have this shape, too; `y_pred` are
    raw scores. Nothing is known of its values, so training starts from 0.

    Parameters
    ----------
    function : callable
        Or one that numba has compiled for the two numbers of a row: then it is the
        `row_derivatives`.
    task : {"regression", "binary", "multilabel", "multiclass"}
    n_outputs : int

    Raises
    ------
    TypeError
        If the function has other parameters.
    """

    def __init__(self, function: Callable[..., Any], task: str, n_outputs: int):
        self._arguments = (function, task, n_outputs)
        self.function = function
        self.name = name_of(function)
        self.n_outputs = n_outputs
        self.link = _LINKS[task]
        self.takes_weight = _takes_weight(self.name, function)
        may_be_of_rows = task != "multiclass" and not self.takes_weight
        if may_be_of_rows and is_compiled_by_user(function) and returns_two_numbers(function):
            self.row_derivatives = function

    def __reduce__(self) -> tuple[Any, ...]:
        # compiled code cannot be saved
        return type(self), self._arguments

    @cached_property
    def block(self) -> Any:
        """Compiled loop around a function of rows, None for a function of arrays."""
        return None if self.row_derivatives is None else _users_block(self.function)

    def gradients(
        self, y: np.ndarray, raw_score: np.ndarray, weight: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return what the function returns, shape (n_outputs, n_samples)."""
        if self.row_derivatives is not None:
            return super().gradients(y, raw_score)
        truth, prediction = by_rows(y), by_rows(raw_score)
        weights = {}
        if self.takes_weight and weight is not None and len(weight) > 0:
            weights = {"sample_weight": weight.copy()}
        elif self.takes_weight and not _has_default(self.function):
            weights = {"sample_weight": np.ones(len(truth))}
        shape = prediction.shape
        both = read_pair(self.name, self.function(truth, prediction, **weights), shape)
        gradient, hessian = (np.atleast_2d(array.T) for array in both)
        return gradient, hessian


def check_loss_fits(loss: Loss, task: str, n_outputs: int) -> None:
    """Raise ValueError if a user's loss does not have the outputs and the link of a task.

    For regression `n_outputs` is the number of targets, each of which may have several.
    """
    is_regression = task == "regression"
    if loss.n_outputs % n_outputs != 0 or (not is_regression and loss.n_outputs != n_outputs):
        raise ValueError(
            f"objective={loss.name} has n_outputs={loss.n_outputs}: y needs {n_outputs} (one for "
            "regression and two classes, one for each target, label, or class of more)"
        )
    method = "probabilities" if task in ("binary", "multiclass") else "predictions"
    has_method = getattr(type(loss), method) is not getattr(Loss, method)
    links = list(PREDICTIONS) if is_regression else [_LINKS[task]]
    if has_method and loss.link != "other":
        raise ValueError(
            f"objective={loss.name} has a method {method} of its own and link={loss.link!r}, by "
            "which metrics would read raw scores otherwise: set link='other'"
        )
    if not has_method and loss.link not in links:
        raise ValueError(
            f"objective={loss.name} has link={loss.link!r}: set it to "
            f"{' or '.join(map(repr, links))}, or write a method {method}(raw_score)"
        )


def name_of(function: Any) -> str:
    """Return the name of a function, for errors."""
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


@functools.lru_cache(maxsize=64)
def _users_block(function: Callable[..., Any]) -> Any:
    """Make the block of a function once, not at each fit: it takes half a second."""
    return users_block(function)


def _takes_weight(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `sample_weight`; check its parameters.

    Raises
    ------
    TypeError
        If it cannot be called.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # some functions written in C have no signature
        return False
    takes_weight = "sample_weight" in signature.parameters
    try:
        signature.bind(None, None, **({"sample_weight": None} if takes_weight else {}))
    except TypeError as error:
        raise TypeError(
            f"objective={name} has the parameters {signature}: they must be (y_true, y_pred) or "
            f"(y_true, y_pred, sample_weight), by this name ({error})"
        ) from error
    return takes_weight


def _has_default(function: Callable[..., Any]) -> bool:
    parameter = inspect.signature(function).parameters["sample_weight"]
    return parameter.default is not inspect.Parameter.empty
