"""Features on a cluster, in the place of a local table: rows are chosen and binned there."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sklboost.data.features import RemoteFeatures
from sklboost.data.row_hashes import hash_totals
from sklboost.distributed.columns import Encoded, Encoder, scored, totals_of, values_of
from sklboost.distributed.learning import find_cluster_cuts
from sklboost.distributed.partitions import Partitions
from sklboost.distributed.placing import ClusterBins
from sklboost.engine.cached import cached_property
from sklboost.engine.model import Model


class ClusterFeatures(RemoteFeatures):
    """Rows of features that are in partitions on a cluster; only what is asked for comes here.

    Parameters
    ----------
    partitions : Partitions
    encoder : Encoder
        How partitions become features.
    rows : ndarray of int64, shape (n_samples,), optional
        The chosen rows, by their numbers in all partitions: not decreasing. None: all.
    """

    def __init__(self, partitions: Partitions, encoder: Encoder, rows: np.ndarray | None = None):
        self.partitions = partitions
        self.encoder = encoder
        self._rows = rows

    @property
    def client(self) -> Any:
        """The client of the cluster."""
        return self.partitions.client

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        n_rows = self.partitions.n_rows if self._rows is None else len(self._rows)
        return n_rows, self.encoder.n_features

    @property
    def dtype(self) -> np.dtype:
        """Type that holds the values of all features: float64."""
        return np.dtype(np.float64)

    def __getitem__(self, key: slice | np.ndarray) -> "ClusterFeatures":
        """Choose rows by a slice, by increasing numbers or by a mask; nothing is moved."""
        known = np.arange(len(self)) if self._rows is None else self._rows
        return ClusterFeatures(self.partitions, self.encoder, known[key])

    @cached_property
    def bounds(self) -> np.ndarray:
        """The rows chosen before each partition, and of all; int64, shape (n_partitions + 1,)."""
        starts = self.partitions.starts
        return starts if self._rows is None else np.searchsorted(self._rows, starts)

    @cached_property
    def local_rows(self) -> list[slice | np.ndarray]:
        """The chosen rows of each partition, by their numbers in it; a slice: all."""
        if self._rows is None:
            return [slice(None)] * (len(self.bounds) - 1)
        of_each = np.split(self._rows, self.bounds[1:-1])
        starts = self.partitions.starts
        return [
            (rows - start).astype(np.int32) for rows, start in zip(of_each, starts, strict=False)
        ]

    def divide(self, rows: np.ndarray) -> list[np.ndarray]:
        """Return an array of something for each chosen row in parts, one for each partition."""
        return np.split(rows, self.bounds[1:-1])

    def results(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **shared: Any
    ) -> list[Any]:
        """Return ``function(partition, rows, *arguments, encoder=encoder, **shared)`` of each."""
        shared["encoder"] = self.encoder
        return self.partitions.results(function, self.local_rows, *by_partition, **shared)

    def hashes(self, y: np.ndarray, seed: int) -> np.ndarray:
        """Return a hash of (seed, values, target) of each row, as `hash_rows` does of local ones.

        `y` is a float64 array of shape (n_samples,) or (n_samples, n_targets). Returns uint32.
        """
        return hash_totals(np.concatenate(self.results(totals_of)), y, seed)

    def gather(self) -> np.ndarray:
        """Return all values as an array here: floats, codes of categories; NaN where missing."""
        return np.concatenate(self.results(values_of))

    def join(self, values: np.ndarray) -> "ClusterFeatures":
        """Return the rows and behind them others, given as :meth:`gather` returns them."""
        known = np.arange(len(self)) if self._rows is None else self._rows
        partitions, first = (
            self.partitions.join(Encoded(values), len(values)),
            self.partitions.n_rows,
        )
        rows = np.append(known, np.arange(first, partitions.n_rows))
        return ClusterFeatures(partitions, self.encoder, rows)

    def add_trees(self, model: Model, trees: tuple[int, int], raw_score: np.ndarray) -> None:
        """Add the trees ``[start, stop)`` to `raw_score`, float64, shape (n_outputs, n_samples)."""
        scores = np.split(raw_score, self.bounds[1:-1], axis=1)
        raw_score[:] = np.concatenate(
            self.results(scored, scores, model=model, trees=trees), axis=1
        )

    def binned(self, weight: np.ndarray, max_bin: int, n_jobs: int | None = None) -> ClusterBins:
        """Choose the cuts, the same as of these rows in one place; the bins are made when placed.

        Parameters
        ----------
        weight : ndarray of float64, shape (n_samples,) or (0,)
            Positive weights of the rows. Empty: all 1.
        max_bin : int
            Of numbers; each category has a bin.
        n_jobs : int, optional
            Threads for what is done here.
        """
        return ClusterBins(self, find_cluster_cuts(self, weight, max_bin, n_jobs))
