"""One fit: from what the user asked for to a trained model.

:func:`fit_model` tells the story: read the request, choose parameters if there is a preset, bin the
features, train, perhaps once more on all rows, and put the result together. No estimator is needed
for it.
"""

import time
from contextlib import closing
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.evaluation import ValidationSet
from sklboost.boosting.settings import BoostingTask
from sklboost.boosting.training import Replay, Schedule, Training
from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.data.features import row_arrays_of
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.thread_counts import n_threads_for
from sklboost.estimators.fit.binned import Binned, bin_rows
from sklboost.estimators.fit.continuing import Continued
from sklboost.estimators.fit.eval_metric import check_names, resolve_metrics
from sklboost.estimators.fit.reading import FitRequest, FitTask, plan_task, read_data
from sklboost.estimators.fit.result import FitResult, describe_fit
from sklboost.estimators.fit.training_settings import (
    dropout_of,
    drops_rounds,
    raw_base_score,
    tree_settings,
)
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.input.weights import warn_of_small_weights
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.predict.fitted_model import TrainedModel
from sklboost.estimators.predict.raw_scores import add_rounds, starting_scores
from sklboost.estimators.progress import progress_callbacks
from sklboost.objectives.derivative_checks import FaultyRowError
from sklboost.objectives.loss import Loss
from sklboost.objectives.metric import RoundMetric
from sklboost.tree.predict import pickling  # noqa: F401, tells pickle of models
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.trees import no_trees, trees_of


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


class Trained(NamedTuple):
    """What a training came to."""

    task: FitTask
    # float64, shape (n_outputs,): raw score of the model before its first tree
    base_score: np.ndarray
    trees: Trees  # those of a continued model included
    binned: Binned  # what the new ones were grown on


def fit_model(request: FitRequest) -> FitResult:
    """Read what was asked for, train, and return the result."""
    clock, data, chosen = Clock(), read_data(request), None
    clock.lap("checks")
    if request.parameters.preset is not None:
        from sklboost.estimators.fit.preset.auto import choose

        chosen = choose(request, data, clock.begin)
        request = request.with_settings(chosen)
        clock.lap("choosing")
    return train_model(request, plan_task(request, data), clock)._replace(chosen=chosen)


def train_model(request: FitRequest, task: FitTask, clock: Clock) -> FitResult:
    """Train on a task, and return the result."""
    rows, parameters, first = task.rows, request.parameters, _before_refit(request, task)
    n_times = parameters.n_estimators
    n_threads = n_threads_for(parameters.n_jobs, rows.X.size, VALUES_PER_THREAD, n_times)
    with ThreadTeam(n_threads) as team:
        binned = bin_rows(team, rows, parameters)
        clock.lap("binning")
        base_score, training = train(first, team, binned, task, clock.begin)
        clock.lap("other", training.seconds)
        best, stop_reason = training.best_iteration, training.stop_reason
        n_rounds = training.n_rounds if best is None else best + 1
        trained = stopped = Trained(task, base_score, training.trees(n_rounds), binned)
        # neither when the time is up, nor after Ctrl-C; it takes none without a new round
        has_time = stop_reason in ("completed", "early_stopping") or n_rounds <= task.rounds.start
        if parameters.refit and best is not None and has_time:
            trained, stop_reason = _train_again(request, team, trained, training, n_rounds)
            clock.lap("refit")
    if len(trained.trees.nodes) == len(trained.trees.params):  # all of them leaves
        cover, least = (
            trained.trees.nodes["cover"].max(),
            trained.trees.params["min_child_weight"][-1],
        )
        warn_of_small_weights(trained.task.rows.weight, float(cover), float(least))
    model = _trained_model(request, trained.task, trained.base_score, trained.trees)
    is_refitted = trained is not stopped
    keeps_stopped = is_refitted and parameters.warm_start
    clock.lap("other")
    return FitResult(
        trained=model,
        evals_result=training.finished_log(),
        first_round=training.first_logged,
        split_seed=task.split_seed if keeps_stopped or not is_refitted else None,
        before_refit=(
            assemble_model(stopped.trees, base_score, rows.X.shape[1]) if keeps_stopped else None
        ),
        stop_reason=stop_reason,
        best_iteration=best,
        best_score=training.best_score,
        report=describe_fit(
            model,
            trained.binned,
            n_samples=trained.task.rows.n_given,
            n_validation_samples=sum(len(held.y) for held in task.validation.values()),
            n_threads=training.n_threads,
            seconds=clock.seconds,
            traffic=training.traffic,
        ),
    )


def train(
    request: FitRequest,
    team: ThreadTeam,
    binned: Binned,
    task: FitTask,
    begin: float,
) -> tuple[np.ndarray, Training]:
    """Train on the rows of a task that were binned; return the base score and the training.

    `begin` is when the fit began, by ``time.perf_counter``.
    """
    base_score = _base_score(request, task)
    schedule = _schedule(request, task, base_score, begin)
    return base_score, _train(request, team, binned, task, base_score, schedule)


def metrics_before(request: FitRequest, task: FitTask) -> list[float]:
    """Return the metrics of the last validation data before the first round.

    ValueError if one is not defined for these rows.
    """
    schedule = _schedule(request, task, _base_score(request, task), begin=0.0)
    last = schedule.validation[-1]
    with np.errstate(all="ignore"):
        # as after a round, rows differ a little: a correlation is not defined for a constant
        apart = 1e-6 * np.linspace(0.0, 1.0, len(last.y)) * (1.0 + np.abs(last.raw_score))
        moved = last.raw_score + apart
    return [
        metric.value(last.y, moved if metric.mean_loss is None else last.raw_score, last.weight)
        for metric in schedule.metrics
    ]


def _before_refit(request: FitRequest, task: FitTask) -> FitRequest:
    """Continue the model that has not seen the validation data, if there is one, and such data."""
    continued = request.continued
    if not task.validation or continued is None or continued.before_refit is None:
        return request
    return request._replace(continued=continued._replace(model=continued.before_refit))


@np.errstate(all="ignore")
def _base_score(request: FitRequest, task: FitTask) -> np.ndarray:
    """Return the raw score of the model before its first tree, shape (n_outputs,)."""
    rows, base_score = task.rows, request.parameters.base_score
    if request.continued is not None:
        return request.continued.model.base_score
    if len(rows.margin) > 0:
        return np.zeros(task.loss.n_outputs)
    if base_score is not None:
        return raw_base_score(base_score, task.loss, min(len(rows.targets), task.targets.size))
    return task.loss.start(rows.targets, rows.weight)


def _raw_scores(rows: Rows, base_score: np.ndarray, continued: Continued | None) -> np.ndarray:
    """Return the raw scores before the first new round, shape (n_outputs, n_samples)."""
    raw_score = starting_scores(base_score, rows.margin, len(rows.y), row_arrays_of(rows.X))
    if continued is not None:
        model = continued.model
        add_rounds(model, rows.X, (0, model.n_rounds), raw_score, continued.n_jobs)
    return raw_score


def _train(
    request: FitRequest,
    team: ThreadTeam,
    binned: Binned,
    task: FitTask,
    base_score: np.ndarray,
    schedule: Schedule,
) -> Training:
    """Train on the rows of the task; the schedule says for how long and who watches."""
    rows, parameters, continued = task.rows, request.parameters, request.continued
    seed, sampling_seed = task.seeds
    raw_score = _raw_scores(rows, base_score, continued)
    # rounds of the same loss are those of one training, which started from the margins
    has_other_loss = continued is not None and not continued.has_loss(task.loss)
    first_score = raw_score if has_other_loss else rows.margin.T
    boosting_task = BoostingTask(
        X=rows.X,
        matrix=binned.matrix,
        cuts=binned.cuts,
        y=_targets_to_learn(rows, task.loss),
        weight=rows.weight,
        sample_weight=task.targets.unweigh(rows.y, rows.weight),
        raw_score=raw_score,
        trees_before=no_trees() if continued is None else trees_of(continued.model),
        loss=task.loss,
        params=tree_settings(parameters, request.n_parallel_trees, task.loss, rows, first_score),
        rules=task.rules,
        seed=seed,
        sampling_seed=sampling_seed,
        dropout=dropout_of(parameters),
        keep_pruned=bool(parameters.keep_pruned),
    )
    training = Training(team, boosting_task, schedule, binned.make_rounds)
    try:
        with closing(training):
            training.run()
    except FaultyRowError as fault:
        fault.where = rows.words_for(fault.row)
        raise
    return training


def _targets_to_learn(rows: Rows, loss: Loss) -> np.ndarray:
    """Return the targets, short where the loss reads such ones; a copy where a user sees them."""
    if loss.block is None or loss.row_derivatives is not None:
        return np.array(rows.targets)
    # leaves that are quantiles of residuals read float64
    is_single = rows.y.dtype == np.float32 and rows.y.ndim == 1 and len(loss.renewal) == 0
    return rows.y[np.newaxis] if is_single or rows.y.dtype == np.uint8 else rows.targets


def _schedule(request: FitRequest, task: FitTask, base_score: np.ndarray, begin: float) -> Schedule:
    def make_estimator(trees: Trees) -> Any:
        return request.make_estimator(_trained_model(request, task, base_score, trees))

    parameters, continued = request.parameters, request.continued
    # a fit of warm_start may end with the model as it was; init_model is asked for more rounds
    logs_before = continued is not None and continued.is_warm_start
    validation = [
        ValidationSet(
            name,
            rows.X,
            rows.y.astype(np.float64),  # a copy: users' metrics are given it
            rows.weight,
            _raw_scores(rows, base_score, None if logs_before else continued),
        )
        for name, rows in task.validation.items()
    ]
    metrics: list[RoundMetric] = []
    if validation:
        last = validation[-1]
        metrics = resolve_metrics(
            parameters.eval_metric,
            task.targets,
            task.loss,
            start=(last.y, last.raw_score, last.weight),
        )
    else:
        check_names(parameters.eval_metric, task.targets, task.loss)
    return Schedule(
        rounds=task.rounds,
        begin=begin,
        max_time=np.inf if parameters.max_time is None else parameters.max_time,
        callbacks=[*_callbacks(parameters), *request.listeners],
        validation=validation,
        metrics=metrics,
        make_estimator=make_estimator,
        logs_before=logs_before and len(validation) > 0,
    )


def _callbacks(parameters: Parameters) -> list[TrainingCallback]:
    callbacks = list(parameters.callbacks or ())
    if parameters.early_stopping_rounds is not None:
        callbacks.append(EarlyStopping(parameters.early_stopping_rounds))
    return callbacks + progress_callbacks(parameters.verbose)


def _train_again(
    request: FitRequest, team: ThreadTeam, trained: Trained, first: Training, n_rounds: int
) -> tuple[Trained, str]:
    """Train once more, on all rows, up to the best round; return the reason to stop, too.

    The learning rates are those of the first training. No callback is told. If time is up before
    all rounds are done, or at Ctrl-C, the result of the first training stays.
    """
    task, rows = trained.task, trained.task.everything
    task = task._replace(rows=rows, targets=task.all_targets)
    try:
        binned = bin_rows(team, rows, request.parameters)
        base_score = _base_score(request, task)
        schedule = first.schedule._replace(
            rounds=range(task.rounds.start, max(task.rounds.start, n_rounds)),
            callbacks=[Replay(first.learning_rates)],
            validation=[],
            logs_before=False,
        )
        again = _train(request, team, binned, task, base_score, schedule)
    except KeyboardInterrupt:
        return trained, "interrupted"
    if again.stop_reason != "completed":
        return trained, again.stop_reason
    return Trained(task, base_score, again.trees(n_rounds), binned), first.stop_reason


@np.errstate(all="ignore")
def _trained_model(
    request: FitRequest, task: FitTask, base_score: np.ndarray, trees: Trees
) -> TrainedModel:
    """Put together what prediction needs."""
    rows, targets, loss, continued = task.rows, task.targets, task.loss, request.continued
    model = assemble_model(trees, base_score, rows.X.shape[1])
    shift = np.zeros(loss.n_outputs)
    if targets.reads_scores:
        raw_score = _raw_scores(rows, base_score, None)
        n_jobs = request.parameters.n_jobs
        add_rounds(model, rows.X, (0, model.n_rounds), raw_score, n_jobs)
        targets, shift = targets.finish(loss, raw_score, rows.y, rows.weight)
    has_margin = len(rows.margin) > 0
    n_dart = model.n_rounds if drops_rounds(request.parameters) else 0
    if continued is not None:
        n_dart = continued.n_dart_rounds
    return TrainedModel(model, task.features, targets, loss, shift, has_margin, n_dart)
