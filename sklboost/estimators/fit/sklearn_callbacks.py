"""Rounds of boosting as tasks of scikit-learn's callbacks: progress bars, monitored scores.

To scikit-learn a fit is a task and each round a task within it. Where the installed version has no
callbacks, the base class and the decorator do nothing; this is found out by looking, not by a
version number.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from sklboost.boosting.callbacks import EvalsLog, TrainingCallback, TrainingState

try:
    from sklearn import callback as sklearn_callback
    from sklearn.callback import CallbackSupportMixin
except ImportError:
    sklearn_callback = None

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing: this scikit-learn has no callbacks."""


Method = TypeVar("Method", bound=Callable[..., Any])


__all__ = [
    "CallbackSupportMixin",
    "FitTasks",
    "detach",
    "fit_tasks",
    "open_context",
    "with_callbacks",
]


def with_callbacks(method: Method) -> Method:
    """Decorate `fit` as scikit-learn's callbacks want it; the signature is the same."""
    return method if sklearn_callback is None else sklearn_callback.with_callbacks(method)


def open_context(estimator: Any) -> Any:
    """Begin a fit for scikit-learn's callbacks; None if there are none to be told of it.

    A fit without callbacks of its own still takes part in the tree of tasks of the pipeline or
    search around it.
    """
    if not hasattr(estimator, "_init_callback_context"):
        return None
    # how many rounds there will be is known once the arguments of fit are checked
    context = estimator._init_callback_context(max_subtasks=None)
    # should this attribute be gone one day, scikit-learn is told of all fits
    return context if getattr(context, "_callbacks", True) else None


def detach(estimator: Any) -> None:
    """Delete from a copy of an estimator what ties it to the fit that is under way.

    scikit-learn keeps that in private attributes; without this a model saved during the fit would
    hold them, and all that callbacks hold.
    """
    for name in [name for name in vars(estimator) if name.startswith("_") and "callback" in name]:
        delattr(estimator, name)


class FitTasks(TrainingCallback):
    """Reports the begin and the end of a fit and its rounds to scikit-learn's callbacks.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext
        Of the fit.
    estimator : estimator
    X, y : array-like
        As given to fit.
    sample_weight : array-like or None
    """

    def __init__(self, context: Any, estimator: Any, X: Any, y: Any, sample_weight: Any):
        self._context = context
        self._round: Any = None  # the context of the round that is being done
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._arguments = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}

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


def fit_tasks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> list[FitTasks]:
    """Return the callback that tells scikit-learn's callbacks of a fit, if there are any."""
    context = open_context(estimator)
    return [] if context is None else [FitTasks(context, estimator, X, y, sample_weight)]
