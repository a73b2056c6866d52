"""Bins that the tasks of a search share: those of the same rows are made once.

A search fits each candidate on the same few divisions of the rows. So in the tasks of joblib, in
threads and in processes, a fit looks for bins that were made of the same values; their key is a
SHA-256 digest of all that bins depend on, so they cannot be stale. Outside of such tasks nothing is
kept or looked for.

Each thread keeps what it used last, so all of it is freed when the threads of a search end. A
dictionary of weak references lets them find each other's. There are no locks, which a fork could
leave taken: two threads that miss the same bins at the same time both make them.
"""

from hashlib import sha256
from weakref import WeakValueDictionary

import numpy as np

from sklboost.data.features import Features, training_bins
from sklboost.data.raw_values import categories_of, value_blocks
from sklboost.data.table import Table
from sklboost.engine.parallel import ThreadMemory, ThreadTeam
from sklboost.engine.structs import BinCuts, TrainingBins
from sklboost.engine.thread_counts import is_joblib_task

# Bytes that a thread keeps, cut points included: 23 divisions of 20,000 rows of 28 features, say.
_ROOM = 2**25
# A quarter of this room, in two layouts of a byte: of larger ones it would hold too few.
_MOST_VALUES = 2**22


class _Made:
    """Bins and cuts, in a form that can be referred to weakly."""

    __slots__ = ("__weakref__", "cuts", "matrix")

    def __init__(self, matrix: TrainingBins, cuts: BinCuts):
        self.matrix = matrix
        self.cuts = cuts

    @property
    def n_bytes(self) -> int:
        return sum(array.nbytes for array in (*self.matrix, *self.cuts))


_made: WeakValueDictionary[bytes, _Made] = WeakValueDictionary()
_memory = ThreadMemory()


def shared_bins(
    team: ThreadTeam, X: Features, weight: np.ndarray, max_bin: int
) -> tuple[TrainingBins, BinCuts]:
    """Return what :func:`~sklboost.data.features.training_bins` does; in a task of joblib once.

    Bins of a BinnedMatrix, of sparse rows and of very many values are not kept.
    """
    if not isinstance(X, np.ndarray | Table) or X.size > _MOST_VALUES or not is_joblib_task():
        return training_bins(team, X, weight, max_bin)
    key, mine = _digest(X, weight, max_bin), _memory.kept
    made = _made.get(key) or _Made(*training_bins(team, X, weight, max_bin))
    _made[key] = made
    mine.pop(key, None)
    mine[key] = made  # the last used is the last that goes
    while sum(kept.n_bytes for kept in mine.values()) > _ROOM:
        del mine[next(iter(mine))]
    return made.matrix, made.cuts


def _digest(X: np.ndarray | Table, weight: np.ndarray, max_bin: int) -> bytes:
    """Return the digest of all that bins depend on, and of the order in which values lie."""
    facts = (X.shape, X.dtype.str, categories_of(X).tolist(), len(weight), int(max_bin))
    digest = sha256(repr(facts).encode())
    for _, raw in value_blocks(X):
        digest.update(repr(raw[1:]).encode())
        digest.update(raw.values.data)
    digest.update(np.ascontiguousarray(weight).data)
    return digest.digest()
