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


__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]


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
        if not hasattr(estimator, "_init_callback_context"):
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
