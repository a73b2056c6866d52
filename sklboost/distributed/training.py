"""The rounds of a training on several machines: on each machine, and as the client has them."""

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from sklboost.boosting.rounds import Rounds, allocate_grown, plan_calls
from sklboost.boosting.settings import BoostingTask, Part
from sklboost.boosting.training import MakeGrower
from sklboost.data.binned_matrix import BinnedMatrix, Binning
from sklboost.data.binning import lay_out_cells
from sklboost.data.features import fill_columns
from sklboost.data.raw_values import read_only
from sklboost.distributed.crew import Crew, LostWorkersError
from sklboost.distributed.exchange import Exchange, Growth
from sklboost.distributed.features import ClusterBins, assemble
from sklboost.distributed.messages import Peers
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, FeatureRules, TrainingBins, TreeParams
from sklboost.objectives.loss import Loss
from sklboost.tree.core.machines import BLOCK_ROWS
from sklboost.tree.core.quantization import WeightScale, scale_of_weights
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import add_trees
from sklboost.tree.predict.trees import join_trees, no_trees, take_trees, write_trees


class Work(NamedTuple):
    """The work of all machines of a training."""

    binning: Binning
    # as in BoostingTask
    loss: Loss
    params: TreeParams
    rules: FeatureRules
    seed: int
    sampling_seed: int
    keep_pruned: bool
    n_samples: int  # rows of all machines
    weight_scale: WeightScale  # of all rows
    n_at_once: int  # rounds that may be done in one call
    trees: Trees  # finished ones; they are not in the raw scores that machines are given


class OwnRows(NamedTuple):
    """The rows of a machine: whole blocks of 4,096 of all rows, and perhaps the last one."""

    blocks: np.ndarray  # int64, their numbers, increasing
    bins: np.ndarray  # uint8 or uint16, shape (n_own_rows, n_features)
    # as in BoostingTask; the raw scores without the trees of this training
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
            for trees in self._rounds.grow(start, stop, params):
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
        base_score=np.zeros(work.loss.n_outputs),  # not read: the client makes the model
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


# A call that has lost workers so often, one time after the other, is given up.
_MOST_LOSSES = 5


class ClusterRounds:
    """Grows the trees of a training on the workers of a cluster: a ``TreeGrower``.

    Parameters
    ----------
    crew : Crew
    bins : ClusterBins
    lost : type of exception
        What the crew raises if a worker is gone.
    team : ThreadTeam
        Of the client, for the validation rows.
    task : BoostingTask
        Of all rows; the bins in its `matrix` are not read.
    limits : tuple of int
        The fewest and the most rounds that may be done in one call.

    Attributes
    ----------
    team, n_at_once, seconds_per_call, grown, n_threads
        As in ``TreeGrower``.
    traffic : dict of str to tuple of int
        As in ``TreeGrower``.
    """

    # a call takes some milliseconds more than its rounds
    seconds_per_call = 0.5

    def __init__(
        self,
        crew: Crew,
        bins: ClusterBins,
        lost: type[Exception],
        team: ThreadTeam,
        task: BoostingTask,
        limits: tuple[int, int],
    ):
        self.team = team
        self._crew, self._bins, self._lost = crew, bins, lost
        self._task = task._replace(y=np.atleast_2d(task.y))
        self._binning = Binning(bins.cuts, bins.has_missing, 0, None, None, np.nan)
        # as many rounds as a call may do: machines have less to do than one alone
        calls = plan_calls(task, (limits[1], limits[1]))
        self.n_at_once = calls.n_at_once
        self.grown = allocate_grown(calls, task.n_tree_outputs, calls.n_trees)
        self._finished: list[Trees] = [no_trees()]
        self._n_rounds = 0  # of these
        self.n_threads = 0
        self.traffic: dict[str, tuple[int, int]] = {}
        self._is_closed = False
        self._blocks: list[np.ndarray] = []  # of each machine; none: they have to be started

    def grow(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield as many trees as fit `grown`.

        `grown` holds all of them, unless a round has very many parallel trees.
        """
        trees = self._call("run", start, stop, params)[0]
        self._finished.append(trees)
        self._n_rounds = stop
        for first in range(0, len(trees.n_pruned), len(self.grown.n_pruned)):
            part = take_trees(trees, first, first + len(self.grown.n_pruned))
            write_trees(part, self.grown)
            yield part

    def raw_score(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""
        parts = self._call("raw_scores")  # first: machines that it starts may have other rows
        raw_score = np.empty_like(self._task.raw_score)
        for rows, part in zip(self._rows(), parts, strict=True):
            raw_score[:, rows] = part
        return raw_score

    def close(self) -> None:
        """End the machines; their traffic is known from then on, unless there are none."""
        try:
            for sent in self._crew.traffic() if self._blocks else ():
                for phase, counts in sent.items():
                    before = self.traffic.get(phase, (0, 0))
                    self.traffic[phase] = (before[0] + counts[0], before[1] + counts[1])
        except (self._lost, ConnectionError):  # that of the scheduler, say
            pass  # the model is done, or another error on its way
        finally:
            self._blocks, self._is_closed = [], True
            self._crew.stop()

    def _call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all machines; where some were lost, others take their place."""
        if self._is_closed:
            raise RuntimeError("the training is over, and its workers have forgotten the rows")
        n_losses = 0
        while True:
            try:
                if not self._blocks:
                    self._start()
                return self._crew.call(method, *arguments)
            except self._lost as error:
                self._blocks = []
                n_losses += 1
                if n_losses == _MOST_LOSSES:
                    error.add_note(
                        f"The rounds from {self._n_rounds} on were begun {n_losses} times, and "
                        "workers were lost each time: look at their logs, and at their memory."
                    )
                    raise
            except BaseException:
                self._blocks = []
                raise

    def _start(self) -> None:
        task, workers = self._task, self._crew.workers()
        placed = self._bins.place(list(workers))
        work = Work(
            binning=self._binning,
            loss=task.loss,
            params=task.params,
            rules=task.rules,
            seed=task.seed,
            sampling_seed=task.sampling_seed,
            keep_pruned=task.keep_pruned,
            n_samples=task.y.shape[1],
            weight_scale=scale_of_weights(task.weight, task.y.shape[1]),
            n_at_once=self.n_at_once,
            trees=join_trees(self._finished),
        )
        # an array, which goes to a worker by itself if it is large, as the cuts of wide data are
        pickled_work = np.frombuffer(pickle.dumps(work), dtype=np.uint8)
        arguments = {
            worker: (pickled_work, workers[worker], *self._arrays_of(part[0]), *part)
            for worker, part in placed.items()
        }
        self._crew.start(make_machine, arguments)
        self.n_threads = sum(workers[worker] for worker in placed)
        self._blocks = [part[0] for part in placed.values()]

    def _rows(self) -> Iterator[np.ndarray]:
        """Yield the numbers of the rows of each machine."""
        return (rows_of(blocks, self._task.y.shape[1]) for blocks in self._blocks)

    def _arrays_of(self, blocks: np.ndarray) -> Iterator[np.ndarray]:
        """Yield y, weight, sample_weight and raw_score of the rows of some blocks."""
        task, rows = self._task, rows_of(blocks, self._task.y.shape[1])
        for values in (task.y, task.weight, task.sample_weight, task.raw_score):
            # of weights there are none if all are 1
            yield values.take(rows, axis=-1) if values.size > 0 else values


def rows_of(blocks: np.ndarray, n_samples: int) -> np.ndarray:
    """Return the numbers of the rows in some blocks."""
    rows = (blocks[:, np.newaxis] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).ravel()
    return rows[rows < n_samples]


def make_machine(
    peers: Peers,
    pickled_work: np.ndarray,
    n_threads: int,
    y: np.ndarray,
    weight: np.ndarray,
    sample_weight: np.ndarray,
    raw_score: np.ndarray,
    blocks: np.ndarray,
    *pieces: Any,
) -> Machine:
    """Put the rows of a machine together, and make it; called on its worker.

    `pickled_work` is a pickled :class:`~sklboost.distributed.training.Work`.
    """
    bins = assemble(blocks, *pieces)
    # copies: what was sent is read-only, and kernels know these as writable
    y, weight, sample_weight = (np.array(values) for values in (y, weight, sample_weight))
    rows = OwnRows(blocks, bins, y, weight, sample_weight, np.array(raw_score))
    return Machine(peers, pickle.loads(pickled_work.data), rows, n_threads)


def bin_on_cluster(
    X: Any, weight: np.ndarray, max_bin: int, n_jobs: int | None
) -> tuple[TrainingBins, BinCuts, MakeGrower, np.ndarray]:
    """Choose the bins of features on a cluster.

    Parameters
    ----------
    X : ClusterFeatures
    weight : ndarray of float64, shape (n_samples,) or (0,)
    max_bin : int
    n_jobs : int or None
        Of this process.

    Returns
    -------
    matrix : TrainingBins
        Of bins that are all 0 and take no memory: those of the rows are made on the cluster.
    cuts : BinCuts
    make_grower : callable
        Makes what grows the trees there.
    is_constant : ndarray of bool, shape (n_features,)
        Whether all rows have the same bin.
    """
    bins = X.binned(weight, max_bin, n_jobs)
    no_bins: Any = np.broadcast_to(bins.dtype.type(0), X.shape)
    matrix = lay_out_cells(no_bins, no_bins.T, bins.cuts, bins.has_missing)
    make_grower = partial(ClusterRounds, Crew(X.client), bins, LostWorkersError)
    return matrix, bins.cuts, make_grower, bins.is_constant
