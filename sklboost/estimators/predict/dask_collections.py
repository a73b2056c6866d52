"""Predictions of Dask collections: lazy, each part by itself.

Rows do not depend on one another, so the parts of a prediction are the predictions of the parts.
What these look like (dtype, number of columns) is learnt from one made-up row without values; of
the user's rows nothing is computed before the result is.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from dask.tokenize import tokenize

from sklboost.data.frames import dask_kind
from sklboost.estimators.input.rows import row_values
from sklboost.estimators.predict.fitted_model import FittedModel, PrecomputedScores

_FRAMES = ("Series", "DataFrame")


@dataclass(frozen=True, eq=False)
class PartMethod:
    """A method with all it needs except the rows: it is in the graph once, for all parts."""

    method: Callable[..., np.ndarray]  # a function of a class, which is pickled by its name
    # as it was when the method was called: it may be fitted again before anything is computed
    estimator: Any
    named: Mapping[str, Any]  # arguments that do not belong to rows
    of_rows: tuple[str, ...]  # names of the arguments that do
    nothing: np.ndarray  # the result for no rows

    def __call__(self, X: Any, of_rows: Iterable[Any]) -> np.ndarray:
        """Return what the method returns for the rows of one part."""
        if X.shape[0] == 0:
            return self.nothing
        named = dict(zip(self.of_rows, of_rows, strict=True))
        return self.method(self.estimator, X, **self.named, **named)


def lazily(
    method: Callable[..., np.ndarray], estimator: Any, X: Any, *args: Any, **named: Any
) -> Any:
    """Call a method of an estimator on a Dask DataFrame or Array.

    For an Array it returns one, in chunks of the same rows; for a DataFrame a Series or DataFrame
    with its index and divisions, and columns numbered from 0, or an Array if the method gives more
    than two dimensions.
    """
    kind = dask_kind(X)
    if kind not in ("Array", "DataFrame"):
        raise TypeError(
            f"X is a dask.{kind}: pass a Dask DataFrame (X.to_frame() of a Series) or a Dask Array "
            "of two dimensions, or X.compute()"
        )
    kept = object.__new__(type(estimator))
    vars(kept).update(vars(estimator), callbacks=None)  # which need not be picklable
    if kept.n_jobs is None:
        kept.n_jobs = 1  # Dask works on as many parts at once as there are processors
    given = inspect.signature(method).bind(kept, X, *args, **named).arguments
    del given["self"], given["X"]
    align, in_parts = _LAYOUTS[kind]
    of_rows = {
        name: align(name, given.pop(name), X) for name in _SAMPLES if given.get(name) is not None
    }
    for name, value in given.items():
        if dask_kind(value):
            raise TypeError(
                f"{name} is a dask.{dask_kind(value)}, and every part of X needs all of it: pass "
                f"{name}.compute()"
            )
    fitted = kept._fitted
    samples = {name: _SAMPLES[name](fitted, value) for name, value in of_rows.items()}
    if kind == "DataFrame":  # one row, in which all values are missing
        row = X._meta.reset_index(drop=True).reindex([0])
    else:
        n_features = fitted.model.n_features
        widths = (n_features if np.isnan(size) else size for size in X.shape[1:])
        row = np.full((1, *widths), np.nan)
    nothing = method(kept, row, **given, **samples)[:0]
    part = PartMethod(method, kept, given, tuple(of_rows), nothing)
    name = method.__name__.strip("_")
    # All parts share one task that gives the model. Where the reading of a single part becomes one
    # task with its prediction, Dask cannot make an array of a frame that depends on another task.
    is_shared = X.npartitions > 1
    named_part = f"{name}-model-{tokenize(part)}"
    model = dask.delayed(part, name=named_part, traverse=False) if is_shared else part
    return in_parts(X, model, list(of_rows.values()), nothing, name)


_NO_FEATURES = (
    "score gives predict the raw scores of a Dask collection, not its features: pass X on as it is "
    "in a predict of your own, or call score(X.compute(), ...)"
)


def computed(raw_rows: Any, *others: Any) -> list[Any]:
    """Compute collections; the first, raw scores by rows, becomes `PrecomputedScores`."""
    values = [raw_rows, *others]
    are_frames = [dask_kind(value) in _FRAMES for value in values]
    for kind in (True, False):  # Dask warns of frames and arrays that are computed at once
        places = [place for place, is_frame in enumerate(are_frames) if is_frame is kind]
        results = dask.compute(*(values[place] for place in places))
        for place, result in zip(places, results, strict=True):
            values[place] = result
    raw_score = np.array(np.atleast_2d(np.asarray(values[0]).T), order="C")  # not read-only
    return [PrecomputedScores(raw_score, _NO_FEATURES), *values[1:]]


# --- arguments that have an entry for each row

# One entry, which the method takes.
_SAMPLES: dict[str, Callable[[FittedModel, Any], np.ndarray]] = {
    "base_margin": lambda fitted, value: np.zeros((1, *value.shape[1:])),
    "strata": lambda fitted, value: fitted.targets.strata[:1],  # type: ignore[attr-defined]
}


def _like_array(name: str, value: Any, X: Any) -> Any:
    """Return what belongs to rows in the chunks that the rows of the array `X` have."""
    import dask.array as da

    if dask_kind(value) in _FRAMES:
        value = value.to_dask_array()
    elif not dask_kind(value):
        what = "raw scores" if name == "base_margin" else "stratum"
        value = da.asarray(row_values(value, name, what, numeric=name == "base_margin"))
    is_known = not np.isnan([value.shape[0], X.shape[0]]).any()
    theirs, own = (value.shape, X.shape) if is_known else (value.numblocks, X.numblocks)
    if theirs[0] != own[0]:
        what = "rows" if is_known else "chunks of rows of unknown lengths"
        raise ValueError(f"{name} has {theirs[0]} {what} and X has {own[0]}: {_REMEDY}")
    columns = dict.fromkeys(range(1, value.ndim), -1)
    return value.rechunk({0: X.chunks[0], **columns} if is_known else columns)


def _like_frame(name: str, value: Any, X: Any) -> Any:
    """Return what belongs to rows as a frame that has the partitions of the frame `X`."""
    if dask_kind(value) == "Array":
        value = value.rechunk(dict.fromkeys(range(1, value.ndim), -1)).to_dask_dataframe()
    if dask_kind(value) not in _FRAMES:
        raise TypeError(
            f"{name} is of type {type(value).__name__}, and X a Dask DataFrame, whose partitions "
            f"have lengths that are not known yet: {_REMEDY}"
        )
    is_known = value.known_divisions and X.known_divisions
    if value.npartitions != X.npartitions or (is_known and value.divisions != X.divisions):
        raise ValueError(
            f"{name} has {value.npartitions} partitions, X has {X.npartitions}, or other rows in "
            f"them: {_REMEDY}"
        )
    return value


_REMEDY = "pass one entry for each row of X, in the same partitions, such as a column of its frame"


# --- parts


def _of_array(X: Any, part: Any, of_rows: list[Any], nothing: np.ndarray, name: str) -> Any:
    """Return an array of what the method returns for each chunk of rows."""
    import dask.array as da

    def of_chunk(part: PartMethod, X: list[Any], *of_rows: Any) -> np.ndarray:
        rows = (value[0] if isinstance(value, list) else value for value in of_rows)
        return part(X[0], rows)

    trailing = dict(enumerate(nothing.shape[1:], start=2))
    pairs: list[Any] = [part, None, X.rechunk({1: -1}), (0, 1)]
    for value in of_rows:
        pairs += [value, (0, -1)[: value.ndim]]
    return da.blockwise(
        of_chunk,
        (0, *trailing),
        *pairs,
        new_axes=trailing,
        align_arrays=False,
        concatenate=False,  # a list of the chunks along each axis that the result has not
        token=name,
        dtype=nothing.dtype,
        meta=nothing,
    )


def _of_frame(X: Any, part: Any, of_rows: list[Any], nothing: np.ndarray, name: str) -> Any:
    """Return a Series or DataFrame of what the method returns for each partition, or an array."""

    def of_partition(X: Any, part: PartMethod, *of_rows: Any) -> Any:
        return _with_index(part(X, of_rows), X.index)

    meta = _with_index(nothing, X._meta.index)
    return X.map_partitions(
        of_partition, part, *of_rows, meta=meta, enforce_metadata=False, token=name
    )


def _with_index(values: np.ndarray, index: Any) -> Any:
    """Return a Series or a DataFrame; an array of more dimensions as it is."""
    import pandas as pd

    dtype = object if values.dtype == object else None  # else pandas looks at the values
    if values.ndim == 1:
        return pd.Series(values, index, dtype=dtype)
    return pd.DataFrame(values, index, dtype=dtype) if values.ndim == 2 else values


# By kind of collection: how arguments are aligned with its rows, and how its parts are predicted.
_LAYOUTS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "Array": (_like_array, _of_array),
    "DataFrame": (_like_frame, _of_frame),
}
