"""Our rounds as tasks of scikit-learn's callbacks: progress bars, monitored scores.

In: the estimator and the arguments of its fit. Out: a callback of ours that tells scikit-learn's.
The one idea: to scikit-learn a fit is a task and each round a task within it.
"""

from typing import Any

from sklboost.boosting.callbacks import EvalsLog, TrainingCallback, TrainingState
from sklboost.estimators.fit.callback_support import open_context


class FitTasks(TrainingCallback):
    """Tells scikit-learn's callbacks when the fit and its rounds begin and end.

    Parameters
    ----------
    context : sklearn.callback.CallbackContext
        Of the fit.
    estimator : estimator
        That is fitted.
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
        """Tell that the fit begins, and of how many rounds."""
        self._context.max_subtasks = training.n_estimators - training.first_round
        self._context.call_on_fit_task_begin(**self._arguments)

    def before_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Tell that a round begins."""
        self._round = self._context.subcontext(task_name="round")
        self._round.call_on_fit_task_begin(**self._arguments)
        return False

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Tell that a round ended; stop if anyone who hears it says so."""
        return self._round.call_on_fit_task_end(
            **self._arguments,
            # a function: the estimator is made only if a callback asks for it
            reconstruction_attributes=lambda: vars(training.snapshot()),
        )

    def finish(self) -> None:
        """Tell that the fit ended well."""
        self._context.call_on_fit_task_end(**self._arguments, reconstruction_attributes={})


def fit_tasks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> list[FitTasks]:
    """Give what tells scikit-learn's callbacks of a fit; nothing if there are none.

    Parameters
    ----------
    estimator : estimator
        About to be fitted.
    X, y, sample_weight : array-like
        As given to fit.
    """
    context = open_context(estimator)
    return [] if context is None else [FitTasks(context, estimator, X, y, sample_weight)]
