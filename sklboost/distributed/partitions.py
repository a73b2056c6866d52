"""The partitions of a Dask collection, held by the workers of a cluster, and tasks on each of them.

Whatever is computed of a partition is a task of Dask: it goes where the partition is, and is done
again if its worker is lost. A pass over all partitions has one task for each.
"""

import hashlib
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import dask
import distributed
import numpy as np
from distributed.client import Future, FutureCancelledError, FuturesCancelledError

from sklboost.distributed.crew import LostSchedulerError, no_workers

# Arrays that were given to the tasks of a pass may be lost with a worker: then it is done again.
_MOST_TRIALS = 5
# Seconds to wait for workers if there are none.
_PATIENCE = 50
# Of what all tasks of a pass share: beyond, Dask warns.
_MOST_BYTES = 2**31
# Partitions whose numbers of rows an error lists.
_MOST_LISTED = 6


class Partitions:
    """The partitions of a collection, in order.

    Parameters
    ----------
    client : distributed.Client
    futures : sequence of Future
        One for each partition: a frame, an array or a sparse matrix.
    lengths : sequence of int
        Number of rows of each.
    """

    def __init__(self, client: Any, futures: Sequence["Future[Any]"], lengths: Any):
        self.client = client
        self.futures = futures
        self.starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])

    @property
    def n_rows(self) -> int:
        """Number of rows of all partitions."""
        return int(self.starts[-1])

    def join(self, partition: Any, n_rows: int) -> "Partitions":
        """Return these partitions and behind them another one, which is not on the cluster yet."""
        future = self._common("partition", partition)
        return Partitions(self.client, [*self.futures, future], [*np.diff(self.starts), n_rows])

    def __repr__(self) -> str:
        lengths = list(map(str, np.diff(self.starts[: _MOST_LISTED + 1]).tolist()))
        more = ["..."] * (len(self.futures) > _MOST_LISTED)
        listed = ", ".join(lengths + more)
        return f"{self.n_rows:,} rows in {len(self.futures)} partition(s) ({listed})"

    def results(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **shared: Any
    ) -> list[Any]:
        """Return what a function gives for each partition; see :meth:`settled`."""
        for _ in range(_MOST_TRIALS):
            try:
                return self.client.gather(self.settled(function, *by_partition, **shared))
            except (FutureCancelledError, FuturesCancelledError):
                continue
        raise _lost()

    def settled(
        self, function: Callable[..., Any], *by_partition: Sequence[Any], **shared: Any
    ) -> "list[Future[Any]]":
        """Have a task done for each partition; return their results, which are on the workers.

        Parameters
        ----------
        function : callable
            ``function(partition, *arguments, **shared)``, importable on the workers.
        *by_partition : sequence
            The arguments that differ, one for each partition.
        **shared : object
            Those that do not.

        Raises
        ------
        Exception
            The first error of a task, as it is, with a note that says of which partition it was.
        RuntimeError
            If partitions are lost, and Dask cannot compute them again.
        """
        common = self._common(function.__name__, (function, shared))
        every = [common] * len(self.futures)
        for _ in range(_MOST_TRIALS):
            sent = [self._sent(list(several)) for several in by_partition]
            futures = self.client.map(call, self.futures, every, *sent, key=function.__name__)
            try:
                wait_for(self.client, futures)
                return futures
            except FuturesCancelledError:  # what was sent to a worker is lost with it
                continue
        raise _lost()

    def _common(self, name: str, thing: Any) -> "Future[Any]":
        """Let a worker have what many tasks read; it is made again if the worker is lost.

        Not as keyword arguments of ``client.map``: of those that are large the names become keys of
        the cluster, which a second call would find with the values of the first.
        """
        text = pickle.dumps(thing)
        key = f"{name}-common-{hashlib.sha256(text).hexdigest()}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": _MOST_BYTES}):
            return self.client.submit(pickle.loads, text, key=key)

    def _sent(self, arguments: list[Any]) -> list[Any]:
        """Send arrays to the workers: a graph is no place for them."""
        if not any(isinstance(each, np.ndarray) for each in arguments):
            return arguments
        for _ in range(_MOST_TRIALS):
            try:
                sent: list[Any] = self.client.scatter(arguments, hash=False)
            except (OSError, KeyError) as error:  # of a worker that is lost meanwhile
                if self.client.status != "running":
                    raise LostSchedulerError(f"lost the scheduler of {self.client!r}") from error
            else:
                return sent
        raise _lost()


def call(partition: Any, common: tuple[Callable[..., Any], dict[str, Any]], *arguments: Any) -> Any:
    """Call a function in a task."""
    function, shared = common
    return function(partition, *arguments, **shared)


def _lost() -> RuntimeError:
    return RuntimeError(
        "partitions of X, or what was computed of them, were lost with their workers again and "
        "again: what client.scatter has sent to a worker is lost with it; read X from files, or "
        "keep the workers alive"
    )


def wait_for(client: Any, futures: Sequence["Future[Any]"]) -> None:
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
            fault.add_note(f"This was partition {number} of X, counted from 0.")
            raise fault.with_traceback(future.traceback())
