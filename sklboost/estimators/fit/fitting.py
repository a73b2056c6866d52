"""One fit: from the user's arguments to the fitted attributes.

Read :func:`fit_estimator` first: it tells the story. In: an estimator with its parameters and the
arguments of fit. Out: the same estimator, fitted.
"""

import copy
import functools
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.evaluation import ValidationSet
from sklboost.boosting.settings import BoostingTask, tree_params
from sklboost.boosting.training import Replay, Schedule, Training
from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.data.features import training_bins
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam, n_threads_for
from sklboost.engine.structs import BinCuts, TrainingBins
from sklboost.estimators.fit.boosters import check_booster, dropout_of
from sklboost.estimators.fit.callback_support import detach
from sklboost.estimators.fit.continuing import Continued, continued_model, rounds_to_do
from sklboost.estimators.fit.eval_metric import resolve_metrics
from sklboost.estimators.fit.progress import progress_callbacks
from sklboost.estimators.fit.reading import FitTask, read_task
from sklboost.estimators.fit.report import describe_fit
from sklboost.estimators.fit.start_scores import raw_base_score
from sklboost.estimators.input.arguments import FitArguments
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.parameters.rules import check_parameters, names_of
from sklboost.estimators.parameters.trees import SamplingParameters, TreeParameters
from sklboost.estimators.predict.raw_scores import add_rounds, starting_scores
from sklboost.objectives.derivative_checks import FaultyRowError
from sklboost.objectives.loss import Loss
from sklboost.objectives.metric import RoundMetric
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.trees import no_trees, trees_of

TREE_PARAMETERS = (
    "learning_rate",
    *(name for name in names_of(TreeParameters) if name not in ("max_bin", "keep_pruned")),
    *names_of(SamplingParameters),
)
# Counted in rows, so in the unit of the loss's hessians.
_PER_ROW = (
    *("reg_lambda", "reg_alpha", "gamma", "min_child_weight"),
    *("path_smooth", "cat_smooth"),
)


class Clock:
    """Adds up the seconds of phases that follow one another."""

    def __init__(self) -> None:
        self.begin = self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def lap(self, phase: str, others: dict[str, float] | None = None) -> None:
        """Book the time since the last call, less what `others` had of it, which is booked too."""
        now = time.perf_counter()
        spent = {**(others or {}), phase: now - self._last - sum((others or {}).values())}
        for name, seconds in spent.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self._last = now


class Start(NamedTuple):
    """Where training starts.

    Attributes
    ----------
    base_score : ndarray of float64, shape (n_outputs,)
        Raw score of the model before its first tree.
    trees : Trees
        Those of the model that is continued.
    """

    base_score: np.ndarray
    trees: Trees


class Trained(NamedTuple):
    """What a training came to.

    Attributes
    ----------
    task : FitTask
    start : Start
    trees : Trees
        Those of the start included.
    matrix : TrainingBins
        That the new ones were grown on.
    """

    task: FitTask
    start: Start
    trees: Trees
    matrix: TrainingBins


def fit_estimator(
    estimator: Any, X: Any, y: Any, given: FitArguments, listeners: Sequence[TrainingCallback]
) -> None:
    """Fit an estimator.

    Parameters
    ----------
    estimator : BaseBooster
        Gets the fitted attributes.
    X, y : array-like
    given : FitArguments
    listeners : sequence of TrainingCallback
        Told of the training beside `callbacks`.
    """
    clock = Clock()
    check_parameters(type(estimator), estimator.get_params(deep=False))
    continued = continued_model(estimator, given.init_model)
    _forget_fit(estimator)
    task = read_task(estimator, X, y, given, continued)
    check_booster(estimator, continued)
    clock.lap("checks")
    with ThreadTeam(n_threads_for(estimator.n_jobs, task.rows.X.size, VALUES_PER_THREAD)) as team:
        n_threads = team.size
        matrix, cuts = training_bins(team, task.rows.X, task.rows.weight, estimator.max_bin)
        clock.lap("binning")
        start = _start(estimator, task, task.rows)
        rounds = rounds_to_do(continued, estimator._rounds_and_trees[0])
        schedule = _schedule(estimator, task, start, rounds, clock.begin, listeners)
        training = _train(estimator, team, (matrix, cuts), task, start, schedule)
        clock.lap("other", training.seconds)
        best, stop_reason = training.best_iteration, training.stop_reason
        n_rounds = training.n_rounds if best is None else best + 1
        trained = Trained(task, start, training.trees(n_rounds), matrix)
        # neither when the time is up, nor after Ctrl-C
        has_time = stop_reason in ("completed", "early_stopping")
        if estimator.refit and best is not None and has_time:
            rounds = range(rounds.start, n_rounds)
            trained, stop_reason = _train_again(estimator, team, trained, training, rounds)
            clock.lap("refit")
    _set_model(estimator, trained.task, trained.start, trained.trees)
    estimator.evals_result_ = training.finished_log()
    estimator._first_round = training.first_round
    estimator.stop_reason_ = stop_reason
    if best is not None:
        estimator.best_iteration_ = best
        estimator.best_score_ = training.best_score
    clock.lap("other")
    estimator.fit_report_ = describe_fit(
        estimator.model_,
        trained.matrix,
        estimator._feature_names(),
        sum(len(own.y) for own in task.validation),
        n_threads,
        {**clock.seconds, "total": sum(clock.seconds.values())},
    )


def _forget_fit(estimator: Any) -> None:
    """Delete what an earlier fit has left, so that nothing of it is taken for this one's."""
    for name in list(vars(estimator)):
        if name.endswith("_") and not name.startswith("_"):
            delattr(estimator, name)


def _start(estimator: Any, task: FitTask, rows: Rows) -> Start:
    if task.continued is not None:
        model = task.continued.model
        return Start(model.base_score, trees_of(model))
    if len(rows.margin) > 0:
        base_score = np.zeros(task.loss.n_outputs)
    elif estimator.base_score is not None:
        base_score = raw_base_score(estimator.base_score, task.loss, len(rows.targets))
    else:
        base_score = task.loss.start(rows.targets, rows.weight)
    return Start(base_score, no_trees())


def _raw_scores(rows: Rows, start: Start, continued: Continued | None) -> np.ndarray:
    """Give the raw scores of the rows before the first new round, shape (n_outputs, n_samples)."""
    raw_score = starting_scores(start.base_score, rows.margin, len(rows.y))
    if continued is not None:
        model = continued.model
        add_rounds(model, rows.X, (0, model.n_rounds), raw_score, continued.estimator.n_jobs)
    return raw_score


def _callbacks(estimator: Any) -> list[TrainingCallback]:
    callbacks = list(estimator.callbacks or ())
    if estimator.early_stopping_rounds is not None:
        callbacks.append(EarlyStopping(estimator.early_stopping_rounds))
    return callbacks + progress_callbacks(estimator.verbose)


def _train(
    estimator: Any,
    team: ThreadTeam,
    binned: tuple[TrainingBins, BinCuts],
    task: FitTask,
    start: Start,
    schedule: Schedule,
) -> Training:
    """Train on the rows of the task; the schedule says for how long and who watches."""
    rows, settings = task.rows, {name: getattr(estimator, name) for name in TREE_PARAMETERS}
    unit = task.loss.unit(rows.targets, rows.weight)
    settings |= {name: unit * settings[name] for name in _PER_ROW}
    params = tree_params(**settings, num_parallel_tree=estimator._rounds_and_trees[1])
    raw_score = _raw_scores(rows, start, task.continued)
    step = min(params.max_delta_step, task.loss.largest_step)
    params = params._replace(max_delta_step=float(step))
    (matrix, cuts), (seed, sampling_seed) = binned, task.seeds
    boosting_task = BoostingTask(
        X=rows.X,
        matrix=matrix,
        cuts=cuts,
        y=_learnt_targets(rows, task.loss),
        weight=rows.weight,
        raw_score=raw_score,
        trees_before=start.trees,
        loss=task.loss,
        params=params,
        rules=task.rules,
        seed=seed,
        sampling_seed=sampling_seed,
        dropout=dropout_of(estimator),
        keep_pruned=bool(estimator.keep_pruned),
    )
    training = Training(team, boosting_task, schedule)
    try:
        training.run()
    except FaultyRowError as fault:
        fault.where = rows.words_for(fault.row)
        raise
    return training


def _learnt_targets(rows: Rows, loss: Loss) -> np.ndarray:
    """Give the targets, short where the loss reads such ones; a copy where a user sees them."""
    if loss.block is None or loss.row_derivatives is not None:
        return np.array(rows.targets)
    # leaves that are quantiles of residuals read float64
    is_single = rows.y.dtype == np.float32 and rows.y.ndim == 1 and len(loss.renewal) == 0
    return rows.y[np.newaxis] if is_single or rows.y.dtype == np.uint8 else rows.targets


def _schedule(
    estimator: Any,
    task: FitTask,
    start: Start,
    rounds: range,
    begin: float,
    listeners: Sequence[TrainingCallback],
) -> Schedule:
    def make_estimator(trees: Trees) -> Any:
        fitted = copy.copy(estimator)
        detach(fitted)
        _set_model(fitted, task, start, trees)
        return fitted

    validation = [
        ValidationSet(
            name,
            own.X,
            own.y.astype(np.float64),  # a copy: users' metrics are given it
            own.weight,
            _raw_scores(own, start, task.continued),
        )
        for name, own in zip(task.names, task.validation, strict=True)
    ]
    return Schedule(
        rounds=rounds,
        begin=begin,
        max_time=np.inf if estimator.max_time is None else estimator.max_time,
        callbacks=[*_callbacks(estimator), *listeners],
        validation=validation,
        metrics=_metrics(estimator, task, validation),
        make_estimator=make_estimator,
    )


def _metrics(
    estimator: Any, task: FitTask, validation: list[ValidationSet]
) -> Sequence[RoundMetric]:
    given, loss = estimator.eval_metric, task.loss
    resolve = functools.partial(
        resolve_metrics,
        task=estimator._task,
        classes=getattr(estimator, "classes_", None),
        loss=loss,
        link=estimator._link(loss),
    )
    if validation:
        last = validation[-1]
        return resolve(given, start=(last.y, last.raw_score, last.weight))
    # nothing to compute them of, but a misspelt name is a mistake all the same
    one_or_more = given if isinstance(given, list | tuple) else [given]
    names = [name for name in one_or_more if isinstance(name, str)]
    resolve(names or None, start=(np.empty(0), np.empty((loss.n_outputs, 0)), np.empty(0)))
    return []


def _train_again(
    estimator: Any, team: ThreadTeam, trained: Trained, first: Training, rounds: range
) -> tuple[Trained, str]:
    """Train once more, on all rows, for the rounds that were best; give the reason to stop, too.

    The learning rates are those of the first training. Nobody watches: what callbacks had to say
    they have said. If time is up before all rounds are done, or at Ctrl-C, what the first training
    came to is whole, and stays.
    """
    task = trained.task._replace(rows=trained.task.everything)
    try:
        binned = training_bins(team, task.rows.X, task.rows.weight, estimator.max_bin)
        start = _start(estimator, task, task.rows)
        schedule = first.schedule._replace(
            rounds=rounds,
            callbacks=[Replay(first.learning_rates)],
            validation=[],
        )
        again = _train(estimator, team, binned, task, start, schedule)
    except KeyboardInterrupt:
        return trained, "interrupted"
    if again.stop_reason != "completed":
        return trained, again.stop_reason
    return Trained(task, start, again.trees(rounds.stop), binned[0]), first.stop_reason


def _set_model(estimator: Any, task: FitTask, start: Start, trees: Trees) -> None:
    """Set the attributes that prediction needs."""
    rows = task.rows
    model = assemble_model(trees, start.base_score, rows.X.shape[1])
    estimator.model_ = model
    estimator.n_estimators_ = estimator._n_estimators_of(model)
    estimator._loss = task.loss
    estimator._has_margin = len(rows.margin) > 0
    estimator._shift = np.zeros(task.loss.n_outputs)
    if estimator._targets.is_calibrated:
        raw_score = _raw_scores(rows, start, None)
        add_rounds(model, rows.X, (0, model.n_rounds), raw_score, estimator.n_jobs)
        estimator._shift = estimator._targets.calibrated_shift(
            task.loss, raw_score, rows.y, rows.weight
        )
