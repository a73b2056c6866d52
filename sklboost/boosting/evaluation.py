"""Metrics of validation rows after every round.

In: validation rows, laid out once, and the new trees of some rounds. Out: the value of every metric
after each of these rounds.

Metrics with a compiled form are computed in the same call that adds the trees, for many rounds at
once. The others are Python functions, so then there is one round a call.
"""

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from sklboost.data.features import Features
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam, assemble, barrier, share
from sklboost.engine.structs import BinCuts
from sklboost.objectives.losses.base import Loss
from sklboost.objectives.metrics.base import RoundMetric, as_rows
from sklboost.objectives.metrics.compiled import (
    LossSums,
    MeanLosses,
    add_losses,
    allocate_sums,
    finish_metric,
    mean_losses,
)
from sklboost.tree.predict.adding import add_some_trees
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.linear_prediction import add_linear_trees
from sklboost.tree.predict.prediction import prepare_prediction
from sklboost.tree.predict.scoring import (
    add_to_block,
    allocate_new_trees,
    fetch_block,
    lay_out_rows,
    lay_out_trees,
)
from sklboost.tree.predict.trees import first_trees


class ValidationSet(NamedTuple):
    """Rows that metrics are computed of.

    Attributes
    ----------
    name : str
    X : ndarray of float32 or float64, Table or BinnedMatrix; shape (n_samples, n_features)
    y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
        As the loss has it; NaN of several targets: not known.
    weight : ndarray of float64, shape (n_samples,) or (0,)
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Before the first round. Modified by each round.
    """

    name: str
    X: Features
    y: np.ndarray
    weight: np.ndarray
    raw_score: np.ndarray


class CompiledMetrics(NamedTuple):
    """What the kernel needs to compute metrics.

    Attributes
    ----------
    losses : MeanLosses
        What the metrics are means of.
    y : ndarray of float64, shape (n_targets, n_samples)
    weight : ndarray of float64, shape (n_samples,) or (0,)
    sums : LossSums
        Scratch.
    values : ndarray of float64, shape (n_rounds, n_metrics)
        Filled.
    """

    losses: MeanLosses
    y: np.ndarray
    weight: np.ndarray
    sums: LossSums
    values: np.ndarray


@kernel
def score_rounds(team, model, thresholds, rounds, rows, metrics):
    """Add the trees of some rounds to the rows and compute the metrics after each round.

    Parameters
    ----------
    team : Team
    model : Model
        The new trees, laid out.
    thresholds : ndarray of the dtype of the bins, shape (n_splits,)
    rounds : tuple of int
        How many, and how many trees each has; 0: the rows have them already.
    rows : ScoredRows
        Modified.
    metrics : CompiledMetrics
        Modified.
    """
    if not assemble(team):
        return
    (n_rounds, n_trees), n_metrics = rounds, len(metrics.losses.addresses)
    start, stop = share(team, len(rows.scratch.columns))
    scored, scratch = (metrics.y, rows.raw_score, metrics.weight), metrics.sums.scratch[team.rank]
    # block by block, and all rounds of a block: the training has filled the caches with its own
    # data, and to fetch the rows again takes longer than to score them
    for block in range(start, stop):
        fetch_block(rows, block + 1)
        for round_ in range(n_rounds):
            trees = (round_ * n_trees, (round_ + 1) * n_trees)
            add_to_block(team, model, thresholds, trees, rows, block)
            for index in range(n_metrics):
                sums = metrics.sums.blocks[round_ * n_metrics + index]
                add_losses(metrics.losses, index, block, scored, scratch, sums)
    barrier(team)
    if team.rank == 0:
        for round_ in range(n_rounds):
            for index in range(n_metrics):
                sums = metrics.sums.blocks[round_ * n_metrics + index]
                is_root = metrics.losses.are_roots[index]
                metrics.values[round_, index] = finish_metric(is_root, sums)


class Evaluation:
    """Scores validation rows after every round.

    Parameters
    ----------
    team : ThreadTeam
    validation : sequence of ValidationSet
    metrics : sequence of RoundMetric
    loss : Loss
    grown : Trees
        Where the new trees of each call are, in whole rounds from the front.
    cuts : BinCuts
        How values of the training became bins.
    """

    def __init__(
        self,
        team: ThreadTeam,
        validation: Sequence[ValidationSet],
        metrics: Sequence[RoundMetric],
        loss: Loss,
        grown: Trees,
        cuts: BinCuts,
    ):
        self._team = team
        self._validation = validation
        self._metrics = metrics
        self._n_outputs = loss.n_outputs
        self._cuts = cuts
        if not validation:
            return
        # a round has at least one tree for each output, or one for all
        n_rounds = len(grown.n_pruned) * max(1, grown.outputs.shape[1]) // loss.n_outputs
        means = [metric.mean_loss for metric in metrics if metric.mean_loss is not None]
        losses = mean_losses(means, loss.n_outputs)
        self._rows = [lay_out_rows(team, own.X, cuts, own.raw_score) for own in validation]
        self.look_at(grown)
        self._compiled = [
            CompiledMetrics(
                losses,
                as_rows(own.y),
                own.weight,
                allocate_sums(n_rounds * len(means), own.raw_score.shape[1], team.size),
                np.empty((n_rounds, len(means))),
            )
            for own in validation
        ]

    def look_at(self, grown: Trees) -> None:
        """Take the new trees from another place."""
        if not self._validation:
            return
        n_features = self._validation[0].X.shape[1]
        self._grown = grown
        self._new = allocate_new_trees(grown, self._n_outputs, n_features)
        self._thresholds = np.empty(len(self._new.model.tops.splits), dtype=np.uint16)

    def add_linear(self, trees: Trees) -> None:
        """Add trees with linear leaves as prediction does: they need the values, not the bins."""
        for index, own in enumerate(self._validation):
            raw = self._rows[index].raw
            model = assemble_model(trees, np.zeros(self._n_outputs), raw.n_features)
            prepared = prepare_prediction(model, raw, self._team.size)
            arguments = (model.linear, raw, (0, model.n_trees), prepared, own.raw_score)
            self._team.run(add_linear_trees, model.constant, *arguments)

    def _add_to_sparse(self, own: ValidationSet, n_trees: int) -> int:
        """Add new trees to rows that are sparse; give how many are still to be added.

        Their bins would be a dense table, so they are scored as in prediction.
        """
        if not isinstance(own.X, SparseTable) or n_trees == 0:
            return n_trees
        trees, n_features = first_trees(self._grown, n_trees), own.X.shape[1]
        model = assemble_model(trees, np.zeros(self._n_outputs), n_features)
        add_some_trees(self._team, model, own.X, (0, n_trees), own.raw_score)
        return 0

    def score(self, n_rounds: int, n_trees: int, *, ends_round: bool = True) -> np.ndarray:
        """Add new trees to the rows; give the metrics, shape (n_rounds, n_sets, n_metrics).

        `n_trees` in all, none if the rows have them already. Unless they end a round, the values
        are of no use.
        """
        values = np.empty((n_rounds, len(self._validation), len(self._metrics)))
        if not self._validation:
            return values
        compiled_ones = [is_compiled(metric) for metric in self._metrics]
        lay_out_trees(self._new, self._cuts, n_trees, self._thresholds)
        for index, own in enumerate(self._validation):
            rows, compiled = self._rows[index], self._compiled[index]
            # a set of more missing values than the training can have wider bins
            thresholds = self._thresholds.astype(rows.scratch.columns.dtype, copy=False)
            rounds = (n_rounds, self._add_to_sparse(own, n_trees) // n_rounds)
            self._team.run(score_rounds, self._new.model, thresholds, rounds, rows, compiled)
            values[:, index, compiled_ones] = compiled.values[:n_rounds]
            for place, metric in enumerate(self._metrics if ends_round else ()):
                if not compiled_ones[place]:
                    values[-1, index, place] = metric.value(own.y, own.raw_score, own.weight)
                elif np.isnan(values[:, index, place]).any():
                    _raise_domain_error(metric, own)
        return values


def _raise_domain_error(metric: RoundMetric, own: ValidationSet) -> NoReturn:
    """Say which row a compiled metric is not defined for."""
    metric.value(own.y, own.raw_score, own.weight)
    # rounds after the one where it happened have moved the row back
    raise ValueError(
        f"the metric {metric.name!r} is not a number: in one of the last rounds a prediction was "
        "outside what it is defined for; choose another eval_metric"
    )


def is_compiled(metric: RoundMetric) -> bool:
    """Tell whether rounds need not stop for this metric."""
    return metric.mean_loss is not None
