"""The arguments of `fit` as users give them, and validation data of either form brought to one."""

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state

from sklboost.data.frames import dask_kind, read_values
from sklboost.data.frames.adapter import is_missing
from sklboost.data.frames.numpy_arrays import ObjectColumn

_LARGEST_SEED = 2**31 - 1


def seeds(random_state: Any, is_sampling: bool) -> tuple[int, int]:
    """Return the seed of the rounding of gradients and that of the draws of rows and features.

    None draws as the seed 0 does, as in XGBoost: the same fit gives the same model. The module
    ``numpy.random`` stands for NumPy's global state, as in scikit-learn. If nothing is drawn, the
    second seed is 0, and no state moves for it.

    Raises
    ------
    ValueError
        If `random_state` is none of what scikit-learn takes, nor a Generator.
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


# What is given beside features, row by row: what to do where there is no value.
_REMEDIES = {
    "targets": "leave out rows without a target",
    "weights": "every row needs a weight, and 0 leaves it out",
    "raw scores": "every row needs its raw scores",
    "times": "leave out such rows",
    "sizes": "every query needs its number of rows",
    **{of: f"every row needs the label of its {of}" for of in ("group", "query", "stratum")},
}
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


class GivenSet(NamedTuple):
    """One set of validation rows, not checked yet."""

    name: str  # in `evals_result_`
    argument: str  # of fit that `X` is from, for errors
    X: Any
    y: Any
    sample_weight: Any
    base_margin: Any


def computed(given: Any) -> Any:
    """Return what was given, with the values of each Dask collection in it, lists of pairs too."""
    if dask_kind(given):
        return given.compute()
    if isinstance(given, list | tuple) and any(map(_holds_collection, given)):
        return [computed(part) for part in given]
    return given


def _holds_collection(given: Any) -> bool:
    is_pair = isinstance(given, list | tuple) and len(given) == 2
    return dask_kind(given) != "" or (is_pair and any(map(dask_kind, given)))


# --- arguments that have an entry for each row


def row_values(
    given: Any,
    name: str,
    what: str,
    *,
    numeric: bool = True,
    unknown: bool = False,
    records: bool = False,
) -> Any:
    """Return what is given row by row, of any container, as an array; plain ones themselves.

    The array has what was given exactly: see :func:`~sklboost.data.frames.read_values`. Shapes are
    left to the caller, or to scikit-learn, as are NaN and infinity among floats.

    Parameters
    ----------
    given : array-like, or a Dask collection
    name : str
        Of the argument, for errors.
    what : str
        What the values are: a key of the remedies.
    numeric : bool
        Whether they are numbers, rather than labels: also such as are written as text.
    unknown : bool
        Whether what is missing in several columns becomes NaN, which stands for not known.
    records : bool
        Whether it may be an array with fields.

    Raises
    ------
    ValueError
        For values that are missing or masked; for times, and what is no number, if `numeric`.
    TypeError
        For what has no entry for each row.
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
        _check_array(values, name, records)
    if missing is not None and missing.any():
        if not (unknown and values.ndim == 2 and values.shape[1] > 1):
            raise ValueError(f"{name} has no value in {places(missing)}: {_REMEDIES[what]}")
        values = values.astype(np.float64 if values.dtype.kind in "biuf" else object)
        values[missing] = np.nan
    return _as_numbers(values, name, what) if numeric else values


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


def _check_array(values: Any, name: str, records: bool) -> None:
    """Raise TypeError unless it is an array of one dimension or more."""
    if not isinstance(values, np.ndarray) or values.ndim == 0:
        raise TypeError(
            f"{name} is {values!r:.100}, of type {type(values).__name__}: it must have an entry "
            "for each row; pass an array, a list or a column of a frame"
        )
    if values.dtype.names is not None and not records:
        raise TypeError(
            f"{name} is an array of records with the fields {list(values.dtype.names)}: pass the "
            "values of one of them"
        )


def _as_numbers(values: Any, name: str, what: str) -> Any:
    """Return written numbers and Python's as float64; ValueError for times, and for no numbers."""
    if not isinstance(values, np.ndarray) or values.dtype.kind not in "mMSUO":
        return values
    is_plain = values.dtype.kind != "O"
    for example in values.ravel()[:1] if is_plain else ObjectColumn(values.ravel()).examples():
        if isinstance(example, _TIMES):
            raise ValueError(
                f"{name} holds times, such as {example!r}: {what} are numbers; subtract a date and "
                "divide by np.timedelta64(1, 'D'), say, to count days"
            )
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        wrong = next(value for value in values.ravel().tolist() if not _is_float(value))
    kind = "text" if isinstance(wrong, str | bytes) else type(wrong).__name__
    hint = "; labels are for XGBClassifierLite" if what == "targets" else ""
    raise ValueError(f"{name} holds {kind}, such as {wrong!r:.100}: {what} are numbers{hint}")


def _is_float(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


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

    def computed(self) -> "FitArguments":
        """Return the arguments with the values of Dask collections."""
        return FitArguments(*map(computed, self))


def given_sets(given: FitArguments) -> list[GivenSet]:
    """Return the validation sets, none if none were given.

    Raises
    ------
    ValueError
        If both forms are given, or only half of one.
    TypeError
        If `eval_set` is no list of pairs.
    """
    if given.X_val is not None and given.eval_set is not None:
        raise ValueError("both X_val and eval_set are given: pass validation data in one of them")
    if given.eval_set is not None:
        return _of_eval_set(given)
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
    return [
        GivenSet(
            name="validation_0",
            argument="X_val",
            X=given.X_val,
            y=given.y_val,
            sample_weight=given.sample_weight_val,
            base_margin=given.base_margin_val,
        )
    ]


def _of_eval_set(given: FitArguments) -> list[GivenSet]:
    pairs = given.eval_set
    if not isinstance(pairs, list | tuple):
        raise TypeError(
            f"eval_set is a {type(pairs).__name__}: it must be a list of pairs, "
            "eval_set=[(X_val, y_val)]"
        )
    for name in ("sample_weight_val", "base_margin_val", "y_val"):
        if getattr(given, name) is not None:
            raise ValueError(f"{name} goes with X_val; for eval_set there is {_TWINS[name]}")
    weights = _one_each(given.sample_weight_eval_set, len(pairs), "sample_weight_eval_set")
    margins = _one_each(given.base_margin_eval_set, len(pairs), "base_margin_eval_set")
    sets = []
    for index, pair in enumerate(pairs):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError(
                f"eval_set[{index}] must be a pair (X, y), not a {type(pair).__name__}: "
                "eval_set=[(X_val, y_val)]"
            )
        X, y = pair
        name, argument = f"validation_{index}", f"eval_set[{index}]"
        sets.append(GivenSet(name, argument, X, y, weights[index], margins[index]))
    return sets


_TWINS = {
    "sample_weight_val": "sample_weight_eval_set",
    "base_margin_val": "base_margin_eval_set",
    "y_val": "the pair (X, y) itself",
}


def _one_each(given: Any, n_sets: int, name: str) -> Sequence[Any]:
    if given is None:
        return [None] * n_sets
    if not isinstance(given, list | tuple) or len(given) != n_sets:
        raise ValueError(
            f"{name} must be a list with one entry (or None) for each of the {n_sets} pairs of "
            "eval_set"
        )
    return given
