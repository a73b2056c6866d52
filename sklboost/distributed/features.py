"""Features on a cluster: rows that are chosen there, cut points, and the bins of each worker.

:class:`ClusterFeatures` have tasks done where the partitions are; a sample of the values and counts
come to the client.
"""

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sklboost.data.binning import VALUES_PER_THREAD, apply_cuts
from sklboost.data.cuts import (
    StoredValues,
    cut_all,
    exact_weights,
    join_distinct,
    rows_to_look_at,
    survey,
    weigh_distinct,
    whole_columns,
)
from sklboost.data.features import RemoteFeatures, value_array
from sklboost.data.row_hashes import hash_rows
from sklboost.data.table import Column, Table
from sklboost.distributed.columns import ClusterColumn, stored_column
from sklboost.distributed.partitions import (
    Encoded,
    Encoder,
    Partitions,
    RawFeatures,
    Segment,
    divide_twice,
    of_features,
)
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam, n_threads_for
from sklboost.engine.structs import BinCuts
from sklboost.tree.core.machines import BLOCK_ROWS
from sklboost.tree.predict.prediction import add_trees, find_leaves


class ClusterFeatures(RemoteFeatures):
    """Rows of features that are in partitions on a cluster; only what is asked for comes here.

    `encoder` makes features of the values. `local_rows` has the chosen rows of each partition, by
    their numbers in it, not decreasing: an array, its Future, or ``slice(None)``, all. `bounds`,
    int64, are the chosen rows before each partition, and the number of all. `found` are the cuts of
    these rows or of more, has_missing (int64: 1 where a feature has missing values) and
    is_constant, whether all rows have the same bin; None: they are not known yet.
    """

    def __init__(
        self,
        partitions: Partitions,
        encoder: Encoder,
        local_rows: Sequence[Any] = (),
        bounds: np.ndarray | None = None,
        found: tuple[BinCuts, np.ndarray, np.ndarray] | None = None,
    ):
        self.found = found
        self.partitions = partitions
        self.encoder = encoder
        self.local_rows = local_rows or [slice(None)] * len(partitions.futures)
        self.bounds = partitions.starts if bounds is None else bounds

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.bounds[-1]), self.encoder.n_features

    @property
    def dtype(self) -> np.dtype:
        """Type that holds the values of all features: float64."""
        return np.dtype(np.float64)

    def __getitem__(self, key: Any) -> "ClusterFeatures":
        """Choose rows by a slice, a mask or increasing numbers, also a column; nothing is moved."""
        if isinstance(key, ClusterColumn):
            places = key.partitions().settled(np.subtract, self.bounds[:-1].tolist())
            bounds = key.starts
        else:
            rows = np.arange(len(self))[key]
            bounds = np.searchsorted(rows, self.bounds)
            of_each = zip(self.partitions.divide(rows, bounds), self.bounds, strict=False)
            places = [(part - first).astype(np.int32) for part, first in of_each]
        local_rows = [*map(self._chosen, self.local_rows, places)]
        return ClusterFeatures(self.partitions, self.encoder, local_rows, bounds, self.found)

    def _chosen(self, rows: Any, places: Any) -> Any:
        """Return the rows at some places among chosen ones of a partition."""
        if isinstance(rows, slice):
            return places
        is_here = isinstance(rows, np.ndarray) and isinstance(places, np.ndarray)
        return rows[places] if is_here else self.partitions.client.submit(np.take, rows, places)

    def settled(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **settings: Any
    ) -> list[Any]:
        """Have ``function(X, *arguments, **settings)`` done for the features of each partition."""
        how = {"encoder": self.encoder, "compute": function, **settings}
        return self.partitions.settled(of_features, self.local_rows, *by_partition, **how)

    def results(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **settings: Any
    ) -> list[Any]:
        """Do as :meth:`settled`, and return the results here."""
        how = {"encoder": self.encoder, "compute": function, **settings}
        return self.partitions.results(of_features, self.local_rows, *by_partition, **how)

    def hashes(self, y: Any, seed: int) -> ClusterColumn:
        its = self.partitions
        hashes = self.settled(hash_rows, its.divide(y, self.bounds), seed=seed)
        return stored_column(its.like(hashes, np.diff(self.bounds)), np.empty(0, np.uint32))

    def with_cuts(self, weight: Any, max_bin: int, n_jobs: int | None = None) -> "ClusterFeatures":
        """Return the rows with the cut points of these, which rows chosen among them keep.

        They are those of the same rows in one place. `weight` is positive, float64, of shape
        (n_samples,) or (0,), or a column; `n_jobs` is for the work here.
        """
        found = self.found or _find_cuts(self, weight, max_bin, n_jobs)
        return ClusterFeatures(self.partitions, self.encoder, self.local_rows, self.bounds, found)

    def here(self) -> np.ndarray | Table:
        values, n_categories = np.concatenate(self.results(values_of)), self.encoder.n_categories
        columns = map(Column, values.T)
        return Table([*columns], n_categories) if n_categories.any() else values

    def join(self, values: np.ndarray) -> "ClusterFeatures":
        its, pickled = self.partitions, pickle.dumps(Encoded(values))
        last = its.common("partition", pickled)
        partitions = its.like([*its.futures, last], [*np.diff(its.starts), len(values)])
        bounds = np.append(self.bounds, self.bounds[-1] + len(values))
        return ClusterFeatures(partitions, self.encoder, [*self.local_rows, slice(None)], bounds)

    def add_trees(self, model: Model, trees: tuple[int, int], raw_score: np.ndarray) -> None:
        scores = np.split(raw_score, self.bounds[1:-1], axis=1)
        added = self.results(scored, scores, model=model, trees=trees)
        raw_score[:] = np.concatenate(added, axis=1)

    def leaves(self, model: Model) -> np.ndarray:
        return np.concatenate(self.results(leaves_of, model=model))

    def place_bins(
        self, workers: Sequence[str], columns: Sequence[ClusterColumn] = (), as_values: bool = False
    ) -> dict[str, tuple[Any, ...]]:
        """Bin all partitions, unless `as_values`, and do as :meth:`place` does.

        What it makes stays on the cluster only as long as the result does. After workers were lost
        it can be called again: Dask makes again what was lost with them.
        """
        assert self.found is not None
        cuts, has_missing, _ = self.found
        every = ClusterFeatures(self.partitions, self.encoder)
        if as_values:
            return self.place(workers, columns, every.settled(values_of))
        bins = every.settled(bins_of, cuts=cuts, has_missing=has_missing)
        return self.place(workers, columns, bins)

    def place(
        self, workers: Sequence[str], columns: Sequence[ClusterColumn], bins: Sequence[Any] = ()
    ) -> dict[str, tuple[Any, ...]]:
        """Divide the blocks of rows among workers, given by address.

        Return ``(blocks, *pieces)`` for each worker: the numbers of its blocks, increasing, int64,
        and for :func:`assemble` Futures of values and `columns`, and which rows of them. With
        `bins`, of all rows of the partitions, of these, and only for workers that get rows.
        """
        local_rows = self.local_rows if bins else [slice(None)] * len(self.partitions.futures)
        futures = bins or self.settled(values_of)
        of_columns = [column.partitions().futures for column in columns]
        parts = [*zip(futures, *of_columns, strict=True)]
        holders = self.partitions.client.who_has(futures)
        where = [[w for w in holders.get(future.key, ()) if w in workers] for future in futures]
        first_rows = np.append(np.arange(0, len(self), BLOCK_ROWS), len(self))
        segments = divide_twice(first_rows, self.bounds)
        owners = assign_blocks(segments, where, workers)
        blocks: dict[str, list[int]] = {}
        for block, owner in enumerate(owners):
            blocks.setdefault(owner, []).append(block)
        # of each partition the ranges of chosen rows that each owner gets
        ranges: dict[tuple[str, int], list[slice]] = {}
        for block, partition, start, stop in segments:
            first = int(self.bounds[partition])
            found = ranges.setdefault((owners[block], partition), [])
            if found and found[-1].stop == start - first:
                start = found.pop().start + first
            found.append(slice(start - first, stop - first))
        pieces: dict[str, list[Any]] = {worker: [] for worker in (blocks if bins else workers)}
        ranges |= {(worker, 0): [slice(0)] for worker in pieces if worker not in blocks}
        for (owner, partition), found in ranges.items():
            rows: Any = found[0]
            if len(found) > 1:
                each = [np.arange(part.start, part.stop, dtype=np.int32) for part in found]
                rows = np.concatenate(each)
            piece = (parts[partition], local_rows[partition], rows)
            if owner not in where[partition]:  # only these rows are to travel
                piece = (self.partitions.client.submit(take_rows, *piece), slice(None), slice(None))
            pieces[owner].append(piece)
        return {w: (np.array(blocks.get(w, []), dtype=np.int64), *pieces[w]) for w in pieces}


@np.errstate(all="ignore")
def _find_cuts(
    X: ClusterFeatures, weight: Any, max_bin: int, n_jobs: int | None
) -> tuple[BinCuts, np.ndarray, np.ndarray]:
    """Return what `find_cuts` finds of the same rows in one place, in one pass or two.

    Behind the cuts: has_missing, int64, and is_constant, bool, both of shape (n_features,).
    """
    rows, n_categories = rows_to_look_at(len(X)), X.encoder.n_categories
    of_partitions = np.split(rows, np.searchsorted(rows, X.bounds[1:-1]))
    sampled = [part - first for part, first in zip(of_partitions, X.bounds[:-1], strict=True)]
    missing, samples = zip(*X.results(survey_rows, sampled), strict=True)
    has_missing, sample = np.max(missing, axis=0), np.concatenate(samples, axis=1)
    weight = exact_weights(weight)
    if isinstance(weight, ClusterColumn):
        sample_weight = np.concatenate(weight.each(np.take, sampled))
    else:
        sample_weight = weight[rows] if len(weight) else weight
    in_sample = every = whole_columns(sample, sample_weight)

    def whole(few: list[int]) -> StoredValues:
        nonlocal every
        # and of two categories, of which one may have no row
        pairs = np.flatnonzero((n_categories > 0) & (n_categories <= 2)).tolist()
        every = _distinct_values(X, weight, [*few, *pairs])
        return every

    n_threads = n_threads_for(n_jobs, sample.size, VALUES_PER_THREAD)
    is_part = len(rows) < len(X)
    with ThreadTeam(n_threads) as team:
        cuts = cut_all(
            team, in_sample, whole if is_part else None, has_missing, n_categories, max_bin
        )
    starts, _, all_values = every.entries
    is_constant = np.zeros(len(has_missing), dtype=bool)
    for feature in np.flatnonzero(np.diff(cuts.starts) + 1 + has_missing <= 2).tolist():
        values = all_values[starts[feature] : starts[feature + 1]]
        n_found = len(np.unique(values[~np.isnan(values)])) + has_missing[feature]
        is_constant[feature] = n_found == 1
    return cuts, has_missing, is_constant


def _distinct_values(X: ClusterFeatures, weight: Any, features: list[int]) -> StoredValues:
    """Return the distinct values of some features in all rows, and their weights."""
    none: list[Any] = [None] * (len(X.bounds) - 1)
    weights = X.partitions.divide(weight, X.bounds) if len(weight) else none
    found = X.results(distinct_values_of, weights, features=features) if features else []
    return join_distinct(X.shape[1], features, [*zip(*found, strict=True)])


# A worker may have so much more than its equal share of the blocks, where it has them already.
_MOST_LOAD = 1.1


def assign_blocks(
    segments: Sequence[Segment], where: Sequence[Sequence[str]], workers: Sequence[str]
) -> list[str]:
    """Return the owner of each block, one of the `workers`: where its rows are, if it has room.

    `segments` are all rows, in order; `where` are the workers that have each partition.
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


# --- on a worker: tasks ---------------------------------------------------------------------------


def values_of(X: RawFeatures) -> np.ndarray:
    """Return the values as an array of floats, shape (n_rows, n_features)."""
    return value_array(X) if len(X) > 0 else np.empty(X.shape, X.dtype)


def survey_rows(X: RawFeatures, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which features have missing values, and the values of the rows that are sampled."""
    with ThreadTeam(1) as team:
        return survey(team, X, sampled)


def distinct_values_of(
    X: RawFeatures, weight: np.ndarray | None, features: list[int]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each of some features its distinct values, but NaN, and the weight of each.

    `weight` is None if it is 1 for all rows.
    """
    weight = np.empty(0) if weight is None else weight
    return [weigh_distinct(X, feature, weight) for feature in features]


def bins_of(X: RawFeatures, cuts: BinCuts, has_missing: np.ndarray) -> np.ndarray:
    """Return the bins, shape (n_rows, n_features)."""
    with ThreadTeam(1) as team:
        return apply_cuts(team, X, cuts, has_missing, by_columns=False).rows


def scored(
    X: RawFeatures, raw_score: np.ndarray, model: Model, trees: tuple[int, int]
) -> np.ndarray:
    """Return raw scores, shape (n_outputs, n_rows), with some trees added."""
    total = np.array(raw_score)  # what came from elsewhere is read-only
    with ThreadTeam(1) as team:
        add_trees(team, model, X, trees, total)
    return total


def leaves_of(X: RawFeatures, model: Model) -> np.ndarray:
    """Return the leaf that each row reaches in each tree, int32, shape (n_rows, n_trees)."""
    with ThreadTeam(1) as team:
        return find_leaves(team, model, X)


def rows_of_piece(arrays: Sequence[np.ndarray], local: Any, rows: Any) -> list[np.ndarray]:
    """Return some `rows` of the chosen ones of a partition: of its bins, and of columns.

    The bins are those of all rows, and `local` are the chosen ones among these. Of columns rows are
    along the last axis.
    """
    bins, *columns = arrays
    of_bins = rows if isinstance(local, slice) else local[rows]
    return [bins[of_bins], *(values[..., rows] for values in columns)]


def take_rows(*piece: Any) -> tuple[np.ndarray, ...]:
    """Return copies of the rows of a piece, to be sent."""
    return tuple(map(np.array, rows_of_piece(*piece)))


def assemble(*pieces: tuple[Any, Any, Any]) -> list[np.ndarray]:
    """Return the bins of the blocks of a worker, (n_rows, n_features), in C order, and columns.

    The pieces are arrays, and which rows of them, as :meth:`ClusterFeatures.place` returns them.
    """
    bins, *each = zip(*[rows_of_piece(*piece) for piece in pieces], strict=True)
    columns = [np.ascontiguousarray(np.concatenate(of_all, axis=-1)) for of_all in each]
    return [np.concatenate(bins), *columns]
