"""One machine of a training on several: the rounds of boosting on its rows."""

from typing import NamedTuple

import numpy as np

from sklboost.boosting.rounds import Rounds
from sklboost.boosting.settings import BoostingTask, Part
from sklboost.data.binned_matrix import BinnedMatrix, Binning
from sklboost.data.binning import lay_out_cells
from sklboost.data.features import fill_columns
from sklboost.data.raw_values import read_only
from sklboost.distributed.exchange import Exchange, Growth
from sklboost.distributed.peers import Peers
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import FeatureRules, TrainingBins, TreeParams
from sklboost.objectives.loss import Loss
from sklboost.tree.core.quantization import WeightScale
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import add_trees
from sklboost.tree.predict.trees import join_trees, no_trees


class Work(NamedTuple):
    """What all machines of a training are told.

    Attributes
    ----------
    binning : Binning
    loss, params, rules, seed, sampling_seed, keep_pruned
        As in BoostingTask.
    n_samples : int
        Rows of all machines.
    weight_scale : WeightScale
        Of all rows.
    n_at_once : int
        Rounds that may be done in one call.
    trees : Trees
        Those that are finished; they are not in the raw scores that machines are given.
    """

    binning: Binning
    loss: Loss
    params: TreeParams
    rules: FeatureRules
    seed: int
    sampling_seed: int
    keep_pruned: bool
    n_samples: int
    weight_scale: WeightScale
    n_at_once: int
    trees: Trees


class OwnRows(NamedTuple):
    """The rows of a machine: whole blocks of 4,096 of all rows, and perhaps the last one.

    Attributes
    ----------
    blocks : ndarray of int64, shape (n_blocks,)
        Their numbers, increasing.
    bins : ndarray of uint8 or uint16, shape (n_own_rows, n_features)
    y, weight, sample_weight, raw_score
        As in BoostingTask; `raw_score` without the trees of this training.
    """

    blocks: np.ndarray
    bins: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    sample_weight: np.ndarray
    raw_score: np.ndarray


class Machine:
    """The rounds of one machine; its methods are called at the same time on all machines.

    Parameters
    ----------
    peers : Peers
    work : Work
    rows : OwnRows
    n_threads : int
    """

    def __init__(self, peers: Peers, work: Work, rows: OwnRows, n_threads: int):
        self._peers = peers
        self._raw_score = rows.raw_score
        with ThreadTeam(n_threads) as team:
            self._team = team
            columns = np.empty(rows.bins.shape[::-1], dtype=rows.bins.dtype)
            team.run(fill_columns, rows.bins, columns)
            cuts, has_missing = work.binning.cuts, work.binning.has_missing
            matrix = lay_out_cells(rows.bins, read_only(columns), cuts, has_missing)
            if len(work.trees.n_pruned) > 0:
                model = assemble_model(work.trees, np.zeros(work.loss.n_outputs), len(columns))
                binned = BinnedMatrix(rows.bins, work.binning)
                add_trees(team, model, binned, (0, model.n_trees), rows.raw_score)
            self._exchange = Exchange(peers, matrix, rows.blocks, work.n_samples)
            task = _task_of(work, rows, matrix, self._exchange)
            self._rounds = Rounds(team, task, (work.n_at_once, work.n_at_once))
        has_categories = bool(matrix.n_categories.any())
        self._exchange.growth = Growth(
            workspace=self._rounds.workspace,
            derivatives=self._rounds.state.derivatives,
            counts=self._rounds.state.rows.counts,
            has_noise=has_categories and work.params.cat_smooth > 0.0,
        )

    def run(self, start: int, stop: int, params: TreeParams) -> Trees | None:
        """Do the rounds ``[start, stop)``; the first machine returns the new trees."""
        grown = []
        with self._team:
            for trees in self._rounds.run(start, stop, params):
                self._exchange.raise_error()
                grown.append(trees)
        return join_trees(grown) if self._peers.rank == 0 else None

    def raw_scores(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_own_rows)."""
        return self._raw_score


def _task_of(work: Work, rows: OwnRows, matrix: TrainingBins, exchange: Exchange) -> BoostingTask:
    """Return the task of the rounds on the rows of one machine."""
    return BoostingTask(
        X=rows.bins,
        matrix=matrix,
        cuts=work.binning.cuts,
        y=rows.y,
        weight=rows.weight,
        sample_weight=rows.sample_weight,
        raw_score=rows.raw_score,
        trees_before=no_trees(),
        loss=work.loss,
        params=work.params,
        rules=work.rules,
        seed=work.seed,
        sampling_seed=work.sampling_seed,
        dropout=None,
        keep_pruned=work.keep_pruned,
        part=Part(exchange.machines, work.weight_scale),
    )
