"""From a `FitTask` to a fitted model: :func:`train` bins the rows and does the rounds.

:func:`make_training` puts together one training on rows in bins; with `refit` there is a second
one, on all rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from sklboost.boosting.callbacks import EarlyStopping
from sklboost.boosting.evaluation import ValidationSet
from sklboost.boosting.rounds import Rounds
from sklboost.boosting.settings import BoostingTask, Dropout
from sklboost.boosting.training import MakeGrower, Replay, Schedule, Training
from sklboost.data.binning import LEAST_SHARED_VALUES, VALUES_PER_THREAD
from sklboost.data.features import RemoteFeatures, training_bins
from sklboost.data.raw_values import row_blocks
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam, n_threads_for
from sklboost.engine.structs import BinCuts, RemoteColumn, TrainingBins
from sklboost.estimators.fit.eval_metric import check_names, resolve_metrics
from sklboost.estimators.fit.reading import FitTask, drops_rounds, tree_settings
from sklboost.estimators.input.feature_names import name_text
from sklboost.estimators.input.rows import Rows, warn_of_no_split
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.predict.fitted_model import FittedModel, TrainedModel, add_scores, leaves
from sklboost.estimators.progress import progress_callback
from sklboost.inspection.nested_subtrees import pruning_path
from sklboost.objectives.metric import Metric
from sklboost.tree.predict.trees import no_trees, trees_of


def train(task: FitTask) -> dict[str, Any]:
    """Do what a task says, and return the attributes of the fitted estimator."""
    rows, parameters, continued, clock = task.rows, task.parameters, task.continued, task.clock
    first = task
    if task.validation and continued is not None and task.is_warm_start:
        # new rounds are judged by validation rows: add them to the model that has not seen these
        before_refit = continued.state.get("_before_refit")
        if before_refit is not None:
            first = task._replace(continued=replace(continued, model=before_refit))
    n_times = parameters.n_estimators
    n_threads = n_threads_for(parameters.n_jobs, rows.X.size, VALUES_PER_THREAD, n_times)  # type: ignore[arg-type]
    with ThreadTeam(n_threads) as team:
        bins = bin_rows(team, rows, parameters)
        clock.lap("binning")
        training = make_training(team, bins, first)
        training.run()
        clock.lap("other", training.seconds)
        best, stop_reason = training.best_iteration, training.stop_reason
        n_rounds = training.n_rounds if best is None else best + 1
        model = stopped = training.model(n_rounds)
        # neither when the time is up, nor after Ctrl-C; it takes none without a new round
        has_time = stop_reason in ("completed", "early_stopping") or n_rounds <= task.rounds.start
        if parameters.refit and best is not None and has_time:
            again = task._replace(rows=task.everything, targets=task.all_targets)
            try:
                other_bins, other = _train_again(team, again, training, n_rounds)
            except KeyboardInterrupt:
                stop_reason = "interrupted"
            else:
                if other.stop_reason == "completed":
                    task, bins, model = again, other_bins, other.model(n_rounds)
                else:
                    stop_reason = other.stop_reason
            clock.lap("refit")
    if len(model.nodes) == model.n_trees and not task.targets.is_constant:  # all of them leaves
        least = trees_of(model).params["min_child_weight"][-1]
        warn_of_no_split(
            task.targets.unweigh(task.rows.y, task.rows.weight),
            len(task.rows.y),
            (float(model.nodes.cover.max()), float(least)),
            parameters.min_child_samples or 0,
            has_own_cover=task.loss.can_repeat,
        )
    trained = trained_model_of(task, model)
    is_refitted = model is not stopped
    keeps_stopped = is_refitted and parameters.warm_start
    clock.lap("other")
    return fit_attributes(
        trained,
        evals_result=training.finished_log(),
        first_round=training.first_logged,
        split_seed=task.split_seed if keeps_stopped or not is_refitted else None,
        before_refit=stopped if keeps_stopped else None,
        stop_reason=stop_reason,
        best_iteration=best,
        best_score=training.best_score,
        report=_report_of(trained, bins, task, training),
        chosen=task.chosen,
    )


def _train_again(
    team: ThreadTeam, task: FitTask, first: Training, n_rounds: int
) -> tuple["Bins", Training]:
    """Train once more, up to the best round, with the learning rates of the first training.

    No callback is told. If time is up before all rounds are done, or at Ctrl-C, the result of the
    first training stays.
    """
    bins = bin_rows(team, task.rows, task.parameters)
    schedule = first.schedule._replace(
        rounds=range(task.rounds.start, max(task.rounds.start, n_rounds)),
        callbacks=[Replay(first.learning_rates)],
        validation=[],
        logs_before=False,
    )
    training = make_training(team, bins, task, schedule)
    training.run()
    return bins, training


# --- bins


class Bins(NamedTuple):
    """The bins of the rows of a fit, and what grows trees on them."""

    matrix: TrainingBins  # on a cluster without the bins of the rows, which are all 0 here
    cuts: BinCuts
    make_grower: MakeGrower = Rounds  # as :class:`~sklboost.boosting.training.Training` takes it
    # bool, shape (n_features,), or None: whether all rows have the same bin. None: the matrix
    # tells.
    is_constant: np.ndarray | None = None


def bin_rows(team: ThreadTeam, rows: Rows, parameters: Parameters) -> Bins:
    """Bin the rows of a fit."""
    X, max_bin = rows.X, parameters.max_bin
    if not isinstance(X, RemoteFeatures):
        team = team if X.size >= LEAST_SHARED_VALUES else ThreadTeam(1)
        return Bins(*training_bins(team, X, rows.weight, max_bin))  # type: ignore[arg-type]
    from sklboost.distributed.training import bin_on_cluster

    return Bins(*bin_on_cluster(X, rows.weight, max_bin, parameters.n_jobs))  # type: ignore[arg-type]


# --- one training


@np.errstate(all="ignore")
def start_of(task: FitTask) -> np.ndarray:
    """Return the raw score of the model before its first tree, float64, shape (n_outputs,)."""
    rows, loss = task.rows, task.loss
    base_score: Any = task.parameters.base_score
    if task.continued is not None:
        return task.continued.model.base_score
    if len(rows.margin) > 0:
        return np.zeros(loss.n_outputs)
    if base_score is None:
        return loss.start(rows.targets, rows.weight)
    n_targets = min(len(rows.targets), task.targets.size)
    sizes = sorted({n_targets, loss.n_outputs})  # several classes, or quantiles of one target
    if np.ndim(base_score) > 0 and len(base_score) not in sizes:
        raise ValueError(
            f"base_score={base_score!r:.100}: y has {n_targets} target(s) and {loss.name} "
            f"{loss.n_outputs} raw score(s) a row, so it must be one number, or a list of "
            f"{' or '.join(map(str, sizes))}"
        )
    values = np.ravel(base_score).astype(np.float64)
    raw = np.array([loss.raw_of(float(value)) for value in values])
    outputs = np.arange(loss.n_outputs)
    return raw[outputs % len(values), outputs]  # output o has target o % n_targets, and class o


def _raw_scores(
    rows: Rows,
    base_score: np.ndarray,
    continued: FittedModel | None,
    shift: "float | np.ndarray" = 0.0,  # to be added to them
) -> Any:
    """Return the raw scores before the first new round, shape (n_outputs, n_samples), or a column.

    Of rows that are elsewhere they are not to be written to.
    """
    if isinstance(rows.margin, RemoteColumn) and continued is None:
        margin: Any = rows.margin.T
        return margin + shift if np.any(shift) else margin
    if isinstance(rows.X, RemoteFeatures) and continued is None and len(rows.margin) == 0:
        # the same of all rows: memory for one
        return np.broadcast_to(base_score[:, np.newaxis] + shift, (len(base_score), len(rows.y)))
    raw_score = rows.starting_scores(base_score)
    if continued is not None:
        add_scores(continued.model, rows.X, continued.trees(None), raw_score, continued.n_jobs)
    raw_score += shift
    return raw_score


def schedule_of(task: FitTask, base_score: np.ndarray) -> Schedule:
    """Return how far the training of a task goes, and who watches it."""
    parameters, continued = task.parameters, task.continued
    # a fit of warm_start may end with the model as it was; init_model is asked for more rounds
    logs_before = task.is_warm_start and len(task.validation) > 0
    validation = []
    for name, rows in task.validation.items():
        before = None if logs_before else continued
        raw_score = _raw_scores(rows, base_score, before, task.targets.expected_shift)
        y = rows.y.astype(np.float64)  # a copy: users' metrics are given it
        validation.append(ValidationSet(name, rows.X, y, rows.weight, raw_score))
    metrics: list[Metric] = []
    if validation:
        last = validation[-1]
        metrics = resolve_metrics(
            parameters.eval_metric,
            task.targets,
            task.loss,
            start=(last.y, last.raw_score, last.weight),
        )
    elif parameters.eval_metric is not None:  # a misspelt name is an error all the same
        check_names(parameters.eval_metric, task.targets, task.loss)
    callbacks = list(parameters.callbacks or ())
    if parameters.early_stopping_rounds is not None:
        callbacks.append(EarlyStopping(parameters.early_stopping_rounds))
    if parameters.verbose:
        callbacks.append(progress_callback(parameters.verbose))
    return Schedule(
        rounds=task.rounds,
        begin=task.clock.begin,
        max_time=np.inf if parameters.max_time is None else parameters.max_time,
        callbacks=[*callbacks, *task.listeners],
        validation=validation,
        metrics=metrics,
        make_estimator=lambda training: task.make_estimator(_attributes_so_far(task, training)),
        logs_before=logs_before,
    )


def metrics_before(task: FitTask) -> list[float]:
    """Return the metrics of the last validation data before the first round.

    ValueError if one is not defined for these rows. Means of rows that are columns are said to be
    0: those that are not finite raise an error in the first round.
    """
    schedule = schedule_of(task, start_of(task))
    last = schedule.validation[-1]
    if isinstance(last.y, RemoteColumn) and all(metric.formula for metric in schedule.metrics):
        return [0.0 for _ in schedule.metrics]
    last = last.with_arrays()
    with np.errstate(all="ignore"):
        # as after a round, rows differ a little: a correlation is not defined for a constant
        apart = 1e-6 * np.linspace(0.0, 1.0, len(last.y)) * (1.0 + np.abs(last.raw_score))
        moved = last.raw_score + apart
    return [
        metric.value(last.y, moved if metric.formula is None else last.raw_score, last.weight)
        for metric in schedule.metrics
    ]


def make_training(
    team: ThreadTeam, bins: Bins, task: FitTask, schedule: Schedule | None = None
) -> Training:
    """Return what does the rounds of a schedule, that of the task if none is given, on its rows."""
    rows, loss, parameters, continued = task.rows, task.loss, task.parameters, task.continued
    base_score = start_of(task)
    schedule = schedule_of(task, base_score) if schedule is None else schedule
    raw_score = _raw_scores(rows, base_score, continued)
    first_score = rows.margin.T
    if continued is not None:
        # rounds of the same loss belong to one training, which started from the margins
        is_same = np.array_equal(loss.parameters, continued.loss.parameters)
        first_score = first_score if is_same and loss.name == continued.loss.name else raw_score
    is_seen = loss.block is None or loss.row_derivatives is not None  # by a user's function
    # that and leaves which are quantiles of residuals read float64
    is_short = rows.y.dtype == np.float32 and rows.y.ndim == 1
    is_short = (is_short and len(loss.renewal) == 0) or rows.y.dtype == np.uint8
    if isinstance(rows.y, RemoteColumn):
        y = rows.y if is_short and not is_seen else rows.targets
    elif is_seen:
        y = np.array(rows.targets)  # a copy
    else:
        y = rows.y[np.newaxis] if is_short else rows.targets
    dropout = None
    if parameters.booster == "dart":
        dropout = Dropout(
            rate_drop=float(parameters.rate_drop),
            skip_drop=float(parameters.skip_drop),
            one_drop=bool(parameters.one_drop),
            by_weight=parameters.sample_type == "weighted",
            as_forest=parameters.normalize_type == "forest",
        )
    seed, sampling_seed = task.seeds
    boosting_task = BoostingTask(
        X=rows.X,
        matrix=bins.matrix,
        cuts=bins.cuts,
        y=y,
        weight=rows.weight,
        sample_weight=task.targets.unweigh(rows.y, rows.weight),
        raw_score=raw_score,
        base_score=base_score,
        trees_before=no_trees() if continued is None else trees_of(continued.model),
        loss=loss,
        params=tree_settings(task, first_score),
        rules=task.rules,
        seed=seed,
        sampling_seed=sampling_seed,
        dropout=dropout,
        keep_pruned=bool(parameters.keep_pruned),
    )
    make_grower = bins.make_grower
    if parameters.max_ctr_complexity > 0:
        from sklboost.boosting.category_statistics import make_grower
    return Training(team, boosting_task, schedule, make_grower, rows.words_for)


# --- the fitted model


def _attributes_so_far(task: FitTask, training: Training) -> dict[str, Any]:
    """Return the attributes of an estimator fitted with the finished rounds of a training."""
    return fit_attributes(
        trained_model_of(task, training.model(training.n_rounds)),
        evals_result=training.finished_log(),
        first_round=training.first_logged,
        split_seed=task.split_seed,
        stop_reason=training.stop_reason,
        chosen=task.chosen,
    )


@np.errstate(all="ignore")
def trained_model_of(task: FitTask, model: Model) -> TrainedModel:
    """Put together what prediction needs."""
    rows, targets, loss, continued = task.rows, task.targets, task.loss, task.continued
    shift = np.zeros(loss.n_outputs)
    if targets.reads_scores(loss):
        rows = rows.with_arrays()
        raw_score = rows.starting_scores(model.base_score)
        add_scores(model, rows.X, (0, model.n_trees), raw_score, task.parameters.n_jobs)
        targets, shift = targets.finish(loss, raw_score, rows.y, rows.weight)
    has_margin = len(rows.margin) > 0
    n_dart = model.n_rounds if drops_rounds(task.parameters) else 0
    if continued is not None:
        n_dart = continued.n_dart_rounds
    return TrainedModel(model, task.features, targets, loss, shift, has_margin, n_dart)


def fit_attributes(
    trained: TrainedModel,
    *,
    # by validation set and metric, round by round
    evals_result: Mapping[str, dict[str, list[float]]] = MappingProxyType({}),
    first_round: int = 0,  # of `evals_result`; not 0 if `init_model` was continued
    split_seed: int | None = None,  # by which rows were held out for early stopping; None: none
    # with `warm_start` and `refit`, the model that early stopping has judged
    before_refit: Model | None = None,
    stop_reason: str = "",
    best_iteration: int | None = None,
    best_score: float | None = None,
    report: "FitReport | None" = None,
    chosen: "ChosenParams | None" = None,  # by a preset. None: there was none.
) -> dict[str, Any]:
    """Return the attributes that an estimator keeps a model and its training in, by name.

    The defaults are those of a model of another library.
    """
    kept = {
        **trained.attributes,
        "evals_result_": dict(evals_result),
        "_first_round": first_round,
        "_split_seed": split_seed,
        "_before_refit": before_refit,
        "stop_reason_": stop_reason,
    }
    known = {
        "best_iteration_": best_iteration,
        "best_score_": best_score,
        "fit_report_": report,
        "chosen_params_": chosen,
    }
    return kept | {name: value for name, value in known.items() if value is not None}


@dataclass(frozen=True)
class FitReport:
    """Times, sizes and counts of a fit.

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
        Bins of all features together, including bins of missing values.
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
        ``"scales"`` of gradients, cells of ``"histograms"``, best ``"splits"`` and others. If
        workers were lost on the way, only what the last ones sent. Else empty.
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


@np.errstate(all="ignore")
def _report_of(trained: TrainedModel, bins: Bins, task: FitTask, training: Training) -> FitReport:
    """Return the report of a finished fit; `training` is the one that early stopping watched."""
    model, names, seconds = trained.model, trained.features.keys, task.clock.seconds
    constant = bins.is_constant
    numbers = _constant_features(bins.matrix) if constant is None else np.flatnonzero(constant)
    return FitReport(
        seconds={**seconds, "total": sum(seconds.values())},
        n_samples=task.rows.n_given,
        n_validation_samples=sum(len(held.y) for held in task.validation.values()),
        n_features=model.n_features,
        n_bins=int(bins.matrix.bin_starts[-1]),
        constant_features=[name_text(names[i]) for i in numbers],
        n_rounds=model.n_rounds,
        n_trees=model.n_trees,
        n_leaves=int((model.nodes.left < 0).sum()),
        n_pruned_splits=int(model.n_pruned.sum()),
        n_threads=training.grower.n_threads,
        traffic=training.grower.traffic,
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


# --- the pruning path of the first tree

# One whole tree of all rows, without callbacks and progress.
ONE_TREE: dict[str, Any] = {
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


def path_of_first_tree(task: FitTask) -> Bunch:
    """Grow the tree of a task with the settings `ONE_TREE` and return the path of its subtrees."""
    rows, loss = task.rows, task.loss
    if loss.n_outputs > 1:
        raise ValueError(
            f"cost_complexity_pruning_path prunes one tree, but {loss.name} has a tree for "
            f"each of {loss.n_outputs} outputs here: ask for one at a time (several classes: "
            "sklearn.multiclass.OneVsRestClassifier)"
        )
    model, rows = train(task)["model_"], rows.with_arrays()
    weight = rows.weight if len(rows.weight) > 0 else 1.0
    start = np.repeat(model.base_score[:, np.newaxis], len(rows.y), axis=1)
    ((gradient,), (hessian,)) = loss.gradients(rows.targets, start)
    (leaf,) = leaves(model, rows.X, task.parameters.n_jobs).T
    sums, params = (weight * gradient, weight * hessian), model.params_of(0)
    alphas, impurities = pruning_path(model.nodes, leaf, *sums, params)
    return Bunch(ccp_alphas=alphas, impurities=impurities)
