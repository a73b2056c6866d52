"""Parameters chosen from the data: what ``preset="auto"`` does before the model is trained.

:func:`choose` goes through the stages of a plan. In each, models of a few values of one parameter
are trained on some of the rows and judged by others. Then come the step and the number of rounds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EvalsLog, TrainingCallback, TrainingState
from sklboost.boosting.category_statistics import FEWEST_CATEGORIES
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.data.features import RemoteFeatures, row_arrays_of
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.parallel import SideBySide, Submitted, ThreadTeam, most_threads, n_threads_for
from sklboost.estimators.fit.fitting import (
    Bins,
    ChosenParams,
    bin_rows,
    make_training,
    metrics_before,
)
from sklboost.estimators.fit.holdout import divide, sample
from sklboost.estimators.fit.reading import FitTask, check_symmetric, stops_early
from sklboost.estimators.input.bins import bin_checked
from sklboost.estimators.input.features import feature_settings
from sklboost.estimators.input.rows import Rows, weigh_classes
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import rounds_and_trees, seeds
from sklboost.estimators.parameters.kinds import RankerParameters
from sklboost.estimators.parameters.rules import is_integer, names_of
from sklboost.estimators.progress import SearchProgress, is_watched, log_line
from sklboost.objectives.loss import lacking
from sklboost.objectives.registry import is_metric_name
from sklboost.objectives.start_values import NO_WEIGHT, weighted_mean


class Choice(NamedTuple):
    """The value of a parameter, and why it was chosen."""

    value: Any
    why: str


def values_of(chosen: Mapping[str, Choice]) -> dict[str, Any]:
    """Return the values alone."""
    return {name: choice.value for name, choice in chosen.items()}


# Fewer rows cannot tell settings apart.
_FEWEST_ROWS = 20


def choose(task: FitTask) -> ChosenParams:
    """Choose values of the parameters that are free; the others keep theirs."""
    if task.continued is not None:
        raise ValueError(
            "preset='auto' chooses parameters for a new model, and cannot continue "
            f"{task.continued_name}: set_params(**model.chosen_params_, preset=None) before"
        )
    plan, free = plan_for(task), task.free
    chosen = {name: choice for name, choice in plan.start.items() if name in free}
    if "categorical_features" in free and task.features.encodings is not None:
        chosen["categorical_features"] = _CATEGORIES
    stages = [stage for stage in plan.stages if {stage.parameter, *stage.rivals}.issubset(free)]
    max_time = task.parameters.max_time
    limit = np.inf if max_time is None else max_time - task.clock.elapsed
    is_live = "verbose" in task.free and is_watched()
    progress = SearchProgress("lines" if task.parameters.verbose else is_live * "live", limit)
    trial = _trial_of(task.with_settings(values_of(chosen)))
    comparison = Comparison(task, progress)
    if len(task.rows.y) >= _FEWEST_ROWS and not task.targets.is_constant:
        n_jobs, n_values = trial.parameters.n_jobs, trial.rows.X.size
        n_threads = n_threads_for(n_jobs, n_values, VALUES_PER_THREAD, n_times=_MOST_ROUNDS)
        with closing(progress), ThreadTeam(n_threads) as team:
            compared = _sample(trial)
            with Trials(compared, team, progress) as trials:
                if trials.most_bins <= 2:  # there is no other threshold to draw
                    stages = [stage for stage in stages if stage.parameter != "extra_trees"]
                n_settings = 1 + sum(len(stage.values) - 1 for stage in stages)
                progress.n_trainings = n_settings * trials.n_folds
                if trials.n_folds > 0 and task.parameters.verbose:
                    log_line(
                        f"{n_settings} settings to compare, with {trials.n_folds} training(s) each"
                    )
                if trials.n_folds > 0:
                    comparison.compare(trials, stages)
            # more rows, more rounds
            share = len(compared.rows.y) / len(trial.rows.y)
            if comparison.outcome is not None and share < 1.0 and not comparison.scale(share):
                with Trials(trial, team, progress) as trials:
                    if trials.n_folds > 0:
                        comparison.count_rounds(trials)
    chosen |= comparison.chosen
    if comparison.outcome is not None and not task.is_forest:
        steps = comparison.steps(comparison.outcome)
        comparison.show(steps)
        chosen |= steps
    return ChosenParams(values_of(chosen), {name: choice.why for name, choice in chosen.items()})


# --- the candidates


class Stage(NamedTuple):
    """Values of a parameter that are compared."""

    parameter: str
    values: Sequence[Any]  # the stages before are gone through with the first one
    why: str
    # parameters that decide on the same: if one of them is set, there is no such stage
    rivals: tuple[str, ...] = ()
    # with any value but the first, `max_depth` is at least so large, if it is chosen, too
    depth: int = 0


class Plan(NamedTuple):
    """The parameters that are chosen without trials, then those found by trials, in order."""

    start: Mapping[str, Choice]
    stages: Sequence[Stage]


# They decide on the size of trees, too.
_LEAVES = ("max_leaves", "grow_policy")
# They say how rankers weigh pairs of documents.
_OF_PAIRS = tuple(
    name for name in names_of(RankerParameters) if name.startswith(("lambdarank_", "yeti_"))
)
# Of 1,000 rows the means of categories can look better in trials than they are: 4 % lost on one of
# two draws of the benchmark `access`, where 3,000 gained 2 %.
_ROWS_FOR_MEANS = 2_000
# The search of a symmetric tree has the histograms of all nodes of a depth: at depth 8, a quarter
# of a megabyte for each feature. Of more features they do not fit into caches.
_MOST_SYMMETRIC = 200
_CATEGORIES = Choice("auto", "text and bools are categories, and text of dates times")
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


def plan_for(task: FitTask) -> Plan:
    """Return the plan for boosting on such data, or for a forest."""
    if task.is_forest:
        return _FOREST
    start = {
        "subsample": Choice(0.7, "trees of different rows vary, and their sum varies less"),
        "random_state": _SEED,
    }
    weight = task.rows.weight
    unit = weighted_mean(weight, NO_WEIGHT) if len(weight) > 0 else 1.0
    if unit != 1.0:
        start["reg_lambda"] = start["min_child_weight"] = Choice(unit, "the mean weight of a row")
    # with a tree for each class, small ones may be enough
    depths = (6, 4, 8, 2) if task.targets.task == "multiclass" else (6, 4, 8)
    stages = [
        Stage("extra_trees", (False, True), "random thresholds may follow the noise less"),
        Stage("max_depth", depths, "a tree of depth d can join d features", _LEAVES),
        Stage("colsample_bylevel", (0.9, 0.4), "fewer features may make trees more different"),
    ]
    if not task.loss.hessian_is_one:
        why = "the cover of rows that are predicted well may be far below their number"
        stages.insert(2, Stage("min_child_weight", (unit, 0.1 * unit), why))
    if _can_be_symmetric(task):
        policies, why = ("depthwise", "symmetric"), "splits that nodes share follow fewer rows"
        stages.append(Stage("grow_policy", policies, why, ("max_leaves",), depth=6))
    n_categories = [encoding.n_categories for encoding in task.features.encodings or ()]
    are_many = max(n_categories, default=0) >= FEWEST_CATEGORIES
    X = task.rows.X
    are_elsewhere = isinstance(X, RemoteFeatures) or row_arrays_of(X).are_on_disk
    if are_many and len(task.rows.y) >= _ROWS_FOR_MEANS and not are_elsewhere:
        why = "means of the target may tell many categories apart"
        stages.insert(0, Stage("max_ctr_complexity", (0, 1), why, ("booster", "linear_tree")))
    if task.targets.task == "ranking":
        losses = ("rank:ndcg", "rank:yeti")
        why = "neighbours in random orders may tell more than pairs in the present one"
        stages.insert(0, Stage("objective", losses, why, _OF_PAIRS))
    return Plan(start, stages)


def _can_be_symmetric(task: FitTask) -> bool:
    """Whether symmetric trees can be grown of such data, and in time and memory like others."""
    if task.features.n_features > _MOST_SYMMETRIC:
        return False
    try:
        check_symmetric(task.with_settings({"grow_policy": "symmetric"}))
    except ValueError:
        return False
    return True


# --- trials

# Trials that are trained at the same time: of more, most would be in vain. Seconds between two
# looks at how far they are.
_MOST_AT_ONCE, _BETWEEN_LOOKS = 4, 0.1
# Learning rate 0.1 finds the same depth as smaller ones, in a fraction of the time.
_TRIAL_RATE, _LARGEST_RATE, _SMALLEST_RATE = 0.1, 0.3, 0.005
_MOST_ROUNDS = 1000
_OF_TRIALS: Mapping[str, Any] = {
    "preset": None,
    "booster": "gbtree",  # rounds that drop others are scored anew each time
    "verbose": 0,
    "early_stopping_rounds": None,
    "warm_start": False,
    "keep_pruned": False,
}
# Of `max_time`, for trials.
_SHARE_OF_TIME = 0.5


def _trial_of(task: FitTask) -> FitTask:
    """Return the task of trials: no other callback is told, no `random_state` is advanced."""
    parameters, settings = task.parameters, {**_OF_TRIALS, "callbacks": None}
    if not is_integer(parameters.random_state):
        settings["random_state"] = 0
    if parameters.max_time is not None:
        settings["max_time"] = _SHARE_OF_TIME * parameters.max_time
    if "learning_rate" in task.free and not task.is_forest:
        settings |= {"learning_rate": _TRIAL_RATE, "n_estimators": _MOST_ROUNDS}
    elif "n_estimators" in task.free and not task.is_forest:
        slower = max(1.0, _TRIAL_RATE / max(parameters.learning_rate, _SMALLEST_RATE))  # type: ignore[operator, type-var]
        settings["n_estimators"] = int(_MOST_ROUNDS * slower)
    trial = task.with_settings(settings)
    seed = seeds(trial.parameters.random_state, is_sampling=True)
    return trial._replace(listeners=(), seeds=seed)


# Rounds without a better metric after which a trial ends.
_PATIENCE = 50
# Up to so many rows: how many parts they are divided into, and how many of these are held out in
# turn. The fewer rows judge, the less can be said from one part.
_FOLDS = ((4_000, 5, 5), (10_000, 5, 3), (np.inf, 5, 1))
# Of more raw scores, one part is held out: trainings take long, and settings differ more. Of more
# bins that raw scores are made from, it is three at most.
_MOST_SCORES_OF_FOLDS, _MOST_BINS_OF_FOLDS = 25_000, 500_000


# After how many rounds a trial is first asked whether it can win, and after how many more again.
_BEFORE_RACE, _ROUNDS_OF_RACE = 60, 10
# Of fewer rows the first fold says too little for that, and trials take little time.
_FEWEST_TO_RACE = 1_000
# What twice as many rounds gain, of what the last doubling has gained; and what a trial gains from
# some round on, of what the best one has gained from there.
_OF_LAST_DOUBLING, _OF_BEST = 0.6, 4.0
# Of rows that can be told apart wholly, these metrics fall for ever. A trial ends when as many
# rounds as its patience gained no more than such a share of what all have gained: with a share
# three times as large, digits loses 2 % of its loss. When less is left than such a share of what
# one round left, other settings are not compared and steps are not made smaller.
_LOG_LOSSES = ("logloss", "mlogloss")
_LEAST_GAIN, _CONVERGED = 1e-5, 1e-3
_CONVERGENCE = "{0.metric} {0.value:.2g} is less than a thousandth of that after one round"


class Trained(NamedTuple):
    """What is kept of a training that has ended, for its turn to be judged."""

    metric: str  # that judges
    sign: float  # of the losses: the metric is this times the loss
    losses: np.ndarray  # after each round
    n_estimators: int  # rounds planned
    n_nodes: np.ndarray  # of each tree, shape (n_rounds, trees of a round)
    stop_reason: str
    seconds: Mapping[str, float]


class Attempt(TrainingCallback):
    """A training of some settings on one fold, and the callback that may end it.

    On the first fold it ends a training that hardly gains any more, and one that cannot be expected
    to reach the loss of the best, with all its rounds. What is still to be gained is taken from
    both the last doubling of the rounds and the best one, whichever is more.

    It may be trained beside those before it. Which one is the best is only known at its turn; what
    it has done by then, and would not have done later, is left out.
    """

    every_round = False

    def __init__(
        self,
        number: int,
        settings: Mapping[str, Any],
        look: Callable[..., None],
        may_converge: Callable[[str], bool],
    ):
        self.number, self.settings = number, settings  # of the fold; of the training
        self.key = _key({**settings, "": number})
        self.training: Trained | None = None  # once it has ended
        self.present: TrainingState | None = None  # after its first round, until it has ended
        self.is_given_up = False
        self.future: Submitted | None = None  # if it is trained beside others
        self.n_lost = 0  # rounds after which it is known that it will not be the best; 0: it may
        self._n_asked = _BEFORE_RACE - _ROUNDS_OF_RACE  # rounds after which that was last asked
        self._look = look  # called after rounds in the caller's thread
        self._may_converge = may_converge  # of the name of the metric
        self._best: np.ndarray | None = None  # the loss of the best one after each round, to reach

    def race(self, best: np.ndarray | None) -> None:
        """From now on, end it if it cannot reach the best one, if there is one."""
        self._best = best

    def after_iteration(  # noqa: D102, as in TrainingCallback
        self, training: TrainingState, epoch: int, evals_log: EvalsLog
    ) -> bool:
        self.present, n_rounds = training, epoch + 1
        if self.future is None:
            self._look(training)
        hardly_gains = False
        if self.number == 0 and n_rounds % _ROUNDS_OF_RACE == 0:
            name, _, losses = _last_metric(training, evals_log)
            self._ask(losses[:n_rounds], training.n_estimators)
            if n_rounds > _PATIENCE and self._may_converge(name):
                hardly_gains = _hardly_gains(losses[:n_rounds])
        return self.is_given_up or self.n_lost > 0 or hardly_gains

    @np.errstate(invalid="ignore")  # metrics may be infinite
    def _ask(self, losses: np.ndarray, n_estimators: int) -> None:
        """Find out whether it is lost, after each number of rounds at which that is asked.

        After the last round there is no training to end, and other folds may say otherwise.
        """
        best, most = self._best, min(len(losses), n_estimators - 1)
        while best is not None and self.n_lost == 0 and self._n_asked + _ROUNDS_OF_RACE <= most:
            n_rounds = self._n_asked = self._n_asked + _ROUNDS_OF_RACE
            least = losses[:n_rounds].min()
            gained = losses[: n_rounds // 2].min() - least
            share = _OF_LAST_DOUBLING ** np.log2(n_estimators / n_rounds)
            of_doublings = gained * (1.0 - share) * _OF_LAST_DOUBLING / (1.0 - _OF_LAST_DOUBLING)
            of_best = _OF_BEST * (best[:n_rounds].min() - best.min())
            if least - max(of_doublings, of_best) > best.min():
                self.n_lost = n_rounds

    def curve(self) -> np.ndarray:
        """Return the loss after each round, up to the one after which it is lost."""
        assert self.training is not None
        losses = self.training.losses
        self._ask(losses, self.training.n_estimators)
        return losses[: self.n_lost] if self.n_lost > 0 else losses


@np.errstate(invalid="ignore")  # metrics may be infinite
def _hardly_gains(losses: np.ndarray) -> bool:
    least = losses.min()
    return bool(losses[:-_PATIENCE].min() - least < _LEAST_GAIN * (losses[0] - least))


class Fold(NamedTuple):
    """Rows to train on with their bins; the rows that judge are the task's validation data."""

    task: FitTask
    bins: Bins


class Outcome(NamedTuple):
    """How good a model of some settings is."""

    metric: str
    value: float  # of the metric after the best round, the mean over the folds
    loss: float  # the same, or its negative if greater is better; infinite if it fell behind
    n_rounds: int  # up to the best round
    share: float  # of the rows, that a training had: the others judged
    n_leaves: float  # of a tree, the mean
    # that these rounds took on one fold, and their metrics
    seconds: float
    seconds_to_judge: float = 0.0
    # whether `max_time` ended the training before it was known that no later round is better
    is_cut: bool = False
    n_folds: int = 1  # that judged
    has_converged: bool = False  # hardly anything of its loss is left


class Trials:
    """Trains models of different settings on the same folds.

    The task is of all rows, with the weights of the user. If it has validation data, that judges;
    else parts of the rows do. A context manager: trials that were begun end with it.
    """

    def __init__(self, task: FitTask, team: ThreadTeam, progress: SearchProgress):
        self._task, self._team, self._progress = task, team, progress
        self.work = 0.0  # of all trainings so far
        self._outcomes: dict[str, Outcome] = {}
        # of the best so far: its loss after each round on each fold
        self._best: list[np.ndarray] = []
        self._folds = [
            Fold(part, bin_rows(team, part.rows, task.parameters)) for part in _parts(task)
        ]
        self._begun: dict[str, Attempt] = {}  # by their keys
        n_threads, n_at_once = most_threads(task.parameters.n_jobs), 0
        # where one thread is best, more are no better side by side: little is done without Python
        if team.size > 1 and _can_be_side_by_side(task):
            n_at_once = min(n_threads, _MOST_AT_ONCE)
        n_of_each = min(team.size, n_threads // max(n_at_once, 1))
        self._side_by_side = SideBySide(n_at_once, n_of_each, self._give_up_all)

    def __enter__(self) -> "Trials":
        self._side_by_side.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._side_by_side.__exit__(*exception)

    def _give_up_all(self) -> None:
        for attempt in self._begun.values():
            attempt.is_given_up = True
            if attempt.future is not None:
                attempt.future.cancel()

    @property
    def n_folds(self) -> int:
        """How many trainings a trial has; 0: no part of the rows can be trained on and judged."""
        return len(self._folds)

    @property
    def most_bins(self) -> int:
        """The most bins of a feature, that of missing values included."""
        most = (np.diff(fold.bins.matrix.bin_starts).max() for fold in self._folds)
        return max(map(int, most), default=0)

    @property
    def n_rows(self) -> int:
        """How many rows are trained on or judge."""
        return len(self._task.rows.y)

    @property
    def share(self) -> float:
        """The share of the rows that a trial is trained on."""
        if self._task.validation:
            return 1.0
        (held_out,) = self._folds[0].task.validation.values()
        return 1.0 - len(held_out.y) / self.n_rows

    def judge(
        self, settings: Mapping[str, Any], expected: Sequence[Mapping[str, Any]] = ()
    ) -> Outcome | None:
        """Return how good models of these parameters are; None if there is no time to find out.

        The first fold decides how many rounds are looked at: until its metric no longer improves.
        With many rows, or one fold, it ends when it cannot be expected to reach the best so far,
        and the trial with it. What is behind the best on the first two folds or more is not trained
        on the others. Of the first settings, what there is time for has to do: some of the folds,
        some rounds.

        Settings that are expected to be judged next are trained beside these, where threads are
        free. That changes no outcome.
        """
        key = _key(settings)
        if key not in self._outcomes:
            are_beside = self._side_by_side.size > 0
            new = [each for each in expected if are_beside and _key(each) not in self._outcomes]
            outcome = self._judge(settings, new)
            if outcome is None:
                return None
            self._outcomes[key] = outcome
        return self._outcomes[key]

    def _judge(
        self, settings: Mapping[str, Any], expected: Sequence[Mapping[str, Any]]
    ) -> Outcome | None:
        is_first = not self._outcomes
        if self._is_late() and not is_first:
            return None
        may_end = self.n_folds == 1 or self.n_rows >= _FEWEST_TO_RACE
        stopping = {"early_stopping_rounds": _PATIENCE}
        first, *later = (self._attempt(0, {**each, **stopping}) for each in (settings, *expected))
        training, n_leaves, curve = self._train(
            first, later, self._best[0] if may_end and not is_first else None
        )
        losses, n_rounds = [curve], len(curve)
        is_cut = training.stop_reason == "max_time"
        if not self._task.is_forest:
            settings = {**settings, "n_estimators": n_rounds}
        others = [self._attempt(number, settings) for number in range(1, self.n_folds)]
        for place, attempt in enumerate(others):
            if first.n_lost > 0 or self._is_late() or self._is_behind(losses):
                break
            training, n_leaves, curve = self._train(attempt, others[place + 1 :] + later)
            losses += [curve] if len(curve) == n_rounds else []
        is_lost = first.n_lost > 0
        is_dropped = is_lost or (len(losses) < self.n_folds and self._is_behind(losses))
        if not is_first and not is_dropped and (is_cut or len(losses) < self.n_folds):
            return None  # others were judged by more
        mean = np.mean(losses, axis=0)
        best = int(np.argmin(mean))
        part = (best + 1) / len(training.losses)
        if is_first or (not is_dropped and mean[best] < np.mean(self._best, axis=0).min()):
            self._best = losses
        return Outcome(
            training.metric,
            value=training.sign * float(mean[best]),
            loss=np.inf if is_dropped else float(mean[best]),
            n_rounds=n_rounds if is_lost else best + 1,
            share=self.share,
            n_leaves=n_leaves,
            seconds=training.seconds["boosting"] * part,
            seconds_to_judge=training.seconds["evaluation"] * part,
            is_cut=is_cut,
            n_folds=len(losses),
            has_converged=self._may_converge(training.metric)
            and bool(mean[best] < _CONVERGED * mean[0]),
        )

    def _may_converge(self, metric: str) -> bool:
        """Whether a perfect model has this at 0, and the first round is a measure of it.

        That is so of classes, whose shares a model starts with, unless it is told what to start
        with. Of numbers, what is little depends on what they are for.
        """
        task = self._task
        starts_with_shares = task.parameters.base_score is None and len(task.rows.margin) == 0
        are_classes = task.targets.task in ("binary", "multiclass")
        return metric in _LOG_LOSSES and are_classes and starts_with_shares

    def _is_behind(self, losses: list[np.ndarray]) -> bool:
        """Whether the best so far has a lower loss on each of these folds, two or more."""
        known = self._best[: len(losses)]
        pairs = zip(losses, known, strict=False)
        return 1 < len(losses) == len(known) and all(new.min() > old.min() for new, old in pairs)

    def _is_late(self) -> bool:
        most = self._task.parameters.max_time
        return most is not None and self._task.clock.elapsed > most

    def _attempt(self, number: int, settings: Mapping[str, Any]) -> Attempt:
        """Return a training on this fold, which may have been begun before."""
        new = Attempt(number, settings, self._progress.look, self._may_converge)
        return self._begun.get(new.key, new)

    def _train(
        self, attempt: Attempt, later: Sequence[Attempt], best: np.ndarray | None = None
    ) -> tuple[Trained, float, np.ndarray]:
        """Return a training that has ended, the mean leaves of a tree, and the losses by round.

        Others are begun where threads are free.
        """
        self._begin([attempt, *later])
        attempt.race(best)
        if attempt.future is not None:
            while not self._side_by_side.wait(attempt.future, _BETWEEN_LOOKS):
                if (present := attempt.present) is not None:
                    self._progress.look(present)
            if attempt.future.exception() is not None:
                # if it was for want of memory, say, it may not fail alone
                del self._begun[attempt.key]
                attempt = Attempt(
                    attempt.number, attempt.settings, self._progress.look, self._may_converge
                )
                attempt.race(best)
        if attempt.future is None:
            self._run(self._team, attempt)
        training, curve = attempt.training, attempt.curve()
        assert training is not None
        n_leaves = float((training.n_nodes[: len(curve)].mean() + 1.0) / 2.0)
        task = self._folds[attempt.number].task.with_settings(attempt.settings)
        self.work += len(curve) * _work_of_round(task, n_leaves)
        self._progress.count(len(curve))
        return training, n_leaves, curve

    def _begin(self, wanted: Sequence[Attempt]) -> None:
        """Begin these trainings, in order, where threads are free; give up the others."""
        for attempt in self._begun.values():
            if attempt.future is not None and attempt.future.cancel():
                attempt.future = None
            attempt.is_given_up = attempt not in wanted
        # listed before they begin, so that Ctrl-C leaves none behind
        is_alone = self._side_by_side.size == 0 or len(wanted) == 1  # then it has all threads
        self._begun = {each.key: each for each in wanted if each.future is not None or not is_alone}
        for attempt in self._begun.values():
            if attempt.future is None:
                attempt.future = Submitted()  # known to its thread before that begins
                self._side_by_side.submit(attempt.future, self._run, attempt)

    def _run(self, team: ThreadTeam, attempt: Attempt) -> None:
        fold = self._folds[attempt.number]
        task = fold.task.with_settings(attempt.settings)._replace(listeners=(attempt,))
        n_rounds, _ = rounds_and_trees(task.parameters, task.is_forest)
        task = task._replace(rounds=range(n_rounds))
        try:
            training = make_training(team, fold.bins, task)
            training.run()
        except Exception as error:
            error.add_note(f"in a trial of preset='auto', on {len(task.rows.y)} of the rows")
            raise
        finally:
            attempt.present = None
        if training.stop_reason == "interrupted":
            raise KeyboardInterrupt
        n_rounds = training.n_rounds
        attempt.training = Trained(
            *_last_metric(training, training.finished_log()),
            n_estimators=training.n_estimators,
            n_nodes=np.diff(training.trees(n_rounds).starts).reshape(n_rounds, -1),
            stop_reason=training.stop_reason,
            seconds=training.seconds,
        )


def _key(settings: Mapping[str, Any]) -> str:
    return repr(sorted(settings.items()))


def _can_be_side_by_side(task: FitTask) -> bool:
    """Whether trials may be trained at the same time: all that is called is ours, and is here.

    Scikit-learn's scorers set filters of warnings, which are the process's. With `max_time`, what
    there is time for would be done for nothing at times.
    """
    parameters, metrics = task.parameters, task.parameters.eval_metric
    names = metrics if isinstance(metrics, list | tuple) else [metrics]
    has_own_loss = not (parameters.objective is None or isinstance(parameters.objective, str))
    are_ours = all(
        each is None or (isinstance(each, str) and is_metric_name(each)) for each in names
    )
    is_here = not isinstance(task.rows.X, RemoteFeatures)
    return are_ours and not has_own_loss and is_here and parameters.max_time is None


def _last_metric(training: TrainingState, log: EvalsLog) -> tuple[str, float, np.ndarray]:
    """Return the name of the metric that judges, its sign, and after each round the loss.

    The loss is the metric, or its negative if greater is better: the metric times the sign.
    """
    (logs,) = log.values()
    *_, (name, values) = logs.items()
    sign = -1.0 if training.greater_is_better(name) else 1.0
    return name, sign, sign * np.array(values)


# --- the rows of trials

# Of more rows, so many tell settings apart as well; fewer do if each has many raw scores.
_MOST_COMPARED, _FEWEST_COMPARED = 25_000, 5_000
_MOST_SCORES = 75_000
# The most bins of sparse rows that become a dense table, which is faster.
_LARGEST_DENSE = 2**26


def _sample(task: FitTask) -> FitTask:
    """Return a task with as many of the rows as settings are compared on, in this process."""
    rows = task.rows
    most_by_scores = max(_FEWEST_COMPARED, _MOST_SCORES // task.loss.n_outputs)
    share = min(_MOST_COMPARED, most_by_scores) / len(rows.y)
    if share < 1.0:
        rows = sample(rows, share, **_how_to_divide(task))
    return task._replace(rows=rows.here())


def _how_to_divide(task: FitTask) -> dict[str, Any]:
    return {
        "how": task.parameters.validation_split,
        "parts": task.targets.strata_for_holdout(task.rows.y),
        "seed": task.seeds[0],
    }


def _parts(data: FitTask) -> list[FitTask]:
    """Return tasks of a part of the rows each, whose validation data are the others.

    A part that cannot be trained on, or whose others cannot judge, is left out: because of the loss
    or the metric, or without a row of some class, or a known value of some target.
    """
    rows, targets = data.rows, data.targets
    are_there = isinstance(rows.X, RemoteFeatures)
    if data.validation:
        name, judges = list(data.validation.items())[-1]
        return [_task(data, rows, (name, judges if are_there else judges.here()))]
    n_scores = len(rows.y) * data.loss.n_outputs
    n_parts, n_used = next((parts, used) for most, parts, used in _FOLDS if len(rows.y) <= most)
    if n_scores * data.features.n_features > _MOST_BINS_OF_FOLDS:
        n_used = min(n_used, 3)
    # the last rows are one part
    if data.parameters.validation_split == "time" or n_scores > _MOST_SCORES_OF_FOLDS:
        n_used = 1
    of_all = metrics_before(_task(data, rows, ("validation_0", rows)))[-1]  # or the error
    masks = divide(rows, n_parts, **_how_to_divide(data))
    binned = rows._replace(X=_binned(data))
    pairs = ((binned.take(~mask), binned.take(mask)) for mask in islice(masks, n_used))
    tasks = (
        _task(data, kept, ("validation_0", held_out))
        for kept, held_out in pairs
        if targets.is_complete(kept.y) and targets.is_complete(held_out.y)
    )
    parts, errors = [], []
    for task in tasks:
        try:
            can_learn = not lacking(task.loss, task.rows.y)
            if can_learn and np.isfinite(metrics_before(task)[-1]):
                parts.append(task)
        except Exception as error:  # of a metric that there is for all rows
            errors.append(error)
    why = ""
    if errors and callable(data.parameters.eval_metric):
        why = f"eval_metric cannot be computed for any part of the rows: {errors[-1]}"
    elif not np.isfinite(of_all):
        why = f"the metric is {of_all} before the first round"
    if why and not parts:
        warn_user(
            f"preset='auto' compares nothing, since {why}. Pass X_val and y_val, or choose another "
            "eval_metric"
        )
    return parts


def _task(data: FitTask, rows: Rows, judges: tuple[str, Rows]) -> FitTask:
    """Return the task of a trial. Rows are held out by the user's weights, before this."""
    if data.parameters.subsample < 1.0:  # type: ignore[operator]
        rows = rows.repeat(data.loss)  # as in a fit: each is drawn on its own
    rows, (name, held_out) = weigh_classes(rows, data.targets), judges
    if not data.targets.is_calibrated:
        # parameters are judged by what they are chosen for, the loss that the training minimises:
        # by the unweighted one, overfitting looks good, which takes weighted classes' odds back
        held_out = weigh_classes(held_out, data.targets)
    return data._replace(rows=rows, everything=rows, validation={name: held_out})


def _binned(data: FitTask) -> Any:
    """Return the features in bins, which all parts share."""
    X, weight = data.rows.X, data.rows.weight
    is_large_if_dense = isinstance(X, SparseTable) and X.size > _LARGEST_DENSE
    if isinstance(X, RemoteFeatures):
        return X.with_cuts(weight, data.parameters.max_bin, data.parameters.n_jobs)  # type: ignore[arg-type]
    # linear leaves need values
    if data.parameters.linear_tree or isinstance(X, BinnedMatrix) or is_large_if_dense:
        return X
    settings = feature_settings(data.features.estimator_name, data.parameters)
    return bin_checked(X, weight, settings, None, None, data.parameters.n_jobs, 0)


# --- the best values


class Comparison:
    """The results of trials so far, for a task of all rows."""

    def __init__(self, task: FitTask, progress: SearchProgress) -> None:
        self._task, self._progress = task, progress
        self._is_shown = bool(task.parameters.verbose)  # whether the user is shown each choice
        self.chosen: dict[str, Choice] = {}  # the best values of the parameters of the stages
        self.outcome: Outcome | None = None  # of these; None: there was no trial
        self._all_trials: list[Trials] = []

    def compare(self, trials: Trials, stages: Sequence[Stage]) -> None:
        """Go through the stages, each of which keeps its best value."""
        self._all_trials.append(trials)
        first = {stage.parameter: stage.values[0] for stage in stages}
        outcome = trials.judge(first, _others(stages, first))
        if outcome is None or not np.isfinite(outcome.loss):
            return
        self.outcome = outcome
        self._tell(trials, outcome)
        for name, value in first.items():
            self.chosen[name] = Choice(value, "there was no time to compare it with others")
        for number, stage in enumerate(stages):
            if self.outcome.has_converged:
                why = f"not compared with others: {_CONVERGENCE.format(self.outcome)}"
                rest = {each.parameter: Choice(each.values[0], why) for each in stages[number:]}
                n_others = sum(len(each.values) - 1 for each in stages[number:])
                self._progress.n_trainings -= trials.n_folds * n_others
                self.chosen |= rest
                self.show(rest)
                return
            name, before = stage.parameter, values_of(self.chosen)
            outcomes: dict[Any, Outcome] = {}
            for place, value in enumerate(stage.values):
                settings = _settings(stage, value, before)
                of_stage = [_settings(stage, other, before) for other in stage.values[place + 1 :]]
                best = min(outcomes, key=lambda value: outcomes[value].loss, default=value)
                present = _settings(stage, best, before)
                outcome = trials.judge(settings, of_stage + _others(stages[number + 1 :], present))
                if outcome is not None:
                    outcomes[value] = outcome
                    self._progress.n_trainings -= trials.n_folds - outcome.n_folds
                    self._tell(trials, min(outcomes.values(), key=attrgetter("loss")))
            if len(outcomes) < min(2, len(stage.values)):
                return
            best = min(outcomes, key=lambda value: outcomes[value].loss)
            self.chosen[name] = Choice(best, _comparison(stage, outcomes, best))
            depth = _settings(stage, best, before).get("max_depth")
            if name != "max_depth" and depth != before.get("max_depth"):
                self.chosen["max_depth"] = Choice(depth, f"as deep at least if {name}={best!r}")
            self.outcome = outcomes[best]
            self.show({name: self.chosen[name]})

    def _tell(self, trials: Trials, best: Outcome) -> None:
        """Tell the progress of the best outcome, and how long the fit takes with its rounds."""
        task, parameters, n_rows = self._task, self._task.parameters, len(self._task.rows.y)
        steps = {} if task.is_forest else self.steps(best)
        n_rounds, _ = rounds_and_trees(parameters, task.is_forest)
        n_rounds = steps["n_estimators"].value if "n_estimators" in steps else n_rounds
        stops = stops_early(parameters)
        n_rounds *= 2 if stops and parameters.refit else 1
        if n_rows > trials.n_rows:  # rounds are counted on all of them
            n_rounds += best.n_rounds + _PATIENCE
        seconds = best.seconds + (best.seconds_to_judge if stops or task.validation else 0.0)
        self._progress.judged(
            f"best {best.metric} {best.value:.5g}",
            n_rounds * seconds / best.n_rounds * n_rows / (trials.n_rows * best.share),
        )

    def show(self, chosen: Mapping[str, Choice]) -> None:
        """Show choices to the user, if that is asked for."""
        for name, choice in chosen.items() if self._is_shown else ():
            log_line(f"{name}={choice.value!r}: {choice.why}")

    def steps(self, outcome: Outcome) -> dict[str, Choice]:
        """Choose the learning rate and the number of rounds after such an outcome."""
        task = self._task
        n_scores = len(task.rows.y) * task.loss.n_outputs
        return _steps(task, outcome, n_scores, self._rounds_in_work(outcome))

    def _rounds_in_work(self, outcome: Outcome) -> float:
        """Return for how many rounds of the fit there is work."""
        spent = sum(trials.work for trials in self._all_trials)
        left = max(_most_work(self._task) - spent, _LEAST_OF_FIT * spent)
        return left / _work_of_round(self._task, outcome.n_leaves)

    def scale(self, share: float) -> bool:
        """Take the rounds as in proportion to the rows, if there is too little work to count them.

        The share of the rows that they were found on is known; whether it was done is returned.
        """
        task, known = self._task, self.outcome
        assert known is not None
        scaled = known._replace(share=share * known.share)
        has_work = self._rounds_in_work(scaled) >= 2.0 * scaled.n_rounds / scaled.share
        are_free = not task.is_forest and {"n_estimators", "learning_rate"}.issubset(task.free)
        if has_work or not are_free or share < _LEAST_SCALED:
            return False
        self.outcome = scaled
        return True

    def count_rounds(self, trials: Trials) -> None:
        """Find the best number of rounds of the chosen values once more, on all rows."""
        self._all_trials.append(trials)
        known, found = self.outcome, trials.judge(values_of(self.chosen))
        assert known is not None
        assert found is not None
        if found.is_cut and found.n_rounds < known.n_rounds:
            more = known.n_rounds / found.n_rounds
            found = known._replace(
                seconds=more * found.seconds, seconds_to_judge=more * found.seconds_to_judge
            )
        self.outcome = found


def _settings(stage: Stage, value: Any, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings for a value of a stage, after the choices of the stages before."""
    is_shallow = before.get("max_depth", stage.depth) < stage.depth
    deeper = {"max_depth": stage.depth} if is_shallow and value != stage.values[0] else {}
    return {**before, stage.parameter: value, **deeper}


def _others(stages: Sequence[Stage], present: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings that stages compare with the present ones, if none of them is better."""
    return [_settings(stage, value, present) for stage in stages for value in stage.values[1:]]


def _comparison(stage: Stage, outcomes: Mapping[Any, Outcome], best: Any) -> str:
    won = outcomes[best]
    if len(outcomes) > 1 and all(outcome.loss == won.loss for outcome in outcomes.values()):
        return f"{won.metric} {won.value:.5g} with any of {tuple(outcomes)}"
    others = ", ".join(
        f"{outcome.value:.5g} with {value}"
        if outcome.loss < np.inf or not np.isfinite(outcome.value)
        else f"behind after {_how_much(outcome, won)} with {value}"
        for value, outcome in outcomes.items()
        if value != best
    )
    compared = ", ".join(filter(None, [f"{won.metric} {won.value:.5g}", others]))
    return f"{compared}: {stage.why}"


def _how_much(lost: Outcome, won: Outcome) -> str:
    """Describe how much of a trial was done until it fell behind."""
    if lost.n_folds == 1:
        return f"{lost.n_rounds} rounds"
    return f"{lost.n_folds} of {won.n_folds} trainings"


# --- steps

# Up to so many raw scores of training rows, the steps of the fit are at most so much smaller than
# in the trials, and its rounds so many times as many.
_FINER_STEPS = ((12_000, 8.0), (50_000, 4.0), (500_000, 2.0), (np.inf, 1.0))
# CatBoost's 1,000 rounds of depth 6 take about as long, on 2 processors, as work for so many rounds
# of that depth, each with so much more on any data. With a loss whose Hessian is not constant they
# take longer, since CatBoost does several Newton steps for a leaf.
_ROUNDS_OF_WORK, _WORK_OF_NO_ROWS, _NEWTON_STEPS = 2_700, 400_000, 1.7
# The fit may do so much of the work of the trials, however much that was.
_LEAST_OF_FIT = 0.4
# To search a node takes as long as to add up so many rows.
_ROWS_OF_NODE = 430
# Rounds that are best for such a share of the rows, or more, are in proportion to the rows.
_LEAST_SCALED = 0.5
# The fit has more rows than a trial, and can bear more rounds, unless rows are so few that they
# cannot tell the best number: then more rounds are as often too many.
_FEWEST_FOR_MORE_ROUNDS = 1_000
# Of what is left of `max_time`, for the rounds of the fit.
_SAFE_SHARE = 0.6


def _work_of_trees(task: FitTask, n_leaves: float) -> float:
    """Return how many bins are read for a tree of each output: most of their time."""
    depth = math.ceil(n_leaves - 1).bit_length()
    reads_per_feature = depth * len(task.rows.y) + _ROWS_OF_NODE * n_leaves
    return task.loss.n_outputs * task.features.n_features * reads_per_feature


def _work_of_round(task: FitTask, n_leaves: float) -> float:
    """Return the work of a round, whose trees have so many leaves in the mean."""
    _, n_parallel_trees = rounds_and_trees(task.parameters, task.is_forest)
    return n_parallel_trees * _work_of_trees(task, n_leaves)


def _most_work(task: FitTask) -> float:
    """Return the work for trials and fit; unlimited if `max_time` limits it."""
    if task.parameters.max_time is not None:
        return np.inf
    n_rounds = _ROUNDS_OF_WORK * (1.0 if task.loss.hessian_is_one else _NEWTON_STEPS)
    return n_rounds * (_work_of_trees(task, 2**6) + task.loss.n_outputs * _WORK_OF_NO_ROWS)


def _steps(
    task: FitTask, outcome: Outcome, n_scores: int, in_work: float = np.inf
) -> dict[str, Choice]:
    """Choose the learning rate and the number of rounds, or the one of them that is free.

    Their product is how far it is to the best model, and the trial has found that for its share
    of the rows. For all of them it is further: in proportion to the rows. If both are free, steps
    are as small as is of use and as there is work left for: `in_work` rounds.
    """
    free, parameters = task.free, task.parameters
    n_rounds, rate = outcome.n_rounds, parameters.learning_rate
    rate = _TRIAL_RATE if "learning_rate" in free else rate
    of = ", as many as there was time for," if outcome.is_cut else ""
    best = f"{outcome.metric} is best after {n_rounds} rounds{of} of learning rate {rate:g}"
    if outcome.share < 1.0 and len(task.rows.y) >= _FEWEST_FOR_MORE_ROUNDS:
        best += f" on {outcome.share:.0%} of the rows"
        n_rounds = round(n_rounds / outcome.share)
    in_time = np.inf  # rounds of the fit for which there is time
    if parameters.max_time is not None:
        stops = stops_early(parameters)
        seconds = outcome.seconds * (2 if stops and parameters.refit else 1)
        if stops or task.validation:
            seconds += outcome.seconds_to_judge
        seconds_left = parameters.max_time - task.clock.elapsed
        in_time = max(1.0, _SAFE_SHARE * seconds_left / seconds * outcome.n_rounds)
    if "learning_rate" not in free:
        chosen = {"n_estimators": Choice(n_rounds, best)}
    elif "n_estimators" not in free:
        n_asked, _ = rounds_and_trees(parameters, task.is_forest)
        rate = min(_LARGEST_RATE, rate * n_rounds / min(n_asked, in_time))  # type: ignore[operator]
        chosen = {"learning_rate": Choice(rate, best)}
    else:
        # how much smaller the steps are than in the trials; larger for want of time
        finer = next(finer for most, finer in _FINER_STEPS if n_scores <= most)
        finer = 1.0 if outcome.has_converged else finer
        finer = min(finer, max(1.0, in_work / n_rounds), in_time / n_rounds)
        finer = max(math.floor(10.0 * finer) / 10.0, _TRIAL_RATE / _LARGEST_RATE)
        if parameters.booster == "dart":
            finer = min(finer, 1.0)
        why = "smaller steps are better, but slower" if finer >= 1.0 else "for want of time"
        if outcome.has_converged and finer == 1.0:
            why = f"not smaller: {_CONVERGENCE.format(outcome)}"
        chosen = {
            "n_estimators": Choice(max(1, round(finer * n_rounds)), best),
            "learning_rate": Choice(rate / finer, why),  # type: ignore[operator]
        }
    return {name: choice for name, choice in chosen.items() if name in free}
