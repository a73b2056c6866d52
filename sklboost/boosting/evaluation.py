"""Metrics of validation rows after every round.

The rows are binned once. The new trees of some rounds are then added to their raw scores, and every
metric is computed after each of these rounds: metrics with a compiled form in the same call that
adds the trees, for many rounds at once. The others are Python functions and need one round a call.

Rows may be on a cluster: then the workers do this, and their sums come here. The raw scores and the
targets come only for metrics that are Python functions.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.settings import BoostingTask
from sklboost.data.features import RemoteFeatures
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam, assemble, barrier, share
from sklboost.objectives.metric import (
    CompiledMetrics,
    Metric,
    add_losses,
    as_rows,
    compile_metrics,
    finish_metric,
)
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import (
    ScoredRows,
    add_to_block,
    add_trees,
    allocate_new_trees,
    fetch_block,
    lay_out_rows,
    lay_out_trees,
)
from sklboost.tree.predict.trees import no_trees, take_trees


class ValidationSet(NamedTuple):
    """Rows that metrics are computed on; with features on a cluster, all else may be a column."""

    name: str
    X: Any  # Features, or RemoteFeatures
    # float64, shape (n_samples,) or (n_samples, n_targets): as the loss takes it; NaN: not known,
    # where there are several targets
    y: Any
    weight: Any  # float64, shape (n_samples,) or (0,)
    # float64, shape (n_outputs, n_samples): before the first round. Modified by each round, unless
    # the rows are on a cluster.
    raw_score: Any

    def with_arrays(self) -> "ValidationSet":
        """Return the set with targets, weights and raw scores in this process."""
        raw_score = np.array(np.atleast_2d(self.raw_score), order="C")
        return self._replace(
            y=np.asarray(self.y), weight=np.asarray(self.weight), raw_score=raw_score
        )


class RemoteRows(ABC):
    """Has validation rows on a cluster scored there."""

    # set before anything is asked for
    watched: Sequence[ValidationSet] = ()
    metrics: Sequence[Metric] = ()

    @abstractmethod
    def score(self, trees: Trees, n_rounds: int, *, by_values: bool = False) -> list[np.ndarray]:
        """Add new trees to the rows; return of each set `sums` as in `CompiledMetrics`.

        `by_values`: as prediction does, since the trees are not of this training.
        """

    @abstractmethod
    def raw_score(self, number: int) -> np.ndarray:
        """Return the raw scores of a set, counted from 1, shape (n_outputs, n_samples)."""


class Evaluation:
    """Scores validation sets after every round; `grown` as in :meth:`read_from`.

    Those whose features are on a cluster are scored by `cluster`.
    """

    def __init__(
        self,
        team: ThreadTeam,
        task: BoostingTask,
        validation: Sequence[ValidationSet],
        metrics: Sequence[Metric],
        grown: Trees,
        cluster: RemoteRows | None = None,
    ):
        self._team = team
        self._task = task
        self._metrics = metrics
        self.seconds = 0.0  # spent on :meth:`score`
        self._sets: list[tuple[ValidationSet, ScoredRows | None, CompiledMetrics]] = []
        there = [given for given in validation if isinstance(given.X, RemoteFeatures)]
        self._cluster = cluster if there else None
        if self._cluster is not None:
            self._cluster.watched, self._cluster.metrics = there, metrics
        if not validation:
            return
        # a round has at least one tree for each output, or one for all
        n_rounds = len(grown.n_pruned) * task.n_tree_outputs // task.n_outputs
        for given in validation:
            if isinstance(given.X, RemoteFeatures):
                rows, targets, weight = None, np.empty((1, 0)), np.empty(0)
            else:
                rows = lay_out_rows(team, given.X, task.cuts, given.raw_score)
                targets, weight = as_rows(given.y), given.weight
            compiled = compile_metrics(
                metrics,
                task.loss.link,
                (targets, weight),
                task.n_outputs,
                n_rounds=n_rounds,
                n_threads=team.size,
            )
            self._sets.append((given, rows, compiled))
        self.read_from(grown)

    def read_from(self, grown: Trees) -> None:
        """Read the new trees from these arrays from now on, where they are from the front."""
        if self._sets:
            n_features = len(self._task.matrix.places)
            self._new = allocate_new_trees(grown, self._task.n_outputs, n_features)

    def score(self, trees: Trees, n_rounds: int, *, ends_round: bool = True) -> np.ndarray:
        """Add new trees to the rows; return the metrics after each round, of all sets.

        Without `ends_round` they are a part of one round, so the metrics are of no use yet.
        """
        values = np.empty((n_rounds, len(self._sets), len(self._metrics)))
        if not self._sets:
            return values
        begin = time.perf_counter()
        sums_there = [] if self._cluster is None else self._cluster.score(trees, n_rounds)
        n_trees = len(trees.n_pruned) if trees.linear is None else 0
        lay_out_trees(self._new, self._task.cuts, n_trees)
        for index, (given, rows, compiled) in enumerate(self._sets):
            if rows is None:
                finish_rounds(compiled._replace(sums=sums_there.pop(0)), n_rounds)
            else:
                n_left = n_trees
                is_special = trees.linear is not None or isinstance(given.X, SparseTable)
                if is_special and len(trees.n_pruned) > 0:
                    self._add_as_predicted(trees, given, rows)
                    n_left = 0
                # a set of more missing values than the training can have wider bins
                thresholds = self._new.thresholds.astype(rows.scratch.columns.dtype, copy=False)
                rounds = (n_rounds, n_left // n_rounds)
                self._team.run(score_rounds, self._new.model, thresholds, rounds, rows, compiled)
            are_means = [metric.formula is not None for metric in self._metrics]
            values[:, index, are_means] = compiled.values[:n_rounds]
            if ends_round:
                self._complete(values[:, index], index)
        self.seconds += time.perf_counter() - begin
        return values

    def sums(self, n_rounds: int) -> list[np.ndarray]:
        """Return `sums` of the last call, of so many rounds, of each set."""
        return [compiled.sums[: n_rounds * len(compiled.factors)] for _, _, compiled in self._sets]

    def add_as_predicted(self, trees: Trees) -> None:
        """Add trees to the rows of all sets, which are here, by their values."""
        for given, rows, _ in self._sets:
            assert rows is not None
            self._add_as_predicted(trees, given, rows)

    def score_before(self, n_rounds: int) -> Iterator[np.ndarray]:
        """Add the trees of a continued model, and yield the metrics after each of its rounds."""
        task, n_trees = self._task, self._task.trees_per_round
        model = assemble_model(task.trees_before, np.zeros(task.n_outputs), task.X.shape[1])
        for start in range(0, n_rounds * n_trees, n_trees):
            # as prediction does: thresholds of these trees are no bins of this training
            stop = start + n_trees
            if self._cluster is not None:
                self._cluster.score(take_trees(task.trees_before, start, stop), 1, by_values=True)
            for given, rows, _ in self._sets:
                if rows is not None:
                    add_trees(self._team, model, given.X, (start, stop), given.raw_score)
            yield self.score(no_trees(), 1)[0]

    def _add_as_predicted(self, trees: Trees, given: ValidationSet, rows: ScoredRows) -> None:
        """Add trees to the rows by their values, as prediction does.

        Linear leaves need the values, and the bins of sparse rows would be a dense table.
        """
        model = assemble_model(trees, np.zeros(self._task.n_outputs), given.X.shape[1])
        X = given.X if isinstance(given.X, SparseTable) else rows.raw
        add_trees(self._team, model, X, (0, model.n_trees), given.raw_score)

    def _complete(self, values: np.ndarray, number: int) -> None:
        """Fill in the metrics that are Python functions and check the others, one set's values."""
        given, rows, compiled = self._sets[number]
        if all(metric.formula for metric in self._metrics) and not np.isnan(values).any():
            return
        if rows is None:
            assert self._cluster is not None
            given = given.with_arrays()
            self._sets[number] = given, rows, compiled  # they come once
            place = sum(its is None for _, its, _ in self._sets[: number + 1])
            given = given._replace(raw_score=self._cluster.raw_score(place))
        predictions = None  # the same for all metrics, so the link is applied once
        for index, metric in enumerate(self._metrics):
            if metric.formula is None:
                scores = given.raw_score
                if metric.predict is not None:
                    predictions = metric.predict(scores) if predictions is None else predictions
                    scores = predictions
                values[-1, index] = metric.function(given.y, scores, given.weight)
            elif np.isnan(values[:, index]).any():
                # raises an error that names the row
                metric.value(given.y, given.raw_score, given.weight)
                # unless the rounds after the one where it happened have moved the row back
                raise ValueError(
                    f"the metric {metric.name!r} is not a number: in one of the last rounds a "
                    "prediction was outside its domain; choose another eval_metric"
                )


@kernel
def score_rounds(team, model, thresholds, rounds, rows, metrics):
    """Add the trees of some rounds to the rows and compute the metrics after each round.

    `rounds` is the number of rounds, and of trees in each: 0 if the rows have them already.
    """
    if not assemble(team):
        return
    (n_rounds, n_trees), n_metrics = rounds, len(metrics.addresses)
    start, stop = share(team, len(rows.scratch.columns))
    scratch = metrics.scratch[team.rank]
    # block by block, and all rounds of a block: the training has filled the caches with its own
    # data, and to fetch the rows again takes longer than to score them
    for block in range(start, stop):
        fetch_block(rows, block + 1)
        for round_ in range(n_rounds):
            trees = (round_ * n_trees, (round_ + 1) * n_trees)
            add_to_block(team, model, thresholds, trees, rows, block)
            for index in range(n_metrics):
                sums = metrics.sums[round_ * n_metrics + index]
                add_losses(metrics, index, block, rows.raw_score, scratch, sums)
    barrier(team)
    if team.rank == 0:
        finish_rounds(metrics, n_rounds)


@kernel
def finish_rounds(metrics, n_rounds):
    """Fill the values of the metrics after each round from the sums of the blocks."""
    n_metrics = len(metrics.addresses)
    for round_ in range(n_rounds):
        for index in range(n_metrics):
            sums = metrics.sums[round_ * n_metrics + index]
            metrics.values[round_, index] = finish_metric(metrics, index, sums)
