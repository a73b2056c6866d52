"""What scikit-learn does with callbacks: its own are told of rounds, others are copied by `clone`.

To scikit-learn a fit is a task and each round a task within it. Where the installed version has no
callbacks, the base class and the decorator do nothing; this is found out by looking, not by a
version number.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import joblib

from sklboost.boosting.callbacks import EvalsLog, TrainingCallback, TrainingState
from sklboost.estimators.input.user_warnings import warn_user

try:
    from sklearn import callback as sklearn_callback
    from sklearn.callback import CallbackSupportMixin
except ImportError:
    sklearn_callback = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""


Method = TypeVar("Method", bound=Callable[..., Any])


__all__ = ["CallbackSupportMixin", "CopiedCallbacks", "FitTasks", "with_callbacks"]


def with_callbacks(method: Method) -> Method:
    """Decorate `fit` as scikit-learn's callbacks want it; the signature is the same."""
    return method if sklearn_callback is None else sklearn_callback.with_callbacks(method)


class FitTasks(TrainingCallback):
    """Reports the begin and the end of a fit and its rounds to scikit-learn's callbacks."""

    def __init__(self, context: Any, arguments: dict[str, Any]):
        self._context = context  # of the fit
        self._round: Any = None  # the context of the round that is being done
        self._arguments = arguments

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any, sample_weight: Any) -> list["FitTasks"]:
        """Begin a fit for scikit-learn's callbacks; nothing if there are none to be told of it.

        A fit without callbacks of its own still takes part in the tree of tasks of the pipeline or
        search around it.
        """
        if not hasattr(type(estimator), "_init_callback_context"):
            return []
        # how many rounds there will be is known once the arguments of fit are checked
        context = estimator._init_callback_context(max_subtasks=None)
        # should this attribute be gone one day, scikit-learn is told of all fits
        if not getattr(context, "_callbacks", True):
            return []
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        return [cls(context, {"estimator": estimator, "X": X, "y": y, "metadata": metadata})]

    def before_training(self, training: TrainingState) -> None:
        """Report the begin of the fit, and its number of rounds."""
        self._context.max_subtasks = training.n_estimators - training.first_round
        self._context.call_on_fit_task_begin(**self._arguments)

    def before_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Report the begin of a round."""
        self._round = self._context.subcontext(task_name="round")
        self._round.call_on_fit_task_begin(**self._arguments)
        return False

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Report the end of a round; stop if a callback says so."""
        return self._round.call_on_fit_task_end(
            **self._arguments,
            # a function: the estimator is made only if a callback asks for it
            reconstruction_attributes=lambda: vars(training.snapshot()),
        )

    def finish(self) -> None:
        """Report that the fit ended well."""
        self._context.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})


class CopiedCallbacks(TrainingCallback):
    """Warns if a callback that scikit-learn has copied keeps something of the fit.

    The user's object, and an Optuna trial in memory that it holds, then know nothing of it. Those
    of this package and of XGBoost keep nothing that users look at.
    """

    every_round = False

    def __init__(self, callbacks: list[Any]):
        known = ("sklboost.boosting.callbacks", "xgboost.callback")
        self._callbacks = [own for own in callbacks if type(own).__module__ not in known]
        self._before: list[dict[str, str | None]] = []

    def before_training(self, training: TrainingState) -> None:
        """Note the state of the callbacks; they have been told of the training."""
        self._before = [_state_of(callback) for callback in self._callbacks]

    def after_training(self, training: TrainingState) -> None:
        """Warn of those whose state has changed."""
        for callback, before in zip(self._callbacks, self._before, strict=False):
            if before != _state_of(callback):
                warn_user(
                    f"{type(callback).__name__} in callbacks is a copy, made by scikit-learn's "
                    "clone as in cross_val_score and GridSearchCV: what it has kept of this fit is "
                    "not in the object that you passed. It is in the fitted estimator's callbacks "
                    "(best_estimator_, or cross_validate(..., return_estimator=True)); or fit the "
                    "estimator itself"
                )


def _state_of(callback: Any) -> dict[str, str | None]:
    """Return a hash of each attribute of a callback; None if it cannot be pickled."""
    state: dict[str, str | None] = {}
    for name, value in getattr(callback, "__dict__", {}).items():
        try:
            state[name] = joblib.hash(value)
        except Exception:  # whatever an object of a user raises
            state[name] = None
    return state
