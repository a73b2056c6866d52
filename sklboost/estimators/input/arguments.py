"""Arguments of `fit` besides X: values row by row as arrays, weights, validation sets, seeds."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date, time, timedelta
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array, check_random_state

from sklboost.data.features import Features
from sklboost.data.frames import dask_kind, read_values
from sklboost.data.frames.adapter import is_missing
from sklboost.data.frames.numpy_arrays import ObjectColumn
from sklboost.estimators.input.user_warnings import warn_user

# What to do where a row has no value of this kind.
_REMEDIES = {
    "targets": "leave out rows without a target",
    "weights": "every row needs a weight, and 0 leaves it out",
    "raw scores": "every row needs its raw scores",
    "times": "leave out such rows",
    "sizes": "every query needs its number of rows",
    **{of: f"every row needs the label of its {of}" for of in ("group", "query", "stratum")},
}
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
_LARGEST_SEED = 2**31 - 1
# Sums of weights, and of weights times gradients, stay normal numbers within these.
_WEIGHT_RANGE = (1e-100, 1e100)


# --- values row by row


def row_values(
    given: Any,
    name: str,
    what: str,
    *,
    numeric: bool = True,
    unknown: bool = False,
    records: bool = False,
) -> Any:
    """Return an argument that has an entry for each row, of any container, as an array.

    The array has what was given exactly: see :func:`~sklboost.data.frames.read_values`. Shapes are
    left to the caller, or to scikit-learn, as are NaN and infinity among floats. `name` is the
    argument's, for errors, and `what` a key of the remedies. `numeric`: numbers, also written as
    text, rather than labels. `unknown`: what is missing in several columns becomes NaN, which
    stands for not known. `records`: it may be an array with fields. ValueError for values that are
    missing or masked and, if `numeric`, for times and what is no number; TypeError for what has no
    entry for each row.
    """
    dtype = str(getattr(given, "dtype", ""))
    if what == "targets" and dtype.startswith("period"):
        raise TypeError(
            f"{name} has dtype {dtype}: labels are no periods; pass {name}.astype(str), or "
            f"{name}.dt.to_timestamp()"
        )
    try:
        values, missing = read_values(given.compute() if dask_kind(given) else given)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error
    if not issparse(values):  # which scikit-learn refuses or takes
        if not isinstance(values, np.ndarray) or values.ndim == 0:
            raise TypeError(
                f"{name} is {values!r:.100}, of type {type(values).__name__}: it must have an "
                "entry for each row; pass an array, a list or a column of a frame"
            )
        if values.dtype.names is not None and not records:
            raise TypeError(
                f"{name} is an array of records with the fields {list(values.dtype.names)}: pass "
                "the values of one of them"
            )
    if missing is not None and missing.any():
        if not (unknown and values.ndim == 2 and values.shape[1] > 1):
            raise ValueError(f"{name} has no value in {places(missing)}: {_REMEDIES[what]}")
        values = values.astype(np.float64 if values.dtype.kind in "biuf" else object)
        values[missing] = np.nan
    if numeric and isinstance(values, np.ndarray) and values.dtype.kind in "mMSUO":
        return _as_numbers(values, name, what)
    return values


def _as_numbers(values: np.ndarray, name: str, what: str) -> np.ndarray:
    """Return written numbers and Python's as float64; ValueError for times, and for no numbers."""
    is_plain = values.dtype.kind != "O"
    for example in values.ravel()[:1] if is_plain else ObjectColumn(values.ravel()).examples():
        if isinstance(example, _TIMES):
            raise ValueError(
                f"{name} holds times, such as {example!r}: {what} are numbers; subtract a date and "
                "divide by np.timedelta64(1, 'D'), say, to count days"
            )
    with suppress(TypeError, ValueError, OverflowError):
        return values.astype(np.float64)
    for wrong in values.ravel().tolist():
        try:
            float(wrong)
        except (TypeError, ValueError, OverflowError):
            break
    kind = "text" if isinstance(wrong, str | bytes) else type(wrong).__name__
    hint = "; labels are for XGBClassifierLite" if what == "targets" else ""
    raise ValueError(f"{name} holds {kind}, such as {wrong!r:.100}: {what} are numbers{hint}")


def one_each(given: Any, name: str, what: str, n_rows: int, *, numeric: bool = False) -> np.ndarray:
    """Return one value for each row, such as the label of its query.

    ValueError for other shapes than (n_rows,), and for what is missing, as NaN is.
    """
    values = np.asarray(row_values(given, name, what, numeric=numeric))
    if values.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}: it must be 1-D, one for each of the {n_rows} rows"
        )
    missing = is_missing(values, None)
    if missing is not None:
        raise ValueError(f"{name} has no value in {places(missing)}: {_REMEDIES[what]}")
    return values


def score_arguments(y: Any, sample_weight: Any, *, numeric: bool) -> tuple[Any, Any]:
    """Return targets and weights, or None, as arrays, for scores that scikit-learn computes."""
    y = row_values(y, "y", "targets", numeric=numeric, unknown=True)
    if sample_weight is not None:
        sample_weight = row_values(sample_weight, "sample_weight", "weights")
    return y, sample_weight


def places(is_wrong: np.ndarray) -> str:
    """Say in how many rows there is a wrong value, and where the first is."""
    rows = np.flatnonzero(is_wrong.reshape(len(is_wrong), -1).any(axis=1))
    words = f"{len(rows)} row(s), the first is row {rows[0]}"
    is_one = is_wrong.size == len(is_wrong)
    return words if is_one else f"{words}, column {np.argmax(is_wrong[rows[0]])}"


# --- weights


def row_weights(sample_weight: Any, X: Features, name: str = "sample_weight") -> np.ndarray:
    """Return the weights as float64, shape (n_samples,), or (0,) for None, which is 1 everywhere.

    A single number counts for every row.
    """
    if sample_weight is None:
        return np.empty(0)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    weight = row_values(sample_weight, name, "weights")
    weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name=name)
    if weight.ndim != 1:
        raise ValueError(
            f"{name} has shape {weight.shape}: it must be 1-D, one weight for each row"
        )
    if len(weight) != len(X):
        raise ValueError(
            f"{name} and X have inconsistent numbers of samples: [{len(weight)}, {len(X)}]"
        )
    if (weight < 0.0).any():
        row = int(np.argmax(weight < 0.0))
        raise ValueError(
            f"{name}[{row}]={weight[row]:g}: weights must be >= 0 (0 leaves a row out)"
        )
    if not weight.any():
        raise ValueError(f"{name} is zero for every row: at least one weight must be > 0")
    check_largest_weight(weight, name)
    return weight


def check_largest_weight(weight: np.ndarray, name: str) -> None:
    """Raise ValueError if sums of these weights, times gradients, could be no normal numbers."""
    largest = float(weight.max())
    if not _WEIGHT_RANGE[0] <= largest <= _WEIGHT_RANGE[1]:
        raise ValueError(
            f"the largest {name} is {largest:g}: it must be from {_WEIGHT_RANGE[0]:g} to "
            f"{_WEIGHT_RANGE[1]:g}; multiply the weights by a constant"
        )


def warn_of_no_split(
    weight: np.ndarray,  # the user's, float64, shape (n_samples,) or (0,)
    n_rows: int,
    cover: tuple[float, float],  # of all rows, and what both children of a split must have
    min_child_samples: int,
    *,
    has_own_cover: bool,  # whether the cover of a row does not depend on others, such as its query
) -> None:
    """Warn if no tree has a split only because the weights of the rows, or covers, are small."""
    of_all, least = cover
    if not has_own_cover and of_all < 2 * least:
        warn_user(
            f"no tree has a split: both children need a cover of min_child_weight={least:g}, but "
            f"that of all rows is {of_all:g}; lower min_child_weight"
        )
        return
    if len(weight) == 0:
        return
    total = float(weight.sum())
    if total < 2 * min_child_samples <= n_rows:
        warn_user(
            f"no tree has a split: min_child_samples={min_child_samples} counts each row by its "
            f"weight, and the sum of sample_weight is {total:g}; multiply the weights so that "
            "their mean is 1, or lower min_child_samples"
        )
    elif of_all < 2 * least <= of_all * n_rows / total:  # enough if the mean weight were 1
        warn_user(
            f"no tree has a split: both children need a cover of min_child_weight={least:g}, but "
            f"that of all rows is {of_all:g}, because the sum of sample_weight is {total:g}, its "
            f"mean {total / n_rows:g}; multiply the weights so that their mean is 1, or lower "
            "min_child_weight"
        )


# --- arguments of fit


class FitArguments(NamedTuple):
    """The arguments of fit beside X and y, as they were given."""

    sample_weight: Any = None
    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    base_margin_val: Any = None
    eval_set: Any = None
    sample_weight_eval_set: Any = None
    base_margin_eval_set: Any = None
    groups: Any = None
    base_margin: Any = None
    init_model: Any = None
    xgb_model: Any = None
    verbose: Any = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "FitArguments":
        """Take them out of others by their names, as of the local variables of `fit`."""
        return cls(**{name: arguments[name] for name in cls._fields if name in arguments})


class GivenSet(NamedTuple):
    """One set of validation rows, not checked yet."""

    name: str  # in `evals_result_`
    argument: str  # of fit that `X` is from, for errors
    X: Any
    y: Any
    sample_weight: Any
    base_margin: Any


def given_sets(given: FitArguments) -> list[GivenSet]:
    """Return the validation sets; an error if both forms are given, or only half of one."""
    if given.X_val is not None and given.eval_set is not None:
        raise ValueError("both X_val and eval_set are given: pass validation data in one of them")
    if given.eval_set is not None:
        return _read_eval_set(given)
    for name in ("sample_weight_eval_set", "base_margin_eval_set"):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} is given without eval_set")
    if given.X_val is None:
        for name in ("y_val", "sample_weight_val", "base_margin_val"):
            if getattr(given, name) is not None:
                raise ValueError(f"{name} is given without X_val")
        return []
    if given.y_val is None:
        raise ValueError("X_val is given without y_val")
    weight, margin = given.sample_weight_val, given.base_margin_val
    return [GivenSet("validation_0", "X_val", given.X_val, given.y_val, weight, margin)]


def _read_eval_set(given: FitArguments) -> list[GivenSet]:
    pairs = given.eval_set
    if not isinstance(pairs, list | tuple):
        raise TypeError(
            f"eval_set is of type {type(pairs).__name__}: it must be a list of pairs, "
            "eval_set=[(X_val, y_val)]"
        )
    for name, twin in (
        ("sample_weight_val", "sample_weight_eval_set"),
        ("base_margin_val", "base_margin_eval_set"),
        ("y_val", "the pair (X, y) itself"),
    ):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} goes with X_val; for eval_set there is {twin}")
    weights = _one_for_each_set(given.sample_weight_eval_set, len(pairs), "sample_weight_eval_set")
    margins = _one_for_each_set(given.base_margin_eval_set, len(pairs), "base_margin_eval_set")
    sets = []
    for index, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(
                f"eval_set[{index}] must be a pair (X, y), not of type {type(pair).__name__}: "
                "eval_set=[(X_val, y_val)]"
            )
        X, y = pair
        name, argument = f"validation_{index}", f"eval_set[{index}]"
        sets.append(GivenSet(name, argument, X, y, weights[index], margins[index]))
    return sets


def _one_for_each_set(given: Any, n_sets: int, name: str) -> Sequence[Any]:
    if given is None:
        return [None] * n_sets
    if not isinstance(given, list | tuple) or len(given) != n_sets:
        raise ValueError(
            f"{name} must be a list with one entry (or None) for each of the {n_sets} pairs of "
            "eval_set"
        )
    return given


def seeds(random_state: Any, is_sampling: bool) -> tuple[int, int]:
    """Return the seed of the rounding of gradients and that of the draws of rows and features.

    None draws as the seed 0 does, as in XGBoost: the same fit gives the same model. The module
    ``numpy.random`` stands for NumPy's global state, as in scikit-learn. If nothing is drawn, the
    second seed is 0, and no state moves for it.
    """
    if isinstance(random_state, np.random.Generator):
        draw = random_state.integers
    else:
        try:
            draw = check_random_state(0 if random_state is None else random_state).randint
        except ValueError as error:
            raise ValueError(
                f"random_state={random_state!r}: it must be None, an integer from 0 to 2**32 - 1, "
                "a RandomState or a Generator of NumPy"
            ) from error
    rounding = int(draw(_LARGEST_SEED))
    # without a seed rounding is that of earlier versions
    return 0 if random_state is None else rounding, int(draw(_LARGEST_SEED)) if is_sampling else 0
