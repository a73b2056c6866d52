"""The rounds of a training on a cluster: as the client has them, and on each of its workers.

The client keeps every tree that is finished, and targets, weights and raw scores of all rows unless
these are columns on the cluster, or the same for all.
Each worker (a machine, as the kernels say) bins some blocks of 4,096 rows and grows the same trees
as all others, which exchange sums of their rows (:mod:`~sklboost.distributed.exchange`). If workers
are lost, the client starts those that are left with the trees so far.
"""

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import cloudpickle
import numpy as np

from sklboost.boosting.evaluation import Evaluation, RemoteRows, ValidationSet
from sklboost.boosting.rounds import Rounds, allocate_grown, plan_calls
from sklboost.boosting.settings import BoostingTask
from sklboost.boosting.training import MakeGrower
from sklboost.data.binned_matrix import BinnedMatrix, Binning
from sklboost.data.binning import apply_cuts, lay_out_cells
from sklboost.data.features import Features, training_bins
from sklboost.distributed.columns import ClusterColumn
from sklboost.distributed.exchange import Exchange
from sklboost.distributed.features import ClusterFeatures, assemble
from sklboost.distributed.messages import Peers
from sklboost.distributed.worker_group import LostWorkersError, WorkerGroup
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, TrainingBins, TreeParams
from sklboost.objectives.blocks import BLOCK_ROWS as SUMMED_ROWS
from sklboost.objectives.custom import FaultyRowError
from sklboost.objectives.loss import FillDerivatives, Loss
from sklboost.objectives.metric import Metric
from sklboost.tree.core.machines import BLOCK_ROWS, Machines, row_numbers
from sklboost.tree.core.quantization import WeightScale, scale_of_weights
from sklboost.tree.predict.assembly import assemble_model
from sklboost.tree.predict.prediction import add_trees
from sklboost.tree.predict.trees import copy_trees, join_trees, no_trees, take_trees, write_trees

# A call that has lost workers so often, one time after the other, is given up.
_MOST_LOSSES = 5


def bin_on_cluster(
    X: Any, weight: Any, max_bin: int, n_jobs: int | None
) -> tuple[TrainingBins, BinCuts, MakeGrower, np.ndarray]:
    """Choose the bins of features on a cluster; return the fields of the fit's ``Bins``.

    The bins of the matrix are all 0 and take no memory: the bins of the rows are made on the
    cluster. `weight` is float64, of shape (n_samples,) or (0,), or a column there; `n_jobs` is for
    the work on the client.
    """
    X = X.with_cuts(weight, max_bin, n_jobs)
    cuts, has_missing, is_constant = X.found
    n_cells = np.diff(cuts.starts) + 1 + has_missing
    no_bins: Any = np.broadcast_to(np.uint8(0) if n_cells.max() <= 256 else np.uint16(0), X.shape)
    matrix = lay_out_cells(no_bins, no_bins.T, cuts, has_missing)
    make_grower = partial(ClusterRounds, WorkerGroup(X.partitions.client), X)
    return matrix, cuts, make_grower, is_constant


class ClusterRounds(RemoteRows):
    """Grows the trees of a training on the workers of a cluster: a ``TreeGrower``.

    `task` has all rows, but the bins in its matrix are not read; `team` is for validation rows that
    are with the client; `limits` are the fewest and the most rounds of a call.
    """

    # a call takes some milliseconds more than its rounds
    seconds_per_call = 0.5

    def __init__(
        self,
        group: WorkerGroup,
        X: ClusterFeatures,
        team: ThreadTeam,
        task: BoostingTask,
        limits: tuple[int, int],
    ):
        self.team = team
        self._group, self._X = group, X
        self._task = task
        # as many rounds as a call may do: workers have less to do than one machine alone
        calls = plan_calls(task, (limits[1], limits[1]), 1)
        self.n_at_once = calls.n_at_once
        self.grown = allocate_grown(calls, task.n_tree_outputs, calls.n_trees)
        # make the trees that are in the raw scores of the rows, in the order in which they came
        self._added: list[Callable[[], Trees]] = [no_trees]
        self._n_rounds = 0  # of these
        self._scored: list[Trees] = [no_trees()]  # in the raw scores of the validation rows
        self.n_threads = 0
        self.traffic: dict[str, tuple[int, int]] = {}
        self._is_closed = False
        # of each worker, of the training and each validation set; empty: they have to be started
        self._blocks: list[list[np.ndarray]] = []

    def grow(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield as many trees as fit `grown`.

        `grown` holds all of them, unless a round has very many parallel trees.
        """
        trees = self._call("run", start, stop, params)[0]
        self._added.append(lambda: trees)
        self._n_rounds = stop
        for first in range(0, len(trees.n_pruned), len(self.grown.n_pruned)):
            part = take_trees(trees, first, first + len(self.grown.n_pruned))
            write_trees(part, self.grown)
            yield part

    def add(self, make_trees: Callable[[], Trees]) -> None:
        """Add trees to the raw scores of the rows."""
        self._call("add", make_trees())
        self._added.append(make_trees)

    def raw_score(self, number: int = 0) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""
        n_samples = len(self.watched[number - 1].y) if number > 0 else len(self._X)
        parts = self._call("raw_scores", number)  # first: workers that it starts have other rows
        return join_blocks(self._blocks[number], parts, n_samples)

    def score(self, trees: Trees, n_rounds: int, *, by_values: bool = False) -> list[np.ndarray]:
        """Add new trees to the validation rows; return the sums of their blocks of each set."""
        found = self._call("score", trees, n_rounds, by_values)
        self._scored.append(trees)
        lengths = [-(-len(given.y) // SUMMED_ROWS) for given in self.watched]
        of_sets = zip(self._blocks[1:], zip(*found, strict=True), lengths, strict=True)
        return [join_blocks(*of_set, BLOCK_ROWS // SUMMED_ROWS) for of_set in of_sets]

    def close(self) -> None:
        """End the work on the cluster; `traffic` is known from then on, unless workers are lost."""
        try:
            for sent in self._group.traffic() if self._blocks else ():
                for phase, counts in sent.items():
                    before = self.traffic.get(phase, (0, 0))
                    self.traffic[phase] = (before[0] + counts[0], before[1] + counts[1])
        except ConnectionError:  # to a worker or the scheduler
            pass  # the model is done, or another error on its way
        finally:
            self._blocks, self._is_closed = [], True
            self._group.stop()

    def _call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of :class:`WorkerRounds` on all workers, again where some were lost."""
        if self._is_closed:
            raise RuntimeError("the training is over, and its workers have forgotten the rows")
        n_losses = 0
        while True:
            try:
                if not self._blocks:
                    self._start()
                return self._group.call(method, *arguments)
            except LostWorkersError as error:
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
        """Divide the rows among the workers that there are, and start the rounds of each."""
        task, workers = self._task, self._group.workers()
        n_samples = len(self._X)
        every = (task.y, task.weight, task.sample_weight, task.raw_score)
        place_rows = partial(self._X.place_bins, as_values=task.params.linear_tree == 1)
        sets: list[tuple[Any, ...]] = [(place_rows, every)]
        for given in self.watched:
            sets.append((given.X.place, (given.y.T, given.weight, given.raw_score)))
        owners, blocks_of_sets = list(workers), []
        rows: dict[str, list[tuple[Any, ...]]] = {}
        for place, values in sets:
            placed = place(owners, [each for each in values if isinstance(each, ClusterColumn)])
            for worker, (blocks, *pieces) in placed.items():
                arrays = tuple(
                    None if isinstance(each, ClusterColumn) else values_of_blocks(each, blocks)
                    for each in values
                )
                rows.setdefault(worker, []).append((arrays, *pieces))
            owners = list(placed)  # the first set is the training's
            blocks_of_sets.append([blocks for blocks, *_ in placed.values()])
        assert self._X.found is not None
        cuts, has_missing, _ = self._X.found
        names = ("loss", "params", "rules", "seed", "sampling_seed", "keep_pruned")
        work = Work(
            settings={name: getattr(task, name) for name in names},
            binning=Binning(cuts, has_missing, 0, None, None, np.nan),
            n_samples=n_samples,
            weight_scale=scale_of_weights(task.weight, n_samples),
            n_at_once=self.n_at_once,
            trees=join_trees([make_trees() for make_trees in self._added]),
            metrics=[metric for metric in self.metrics if metric.formula is not None],
            scored=join_trees(self._scored),
        )
        # an array, since the group sends large arrays by themselves, and cuts of wide data are
        # large
        pickled_work = np.frombuffer(cloudpickle.dumps(work), dtype=np.uint8)
        arguments = {
            worker: (pickled_work, workers[worker], blocks, *rows[worker])
            for worker, blocks in zip(owners, blocks_of_sets[0], strict=True)
        }
        self._group.start(WorkerRounds, arguments)
        self.n_threads = sum(workers[worker] for worker in owners)
        self._blocks = blocks_of_sets


def join_blocks(
    blocks: Sequence[np.ndarray], parts: Sequence[np.ndarray], n: int, size: int = BLOCK_ROWS
) -> np.ndarray:
    """Return the `n` entries along axis 1 of all blocks, of `size` each, from those of workers."""
    whole = np.empty((len(parts[0]), n, *parts[0].shape[2:]))
    for own, part in zip(blocks, parts, strict=True):
        places = (own[:, np.newaxis] * size + np.arange(size)).ravel()
        whole[:, places[places < n]] = part
    return whole


def values_of_blocks(values: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the values of the rows in some blocks; of one row if all have the same memory."""
    if values.size == 0:  # weights that are all 1
        return values
    if values.strides[-1] == 0:
        return values[..., :1]
    starts = (blocks * BLOCK_ROWS).tolist()  # slices: numbers of rows take more than the values
    parts = [values[..., i : i + BLOCK_ROWS] for i in starts]
    return np.concatenate([values[..., :0], *parts], axis=-1)


# --- on a worker ----------------------------------------------------------------------------------


class Work(NamedTuple):
    """The task of all workers of a training, without the rows."""

    settings: dict[str, Any]  # fields of BoostingTask that are the same on all
    binning: Binning
    n_samples: int  # rows of all workers
    weight_scale: WeightScale  # of all rows
    n_at_once: int  # rounds that may be done in one call
    trees: Trees  # to be added to the raw scores that are sent
    metrics: Sequence[Metric]  # of validation rows
    scored: Trees  # to be added to the raw scores of these


def rows_of(arrays: tuple[np.ndarray | None, ...], *pieces: Any) -> list[np.ndarray]:
    """Return features, one of `arrays` for each row, or what the pieces have, and 2-D raw scores.

    The arrays are as :func:`values_of_blocks` makes them.
    """
    X, *placed = assemble(*pieces)
    found = []
    for values in arrays:
        if values is not None:
            # a copy: the arrays that came are read-only, and kernels know these as writable
            shape = (*values.shape[:-1], len(X) if values.size > 0 else 0)
            values = np.array(np.broadcast_to(values, shape), order="C")
        found.append(placed.pop(0) if values is None else values)
    return [X, *found[:-1], np.atleast_2d(found[-1])]


def gather_columns(peers: Peers, values: np.ndarray) -> list[np.ndarray]:
    """Return what each machine has, float64, shape (n_values, any number)."""
    sizes = [int(part.view(np.int64)[0]) for part in peers.gather(np.array([values.nbytes]))]
    return [part.view(np.float64).reshape(len(values), -1) for part in peers.gather(values, sizes)]


def prepare_groups(loss: Loss, peers: Peers, machines: Machines, *of_rows: Any) -> FillDerivatives:
    """Prepare a loss for the rows of this machine, and the others of their groups.

    Rows of groups that lie on several machines are known to all of these. In each round a machine
    sends the raw scores of its rows of such groups to all others.
    """
    peers.phase, (team, y, weight, seed) = "groups", of_rows
    of_row, numbers = y[loss.group_row], row_numbers(machines.first_rows, machines.n_samples)
    # groups of each machine, and how many of their rows it has; then the same of all
    listed = np.array(np.unique(of_row, return_counts=True))
    names, sizes = np.hstack(gather_columns(peers, listed))
    groups, places = np.unique(names, return_inverse=True)
    sizes, is_shared = np.bincount(places, sizes), np.bincount(places) > 1
    n_before = (sizes.cumsum() - sizes)[groups.searchsorted(listed[0])].astype(np.int64)
    # rows of shared groups are sent to all, which keep those of their own groups
    sent = np.flatnonzero(is_shared[groups.searchsorted(of_row)])
    values = np.vstack([numbers, y, weight.reshape(-1, len(of_row))])
    parts = gather_columns(peers, values[:, sent])
    counts = [part.shape[1] for part in parts]
    are_needed = [np.isin(part[1:][loss.group_row], listed[0]) for part in parts]
    are_needed[peers.rank][:] = False
    is_needed = np.concatenate(are_needed)
    values = np.hstack([values, *(p[:, of] for p, of in zip(parts, are_needed, strict=True))])
    del parts  # they take as much memory
    # in the order that one machine has all rows in
    order = values[0].argsort()
    own, others = np.split(order.argsort(), [len(of_row)])
    _, targets, weights = np.split(values.take(order, axis=1), [1, 1 + len(y)])
    del values
    fill_all = loss.prepare(team, targets, weights.flatten(), seed, n_before)
    assert fill_all is not None
    raw_scores, derivatives = np.empty((1, len(order))), np.empty((2, 1, len(order)), np.float32)

    def fill(round_: int, raw_score: np.ndarray, gradient: np.ndarray, hessian: np.ndarray) -> None:
        peers.phase = "scores"
        sizes = [raw_score.itemsize * count for count in counts]
        received = np.concatenate(peers.gather(raw_score[0, sent], sizes)).view(raw_score.dtype)
        raw_scores[0, own], raw_scores[0, others] = raw_score[0], received[is_needed]
        fill_all(round_, raw_scores, *derivatives)
        gradient[:], hessian[:] = derivatives[..., own]

    return fill


class WorkerRounds:
    """The rounds on one worker; each method is called on all workers at the same time.

    `pickled_work` is a pickled :class:`Work`; `blocks` and the pieces of `rows` are as
    :meth:`ClusterFeatures.place` returns them. Before the pieces come the values of these rows, y,
    weight, sample_weight and raw_score, as in ``BoostingTask``; each may be of one row, for all, or
    None: a column, which the pieces have. `watched` are the rows of validation sets, without
    sample_weight.
    """

    def __init__(
        self,
        peers: Peers,
        pickled_work: np.ndarray,
        n_threads: int,
        blocks: np.ndarray,
        rows: tuple[Any, ...],
        *watched: tuple[Any, ...],
    ):
        work: Work = pickle.loads(pickled_work.data)
        X, y, weight, sample_weight, raw_score = rows_of(*rows)
        sets = [ValidationSet("", *rows_of(*its)) for its in watched]
        sets = [given._replace(y=given.y.T) for given in sets]
        binning, params = work.binning, work.settings["params"]
        self._X: Features = X if params.linear_tree == 1 else BinnedMatrix(X, binning)
        self._peers, self._raw_scores = peers, [raw_score, *(each.raw_score for each in sets)]
        with ThreadTeam(n_threads) as team:
            self._team = team
            if params.linear_tree == 1:
                matrix = apply_cuts(team, X, binning.cuts, binning.has_missing)
            else:
                matrix, _ = training_bins(team, self._X, weight, 0)
            self._exchange = Exchange(peers, matrix, blocks, work.n_samples)
            machines, loss = self._exchange.machines, work.settings["loss"]
            largest = self._exchange.largest
            prepare = partial(prepare_groups, loss, peers, machines)
            task = BoostingTask(
                X=self._X,
                matrix=matrix,
                cuts=binning.cuts,
                y=np.atleast_2d(y),
                weight=weight,
                sample_weight=sample_weight,
                raw_score=raw_score,
                base_score=np.zeros(len(raw_score)),  # not read: the client makes the model
                trees_before=no_trees(),
                dropout=None,
                machines=machines,
                weight_scale=work.weight_scale,
                largest=largest,
                of_leaves=(partial(largest, phase="leaves"), self._exchange.total),
                prepare=None if loss.group_row is None else prepare,
                **work.settings,
            )
            self._rounds = Rounds(team, task, (work.n_at_once, work.n_at_once))
            self._evaluation = Evaluation(team, task, sets, work.metrics, self._rounds.grown)
        if len(work.trees.n_pruned) > 0:
            self.add(work.trees)
        self._exchange.grow_in(self._rounds.workspace, self._rounds.state, params)
        if len(work.scored.n_pruned) > 0:
            self.score(work.scored, 1, by_values=True)

    def run(self, start: int, stop: int, params: TreeParams) -> Trees | None:
        """Do the rounds ``[start, stop)``; the worker of rank 0 returns the new trees."""
        grown = []
        try:
            with self._team:
                for trees in self._rounds.grow(start, stop, params):
                    self._exchange.raise_error()
                    grown.append(trees)
        except FaultyRowError as fault:
            machines = self._exchange.machines
            numbers = row_numbers(machines.first_rows, machines.n_samples)
            fault.row = int(numbers[fault.row])  # among the rows of all
            raise
        return join_trees(grown) if self._peers.rank == 0 else None

    def add(self, trees: Trees) -> None:
        """Add trees to the raw scores of the rows, as :meth:`Rounds.add` does.

        That lays the rows out once more, as values, which a worker has no memory for.
        """
        model = assemble_model(trees, np.zeros(len(self._raw_scores[0])), self._X.shape[1])
        with self._team:
            add_trees(self._team, model, self._X, (0, model.n_trees), self._raw_scores[0])

    def raw_scores(self, number: int) -> np.ndarray:
        """Return the raw scores of the rows, or of validation rows, shape (n_outputs, n_rows)."""
        return self._raw_scores[number]

    def score(self, trees: Trees, n_rounds: int, by_values: bool) -> list[np.ndarray]:
        """Add new trees to the validation rows; return the sums of their blocks of each set."""
        with self._team:
            if by_values:
                self._evaluation.add_as_predicted(trees)
                trees = no_trees()
            if len(trees.n_pruned) > 0:
                self._evaluation.read_from(copy_trees(trees))
            self._evaluation.score(trees, n_rounds, ends_round=False)
        return self._evaluation.sums(n_rounds)
