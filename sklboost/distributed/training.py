"""The rounds of a training on several machines, as the client has them.

The machines do the rounds, and the client has the trees of all that are finished. So it is the
checkpoint: where machines were lost, others are given their rows and the trees so far, and the
rounds that were under way are done again, with the same bits.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from sklboost.boosting.calls import allocate_grown, plan_calls
from sklboost.boosting.settings import BoostingTask
from sklboost.data.binned_matrix import Binning
from sklboost.distributed.machine import Machine, OwnRows, Work
from sklboost.distributed.peers import Peers
from sklboost.engine.model import Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import TreeParams
from sklboost.tree.core.machines import BLOCK_ROWS
from sklboost.tree.core.quantization import scale_of_weights
from sklboost.tree.predict.trees import join_trees, no_trees, write_trees


class PlacedBins(Protocol):
    """The bins of all rows, which are on the workers of a cluster."""

    binning: Binning

    def place(self, workers: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """Decide which blocks of rows each worker has.

        Returns
        -------
        dict of str to tuple
            For each worker that has rows, the numbers of its blocks, increasing, and what
            :meth:`assemble` makes their bins of.
        """

    @staticmethod
    def assemble(blocks: np.ndarray, *pieces: Any) -> np.ndarray:
        """Return the bins of the rows of one worker, shape (n_rows, n_features)."""


class Crew(Protocol):
    """Objects on workers that are called all at once."""

    def workers(self) -> dict[str, int]:
        """Return the addresses of the workers that are there, and how many threads each has."""

    def start(self, make: Callable[..., Any], arguments: Mapping[str, tuple[Any, ...]]) -> None:
        """Make an object on each worker."""

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all objects; return the results."""

    def stop(self) -> None:
        """Free what is on the workers."""


class ClusterRounds:
    """Grows the trees of a training on the workers of a cluster: in the place of ``Rounds``.

    Parameters
    ----------
    crew : Crew
    bins : PlacedBins
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
    team, n_at_once, grown
        As in ``Rounds``.
    """

    def __init__(
        self,
        crew: Crew,
        bins: PlacedBins,
        lost: type[Exception],
        team: ThreadTeam,
        task: BoostingTask,
        limits: tuple[int, int],
    ):
        self.team = team
        self._crew, self._bins, self._lost = crew, bins, lost
        self._task = task._replace(y=np.atleast_2d(task.y))
        calls = plan_calls(task, limits)
        self.n_at_once = calls.n_at_once
        self.grown = allocate_grown(calls, task.n_tree_outputs, self._trees_of(self.n_at_once))
        self._finished: list[Trees] = [no_trees()]
        self._blocks: list[np.ndarray] = []  # of each machine; none: they have to be started

    def run(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield their trees."""
        trees = self._call("run", start, stop, params)[0]
        self._finished.append(trees)
        write_trees(trees, self.grown)
        yield trees

    def raw_score(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""
        raw_score = np.empty_like(self._task.raw_score)
        for rows, part in zip(self._rows(), self._call("raw_scores"), strict=True):
            raw_score[:, rows] = part
        return raw_score

    def traffic(self) -> list[dict[str, tuple[int, int]]]:
        """Return what each machine has sent: messages and bytes, by what they were for."""
        return self._call("traffic")

    def _call(self, method: str, *arguments: Any) -> list[Any]:
        """Call a method of all machines; where some were lost, others take their place."""
        while True:
            try:
                if not self._blocks:
                    self._start()
                return self._crew.call(method, *arguments)
            except self._lost:
                self._blocks = []

    def _start(self) -> None:
        task = self._task
        workers = self._crew.workers()
        placed = self._bins.place(list(workers))
        blocks = [part[0] for part in placed.values()]
        work = Work(
            binning=self._bins.binning,
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
        arguments = {
            worker: (
                *(work, self._targets_of(part[0]), workers[worker]),
                *(self._bins.assemble, *part),
            )
            for worker, part in placed.items()
        }
        self._crew.start(make_machine, arguments)
        self._blocks = blocks

    def _rows(self) -> Iterator[np.ndarray]:
        """Yield the numbers of the rows of each machine."""
        return (rows_of(blocks, self._task.y.shape[1]) for blocks in self._blocks)

    def _targets_of(self, blocks: np.ndarray) -> OwnRows:
        """Return what the client knows of the rows of some blocks."""
        task = self._task
        rows = rows_of(blocks, task.y.shape[1])
        weight, sample_weight = (
            values[rows] if len(values) > 0 else values
            for values in (task.weight, task.sample_weight)
        )
        no_bins = np.empty((0, 0), dtype=np.uint8)
        return OwnRows(
            blocks,
            no_bins,
            task.y.take(rows, 1),
            weight,
            sample_weight,
            task.raw_score.take(rows, 1),
        )

    def _trees_of(self, n_rounds: int) -> int:
        return n_rounds * self._task.trees_per_round


def rows_of(blocks: np.ndarray, n_samples: int) -> np.ndarray:
    """Return the numbers of the rows in some blocks."""
    rows = (blocks[:, np.newaxis] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).ravel()
    return rows[rows < n_samples]


def make_machine(
    peers: Peers,
    work: Work,
    rows: OwnRows,
    n_threads: int,
    assemble: Callable[..., np.ndarray],
    blocks: np.ndarray,
    *pieces: Any,
) -> Machine:
    """Put the bins of a machine's rows together, and make it; called on its worker."""
    bins = np.ascontiguousarray(assemble(blocks, *pieces))
    return Machine(peers, work, rows._replace(bins=bins), n_threads)
