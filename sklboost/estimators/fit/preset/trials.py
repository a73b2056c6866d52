"""Trials: trainings on some rows, judged on the others, to compare settings before the real fit."""

import time
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.training import Training
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.fit.binned import Binned, bin_rows
from sklboost.estimators.fit.fitting import metrics_before, train
from sklboost.estimators.fit.holdout import divide, order_to_hold_out
from sklboost.estimators.fit.reading import FitRequest, FitTask
from sklboost.estimators.input.bin_features import Means, bin_checked
from sklboost.estimators.input.feature_tables import feature_settings
from sklboost.estimators.input.rows import Rows, weigh_classes
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.objectives.loss import lacking

# A trial ends when its metric has not improved for so many rounds.
_PATIENCE = 50
# Up to so many rows: how many parts they are divided into, and how many of these are held out in
# turn. The fewer rows judge, the less can be said from one part.
_FOLDS = ((4_000, 5, 5), (10_000, 5, 3), (np.inf, 5, 1))

# Of more rows, so many tell settings apart as well; fewer do if each has many raw scores, and so
# does one part.
_MOST_COMPARED, _FEWEST_COMPARED = 25_000, 5_000
_MOST_SCORES = 75_000
# Sparse rows become a dense table of bins, which is faster, if it has at most so many.
_LARGEST_DENSE = 2**26


class Fold(NamedTuple):
    """Rows to train on with their bins; the rows that judge are the task's validation data."""

    task: FitTask
    binned: Binned


class Outcome(NamedTuple):
    """How good a model of some settings is."""

    metric: str
    value: float  # of the metric after the best round, the mean over the folds
    loss: float  # the same, or its negative if greater is better
    n_rounds: int  # up to the best round
    # that these rounds took on one fold, and their metrics
    seconds: float
    seconds_to_judge: float = 0.0
    # whether `max_time` ended the training before it was known that no later round is better
    is_cut: bool = False


class Trials:
    """Trains models of different settings on the same folds.

    Parameters
    ----------
    request : FitRequest
    data : FitTask
        All rows, with the weights of the user. If it has validation data, that judges; else parts
        of the rows do.
    team : ThreadTeam
    begin : float
        When the fit began, by ``time.perf_counter``.
    """

    def __init__(self, request: FitRequest, data: FitTask, team: ThreadTeam, begin: float):
        self._request = request
        self._team = team
        self._begin = begin
        self._outcomes: dict[str, Outcome] = {}
        self._folds = [_fold(part, request, team) for part in _parts(request, data)]

    @property
    def n_folds(self) -> int:
        """How many trainings a trial has; 0: no part of the rows can be trained on and judged."""
        return len(self._folds)

    def judge(self, settings: dict[str, Any]) -> Outcome | None:
        """Return how good models of these parameters are; None if there is no time to find out.

        The first fold decides how many rounds are looked at: until its metric no longer improves.
        Of the first settings, what there is time for has to do: some of the folds, some rounds.
        """
        key = repr(sorted(settings.items()))
        if key not in self._outcomes:
            outcome = self._judge(self._request.with_settings(settings))
            if outcome is None:
                return None
            self._outcomes[key] = outcome
        return self._outcomes[key]

    def _judge(self, request: FitRequest) -> Outcome | None:
        is_first = not self._outcomes
        if self._is_late() and not is_first:
            return None
        training = self._train(request, self._folds[0], {"early_stopping_rounds": _PATIENCE})
        metric, *curves = _last_metric(training)
        n_rounds = len(curves[0])
        is_cut = training.stop_reason == "max_time"
        settings = {} if request.is_forest else {"n_estimators": n_rounds}
        for fold in self._folds[1:]:
            if not self._is_late():
                curve = _last_metric(self._train(request, fold, settings))[1]
                curves += [curve] if len(curve) == n_rounds else []
        if not is_first and (is_cut or len(curves) < self.n_folds):
            return None  # others were judged by more
        mean = np.mean(curves, axis=0)
        loss = -mean if training.greater_is_better(metric) else mean
        best = int(np.argmin(loss))
        share = (best + 1) / n_rounds
        return Outcome(
            *(metric, float(mean[best]), float(loss[best]), best + 1),
            seconds=training.seconds["boosting"] * share,
            seconds_to_judge=training.seconds["evaluation"] * share,
            is_cut=is_cut,
        )

    def _is_late(self) -> bool:
        most = self._request.parameters.max_time
        return most is not None and time.perf_counter() - self._begin > most

    def _train(self, request: FitRequest, fold: Fold, settings: dict[str, Any]) -> Training:
        request = request.with_settings(settings)
        task = fold.task._replace(rounds=range(request.n_rounds))
        try:
            _, training = train(request, self._team, fold.binned, task, self._begin)
        except Exception as error:
            error.add_note(f"in a trial of preset='auto', on {len(task.rows.y)} of the rows")
            raise
        if training.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return training


def sample(request: FitRequest, data: FitTask) -> FitTask:
    """Return a task with as many of the rows as settings are compared on."""
    rows = data.rows
    most_by_scores = max(_FEWEST_COMPARED, _MOST_SCORES // data.loss.n_outputs)
    share = min(_MOST_COMPARED, most_by_scores) / len(rows.y)
    if share >= 1.0:
        return data
    places = order_to_hold_out(rows, **_how_to_divide(request, data))
    # with the only row of a class
    return data._replace(rows=rows.take((places < share) | np.isinf(places)))


def _how_to_divide(request: FitRequest, data: FitTask) -> dict[str, Any]:
    return {
        "how": request.parameters.validation_split,
        "parts": data.targets.parts(data.rows.y),
        "seed": data.seeds[0],
    }


def _last_metric(training: Training) -> tuple[str, list[float]]:
    """Return the name of the metric that judges, and its value after each round."""
    (logs,) = training.finished_log().values()
    *_, (name, values) = logs.items()
    return name, values


def _parts(request: FitRequest, data: FitTask) -> list[FitTask]:
    """Return tasks of a part of the rows each, whose validation data are the others.

    A part that cannot be trained on, or whose others cannot judge, is left out: because of the loss
    or the metric, or without a row of some class, or a known value of some target.
    """
    rows, targets = data.rows, data.targets
    if data.validation:
        name, judges = list(data.validation.items())[-1]
        return [_task(request, data, rows, (name, judges))]
    n_scores = len(rows.y) * data.loss.n_outputs
    n_parts, n_used = next((parts, used) for most, parts, used in _FOLDS if len(rows.y) <= most)
    # the last rows are one part
    if request.parameters.validation_split == "time" or n_scores > _MOST_SCORES:
        n_used = 1
    metrics_before(request, _task(request, data, rows, ("validation_0", rows)))  # or the error
    masks = divide(rows, n_parts, **_how_to_divide(request, data))
    rows = rows._replace(X=_binned(request, rows))
    pairs = ((rows.take(~mask), rows.take(mask)) for mask in islice(masks, n_used))
    tasks = (
        _task(request, data, kept, ("validation_0", held_out))
        for kept, held_out in pairs
        if targets.is_complete(kept.y) and targets.is_complete(held_out.y)
    )
    parts, errors = [], []
    for task in tasks:
        try:
            can_learn = not lacking(task.loss, task.rows.y)
            if can_learn and np.isfinite(metrics_before(request, task)[-1]):
                parts.append(task)
        except Exception as error:  # of a metric that there is for all rows
            errors.append(error)
    if errors and not parts and callable(request.parameters.eval_metric):
        warn_user(
            "preset='auto' compares nothing, since eval_metric cannot be computed for any part of "
            f"the rows: {errors[-1]}. Pass X_val and y_val, or choose another eval_metric"
        )
    return parts


def _task(request: FitRequest, data: FitTask, rows: Rows, judges: tuple[str, Rows]) -> FitTask:
    """Return the task of a trial. Rows are held out by the user's weights, before this."""
    if request.parameters.subsample < 1.0:
        rows = rows.repeat(data.loss)  # as in a fit: each is drawn on its own
    rows, (name, held_out) = weigh_classes(rows, data.targets), judges
    validation = {name: weigh_classes(held_out, data.targets)}
    return data._replace(rows=rows, everything=rows, validation=validation)


def _binned(request: FitRequest, rows: Rows) -> Any:
    """Return the features in bins, which all parts share."""
    X = rows.X
    is_large_if_dense = isinstance(X, SparseTable) and X.size > _LARGEST_DENSE
    # linear leaves need values
    if request.parameters.linear_tree or isinstance(X, BinnedMatrix) or is_large_if_dense:
        return X
    settings = feature_settings(request.estimator_name, request.parameters)
    return bin_checked(X, rows.weight, settings, None, None, Means(request.parameters.n_jobs, 0))


def _fold(part: FitTask, request: FitRequest, team: ThreadTeam) -> Fold:
    rows = part.rows
    return Fold(part, bin_rows(team, rows, request.parameters))
