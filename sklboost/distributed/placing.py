"""Bins of features on a cluster: made where the partitions are, and given to machines in blocks.

The rows are cut into blocks of fixed size by their numbers. Each block has one owner, a worker that
has most of it where that leaves all with about as many rows; the rest of the block is sent there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sklboost.data.binning import apply_cuts
from sklboost.distributed.columns import Encoder
from sklboost.distributed.learning import ClusterCuts
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts
from sklboost.tree.core.machines import BLOCK_ROWS

if TYPE_CHECKING:
    from sklboost.distributed.features import ClusterFeatures

# A worker may have so much more than its equal share of the blocks, where it has them already.
_MOST_LOAD = 1.1


class Segment(NamedTuple):
    """Rows that are of one block and of one partition: places ``[start, stop)`` of chosen rows."""

    block: int
    partition: int
    start: int
    stop: int


class ClusterBins:
    """How features on a cluster are binned; the bins themselves are made when they are placed.

    Parameters
    ----------
    X : ClusterFeatures
    found : ClusterCuts

    Attributes
    ----------
    cuts : BinCuts
    has_missing : ndarray of int64, shape (n_features,)
        1 where a feature has missing values.
    is_constant : ndarray of bool, shape (n_features,)
        Whether all rows have the same bin.
    dtype : dtype
        uint8 where all bins fit, else uint16.
    n_samples : int
    """

    def __init__(self, X: "ClusterFeatures", found: ClusterCuts):
        self._X = X
        self.cuts: BinCuts = found.cuts
        self.has_missing = found.has_missing
        self.is_constant = found.is_constant
        n_cells = np.diff(found.cuts.starts) + 1 + found.has_missing
        self.dtype = np.dtype(np.uint8 if n_cells.max() <= 256 else np.uint16)
        self.n_samples = len(X)

    def place(self, workers: Sequence[str]) -> dict[str, tuple[Any, ...]]:
        """Bin all partitions, and divide the blocks of rows among workers.

        The bins stay on the cluster only as long as the result does. After workers were lost it can
        be called again: Dask makes again what was lost with them.

        Parameters
        ----------
        workers : sequence of str
            Their addresses.

        Returns
        -------
        dict of str to tuple
            For each worker that gets rows ``(blocks, *pieces)``, which :func:`assemble` takes:
            `blocks` are the numbers of its blocks, increasing, int64; a piece is a Future of bins,
            and which rows of them.
        """
        X, partitions = self._X, self._X.partitions
        futures = partitions.settled(
            bin_partition, encoder=X.encoder, cuts=self.cuts, has_missing=self.has_missing
        )
        holders = partitions.client.who_has(futures)
        known = set(workers)
        where = [[w for w in holders.get(future.key, ()) if w in known] for future in futures]
        segments = _segments(X.bounds)
        owners = assign_blocks(segments, where, workers)
        blocks: dict[str, list[int]] = {}
        for block, owner in enumerate(owners):
            blocks.setdefault(owner, []).append(block)
        pieces: dict[str, list[Any]] = {owner: [] for owner in blocks}
        for (owner, partition), ranges in self._ranges(owners, segments).items():
            future, rows = futures[partition], self._chosen(partition, ranges)
            if owner not in where[partition]:  # only these rows are to travel
                future, rows = partitions.client.submit(take_rows, future, rows), slice(None)
            pieces[owner].append((future, rows))
        return {owner: (np.array(blocks[owner]), *pieces[owner]) for owner in blocks}

    def _ranges(
        self, owners: list[str], segments: list[Segment]
    ) -> dict[tuple[str, int], list[slice]]:
        """Return which of the chosen rows of each partition each worker gets, in order."""
        ranges: dict[tuple[str, int], list[slice]] = {}
        for block, partition, start, stop in segments:
            first = int(self._X.bounds[partition])
            found = ranges.setdefault((owners[block], partition), [])
            if found and found[-1].stop == start - first:
                start = found.pop().start + first
            found.append(slice(start - first, stop - first))
        return ranges

    def _chosen(self, partition: int, ranges: list[slice]) -> slice | np.ndarray:
        """Return some of the chosen rows of a partition by their numbers in it."""
        local = self._X.local_rows[partition]
        if not isinstance(local, slice):
            return local[_numbers(ranges)]
        return ranges[0] if len(ranges) == 1 else _numbers(ranges)


def _numbers(ranges: list[slice]) -> np.ndarray:
    return np.concatenate([np.arange(each.start, each.stop, dtype=np.int32) for each in ranges])


def _segments(bounds: np.ndarray) -> list[Segment]:
    """Return the rows between any two neighbouring bounds of partitions or blocks, in order."""
    n_samples = int(bounds[-1])
    edges = np.union1d(bounds, np.append(np.arange(0, n_samples, BLOCK_ROWS), n_samples))
    partitions = np.searchsorted(bounds, edges[:-1], side="right") - 1
    parts = zip(edges[:-1] // BLOCK_ROWS, partitions, edges[:-1], edges[1:], strict=True)
    return [Segment(*map(int, part)) for part in parts]


def assign_blocks(
    segments: Sequence[Segment], where: Sequence[Sequence[str]], workers: Sequence[str]
) -> list[str]:
    """Return the owner of each block.

    Parameters
    ----------
    segments : sequence of Segment
        All rows, in order.
    where : sequence of sequence of str
        The workers that have each partition.
    workers : sequence of str
        Those who may be owners.
    """
    n_blocks = segments[-1].block + 1
    held: list[dict[str, int]] = [{} for _ in range(n_blocks)]
    total = dict.fromkeys(workers, 0)
    for block, partition, start, stop in segments:
        for worker in where[partition]:
            held[block][worker] = held[block].get(worker, 0) + stop - start
            total[worker] += stop - start
    # of few blocks those workers get one that have most rows
    owners = sorted(workers, key=lambda worker: -total[worker])[:n_blocks]
    load = dict.fromkeys(owners, 0)
    most = max(-(-n_blocks // len(owners)), int(_MOST_LOAD * n_blocks / len(owners)))
    found: list[str] = [""] * n_blocks
    for block in range(n_blocks):
        has_room = [worker for worker in held[block] if load.get(worker, most) < most]
        if has_room:
            found[block] = max(has_room, key=lambda worker: (held[block][worker], -load[worker]))
            load[found[block]] += 1
    for block in range(n_blocks):
        if not found[block]:
            found[block] = min(owners, key=load.__getitem__)
            load[found[block]] += 1
    return found


# --- tasks


@np.errstate(all="ignore")
def bin_partition(
    partition: Any, *, encoder: Encoder, cuts: BinCuts, has_missing: np.ndarray
) -> np.ndarray:
    """Return the bins of all rows of a partition, shape (n_rows, n_features)."""
    with ThreadTeam(1) as team:
        X = encoder.features(partition)
        return apply_cuts(team, X, cuts, has_missing, by_columns=False).rows


def take_rows(bins: np.ndarray, rows: slice | np.ndarray) -> np.ndarray:
    """Return a copy of some rows."""
    return np.array(bins[rows])


def assemble(blocks: np.ndarray, *pieces: tuple[np.ndarray, slice | np.ndarray]) -> np.ndarray:
    """Return the bins of a machine's blocks, one after another, (n_rows, n_features), C order.

    Parameters
    ----------
    blocks : ndarray of int64, shape (n_blocks,)
    *pieces : tuple of ndarray and slice or ndarray
        Bins, and which rows of them, as :meth:`ClusterBins.place` returns them.
    """
    return np.concatenate([bins[rows] for bins, rows in pieces])
