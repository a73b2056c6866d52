"""The preset "auto": every parameter at its default is chosen from the data.

:func:`choose` tells the story: train models of some settings on a part of the rows, compare them on
the rest, and take the best settings, and as many rounds as were best, for the fit that follows.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.thread_counts import n_threads_for
from sklboost.estimators.fit.preset.plan import Choice, Stage, plan_for, values_of
from sklboost.estimators.fit.preset.trials import Outcome, OutOfTimeError, Trials, sample
from sklboost.estimators.fit.reading import FitRequest, FitTask
from sklboost.estimators.fit.result import ChosenParams
from sklboost.estimators.input.seeds import seeds
from sklboost.estimators.parameters.rules import is_integer
from sklboost.estimators.progress import log_line

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
        if not np.isfinite(outcome.loss):
            return  # a class that no row of the part was trained on, for one
        self.outcome = outcome
        for name, value in first.items():
            self.chosen[name] = Choice(value, "there was no time to compare it with others")
        for stage in stages:
            name, before = stage.parameter, self.settings
            outcomes = {value: trials.judge(before | {name: value}) for value in stage.values}
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
        if known is not None and found.is_cut and found.n_rounds < known.n_rounds:
            seconds = found.seconds * known.n_rounds / found.n_rounds
            found = found._replace(n_rounds=known.n_rounds, seconds=seconds)
        self.outcome = found


def _comparison(stage: Stage, outcomes: Mapping[Any, Outcome], best: Any) -> str:
    won = outcomes[best]
    if len(outcomes) > 1 and all(outcome.loss == won.loss for outcome in outcomes.values()):
        return f"{won.metric} {won.value:.5g} with any of {stage.values}"
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
    with ThreadTeam(n_threads) as team, suppress(OutOfTimeError):
        compared = sample(request, data)
        trials = Trials(request, compared, team, begin)
        if trials.n_folds > 0:
            search.compare(trials, stages)
        if search.outcome is not None and compared is not data:  # more rows bear more rounds
            search.count_rounds(Trials(request, data, team, begin))


def _steps(request: FitRequest, outcome: Outcome, n_scores: int, begin: float) -> dict[str, Choice]:
    """Choose the learning rate and the number of rounds, or the one of them that is free.

    Their product is how far it is to the best model, and the trial has found that.
    """
    free = request.free
    best = f"{outcome.metric} is best after {outcome.n_rounds} rounds of learning rate "
    if "learning_rate" not in free:
        rate = request.parameters.learning_rate
        chosen = {"n_estimators": Choice(outcome.n_rounds, f"{best}{rate:g}")}
    elif "n_estimators" not in free:
        rate = min(_LARGEST_RATE, _TRIAL_RATE * outcome.n_rounds / request.n_rounds)
        chosen = {"learning_rate": Choice(rate, f"{best}{_TRIAL_RATE:g}")}
    else:
        is_dart = request.parameters.booster == "dart"
        finer = (
            1 if is_dart else _finer_steps(n_scores, outcome, request.parameters.max_time, begin)
        )
        chosen = {
            "n_estimators": Choice(finer * outcome.n_rounds, f"{best}{_TRIAL_RATE:g}"),
            "learning_rate": Choice(_TRIAL_RATE / finer, "smaller steps are better, but slower"),
        }
    return {name: choice for name, choice in chosen.items() if name in free}


def _finer_steps(n_scores: int, outcome: Outcome, max_time: float | None, begin: float) -> int:
    """Return how much smaller the steps of the fit are than those of the trials."""
    finer = next(finer for most, finer in _FINER_STEPS if n_scores <= most)
    if max_time is None:
        return finer
    seconds_left = max_time - (time.perf_counter() - begin)
    return int(np.clip(_SAFE_SHARE * seconds_left / outcome.seconds, 1, finer))
