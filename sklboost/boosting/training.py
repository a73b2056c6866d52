"""The training of one model, round by round, until it is done, good enough, out of time or stopped.

In: what is learnt from and what watches. Out: trees, the values of the metrics, and why it ended.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.dart import Dart, Dropout
from sklboost.boosting.evaluation import Evaluation, ValidationSet, is_compiled
from sklboost.boosting.rounds import Rounds
from sklboost.boosting.tree_booster import TreeBooster
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.blocks import value_array
from sklboost.data.features import Features
from sklboost.data.raw import raw_matrix
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, FeatureRules, TrainingBins, TreeParams
from sklboost.objectives.losses.base import Loss
from sklboost.objectives.metrics.base import RoundMetric

# With early stopping no more rounds than this are done at once: those after the one at which it
# stops are for nothing.
_MOST_STOPPABLE_ROUNDS = 16
# With validation rows at least so many, unless they take long: it takes longer to fetch the rows
# than to score them, so several rounds score them together.
_LEAST_WATCHED_ROUNDS = 4
_LONG_VALUES = 120_000_000

EvalsLog = dict[str, dict[str, list[float]]]


class Problem(NamedTuple):
    """What is learnt from.

    Attributes
    ----------
    matrix : TrainingBins
    cuts : BinCuts
        How values became its bins.
    y : ndarray of float64, shape (n_targets, n_samples)
        Or shorter, as `Rounds` takes them.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive; empty: all 1.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Before the first round. Modified.
    loss : Loss
    params : TreeParams
    rules : FeatureRules
    seed : int
        Decides the random rounding of gradients.
    sampling_seed : int
        Decides which rows and features are drawn.
    X : ndarray of float32 or float64, Table or BinnedMatrix; shape (n_samples, n_features)
        What the matrix was made of.
    dropout : Dropout or None
        For ``booster="dart"``.
    keep_pruned : bool
        Whether the splits that pruning removes are remembered.
    """

    matrix: TrainingBins
    cuts: BinCuts
    y: np.ndarray
    weight: np.ndarray
    raw_score: np.ndarray
    loss: Loss
    params: TreeParams
    rules: FeatureRules
    seed: int
    sampling_seed: int
    X: Features
    dropout: Dropout | None
    keep_pruned: bool


class Plan(NamedTuple):
    """How far training goes, and who watches.

    Attributes
    ----------
    trees_before : Trees
        Those of the model that is continued.
    rounds : range
        Numbers of the rounds to do; those before are the continued model's.
    begin : float
        When the fit began, of ``time.perf_counter``.
    max_time : float
        Seconds after which no further round begins; infinite: no limit.
    callbacks : sequence of TrainingCallback
    validation : sequence of ValidationSet
    metrics : sequence of RoundMetric
    make_estimator : callable
        Makes a fitted estimator of trees, for callbacks that ask for one.
    """

    trees_before: Trees
    rounds: range
    begin: float
    max_time: float
    callbacks: Sequence[TrainingCallback]
    validation: Sequence[ValidationSet]
    metrics: Sequence[RoundMetric]
    make_estimator: Callable[[Trees], Any]


class Training:
    """The training of one model: its state, which callbacks see, and the loop over its rounds.

    Parameters
    ----------
    team : ThreadTeam
    problem : Problem
    plan : Plan
        Kept as an attribute.

    Attributes
    ----------
    n_rounds : int
        Rounds finished, those of a continued model included.
    evals_log : dict of str to dict of str to list of float
        By validation set and metric, one value a round.
    best_iteration, best_score : int and float, or None
        Set by early stopping.
    learning_rates : list of float
        Of the rounds done.
    stop_reason : str
        ``"completed"``, ``"early_stopping"``, ``"max_time"`` or ``"interrupted"``.
    seconds : dict of str to float
        Time spent on ``"boosting"`` and on ``"evaluation"``.
    """

    def __init__(self, team: ThreadTeam, problem: Problem, plan: Plan):
        self._problem = problem
        self.plan = plan
        self._learning_rate = problem.params.learning_rate
        self.learning_rates: list[float] = []
        self.n_rounds = plan.rounds.start
        self.best_iteration: int | None = None
        self.best_score: float | None = None
        self.stop_reason = ""
        self.evals_log: EvalsLog = {
            own.name: {metric.name: [] for metric in plan.metrics} for own in plan.validation
        }
        self._booster = self._make_booster(team)
        self.seconds = self._booster.seconds

    # --- what callbacks see

    @property
    def n_estimators(self) -> int:
        """Rounds planned, those of a continued model included."""
        return self.plan.rounds.stop

    @property
    def first_round(self) -> int:
        """Rounds of the model that is continued, else 0."""
        return self.plan.rounds.start

    @property
    def elapsed(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self.plan.begin

    @property
    def learning_rate(self) -> float:
        """Of the next rounds; it can be set."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if not 0.0 < value < np.inf:
            raise ValueError(f"learning_rate={value!r}: it must be a finite number > 0")
        self._learning_rate = float(value)

    def greater_is_better(self, metric_name: str) -> bool:
        """Tell the direction of a metric of `evals_log`."""
        (metric,) = (own for own in self.plan.metrics if own.name == metric_name)
        return metric.greater_is_better

    def training_loss(self) -> float:
        """Compute the mean loss of the training rows."""
        problem = self._problem
        y = problem.y.astype(np.float64, copy=False)
        return problem.loss.value(y, problem.raw_score, problem.weight)

    def snapshot(self) -> Any:
        """Make a fitted estimator as if training had ended after the last finished round."""
        return self.plan.make_estimator(self.trees(self.n_rounds))

    # --- the loop

    def run(self) -> None:
        """Do all rounds, or those up to a reason to stop."""
        with ExitStack() as ends:
            for callback in reversed(self.plan.callbacks):
                ends.callback(callback.after_training, self)  # all of them, whatever one raises
            try:
                for callback in self.plan.callbacks:
                    callback.before_training(self)
                while not self.stop_reason:
                    self._run_some()
            except KeyboardInterrupt:
                if self.n_rounds == self.first_round:
                    raise
                self.stop_reason = "interrupted"
        if self.n_rounds == 0:
            raise ValueError(
                "a callback stopped training before its first round: no model was made"
            )

    def trees(self, n_rounds: int) -> Trees:
        """Give the trees of the first `n_rounds` rounds, those of a continued model included."""
        return self._booster.trees(n_rounds)

    def finished_log(self) -> EvalsLog:
        """Give `evals_log` without what an interrupt left behind the last finished round."""
        n_finished = self.n_rounds - self.first_round
        return {
            name: {metric: values[:n_finished] for metric, values in own.items()}
            for name, own in self.evals_log.items()
        }

    def _make_booster(self, team: ThreadTeam) -> TreeBooster:
        problem, plan, raw = self._problem, self.plan, None
        if problem.params.linear_tree == 1 and not isinstance(problem.X, BinnedMatrix):
            raw = raw_matrix(value_array(problem.X))
        rounds = Rounds(
            team,
            *(problem.matrix, problem.y, problem.weight, problem.loss),
            *(problem.raw_score, problem.params, problem.rules),
            seed=problem.seed,
            sampling_seed=problem.sampling_seed,
            at_once=self._at_once(),
            raw=raw,
            keep_pruned=problem.keep_pruned,
        )
        loss, cuts = problem.loss, problem.cuts
        evaluation = Evaluation(team, plan.validation, plan.metrics, loss, rounds.grown, cuts)
        trees_per_round = problem.params.trees_per_round(loss.n_outputs)
        if problem.dropout is None:
            return TreeBooster(rounds, evaluation, plan.trees_before, trees_per_round)
        # trees are taken out of their scores and put back; no metrics, so no targets
        rows = ValidationSet("", problem.X, np.empty(0), np.empty(0), problem.raw_score)
        training_rows = Evaluation(team, [rows], [], loss, rounds.grown, cuts)
        scorers = (evaluation, training_rows)
        return Dart(rounds, scorers, trees_per_round, problem.dropout, problem.sampling_seed)

    def _at_once(self) -> tuple[int, int]:
        """Give the least and the most rounds that may be done in one call."""
        plan, n_rounds = self.plan, len(self.plan.rounds)
        # a loss in Python is asked for its gradients
        is_asked = self._problem.loss.block is None or self._problem.dropout is not None
        is_linear = self._problem.params.linear_tree == 1
        # sparse rows are scored as in prediction, round by round
        is_sparse = any(isinstance(own.X, SparseTable) for own in plan.validation)
        if (
            is_linear
            or is_asked
            or is_sparse
            or any(callback.every_round for callback in plan.callbacks)
        ):
            return 1, 1
        if not plan.validation:
            return 1, n_rounds
        if not all(map(is_compiled, plan.metrics)):
            return 1, 1
        values_of_round = self._problem.matrix.rows.size * self._problem.loss.n_outputs
        least = max(1, min(_LEAST_WATCHED_ROUNDS, _LONG_VALUES // values_of_round, n_rounds))
        may_stop = any(isinstance(callback, EarlyStopping) for callback in plan.callbacks)
        return least, min(n_rounds, _MOST_STOPPABLE_ROUNDS) if may_stop else n_rounds

    def _run_some(self) -> None:
        """Do some rounds and all that comes with them, or find a reason to stop."""
        plan, first = self.plan, self.n_rounds
        if first == plan.rounds.stop:
            self.stop_reason = "completed"
            return
        if self.elapsed > plan.max_time and first > plan.rounds.start:
            self.stop_reason = "max_time"
            return
        if self._any_stops("before_iteration", first):
            return
        stop = min(first + self._booster.n_at_once, plan.rounds.stop)
        params = self._problem.params
        # the trees of a round share it
        params = params._replace(learning_rate=self._learning_rate / params.num_parallel_tree)
        values = self._booster.advance(first, stop, params)
        for round_ in range(first, stop):
            self._record(values[round_ - first])
            self.n_rounds = round_ + 1  # from here on the round is kept, whatever happens
            if self._any_stops("after_iteration", round_):
                return

    def _any_stops(self, method: str, epoch: int) -> bool:
        # a list: each is asked, also after another one stopped
        answers = [
            getattr(callback, method)(self, epoch, self.evals_log)
            for callback in self.plan.callbacks
        ]
        if any(answers):
            self.stop_reason = "early_stopping"
        return any(answers)

    def _record(self, values: np.ndarray) -> None:
        self.learning_rates.append(self._learning_rate)
        for own, of_set in zip(self.evals_log.values(), values, strict=True):
            for log, value in zip(own.values(), of_set, strict=True):
                log.append(float(value))


class Replay(TrainingCallback):
    """Gives each round the learning rate that it had in another training.

    Parameters
    ----------
    learning_rates : list of float
        One for each round.
    """

    def __init__(self, learning_rates: Sequence[float]):
        self._learning_rates = learning_rates
        # one rate for all is set once, so many rounds can be done at once
        self.every_round = len(set(learning_rates)) > 1

    def before_iteration(self, training: Any, epoch: int, evals_log: Any) -> bool:
        """Set the learning rate of the round."""
        training.learning_rate = self._learning_rates[epoch - training.first_round]
        return False
