"""Dask collections as users give them to `fit`: their partitions, on the workers of a client."""

from contextlib import suppress
from typing import Any

import distributed
import numpy as np
from distributed import futures_of

from sklboost.data.frames import dask_kind
from sklboost.distributed.columns import Facts, look_at
from sklboost.distributed.partitions import Partitions, wait_for


def open_collection(X: Any) -> tuple[Partitions, list[Facts]]:
    """Let the workers compute a collection and keep it; return its partitions, and what is in them.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Rows and features. Computed once, unless ``X.persist()`` has been called before.

    Raises
    ------
    TypeError
        For collections of another kind.
    ValueError
        For other than two dimensions; if there is no ``distributed.Client``.
    """
    _check_kind(X)
    client = current_client()
    if dask_kind(X) == "Array" and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    # of files that Dask reads together there are fewer than X.npartitions
    futures = futures_of(client.persist(X))
    futures.sort(key=lambda future: future.key[1])  # keys are (name, number of the partition, ...)
    names = {future.key[0] for future in futures}
    if len(names) != 1 or [future.key[1] for future in futures] != list(range(len(futures))):
        raise RuntimeError(f"Dask does not say in which order the parts of X are: {sorted(names)}")
    wait_for(client, futures)
    partitions = Partitions(client, futures, np.zeros(len(futures), dtype=np.int64))
    facts = partitions.results(look_at)
    return Partitions(client, futures, np.array([fact.n_rows for fact in facts])), facts


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


def _check_kind(X: Any) -> None:
    kind = dask_kind(X)
    if kind == "Series":
        raise ValueError(
            "X is a dask.Series, of one dimension: pass a frame of one column, X.to_frame()"
        )
    if kind not in ("Array", "DataFrame"):
        raise TypeError(
            f"X is a dask.{kind}: fit takes a dask.dataframe.DataFrame or a dask.array.Array; "
            ".to_dataframe() of a bag, or dask.array.from_delayed, makes one"
        )
    if X.ndim != 2:
        raise ValueError(f"X is a dask.Array of {X.ndim} dimension(s): it must be 2-D")
