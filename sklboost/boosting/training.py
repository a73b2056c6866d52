"""The training of one model, round by round, until it is done, good enough, out of time or stopped.

:class:`Training` does what its task says on the rounds of its schedule, asks the callbacks before
and after each round, and keeps the trees, the metrics and the reason why it ended.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.boosters import Booster, Dart
from sklboost.boosting.callbacks import EarlyStopping, EvalsLog, TrainingCallback
from sklboost.boosting.evaluation import Evaluation, RemoteRows, ValidationSet
from sklboost.boosting.rounds import Rounds, TreeGrower
from sklboost.boosting.settings import BoostingTask
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.model import Model, Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.custom import FaultyRowError
from sklboost.objectives.metric import Metric
from sklboost.tree.predict.assembly import assemble_model

# With early stopping no more rounds than this are done at once: those after the one at which it
# stops are for nothing.
_MOST_STOPPABLE_ROUNDS = 16
# With validation rows at least so many, unless they take long: it takes longer to fetch the rows
# than to score them, so several rounds score them together.
_LEAST_WATCHED_ROUNDS = 4
_LONG_VALUES = 120_000_000

# Takes what Rounds takes.
MakeGrower = Callable[[ThreadTeam, BoostingTask, tuple[int, int]], TreeGrower]
MetricLog = dict[str, dict[str, list[float]]]


class Schedule(NamedTuple):
    """How far a training goes, and who watches it."""

    rounds: range  # numbers of the rounds to do; those before are the continued model's
    begin: float  # when the fit began, by ``time.perf_counter``
    max_time: float  # seconds after which no further round begins; infinite: no limit
    callbacks: Sequence[TrainingCallback]
    validation: Sequence[ValidationSet]
    metrics: Sequence[Metric]
    # makes a fitted estimator of the finished rounds, for callbacks that ask for one
    make_estimator: Callable[["Training"], Any]
    # whether the metrics of the continued model's rounds are logged, too, and early stopping
    # compares new rounds with them. Then its trees are not in the raw scores of `validation`.
    logs_before: bool = False


class Training:
    """The training of one model: its state, which callbacks see, and the loop over its rounds."""

    def __init__(
        self,
        team: ThreadTeam,
        task: BoostingTask,
        schedule: Schedule,
        make_grower: MakeGrower = Rounds,
        name_of_row: Callable[[int], str] = "row {}".format,
    ):
        self._task = task
        self.schedule = schedule
        self._name_of_row = name_of_row  # as the user knows it, for errors
        self._learning_rate = task.params.learning_rate
        self.learning_rates: list[float] = []  # of the rounds done
        self.first_round = schedule.rounds.start  # rounds of the model that is continued, else 0
        self.n_rounds = self.first_round  # finished, these included
        self.n_estimators = schedule.rounds.stop  # planned, these included
        self.best_iteration: int | None = None  # set by early stopping, like the score
        self.best_score: float | None = None
        self.stop_reason = ""  # "completed", "early_stopping", "max_time" or "interrupted"
        self.first_logged = 0 if schedule.logs_before else self.first_round
        # by validation set and metric, one value a round, from `first_logged` on
        self.evals_log: MetricLog = {
            given.name: {metric.name: [] for metric in schedule.metrics}
            for given in schedule.validation
        }
        self.grower = make_grower(team, task, self._limits_of_call())
        self._n_at_once = 1  # until it is known how long a round takes
        grower: object = self.grower
        cluster = grower if isinstance(grower, RemoteRows) else None
        self._evaluation = Evaluation(
            team, task, schedule.validation, schedule.metrics, self.grower.grown, cluster
        )
        if task.dropout is None:
            self._booster = Booster(task, self._evaluation)
        else:
            self._booster = Dart(task, self._evaluation, self.grower, task.dropout)
        self.seconds = {"boosting": 0.0, "evaluation": 0.0}

    def run(self) -> None:
        """Do all rounds, or those up to a reason to stop; then the grower is closed."""
        schedule = self.schedule
        with ExitStack() as ends:
            ends.callback(self.grower.close)
            ends.push(self._names_row)
            ends.push(self._keeps_rounds)  # at Ctrl-C in a callback's end, too
            for callback in reversed(schedule.callbacks):
                ends.callback(callback.after_training, self)  # all of them, whatever one raises
            ends.push(self._keeps_rounds)
            for callback in schedule.callbacks:
                callback.before_training(self)
            if schedule.logs_before:
                self._log_before()
            while not self.stop_reason:
                first = self.n_rounds
                if first == self.n_estimators:
                    self.stop_reason = "completed"
                elif first > self.first_round and self.elapsed > schedule.max_time:
                    self.stop_reason = "max_time"
                elif not self._any_stops("before_iteration", first):
                    stop = min(first + self._n_at_once, self.n_estimators)
                    for round_, values in enumerate(self._do_rounds(first, stop), start=first):
                        self.learning_rates.append(self._learning_rate)
                        self._log(values)
                        self.n_rounds = round_ + 1  # from here on it is kept, whatever happens
                        if self._any_stops("after_iteration", round_):
                            break
        if self.n_rounds == 0:
            raise ValueError(
                "a callback stopped training before its first round: no model was made"
            )

    def _do_rounds(self, start: int, stop: int) -> np.ndarray:
        """Grow and score the trees of the rounds ``[start, stop)``, in a call of a kernel.

        Returns their metrics, shape (n_rounds, n_sets, n_metrics).
        """
        begin, before = time.perf_counter(), self._evaluation.seconds
        # the parallel trees of a round share the learning rate
        params = self._task.params
        params = params._replace(learning_rate=self._learning_rate / params.num_parallel_tree)
        n_left = (stop - start) * self._task.trees_per_round
        self._booster.drop_rounds(params)
        for trees in self.grower.grow(start, stop, params):
            n_left -= len(trees.n_pruned)
            values = self._booster.add(trees, stop - start, ends_round=n_left == 0)
        evaluation, spent = self._evaluation.seconds - before, time.perf_counter() - begin
        self.seconds["evaluation"] += evaluation
        self.seconds["boosting"] += spent - evaluation
        n_in_time = self.grower.seconds_per_call * (stop - start) / spent
        self._n_at_once = int(max(1, min(n_in_time, self.grower.n_at_once)))
        return values

    def _any_stops(self, method: str, epoch: int) -> bool:
        """Call a method of all callbacks, also after one stopped; whether any does."""
        answers = [
            getattr(callback, method)(self, epoch, self.evals_log)
            for callback in self.schedule.callbacks
        ]
        if any(answers):
            self.stop_reason = "early_stopping"
        return any(answers)

    def _keeps_rounds(self, exception: type[BaseException] | None, *_: Any) -> bool:
        """Whether training ended by Ctrl-C after some rounds, which are kept."""
        if exception is not KeyboardInterrupt or self.n_rounds == self.first_round:
            return False
        self.stop_reason = "interrupted"
        return True

    def _names_row(self, _: type[BaseException] | None, error: Any, *traceback: Any) -> None:
        """Say of the row whose derivatives are unusable which one it is of the user's."""
        if isinstance(error, FaultyRowError):
            error.where = self._name_of_row(error.row)

    def _log_before(self) -> None:
        """Log the continued model's rounds, and let early stopping find the best; it cannot end."""
        for values in self._evaluation.score_before(self.first_round):
            self._log(values)
        for callback in self.schedule.callbacks:
            if isinstance(callback, EarlyStopping):
                callback.after_iteration(self, self.first_round - 1, self.evals_log)

    def _log(self, values: np.ndarray) -> None:
        """Append the metrics of a round, shape (n_sets, n_metrics)."""
        for logs, of_set in zip(self.evals_log.values(), values, strict=True):
            for log, value in zip(logs.values(), of_set, strict=True):
                log.append(float(value))

    def _limits_of_call(self) -> tuple[int, int]:
        """Return the fewest and the most rounds that may be done in one call."""
        task, schedule, n_rounds = self._task, self.schedule, len(self.schedule.rounds)
        callbacks, validation = schedule.callbacks, schedule.validation
        reasons_to_return_after_each_round = (
            task.loss.block is None,  # a loss in Python is asked for its gradients
            task.dropout is not None,  # the rounds to drop are chosen
            task.params.linear_tree == 1,  # leaves are fitted after their tree is grown
            any(callback.every_round for callback in callbacks),
            # sparse rows are scored as in prediction
            any(isinstance(given.X, SparseTable) for given in validation),
            # metrics in Python are called
            validation and any(metric.formula is None for metric in schedule.metrics),
        )
        if any(reasons_to_return_after_each_round):
            return 1, 1
        if not validation:
            return 1, n_rounds
        values_of_round = task.matrix.rows.size * task.n_outputs
        fewest = max(1, min(_LEAST_WATCHED_ROUNDS, _LONG_VALUES // values_of_round, n_rounds))
        may_stop = any(isinstance(callback, EarlyStopping) for callback in callbacks)
        return fewest, min(n_rounds, _MOST_STOPPABLE_ROUNDS) if may_stop else n_rounds

    # --- what callbacks see besides the attributes

    @property
    def elapsed(self) -> float:
        """Seconds since the fit began."""
        return time.perf_counter() - self.schedule.begin

    @property
    def learning_rate(self) -> float:
        """Learning rate of the next rounds; it can be set."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        if not 0.0 < value < np.inf:
            raise ValueError(f"learning_rate={value!r}: it must be a finite number > 0")
        self._learning_rate = float(value)

    def greater_is_better(self, metric_name: str) -> bool:
        """Whether more of a metric of `evals_log` is better."""
        (metric,) = (given for given in self.schedule.metrics if given.name == metric_name)
        return metric.greater_is_better

    def training_loss(self) -> float:
        """Compute the mean loss of the training rows."""
        task = self._task
        y = np.atleast_2d(np.asarray(task.y, dtype=np.float64))
        return task.loss.value(y, self.grower.raw_score(), np.asarray(task.weight))

    def snapshot(self) -> Any:
        """Make a fitted estimator as if training had ended after the last finished round."""
        return self.schedule.make_estimator(self)

    # --- what comes of it

    def trees(self, n_rounds: int) -> Trees:
        """Return the trees of the first `n_rounds` rounds, a continued model's included."""
        return self._booster.trees(n_rounds)

    @np.errstate(all="ignore")
    def model(self, n_rounds: int) -> Model:
        """Return the model of these trees."""
        task = self._task
        return assemble_model(self.trees(n_rounds), task.base_score, task.X.shape[1])

    def finished_log(self) -> MetricLog:
        """`evals_log` without what an interrupt left behind the last finished round."""
        n_finished = self.n_rounds - self.first_logged
        return {
            name: {metric: values[:n_finished] for metric, values in logs.items()}
            for name, logs in self.evals_log.items()
        }


class Replay(TrainingCallback):
    """Sets the learning rate of each round to what it was in another training."""

    def __init__(self, learning_rates: Sequence[float]):
        self._learning_rates = learning_rates
        # one rate for all is set once, so many rounds can be done at once
        self.every_round = len(set(learning_rates)) > 1

    def before_iteration(self, training: Training, epoch: int, evals_log: EvalsLog) -> bool:
        rate = self._learning_rates[epoch - training.first_round]
        if rate != training.learning_rate:  # 0 is a parameter's, which no callback may set
            training.learning_rate = rate
        return False
