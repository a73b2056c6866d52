"""The preset "auto": every parameter at its default is chosen from the data.

:func:`choose` tells the story: train models of some settings on a part of the rows, compare them on
the rest, and take the best settings, and as many rounds as were best, for the fit that follows.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.thread_counts import n_threads_for
from sklboost.estimators.fit.preset.plan import Choice, Stage, plan_for, values_of
from sklboost.estimators.fit.preset.trials import Outcome, Trials, sample
from sklboost.estimators.fit.reading import FitRequest, FitTask
from sklboost.estimators.fit.result import ChosenParams
from sklboost.estimators.fit.training_settings import stops_early
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
