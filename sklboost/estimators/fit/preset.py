"""Parameters chosen from the data: what ``preset="auto"`` does before the model is trained."""

import time
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.training import Training
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.parallel import ThreadTeam, n_threads_for
from sklboost.estimators.fit.fitting import Binned, ChosenParams, bin_rows, metrics_before, train
from sklboost.estimators.fit.holdout import divide, order_to_hold_out
from sklboost.estimators.fit.reading import FitRequest, FitTask, stops_early
from sklboost.estimators.input.arguments import seeds
from sklboost.estimators.input.bins import Means, bin_checked
from sklboost.estimators.input.features import feature_settings
from sklboost.estimators.input.rows import Rows, weigh_classes
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.progress import log_line
from sklboost.objectives.loss import lacking

# They decide on the size of trees, too.
_LEAVES = ("max_leaves", "grow_policy")


class Choice(NamedTuple):
    """The value of a parameter, and why it was chosen."""

    value: Any
    why: str


def values_of(chosen: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the values alone."""
    return {name: choice.value for name, choice in chosen.items()}


class Stage(NamedTuple):
    """Values of a parameter that are compared."""

    parameter: str
    values: Sequence[Any]  # the stages before are gone through with the first one
    why: str
    # parameters that decide on the same: if one of them is set, there is no such stage
    rivals: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What is chosen without trials, and what by trials, in this order."""

    start: Mapping[str, Choice]
    stages: Sequence[Stage]


_SEED = Choice(0, "the same data give the same model")
_FOREST = Plan(
    start={
        "n_estimators": Choice(300, "more trees are never worse, and from here on hardly better"),
        "subsample": Choice(0.632, "so many different rows are in a bootstrap sample"),
        "random_state": _SEED,
    },
    stages=[
        Stage("max_depth", (12, 6, 20), "deep trees vary more, but their mean less", _LEAVES),
        Stage("colsample_bynode", (0.8, 0.33), "fewer features may make trees more different"),
    ],
)


def plan_for(request: FitRequest, data: FitTask) -> Plan:
    """Return the plan for boosting on such data, or for a forest."""
    if request.is_forest:
        return _FOREST
    start = {
        "subsample": Choice(0.7, "trees of different rows vary, and their sum varies less"),
        "random_state": _SEED,
    }
    # the cover of rows that are predicted well may be far below their number
    covers = [1.0, 8.0] if data.loss.hessian_is_one else [1.0, 0.1, 8.0]
    weight = data.rows.weight
    unit = float(weight.mean()) if len(weight) > 0 else 1.0
    if unit != 1.0:
        covers = [unit * cover for cover in covers]
        start["reg_lambda"] = Choice(unit, "the mean weight of a row")
    stages = [
        Stage("extra_trees", (False, True), "random thresholds may follow the noise less"),
        Stage("max_depth", (6, 4, 8), "a tree of depth d can join d features", _LEAVES),
        Stage("min_child_weight", covers, "leaves of little cover may follow single rows"),
        Stage("colsample_bylevel", (0.9, 0.4), "fewer features may make trees more different"),
    ]
    return Plan(start, stages)


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
        "parts": data.targets.strata_for_holdout(data.rows.y),
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


# Learning rate 0.1 finds the same depth as smaller ones, in a fraction of the time.
_TRIAL_RATE, _LARGEST_RATE, _SMALLEST_RATE = 0.1, 0.3, 0.005
_MOST_ROUNDS = 1000
# Up to so many raw scores of training rows, the steps of the fit are so much smaller than those of
# the trials, and its rounds so many times as many.
_FINER_STEPS = ((50_000, 4), (500_000, 2), (np.inf, 1))
_OF_TRIALS: Mapping[str, Any] = {
    "preset": None,
    "booster": "gbtree",  # rounds that drop others are scored anew each time
    "callbacks": None,
    "verbose": 0,
    "early_stopping_rounds": None,
    "warm_start": False,
    "keep_pruned": False,
}
# Fewer rows cannot tell settings apart.
_FEWEST_ROWS = 20
# Of `max_time`, for trials.
_SHARE_OF_TIME = 0.5
# Of what is left of it, for the rounds of the fit: it has more rows than a trial.
_SAFE_SHARE = 0.6


class Search:
    """What trials have come to so far.

    Parameters
    ----------
    is_shown : bool
        Whether each choice is shown to the user.

    Attributes
    ----------
    chosen : dict of str to Choice
        The best values of the parameters of the stages.
    outcome : Outcome or None
        Of these. None: there was no trial.
    """

    def __init__(self, is_shown: bool) -> None:
        self._is_shown = is_shown
        self.chosen: dict[str, Choice] = {}
        self.outcome: Outcome | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """The values that were chosen."""
        return values_of(self.chosen)

    def compare(self, trials: Trials, stages: Sequence[Stage]) -> None:
        """Go through the stages, each of which keeps its best value."""
        first = {stage.parameter: stage.values[0] for stage in stages}
        if self._is_shown:
            n_settings = 1 + sum(len(stage.values) - 1 for stage in stages)
            log_line(f"{n_settings} settings to compare, with {trials.n_folds} training(s) each")
        outcome = trials.judge(first)
        if outcome is None or not np.isfinite(outcome.loss):
            return
        self.outcome = outcome
        for name, value in first.items():
            self.chosen[name] = Choice(value, "there was no time to compare it with others")
        for stage in stages:
            name, before = stage.parameter, self.settings
            judged = ((value, trials.judge(before | {name: value})) for value in stage.values)
            outcomes = {value: outcome for value, outcome in judged if outcome is not None}
            if len(outcomes) < min(2, len(stage.values)):
                return
            best = min(outcomes, key=lambda value: outcomes[value].loss)
            self.chosen[name] = Choice(best, _comparison(stage, outcomes, best))
            self.outcome = outcomes[best]
            self.show({name: self.chosen[name]})

    def show(self, chosen: Mapping[str, Choice]) -> None:
        """Show choices to the user, if that is asked for."""
        for name, choice in chosen.items() if self._is_shown else ():
            log_line(f"{name}={choice.value!r}: {choice.why}")

    def count_rounds(self, trials: Trials) -> None:
        """Find the best number of rounds of the chosen values once more, on all rows."""
        known, found = self.outcome, trials.judge(self.settings)
        assert known is not None
        assert found is not None
        if found.is_cut and found.n_rounds < known.n_rounds:
            more = known.n_rounds / found.n_rounds
            found = known._replace(
                seconds=more * found.seconds, seconds_to_judge=more * found.seconds_to_judge
            )
        self.outcome = found


def _comparison(stage: Stage, outcomes: Mapping[Any, Outcome], best: Any) -> str:
    won = outcomes[best]
    if len(outcomes) > 1 and all(outcome.loss == won.loss for outcome in outcomes.values()):
        return f"{won.metric} {won.value:.5g} with any of {tuple(outcomes)}"
    others = ", ".join(
        f"{outcome.value:.5g} with {value}" for value, outcome in outcomes.items() if value != best
    )
    compared = ", ".join(filter(None, [f"{won.metric} {won.value:.5g}", others]))
    return f"{compared}: {stage.why}"


def choose(request: FitRequest, data: FitTask, begin: float) -> ChosenParams:
    """Choose values of the parameters that are free; the others keep theirs.

    Parameters
    ----------
    request : FitRequest
    data : FitTask
        Of all rows.
    begin : float
        When the fit began, by ``time.perf_counter``.

    Raises
    ------
    ValueError
        If the fit continues a model, or as `fit` does.
    """
    if request.continued is not None:
        raise ValueError(
            "preset='auto' chooses parameters for a new model, and cannot continue "
            f"{request.continued.name}: set_params(**model.chosen_params_, preset=None) before"
        )
    plan, free = plan_for(request, data), request.free
    chosen = {name: choice for name, choice in plan.start.items() if name in free}
    stages = [stage for stage in plan.stages if {stage.parameter, *stage.rivals}.issubset(free)]
    trial = _trial_request(request.with_settings(values_of(chosen)))
    search = Search(is_shown=bool(request.parameters.verbose))
    if len(data.rows.y) >= _FEWEST_ROWS and not data.targets.is_constant:
        seed = seeds(trial.parameters.random_state, is_sampling=True)
        _search(trial, data._replace(seeds=seed), stages, search, begin)
    chosen |= search.chosen
    if search.outcome is not None and not request.is_forest:
        n_scores = len(data.rows.y) * data.loss.n_outputs
        steps = _steps(request, search.outcome, n_scores, begin)
        search.show(steps)
        chosen |= steps
    return ChosenParams(values_of(chosen), {name: choice.why for name, choice in chosen.items()})


def _trial_request(request: FitRequest) -> FitRequest:
    """Return the request of a trial: no callback is told, no `random_state` is advanced."""
    parameters, settings = request.parameters, dict(_OF_TRIALS)
    if not is_integer(parameters.random_state):
        settings["random_state"] = 0
    if parameters.max_time is not None:
        settings["max_time"] = _SHARE_OF_TIME * parameters.max_time
    if "learning_rate" in request.free and not request.is_forest:
        settings |= {"learning_rate": _TRIAL_RATE, "n_estimators": _MOST_ROUNDS}
    elif "n_estimators" in request.free and not request.is_forest:
        slower = max(1.0, _TRIAL_RATE / max(parameters.learning_rate, _SMALLEST_RATE))
        settings["n_estimators"] = int(_MOST_ROUNDS * slower)
    return request.with_settings(settings)._replace(listeners=())


def _search(
    request: FitRequest, data: FitTask, stages: Sequence[Stage], search: Search, begin: float
) -> None:
    """Compare settings until all stages are done, or there is no time left."""
    n_jobs, n_values = request.parameters.n_jobs, data.rows.X.size
    n_threads = n_threads_for(n_jobs, n_values, VALUES_PER_THREAD, n_times=_MOST_ROUNDS)
    with ThreadTeam(n_threads) as team:
        compared = sample(request, data)
        trials = Trials(request, compared, team, begin)
        if trials.n_folds > 0:
            search.compare(trials, stages)
        if search.outcome is not None and compared is not data:  # more rows bear more rounds
            trials = Trials(request, data, team, begin)
            if trials.n_folds > 0:
                search.count_rounds(trials)


def _steps(request: FitRequest, outcome: Outcome, n_scores: int, begin: float) -> dict[str, Choice]:
    """Choose the learning rate and the number of rounds, or the one of them that is free.

    Their product is how far it is to the best model, and the trial has found that.
    """
    free, parameters = request.free, request.parameters
    n_rounds, rate = outcome.n_rounds, parameters.learning_rate
    rate = _TRIAL_RATE if "learning_rate" in free else rate
    of = ", as many as there was time for," if outcome.is_cut else ""
    best = f"{outcome.metric} is best after {n_rounds} rounds{of} of learning rate {rate:g}"
    in_time = _rounds_in_time(request, outcome, begin)
    if "learning_rate" not in free:
        chosen = {"n_estimators": Choice(n_rounds, best)}
    elif "n_estimators" not in free:
        rate = min(_LARGEST_RATE, rate * n_rounds / min(request.n_rounds, in_time))
        chosen = {"learning_rate": Choice(rate, best)}
    else:
        finer = _finer_steps(n_scores, n_rounds, in_time)
        if parameters.booster == "dart":
            finer = min(finer, 1.0)
        why = "smaller steps are better, but slower" if finer >= 1.0 else "for want of time"
        chosen = {
            "n_estimators": Choice(max(1, int(finer * n_rounds)), best),
            "learning_rate": Choice(rate / finer, why),
        }
    return {name: choice for name, choice in chosen.items() if name in free}


def _rounds_in_time(request: FitRequest, outcome: Outcome, begin: float) -> float:
    """Return for how many rounds of the fit there is time, at least 1."""
    parameters, arguments = request.parameters, request.arguments
    if parameters.max_time is None:
        return np.inf
    stops = stops_early(parameters)
    seconds = outcome.seconds * (2 if stops and parameters.refit else 1)
    if stops or arguments.X_val is not None or arguments.eval_set is not None:
        seconds += outcome.seconds_to_judge
    seconds_left = parameters.max_time - (time.perf_counter() - begin)
    return max(1.0, _SAFE_SHARE * seconds_left / seconds * outcome.n_rounds)


def _finer_steps(n_scores: int, n_rounds: int, in_time: float) -> float:
    """Return how much smaller the steps of the fit are than those of the trials.

    Larger ones, where there is not the time for as many rounds.
    """
    finer = next(finer for most, finer in _FINER_STEPS if n_scores <= most)
    share = min(finer, in_time / n_rounds)
    return int(share) if share >= 1.0 else max(share, _TRIAL_RATE / _LARGEST_RATE)
