"""One fit: from what the user asked for to a trained model and its report."""

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.evaluation import ValidationSet
from sklboost.boosting.rounds import Rounds
from sklboost.boosting.settings import BoostingTask
from sklboost.boosting.training import MakeGrower, Replay, Schedule, Training
from sklboost.data.binning import LEAST_SHARED_VALUES, VALUES_PER_THREAD
from sklboost.data.features import RemoteFeatures, row_arrays_of, shared_bins
from sklboost.data.frames import dask_kind
from sklboost.data.raw_values import row_blocks
from sklboost.engine.model import Model, Trees
from sklboost.engine.parallel import ThreadTeam, n_threads_for
from sklboost.engine.structs import BinCuts, TrainingBins
from sklboost.estimators.fit.eval_metric import check_names, resolve_metrics
from sklboost.estimators.fit.reading import (
    Continued,
    FitRequest,
    FitTask,
    dropout_of,
    drops_rounds,
    plan_task,
    raw_base_score,
    read_data,
    tree_settings,
)
from sklboost.estimators.input.arguments import warn_of_small_weights
from sklboost.estimators.input.feature_names import name_text
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.predict.fitted_model import (
    TrainedModel,
    add_rounds,
    leaves,
    starting_scores,
)
from sklboost.estimators.progress import progress_callbacks
from sklboost.inspection.nested_subtrees import pruning_path
from sklboost.objectives.derivative_checks import FaultyRowError
from sklboost.objectives.loss import Loss
from sklboost.objectives.metric import RoundMetric
from sklboost.tree.predict import pickling  # noqa: F401, tells pickle of models
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.trees import no_trees, trees_of


class Binned(NamedTuple):
    """The bins of the rows of a fit, and what grows trees on them."""

    matrix: TrainingBins  # on a cluster without the bins of the rows, which are all 0 here
    cuts: BinCuts
    make_rounds: MakeGrower = Rounds  # as :class:`~sklboost.boosting.training.Training` takes it
    # bool, shape (n_features,), or None: whether all rows have the same bin. None: the matrix
    # tells.
    is_constant: np.ndarray | None = None


def bin_rows(team: ThreadTeam, rows: Rows, parameters: Parameters) -> Binned:
    """Bin the rows of a fit."""
    X, max_bin = rows.X, parameters.max_bin
    if not isinstance(X, RemoteFeatures):
        team = team if X.size >= LEAST_SHARED_VALUES else ThreadTeam(1)
        return Binned(*shared_bins(team, X, rows.weight, max_bin))
    from sklboost.distributed.training import bin_on_cluster

    return Binned(*bin_on_cluster(X, rows.weight, max_bin, parameters.n_jobs))


@dataclass(frozen=True)
class FitReport:
    """Where the time of a fit went, and what it saw and made.

    Attributes
    ----------
    seconds : dict of str to float
        ``"choosing"`` parameters by a preset, ``"checks"`` of the arguments, ``"binning"``,
        ``"boosting"`` (growing trees), ``"evaluation"`` (scoring validation data), ``"refit"`` on
        all rows, ``"other"``, and ``"total"``, their sum.
    n_samples : int
        Rows that trees were grown on: of positive weight, not held out. A row of weight 2 is one.
    n_validation_samples : int
        Rows of all validation data.
    n_features : int
        Columns of `X`.
    n_bins : int
        Bins of all features together, those of missing values included.
    constant_features : list of str
        Names of features with the same value, or missing, in every row of `n_samples`; ``f0``,
        ``f1``, ... where `X` had no names. No tree can use them.
    n_rounds, n_trees, n_leaves : int
        Of the whole model, a continued one included.
    n_pruned_splits : int
        Splits of these trees that pruning removed.
    n_threads : int
        Threads that did the work.
    traffic : dict of str to tuple of int
        On a cluster, how many messages, and bytes, its workers sent to one another, by what for:
        ``"scales"`` of gradients, cells of ``"histograms"``, best ``"splits"`` and others; those of
        the last workers, if some were lost on the way. Else empty.
    """

    seconds: dict[str, float]
    n_samples: int
    n_validation_samples: int
    n_features: int
    n_bins: int
    constant_features: list[str]
    n_rounds: int
    n_trees: int
    n_leaves: int
    n_pruned_splits: int
    n_threads: int
    traffic: dict[str, tuple[int, int]]

    def __str__(self) -> str:
        lines = []
        for field in fields(self):
            value = getattr(self, field.name, {})  # reports of earlier versions have no traffic
            if field.name == "seconds":
                value = ", ".join(f"{name} {spent:.4f}" for name, spent in value.items())
            elif field.name == "constant_features":
                value = ", ".join(value) or "none"
            elif field.name == "traffic":
                parts = (f"{name} {n:,} ({size:,} bytes)" for name, (n, size) in value.items())
                value = ", ".join(parts) or "none"
            lines.append(f"{field.name.replace('_', ' '):<21} {value}")
        return "\n".join(lines)


class ChosenParams(dict[str, Any]):
    """Values of parameters that a preset has chosen, by name, and why.

    ``estimator.set_params(**chosen, preset=None)`` fits the same model to the same data, bit for
    bit. Printed, they have a line each, with the reason.

    Parameters
    ----------
    values : mapping of str to object
    reasons : mapping of str to str
        Why, for each of them; an attribute.
    """

    def __init__(self, values: Mapping[str, Any], reasons: Mapping[str, str]):
        super().__init__(values)
        self.reasons = dict(reasons)

    def __str__(self) -> str:
        shown = {f"{name}={value!r}": self.reasons.get(name, "") for name, value in self.items()}
        width = max(map(len, shown), default=0)
        return "\n".join(f"{setting:<{width}}  {why}" for setting, why in shown.items())


class FitResult(NamedTuple):
    """A trained model, and how its training went."""

    trained: TrainedModel
    # by validation set and metric, one value a round
    evals_result: dict[str, dict[str, list[float]]]
    first_round: int  # of `evals_result`; not 0 if `init_model` was continued
    split_seed: int | None  # by which rows were held out for early stopping; None: none were
    # with `warm_start` and `refit`, the model that early stopping has judged
    before_refit: Model | None
    stop_reason: str  # empty for models of other libraries
    best_iteration: int | None
    best_score: float | None
    report: FitReport | None  # None for models of other libraries
    chosen: ChosenParams | None = None  # by a preset. None: there was none.

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that an estimator keeps this in, by name."""
        kept = {
            **self.trained.attributes,
            "evals_result_": self.evals_result,
            "_first_round": self.first_round,
            "_split_seed": self.split_seed,
            "_before_refit": self.before_refit,
            "stop_reason_": self.stop_reason,
        }
        known = {
            "best_iteration_": self.best_iteration,
            "best_score_": self.best_score,
            "fit_report_": self.report,
            "chosen_params_": self.chosen,
        }
        return kept | {name: value for name, value in known.items() if value is not None}


@np.errstate(all="ignore")
def describe_fit(
    trained: TrainedModel,
    binned: Binned,
    *,
    n_samples: int,
    n_validation_samples: int,
    n_threads: int,
    seconds: dict[str, float],
    traffic: dict[str, tuple[int, int]],
) -> FitReport:
    """Return the report of a finished fit; `seconds` by phase, without their sum."""
    model, names, matrix = trained.model, trained.features.keys, binned.matrix
    constant = binned.is_constant
    numbers = _constant_features(matrix) if constant is None else np.flatnonzero(constant)
    return FitReport(
        seconds={**seconds, "total": sum(seconds.values())},
        n_samples=n_samples,
        n_validation_samples=n_validation_samples,
        n_features=model.n_features,
        n_bins=int(matrix.bin_starts[-1]),
        constant_features=[name_text(names[i]) for i in numbers],
        n_rounds=model.n_rounds,
        n_trees=model.n_trees,
        n_leaves=int((model.nodes.left < 0).sum()),
        n_pruned_splits=int(model.n_pruned.sum()),
        n_threads=n_threads,
        traffic=traffic,
    )


def _constant_features(matrix: TrainingBins) -> list[int]:
    """Return the features whose rows are all in one bin."""
    # one value and missing ones are two bins; so are missing ones alone
    few = np.flatnonzero(np.diff(matrix.bin_starts) <= 2)
    n_rows, constant, counts = len(matrix.rows), [], {}
    for feature in few:
        place, n_bins = matrix.places[feature], np.diff(matrix.bin_starts)[feature]
        if place.column not in counts:
            column = matrix.columns[place.column]
            n_cells = np.diff(matrix.cell_starts)[place.column]
            counts[place.column] = np.zeros(n_cells, dtype=np.int64)
            for rows in row_blocks(n_rows):  # bincount makes integers of 8 bytes of the bins
                counts[place.column] += np.bincount(column[rows], minlength=n_cells)
        first = place.first_cell - matrix.cell_starts[place.column]
        cells = counts[place.column][first : first + n_bins - place.is_shared]
        if cells.max(initial=0) == n_rows or (place.is_shared and not cells.any()):
            constant.append(int(feature))
    return constant


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
        from sklboost.estimators.fit.preset import choose

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


# One whole tree of all rows, without callbacks and progress.
_ONE_TREE: dict[str, Any] = {
    "n_estimators": 1,
    "learning_rate": 1.0,
    "num_parallel_tree": 1,
    "booster": "gbtree",
    "ccp_alpha": 0.0,
    "subsample": 1.0,
    "early_stopping_rounds": None,
    "max_time": None,
    "callbacks": None,
    "warm_start": False,
    "verbose": 0,
}


def path_of_first_tree(request: FitRequest) -> Bunch:
    """Grow the first tree of such a fit and return the path of its subtrees."""
    if request.parameters.preset is not None:
        raise ValueError(
            "preset='auto': the pruning path is that of a tree of given parameters; call "
            "set_params(**model.chosen_params_, preset=None) before"
        )
    if dask_kind(request.X):
        raise TypeError(
            "X is a Dask collection: cost_complexity_pruning_path needs the rows here, X.compute()"
        )
    request = request.with_settings(_ONE_TREE)._replace(continued=None)
    task = plan_task(request, read_data(request))
    rows, loss = task.rows, task.loss
    if loss.n_outputs > 1:
        raise ValueError(
            f"cost_complexity_pruning_path prunes one tree, but {loss.name} has a tree for "
            f"each of {loss.n_outputs} outputs here: ask for one at a time (several classes: "
            "sklearn.multiclass.OneVsRestClassifier)"
        )
    model = train_model(request, task, Clock()).trained.model
    weight = rows.weight if len(rows.weight) > 0 else 1.0
    start = np.repeat(model.base_score[:, np.newaxis], len(rows.y), axis=1)
    ((gradient,), (hessian,)) = loss.gradients(rows.targets, start)
    (leaf,) = leaves(model, rows.X, request.parameters.n_jobs).T
    path = pruning_path(model.nodes, leaf, weight * gradient, weight * hessian, model.params_of(0))
    return Bunch(ccp_alphas=path.alphas, impurities=path.impurities)
