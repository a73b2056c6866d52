"""The partitions of a Dask collection: on the workers, where tasks read them and return results.

:func:`open_collection` gives :class:`Partitions`, which have a task done for each. The tasks look
at columns (:func:`look_at`, :func:`distinct_rows`) and make features of values (:class:`Encoder`).
"""

import hashlib
import pickle
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import dask
import distributed
import numpy as np
from distributed import futures_of
from distributed.client import Future, FutureCancelledError, FuturesCancelledError
from scipy.sparse import issparse

from sklboost.data.encoding import Encoding, encode
from sklboost.data.frames import adapter_for, dask_kind
from sklboost.data.frames.adapter import (
    ColumnAdapter,
    FrameAdapter,
    as_objects,
    is_wide,
    may_be_rounded,
)
from sklboost.data.frames.numpy_arrays import ArrayTable, ObjectColumn
from sklboost.data.sparse_table import SparseTable, check_exact, sparse_table
from sklboost.data.table import Column, Table
from sklboost.distributed.worker_group import LostSchedulerError, no_workers

# Arrays that were given to the tasks of a pass may be lost with a worker: then it is done again.
_MOST_TRIALS = 5
# Seconds to wait for workers if there are none.
_PATIENCE = 50
# Bytes that the tasks of a pass may share; Dask would warn of less. A few are a part of each task,
# which saves a task of their own and its graph: a third of the time of a fit of few rows.
_MOST_BYTES, _FEW_BYTES = 2**31, 2**17
# Partitions whose numbers of rows an error lists.
_MOST_LISTED = 6
# Rows of a column that can be no feature, for the example in an error.
_FEW_ROWS = 100
_ALL = slice(None)
# The features of a partition.
RawFeatures = np.ndarray | Table | SparseTable


def open_collection(X: Any, name: str = "X") -> "tuple[Partitions, list[Facts]]":
    """Let the workers compute a collection and keep it; return its partitions, and what is in them.

    A collection that ``X.persist()`` has computed is not computed again. TypeError for collections
    that are neither DataFrames nor Arrays; ValueError unless they have two dimensions, and if there
    is no ``distributed.Client``.
    """
    kind = dask_kind(X)
    if kind == "Series":
        raise ValueError(
            f"{name} is a dask.Series, of one dimension: pass a frame of one column, X.to_frame()"
        )
    if kind not in ("Array", "DataFrame"):
        raise TypeError(
            f"{name} is a dask.{kind}: fit takes a dask.dataframe.DataFrame or a dask.array.Array; "
            ".to_dataframe() of a bag, or dask.array.from_delayed, makes one"
        )
    if X.ndim != 2:
        raise ValueError(f"{name} is a dask.Array of {X.ndim} dimension(s): it must be 2-D")
    client = current_client()
    futures = computed(client, X, name)
    facts = Partitions(client, futures, name=name).results(look_at)
    return Partitions(client, futures, [fact.n_rows for fact in facts], name), facts


def computed(client: Any, collection: Any, name: str) -> "list[Future[Any]]":
    """Let the workers compute a collection and keep it; return its partitions, in order."""
    if collection.ndim > 1 and max(getattr(collection, "numblocks", ())[1:], default=1) > 1:
        collection = collection.rechunk({1: -1})
    # of files that Dask reads together there are fewer than X.npartitions
    futures = futures_of(client.persist(collection))
    futures.sort(key=lambda future: future.key[1])  # keys are (name, number of the partition, ...)
    keys = {future.key[0] for future in futures}
    if len(keys) != 1 or [future.key[1] for future in futures] != list(range(len(futures))):
        raise RuntimeError(
            f"Dask does not say in which order the parts of {name} are: {sorted(keys)}"
        )
    wait_for(client, futures, name)
    return futures


def current_client() -> Any:
    """Return the client that this thread, or this task, is to use; ValueError if there is none."""
    try:
        client = distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "X is a collection of Dask, and there is no client of a cluster: fit trains on its "
            "workers, not in Dask's own threads. Start one, on this machine say: from distributed "
            "import Client; client = Client(); or pass X.compute()"
        ) from error
    if client.asynchronous:
        raise ValueError(
            f"the current client, {client!r}, is asynchronous, and fit waits for its workers: call "
            "fit in a thread of its own with Client(..., asynchronous=False)"
        )
    with suppress(ValueError, KeyError):
        distributed.secede()  # in a task: it gives its place in the worker to those it waits for
    return client


class _LostArraysError(Exception):
    """A worker was lost while arrays were sent to it."""


class Partitions:
    """The partitions of a collection, in order.

    Each is the Future of a frame, an array or a sparse matrix; `lengths` are their numbers of rows,
    (): not known yet. `name` is what they are of, for errors.
    """

    def __init__(
        self, client: Any, futures: Sequence["Future[Any]"], lengths: Any = (), name: str = "X"
    ):
        self.client = client
        self.futures = futures
        self.name = name
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    @property
    def n_rows(self) -> int:
        """Number of rows of all partitions."""
        return int(self.starts[-1])

    def divide(self, values: Any, bounds: np.ndarray | None = None) -> list[Any]:
        """Divide an array of the rows into one for each partition; of a column these are known.

        `bounds` are the entries before each partition, if the array has others than all rows.
        """
        if isinstance(values, np.ndarray):
            return np.split(values, (self.starts if bounds is None else bounds)[1:-1])
        return list(values.partitions().futures)

    def like(self, futures: "Sequence[Future[Any]]", lengths: Any = None) -> "Partitions":
        """Return others in their place, of the same lengths unless these are given."""
        lengths = np.diff(self.starts) if lengths is None else lengths
        return Partitions(self.client, futures, lengths, self.name)

    def __repr__(self) -> str:
        lengths = list(map(str, np.diff(self.starts[: _MOST_LISTED + 1]).tolist()))
        more = ["..."] * (len(self.futures) > _MOST_LISTED)
        listed = ", ".join(lengths + more)
        return f"{self.n_rows:,} rows in {len(self.futures)} partition(s) ({listed})"

    def results(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **shared: Any
    ) -> list[Any]:
        """Do as :meth:`settled`, and return the results here."""
        return self._again(
            lambda: self.client.gather(self.settled(function, *by_partition, **shared))
        )

    def settled(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **shared: Any
    ) -> "list[Future[Any]]":
        """Have ``function(partition, *arguments, **shared)`` done in a task for each partition.

        Return their results, which are on the workers; the function can be imported there.
        `by_partition` has the arguments that differ, each a sequence with one for each partition.
        It raises the first error of a task, as it is, with a note that names the partition, and
        RuntimeError if partitions are lost and Dask cannot compute them again.
        """
        text = pickle.dumps((function, shared))
        is_small = len(text) * len(self.futures) <= _FEW_BYTES
        common = text if is_small else self.common(function.__name__, text)
        every = [common] * len(self.futures)

        def settle() -> "list[Future[Any]]":
            sent = [self._sent(list(several)) for several in by_partition]
            futures = self.client.map(call, self.futures, every, *sent, key=function.__name__)
            wait_for(self.client, futures, self.name)
            return futures

        return self._again(settle)

    def _again(self, function: Callable[[], list[Any]]) -> list[Any]:
        """Call a function again if it has lost what was sent to a worker, with that."""
        for _ in range(_MOST_TRIALS):
            with suppress(_LostArraysError, FutureCancelledError, FuturesCancelledError):
                return function()
        raise RuntimeError(
            f"partitions of {self.name}, or what was computed of them, were lost with their "
            "workers again and again: what client.scatter has sent to a worker is lost with it; "
            f"read {self.name} from files, or keep the workers alive"
        )

    def common(self, name: str, text: bytes) -> "Future[Any]":
        """Let a worker unpickle what many tasks read; it does so again if the worker is lost.

        Not as keyword arguments of ``client.map``: of those that are large the names become keys of
        the cluster, which a second call would find with the values of the first.
        """
        key = f"{name}-common-{hashlib.sha256(text).hexdigest()}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _MOST_BYTES}):
            return self.client.submit(pickle.loads, text, key=key)

    def _sent(self, arguments: list[Any]) -> list[Any]:
        """Send arrays to the workers: a graph is no place for them."""
        if not any(isinstance(each, np.ndarray) and each.size > 0 for each in arguments):
            return arguments
        try:
            sent: list[Any] = self.client.scatter(arguments, hash=False)
        except (OSError, KeyError) as error:
            if self.client.status != "running":
                raise LostSchedulerError(f"lost the scheduler of {self.client!r}") from error
            raise _LostArraysError from error
        return sent


def wait_for(client: Any, futures: Sequence["Future[Any]"], name: str) -> None:
    """Wait for tasks, one for each partition; raise the first error, and say where it was.

    RuntimeError if there are no workers that could do them, for most of a minute;
    LostSchedulerError.
    """
    alone_since = None
    while True:
        try:
            distributed.wait(futures, timeout=_PATIENCE / 10)
            break
        except FuturesCancelledError as error:
            if client.status != "running":
                raise LostSchedulerError(f"lost the scheduler of {client!r}") from error
            raise
        except TimeoutError:
            now = time.monotonic()
            alone_since = None if client.nthreads() else alone_since or now
            if alone_since is not None and now - alone_since >= _PATIENCE:
                raise no_workers(client, _PATIENCE) from None
    for number, future in enumerate(futures):
        if future.status == "error":
            fault = future.exception()
            place = f"This was partition {number} of {name}, counted from 0"
            fault.add_note(f"{place}; rows are counted within it.")
            raise fault.with_traceback(future.traceback())


class Segment(NamedTuple):
    """Rows that are of one block and of one partition: places ``[start, stop)`` of chosen rows."""

    block: int
    partition: int
    start: int
    stop: int


def divide_twice(blocks: np.ndarray, partitions: np.ndarray) -> list[Segment]:
    """Return the rows between any two neighbouring bounds of either kind, in order.

    `blocks` and `partitions` are the numbers of rows before each, and of all.
    """
    edges = np.union1d(blocks, partitions)
    numbers = (np.searchsorted(of, edges[:-1], side="right") - 1 for of in (blocks, partitions))
    return [Segment(*map(int, part)) for part in zip(*numbers, edges[:-1], edges[1:], strict=True)]


# --- on a worker: tasks ---------------------------------------------------------------------------


def call(partition: Any, common: Any, *arguments: Any) -> Any:
    """Call a function in a task: `common` has it and its keywords, pickled if these are small."""
    function, shared = pickle.loads(common) if isinstance(common, bytes) else common
    return function(partition, *arguments, **shared)


class Facts(NamedTuple):
    """The columns of a partition."""

    n_rows: int
    n_columns: int
    names: tuple[Any, ...] | None  # of the columns; None: they have none
    dtypes: tuple[str, ...]  # of the columns
    special: frozenset[int]  # the columns that are not just numbers that float64 holds
    is_sparse: bool


def look_at(partition: Any) -> Facts:
    """Look at the columns of a partition."""
    n_rows, n_columns = partition.shape
    table = None if issparse(partition) else adapter_for(partition)
    if table is None:
        if issparse(partition):
            check_exact(partition)
        dtypes = (str(partition.dtype),) * n_columns
        return Facts(n_rows, n_columns, None, dtypes, frozenset(), issparse(partition))
    columns = [table.column(i) for i in range(n_columns)]
    return Facts(
        n_rows,
        n_columns,
        names=None if table.names is None else tuple(table.names),
        dtypes=tuple(column.dtype_name for column in columns),
        special=frozenset(i for i, column in enumerate(columns) if not _is_plain(column)),
        is_sparse=False,
    )


def _is_plain(column: ColumnAdapter) -> bool:
    """Whether the values are numbers, and float64 holds them, by the dtype or by themselves."""
    if column.kind != "number" or isinstance(column, ObjectColumn):
        return False
    if column.is_exact():
        return True
    values, _ = column.numbers()
    return not (is_wide(values.dtype) and may_be_rounded(values.astype(np.float64)))


class Distinct(NamedTuple):
    """The distinct values of a column of a partition, as rows of it, and the weight of each."""

    rows: Any
    masses: np.ndarray


def distinct_rows(
    partition: Any, weight: np.ndarray | None, columns: Sequence[int]
) -> list[Distinct]:
    """Choose for each of some columns rows that have all its values, the first of each.

    `weight`, of the rows, is such that sums are exact; None: all 1.
    """
    source = adapter_for(partition)
    table = ArrayTable(partition) if source is None else source
    return [_distinct(partition, i, table.column(i), weight) for i in columns]


def _distinct(partition: Any, i: int, column: ColumnAdapter, weight: np.ndarray | None) -> Distinct:
    codes = _codes(column, len(partition))
    places = np.flatnonzero(codes >= 0)
    _, first, inverse = np.unique(codes[places], return_index=True, return_inverse=True)
    masses = np.bincount(inverse, None if weight is None else weight[places], len(first))
    order = np.argsort(first)
    rows = places[first[order]]
    masses = masses[order].astype(np.float64)
    if not hasattr(partition, "iloc"):
        return Distinct(partition[rows][:, [i]], masses)
    values = partition.iloc[rows, i]
    if hasattr(values.dtype, "categories"):  # lists of categories may be long, and differ
        values = _with_own_categories(values)
    return Distinct(values.to_frame(), masses)


def _with_own_categories(values: Any) -> Any:
    """Return a Series of categories, none missing, with a list of only those that it has.

    The list before may be one for all partitions of this process, and what pandas asks of one
    (whether its values are unique) goes wrong in two threads at once; so it is only copied from.
    """
    import pandas as pd

    used, codes = np.unique(values.array.codes, return_inverse=True)
    own = pd.Categorical.from_codes(codes, values.array.categories.take(used))
    return pd.Series(own, values.index, name=values.name)


def _codes(column: ColumnAdapter, n_rows: int) -> np.ndarray:
    """Return the same number for the same value of the same type; -1: missing."""
    if isinstance(column, ObjectColumn):
        types = column.codes_of_types()
        if column.kind == "unsupported":
            return types
        codes, _ = column.categories()
        return np.where(codes < 0, -1, codes * (types.max(initial=0) + 1) + types)
    if column.kind == "unsupported":
        return np.where(np.arange(n_rows) < _FEW_ROWS, np.arange(n_rows), -1)
    return column.categories()[0]


class Encoder(NamedTuple):
    """How partitions become features."""

    encodings: tuple[Encoding, ...] | None  # None: all features are numbers as they are
    missing: float  # A further value that counts as missing; NaN: none
    n_features: int
    # for columns of Python objects a value of each type that any partition has: together they
    # decide on the kind of the column
    examples: dict[int, list[Any]]

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories of each feature, int64; 0 for numbers."""
        if self.encodings is None:
            return np.zeros(self.n_features, dtype=np.int64)
        return np.array([known.n_categories for known in self.encodings], dtype=np.int64)

    def features(self, partition: Any, rows: slice | np.ndarray = _ALL) -> RawFeatures:
        """Return the features of some rows of a partition."""
        every = self._features_of_all(partition)
        return every if isinstance(rows, slice) else every[rows]

    def _features_of_all(self, partition: Any) -> RawFeatures:
        if isinstance(partition, Encoded):
            return partition.values
        if issparse(partition):
            dtype = np.float32 if partition.dtype == np.float32 else np.float64
            table = sparse_table(partition.tocsr().astype(dtype, copy=False))
            return table if np.isnan(self.missing) else table.with_missing(self.missing)
        source = adapter_for(partition)
        if self.encodings is None and np.isnan(self.missing):
            array = partition if source is None else source.matrix()
            if array is not None:
                return array if array.flags.forc else np.ascontiguousarray(array)
        source = ArrayTable(partition) if source is None else source
        columns = [self._column(partition, source, i) for i in range(self.n_features)]
        return Table(columns, self.n_categories)

    def _column(self, partition: Any, source: FrameAdapter, i: int) -> Column:
        encoding = Encoding() if self.encodings is None else self.encodings[i]
        if i in self.examples:
            examples = as_objects(self.examples[i])
            if hasattr(partition, "iloc"):
                own = partition.iloc[:, i].to_numpy(object)
            else:
                own = np.asarray(partition[:, i], dtype=object)
            values = np.concatenate([examples, own])
            together = ArrayTable(values[:, np.newaxis])
            return encode(together, 0, encoding, self.missing)[0].take(slice(len(examples), None))
        if encoding.kind == "number":
            source.read_as_numbers(i)
        return encode(source, i, encoding, self.missing)[0]


class Encoded(NamedTuple):
    """Rows that are features already: floats, codes of categories, NaN where missing."""

    values: RawFeatures


@np.errstate(all="ignore")
def of_features(
    partition: Any,
    rows: slice | np.ndarray,
    *arguments: Any,
    encoder: Encoder,
    compute: Callable[..., Any],
    **settings: Any,
) -> Any:
    """Return ``compute(X, *arguments, **settings)``, where X are the features of some rows."""
    return compute(encoder.features(partition, rows), *arguments, **settings)
