"""Columns on a cluster, such as targets and weights: values of each row of X.

:func:`open_column` reads a Dask collection into a :class:`ClusterColumn`, which NumPy takes as an
array. Nothing is computed before values, or a reduction of them, are asked for.
"""

import math
import pickle
from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.lib.mixins import NDArrayOperatorsMixin

from sklboost.distributed.partitions import Partitions, computed, current_client, divide_twice
from sklboost.engine.structs import RemoteColumn

# Functions whose reduction is that of the reductions of all parts.
_JOINED = (
    *(np.add, np.minimum, np.maximum, np.fmin, np.fmax),
    *(np.logical_or, np.logical_and),
)
# Rows that one call gets, about, where those of the same value have to be together.
_ROWS_OF_GROUP = 2**24


class Step(NamedTuple):
    """A function of the values of a partition: of other steps, of stored columns, by key."""

    function: Callable[..., Any]
    inputs: tuple[Any, ...]  # steps, keys of stored columns, or numbers
    settings: dict[str, Any]


def _reduction(function: np.ufunc) -> Callable[..., Any]:
    """Return the method of an array that reduces all values, or those along an axis."""

    def reduce(column: "ClusterColumn", axis: int | None = None, **settings: Any) -> Any:
        given = {name: value for name, value in settings.items() if value is not None}
        return function.reduce(column, axis=axis, **given)

    return reduce


class ClusterColumn(NDArrayOperatorsMixin, RemoteColumn):
    """What a step makes of stored columns, or one of these; each has the partitions of X.

    `stored` are arrays by the key of a column, which the step names. `like` is the array of no
    rows: its axis of length 0 is the first, or the last, as that of targets is where losses take
    them.
    """

    T = property(lambda column: column.apply(np.transpose) if column.ndim > 1 else column)
    size = property(lambda column: math.prod(column.shape))

    def __init__(self, stored: dict[str, Partitions], step: Step | str, like: np.ndarray):
        self._stored, self._step, self._like = stored, step, like
        self._axis, self.dtype, self.ndim = like.shape.index(0), like.dtype, like.ndim
        self.starts = next(iter(stored.values())).starts  # of each partition, and the end
        self.shape = tuple(length or int(self.starts[-1]) for length in like.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def partitions(self) -> Partitions:
        """Have the workers compute the arrays of all partitions."""
        if isinstance(self._step, str):
            return self._stored[self._step]
        first, *others = self._stored.values()
        further = (other.futures for other in others)
        steps = [self._step]
        return first.like(first.settled(values_of, *further, keys=[*self._stored], steps=steps))

    def each(self, function: Callable[..., Any], *others: Any, **settings: Any) -> list[Any]:
        """Return ``function(values, *others, **settings)`` of each partition that has rows.

        Others are columns, and behind them sequences with an argument for each partition.
        """
        columns = [self, *(other for other in others if isinstance(other, ClusterColumn))]
        stored = {key: of for column in columns for key, of in column._stored.items()}
        first, *arrays = stored.values()
        further = [other.futures for other in arrays] + [*others[len(columns) - 1 :]]
        how = {"keys": [*stored], "steps": [column._step for column in columns]}
        parts = first.results(values_of, *further, **how, then=(function, settings))
        return [part for part, n in zip(parts, np.diff(self.starts), strict=True) if n > 0]

    # --- what NumPy asks for

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        parts = [self._like, *self.each(np.asarray)]
        return np.ascontiguousarray(np.concatenate(parts, axis=self._axis, dtype=dtype))

    def __array_ufunc__(
        self, function: np.ufunc, method: str, *inputs: Any, **settings: Any
    ) -> Any:
        if method == "reduce" and function in _JOINED and not settings.keys() - {"axis", "initial"}:
            axis = settings.pop("axis", 0)
            if axis is not None and normalize_axis_index(axis, self.ndim) != self._axis:
                return self._made_by(function.reduce, self, axis=axis, **settings)
            parts = self.each(function.reduce, axis=axis)
            found = np.array(parts, None if parts else self.dtype)
            return function.reduce(found, axis=0, **settings)
        are_known = all(isinstance(each, ClusterColumn) or np.ndim(each) == 0 for each in inputs)
        if method == "__call__" and are_known and function.nout == 1 and "out" not in settings:
            return self._made_by(function, *inputs, **settings)
        here = [np.asarray(each) if isinstance(each, ClusterColumn) else each for each in inputs]
        return getattr(function, method)(*here, **settings)

    def _made_by(self, function: Callable[..., Any], *inputs: Any, **settings: Any) -> Any:
        columns = [each for each in inputs if isinstance(each, ClusterColumn)]
        stored = {key: of for column in columns for key, of in column._stored.items()}
        steps = [getattr(each, "_step", each) for each in inputs]
        like = function(*(getattr(each, "_like", each) for each in inputs), **settings)
        return ClusterColumn(stored, Step(function, tuple(steps), settings), like)

    def apply(self, function: Callable[..., Any], *others: Any, **settings: Any) -> "ClusterColumn":
        return self._made_by(function, self, *others, **settings)

    def apply_by_value(self, function: Callable[..., Any], *others: Any) -> "ClusterColumn":
        whole, further = self.partitions(), [other.partitions().futures for other in others]
        n_groups = -(-len(self) // _ROWS_OF_GROUP)
        found = []
        for group in range(n_groups):
            rows = whole.settled(rows_of_group, *further, group=group, n_groups=n_groups)
            made = whole.client.submit(apply_to_pieces, function, *rows)
            found.append(whole.client.map(getitem, [made] * len(rows), range(len(rows))))
        return stored_column(whole.like(whole.settled(join_groups, *found)), np.empty(0))

    def look_up(self, tables: Sequence[np.ndarray]) -> "ClusterColumn":
        whole, left = self.partitions(), iter(tables)
        own = (next(left) if n > 0 else tables[0][:0] for n in np.diff(self.starts))
        of_parts = whole.like([whole.common("table", pickle.dumps(table)) for table in own])
        return stored_column(whole.like(of_parts.settled(np.take, whole.futures)), tables[0][:0])

    def astype(self, dtype: Any) -> "ClusterColumn":
        return self if self.dtype == dtype else self.apply(np.asarray, dtype=dtype)

    def persist(self) -> "ClusterColumn":
        return stored_column(self.partitions(), self._like)

    def along(self, X: Partitions) -> "ClusterColumn":
        """Return the column with the partitions of X, unless it has another number of rows."""
        its, starts = self.partitions(), self.starts
        if its.n_rows != X.n_rows or np.array_equal(starts, X.starts):
            return self
        pieces: list[list[Any]] = [[(its.futures[0], slice(0))] for _ in X.futures]
        for ours, number, start, stop in divide_twice(X.starts, starts):
            rows = slice(start - int(starts[number]), stop - int(starts[number]))
            pieces[ours].append((its.futures[number], rows))
        arrays = X.client.map(join_pieces, pieces)
        return stored_column(its.like(arrays, np.diff(X.starts)), self._like)

    def flatnonzero(self) -> "ClusterColumn":
        whole = self.partitions()
        found = whole.like(whole.settled(np.flatnonzero), ())
        numbers = found.settled(np.add, self.starts[:-1].tolist())
        return stored_column(found.like(numbers, found.results(len)), np.empty(0, dtype=np.int64))

    min, max, sum = _reduction(np.minimum), _reduction(np.maximum), _reduction(np.add)
    any, all = _reduction(np.logical_or), _reduction(np.logical_and)

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice) and rows.indices(len(self)) == (0, len(self), 1):
            return self
        if isinstance(rows, int) and self._axis > 0:  # one of several targets
            return self._made_by(getitem, self, rows)
        if not isinstance(rows, ClusterColumn):
            return np.asarray(self)[rows]
        rows = rows.flatnonzero() if rows.dtype == bool else rows
        whole, chosen = self.partitions(), rows.partitions()
        places = chosen.settled(np.subtract, self.starts[:-1].tolist())
        return stored_column(chosen.like(whole.settled(np.take, places, axis=0)), self._like)


def open_column(
    collection: Any, name: str, X: Partitions | None, read: Callable[..., Any], /, **settings: Any
) -> ClusterColumn | None:
    """Let the workers compute and read a collection of one or two dimensions that belongs to X.

    ``read(partition, **settings)`` returns an array; `name` is the argument's, for errors. The
    column has the partitions of X, unless it has another number of rows or X is None. None if
    partitions have values of different kinds, such as text and numbers: what these are together,
    one place has to say.
    """
    client = current_client() if X is None else X.client
    given = Partitions(client, computed(client, collection, name), name=name)
    arrays = given.settled(read, **settings)
    lengths, likes = zip(*given.like(arrays, ()).results(look_at_array), strict=True)
    known = [like for like, n_rows in zip(likes, lengths, strict=True) if n_rows > 0] or likes
    # of each field, if there are any
    for types in zip(*(like.dtype.descr for like in known), strict=True):
        kinds = {text[1] for _, text in types}
        if len(kinds) > 1 and not kinds <= set("iuf"):
            return None
    like = known[0].astype(np.result_type(*known))
    found = given.like(arrays, lengths)
    if any((each.dtype, each.shape) != (like.dtype, like.shape) for each in likes):
        found = found.like(found.settled(as_array_like, like=like))
    column = stored_column(found, like)
    return column if X is None else column.along(X)


def stored_column(arrays: Partitions, like: np.ndarray) -> ClusterColumn:
    """Return the column whose partitions are arrays; `like` has none of their rows."""
    key = str(arrays.futures[0].key)
    return ClusterColumn({key: arrays}, key, like)


# --- on a worker: tasks ---------------------------------------------------------------------------


def join_pieces(pieces: list[tuple[np.ndarray, slice]]) -> np.ndarray:
    """Return rows of several arrays as one array."""
    return np.concatenate([values[rows] for values, rows in pieces])


def rows_of_group(values: np.ndarray, *others: np.ndarray, group: int, n_groups: int) -> Any:
    """Return the values, and others, of rows whose remainder of the value is the group's number."""
    is_chosen = values % n_groups == group
    return [of_all[is_chosen] for of_all in (values, *others)]


def apply_to_pieces(function: Callable[..., Any], *pieces: list[np.ndarray]) -> list[np.ndarray]:
    """Return what a function makes of the arrays of all pieces together, a part for each piece."""
    ends = np.cumsum([len(values) for values, *_ in pieces])
    return np.split(function(*map(np.concatenate, zip(*pieces, strict=True))), ends[:-1])


def join_groups(values: np.ndarray, *found: np.ndarray) -> np.ndarray:
    """Return what was found for the rows of each group, in the order of the rows."""
    groups, joined = values % len(found), np.empty(len(values))
    for group, of_group in enumerate(found):
        joined[groups == group] = of_group
    return joined


def as_array_like(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return values in the type of an array of no rows; that itself, if there are none."""
    return values.astype(like.dtype) if len(values) > 0 else like


def look_at_array(values: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the number of rows of an array, and it without them."""
    return len(values), values[:0]


@np.errstate(all="ignore")
def values_of(
    *arrays: Any,
    keys: list[str],
    steps: list[Step | str],
    then: tuple[Callable[..., Any], dict[str, Any]] | None = None,
) -> Any:
    """Return what the first step makes of stored columns, whose `arrays` and `keys` are given.

    With `then` what a function makes of that, of the other steps, of the further arrays, and of
    settings; None if there are no rows.
    """
    stored = dict(zip(keys, arrays, strict=False))

    def value(step: Any) -> Any:
        if isinstance(step, Step):
            return step.function(*map(value, step.inputs), **step.settings)
        return stored[step] if isinstance(step, str) else step

    values, *others = map(value, steps)
    if then is None:
        return values
    function, settings = then
    others += arrays[len(keys) :]
    return function(values, *others, **settings) if values.size > 0 else None
