"""The exchanges between the machines of a training while a tree grows.

At the stages of a tree (:mod:`sklboost.tree.core.machines`) a kernel calls :class:`Exchange`: the
sums of each block of rows are put in one order, histograms are added up, each machine some of the
columns, and the best splits of all columns are compared.
"""

import weakref
from collections.abc import Callable

import numpy as np

from sklboost.boosting.rounds import RoundState
from sklboost.distributed.messages import Peers
from sklboost.engine.compiling import address_of_python, kernel
from sklboost.engine.structs import TrainingBins, TreeParams
from sklboost.tree.core.frontier import ROOT
from sklboost.tree.core.machines import (
    BLOCK_ROWS,
    HISTOGRAMS,
    MAGNITUDES,
    PIECE_ROWS,
    QUANTILES,
    SPLITS,
    TOTALS,
    WEIGHTS,
    Machines,
)
from sklboost.tree.core.workspace import LEFT, OWN, SPLIT_DTYPE, Workspace
from sklboost.tree.options.categories import keep_spreads, sum_spreads


class Exchange:
    """The exchanges of one machine; `machines` is what its kernels know of the others.

    `matrix` has the rows of this machine, and the cells of all; `blocks`, int64 and increasing, are
    the numbers of its blocks of rows, of the `n_samples` rows of all machines.
    """

    def __init__(self, peers: Peers, matrix: TrainingBins, blocks: np.ndarray, n_samples: int):
        self._peers = peers
        self._stages: dict[int, tuple[str, Callable[[Exchange], None]]] = {
            int(TOTALS): ("scales", Exchange._order_totals),
            int(HISTOGRAMS): ("histograms", Exchange._add_histograms),
            int(SPLITS): ("splits", Exchange._choose_splits),
            int(MAGNITUDES): ("sampling", Exchange._add_counts),
            int(WEIGHTS): ("quantiles", Exchange._find_largest_weights),
            int(QUANTILES): ("quantiles", Exchange._add_weights),
        }
        self._error: BaseException | None = None
        self._buffers = [np.empty(0, dtype=np.int64)] * peers.size
        peers.phase, is_own = "blocks", np.zeros(-(-n_samples // BLOCK_ROWS), dtype=np.uint8)
        is_own[blocks] = 1
        self._blocks = [np.flatnonzero(mask) for mask in peers.gather(is_own)]
        # each machine adds up, and searches, columns of about as many cells
        of_cells = np.arange(peers.size + 1) * matrix.cell_starts[-1] / peers.size
        self._columns = np.searchsorted(matrix.cell_starts, of_cells)
        own = weakref.ref(self)  # or the memory of a tree would wait for a collection of garbage

        def exchange(stage: int) -> int:
            alive = own()
            return 0 if alive is None else alive._exchange(stage)

        address, self._kept = address_of_python(exchange)
        self.machines = Machines(
            size=peers.size,
            n_samples=n_samples,
            first_column=int(self._columns[peers.rank]),
            stop_column=int(self._columns[peers.rank + 1]),
            first_rows=blocks * BLOCK_ROWS,
            address=address,
            failed=np.zeros(1, dtype=np.int64),
        )

    def grow_in(self, workspace: Workspace, state: RoundState, params: TreeParams) -> None:
        """Take the memory that trees grow in, before the first one does, and their settings."""
        self._params = params
        self._workspace, self._derivatives = workspace, state.derivatives
        self._counts, self._selection = state.rows.counts, state.renewal.selection
        # whether splits on categories are chosen by their spreads
        self._has_noise = bool(state.matrix.n_categories.any()) and params.cat_smooth > 0.0

    def largest(self, numbers: np.ndarray, phase: str = "derivatives") -> np.ndarray:
        """Return the elementwise maximum, over all machines, of an array of float64."""
        self._peers.phase = phase
        parts = [part.view(np.float64) for part in self._peers.gather(numbers)]
        return np.max(parts, axis=0).reshape(numbers.shape)

    def total(self, numbers: np.ndarray, phase: str = "leaves") -> np.ndarray:
        """Return the sum, over all machines, of an array of whole numbers: in any order the same.

        Each machine adds up a part of them, and the array is overwritten.
        """
        self._peers.phase, parts = phase, np.array_split(numbers, self._peers.size)
        of_all = self._peers.gather(self._peers.add_up(parts), [part.nbytes for part in parts])
        return np.concatenate(of_all).view(numbers.dtype)

    def raise_error(self) -> None:
        """Raise the error of an exchange that failed, and forget it; its frames hold memory."""
        error, self._error = self._error, None
        try:
            if error is not None:
                raise error
        finally:
            del error

    def _exchange(self, stage: int) -> int:
        try:
            self._peers.phase, exchange = self._stages[stage]
            exchange(self)
        except BaseException as error:  # the kernel goes on without, and ends soon
            self._error = error
            self.machines.failed[0] = 1
        return 0

    def _order_totals(self) -> None:
        """Put the sums of the blocks of all machines in the order of the blocks."""
        sums, totals = self._derivatives.sums, self._derivatives.totals
        n_blocks, n_pieces = len(self._blocks[self._peers.rank]), BLOCK_ROWS // PIECE_ROWS
        pieces = np.zeros((*sums.shape[:2], n_blocks * n_pieces))
        pieces[:, :, : sums.shape[2]] = sums
        # added in order, as one machine does
        own = pieces.reshape(*sums.shape[:2], n_blocks, n_pieces).cumsum(axis=-1)[..., -1]
        sizes = [len(blocks) * own.nbytes // n_blocks for blocks in self._blocks]
        for blocks, part in zip(self._blocks, self._peers.gather(own, sizes), strict=True):
            totals[:, :, blocks] = part.view(np.float64).reshape(*sums.shape[:2], -1)

    def _add_counts(self) -> None:
        """Add up the counts of all machines, for the first member of the team."""
        own = self._counts.sum(axis=0)
        self._counts[0] = sum(part.view(np.int64) for part in self._peers.gather(own))
        self._counts[1:] = 0

    def _find_largest_weights(self) -> None:
        """Find the largest weight in each leaf over all machines."""
        largest = self._selection.largest[: self._workspace.tree.counts[0].n_nodes]
        largest[:] = self.largest(largest, self._peers.phase)

    def _add_weights(self) -> None:
        """Add up the weights of residuals of all machines."""
        sums = self._selection.sums[: self._selection.n_leaves[0]].reshape(-1)
        sums[:] = self.total(sums, self._peers.phase)

    def _add_histograms(self) -> None:
        """Add what the others have to the own columns of the histograms that were built."""
        tree, pool = self._workspace.tree, self._workspace.pool
        n_builds = tree.counts[0].n_builds
        if n_builds == 0:
            return
        # machines with teams of other sizes list them in another order
        builds = pool.builds[:n_builds]
        builds = builds[np.lexsort((builds["strip"], builds["node"]))]
        slots, strips = tree.growth["slot"][builds["node"]], builds["strip"].copy()
        siblings = np.where(builds["sibling"] < 0, -1, tree.growth["slot"][builds["sibling"]])
        sums, starts, own = self._sums_of_nodes(), pool.starts[self._columns], self._peers.rank
        parts = []
        for rank in range(self._peers.size):
            start, stop = starts[rank : rank + 2]
            n_cells = n_builds * (stop - start)
            size = n_cells + sums.size
            if len(self._buffers[rank]) < size:
                self._buffers[rank] = np.empty(2 * size, dtype=np.int64)
            part = self._buffers[rank][:size]
            if rank == own:  # the own cells are where they are to be added up
                part[:n_cells] = 0
            else:
                pack_cells(pool.histograms, slots, strips, start, stop, part)
            part[n_cells:] = sums
            parts.append(part)
        start, stop = starts[own : own + 2]
        total = self._peers.add_up(parts)
        add_cells(pool.histograms, slots, strips, siblings, start, stop, total)
        self._keep_sums(total[total.size - sums.size :])

    def _sums_of_nodes(self) -> np.ndarray:
        """Return what else is added up, int64, shape (n_sums,)."""
        tree = self._workspace.tree
        n_searched = tree.counts[0].n_searched if self._has_noise else 0
        spreads = np.empty((n_searched, tree.outputs.shape[1], 2), dtype=np.int64)
        if self._has_noise:
            sum_spreads(self._derivatives, self._workspace, spreads)
        of_root = tree.sums[ROOT, OWN] if tree.searched[0] == ROOT else spreads[:0].ravel()
        return np.concatenate([of_root, spreads.ravel()])

    def _keep_sums(self, sums: np.ndarray) -> None:
        """Keep what :meth:`_sums_of_nodes` returned, of all machines."""
        tree = self._workspace.tree
        if tree.searched[0] == ROOT:
            n_sums = tree.sums.shape[2]
            tree.sums[ROOT, OWN], sums = sums[:n_sums], sums[n_sums:]
        if self._has_noise:
            spreads = sums.reshape(-1, tree.outputs.shape[1], 2)
            keep_spreads(self._derivatives, self._workspace, spreads)

    def _choose_splits(self) -> None:
        """Take the best split of each searched node over all machines, of equal ones the first."""
        tree = self._workspace.tree
        nodes = tree.searched[: tree.counts[0].n_searched]
        if len(nodes) == 0:
            return
        best_split = [
            ("split", SPLIT_DTYPE),
            ("categories", tree.categories.dtype, tree.categories.shape[1:]),
            ("left", tree.sums.dtype, tree.sums.shape[2:]),
        ]
        found = np.empty(len(nodes), dtype=best_split)
        found["split"], found["categories"] = tree.splits[nodes], tree.categories[nodes]
        found["left"] = tree.sums[nodes, LEFT]
        of_all = np.array([part.view(found.dtype) for part in self._peers.gather(found)])
        gains = of_all["split"]["gain"]
        if self._params.symmetric == 1:
            gains = self._sums_of_gains(gains)
        # machines have the columns in the order of their ranks
        best = of_all[gains.argmax(axis=0), np.arange(len(nodes))]
        tree.splits[nodes], tree.categories[nodes] = best["split"], best["categories"]
        tree.sums[nodes, LEFT] = best["left"]

    def _sums_of_gains(self, gains: np.ndarray) -> np.ndarray:
        """Return for each node the sum over all: those that :func:`add_gains` adds, in its order.

        `gains`, shape (n_machines, n_nodes), are those of each machine's own common split.
        """
        is_added = (gains >= self._params.grow_gain) & (gains > -np.inf)
        sums = np.where(is_added, gains, 0.0).cumsum(axis=1)[:, -1]
        sums = np.where(is_added.any(axis=1), sums, -np.inf)
        return np.broadcast_to(sums[:, np.newaxis], gains.shape)


@kernel
def pack_cells(histograms, slots, strips, start, stop, part):
    """Fill `part`, int64, from the front with the numbers ``[start, stop)`` of some histograms."""
    place = 0
    for index in range(len(slots)):
        numbers = histograms[slots[index], strips[index], start:stop]
        for number in range(len(numbers)):
            part[place + number] = numbers[number]
        place += len(numbers)


@kernel
def add_cells(histograms, slots, strips, siblings, start, stop, part):
    """Add what :func:`pack_cells` has packed to histograms, and subtract it from their siblings.

    `siblings` are the slots of these, -1 where there is none: such a slot has the parent of
    all machines, less what this machine has built.
    """
    place = 0
    for index in range(len(slots)):
        packed = part[place : place + stop - start]
        numbers = histograms[slots[index], strips[index], start:stop]
        for number in range(len(numbers)):
            numbers[number] += packed[number]
        if siblings[index] >= 0:
            sibling = histograms[siblings[index], strips[index], start:stop]
            for number in range(len(sibling)):
                sibling[number] -= packed[number]
        place += len(packed)
