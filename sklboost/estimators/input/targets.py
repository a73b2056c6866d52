"""Targets as users give them, checked: numbers, labels, one a row or several.

In several columns NaN is a value that is not known: it has no gradient, so each column is learnt
from its own known rows, and no row needs to be left out for one of its columns.
"""

from contextlib import suppress
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from sklboost.data.raw_values import row_blocks
from sklboost.estimators.input.arguments import places, row_values

_PROBABILITIES = "for probabilities as targets, use XGBRegressorLite(objective='reg:logistic')"

# Gradients are float32: beyond these they would overflow, or vanish, without a word.
_LARGEST_TARGET = 1e30
_SMALLEST_SPREAD = 1e-30
LABELS_OF_A_BYTE = 256
# The first so many rows of a block are sorted; if they have at most so many labels, the other rows
# are compared with these.
_FIRST_ROWS, _MOST_COMPARED = 1000, 10
# Labels that scikit-learn is shown, all of them: it takes about as long as to find which there are.
_MOST_SHOWN = 10_000


def training_targets(y: Any, *, numeric: bool, caller: str) -> np.ndarray:
    """Check the targets of a fit, shape (n_samples,) or (n_samples, n_targets)."""
    if y is None:  # in scikit-learn's words
        raise ValueError(
            f"This {caller} estimator requires y to be passed, but the target y is None."
        )
    y = _values(y, "y", numeric)
    if has_columns(y):
        return read_columns(y, "y", numeric=numeric)
    return validate_data(BaseEstimator(), y=y, y_numeric=numeric, estimator=caller)


def validation_targets(y: Any, name: str, *, numeric: bool) -> np.ndarray:
    """Check the targets of validation rows; `name` is that of the argument, for errors."""
    y = _values(y, name, numeric)
    if has_columns(y):
        return read_columns(y, name, numeric=numeric)
    kind = "numeric" if numeric else None
    return column_or_1d(check_array(y, dtype=kind, ensure_2d=False, input_name=name))


def _values(y: Any, name: str, numeric: bool) -> Any:
    values = row_values(y, name, "targets", numeric=numeric, unknown=True)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f" and not has_columns(values):
        _check_finite(values.ravel(), name)
    return values


def _check_finite(values: np.ndarray, name: str) -> None:
    """Raise ValueError, in scikit-learn's words and with the places, for floats that are no target.

    These are infinite ones, and NaN unless there are several columns.
    """
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):
            return
    is_nan = np.isnan(values)
    if values.ndim == 1 and is_nan.any():
        raise ValueError(
            f"Input {name} contains NaN: there is no value in {places(is_nan)}; leave out rows "
            "without a target"
        )
    is_infinite = np.isinf(values)
    if is_infinite.any():
        raise ValueError(
            f"Input {name} contains infinity or a value too large for {values.dtype!r}: in "
            f"{places(is_infinite)}; targets are finite numbers"
        )


# --- in several columns


def has_columns(y: Any) -> bool:
    """Whether targets that are read have several columns.

    One column is one target in another form, which scikit-learn takes with a warning.
    """
    return len(getattr(y, "shape", ())) > 1 and y.shape[1] != 1


def read_columns(y: Any, name: str, *, numeric: bool) -> np.ndarray:
    """Return targets in several columns: float64 if `numeric`, else of any dtype, labels too."""
    dtype = np.float64 if numeric else None
    columns = check_array(y, dtype=dtype, ensure_all_finite=False, input_name=name)
    if columns.dtype.kind == "f":
        _check_finite(columns, name)
    return columns


def check_columns(y: np.ndarray, n_targets: int, name: str) -> None:
    """Raise ValueError unless there are as many targets as were fitted."""
    n_columns = 1 if y.ndim == 1 else y.shape[1]
    if n_columns != n_targets:
        raise ValueError(
            f"{name} has shape {y.shape}, but y of the fit has {n_targets} target(s): pass the same"
        )


def known_rows(y: np.ndarray) -> np.ndarray:
    """Rows of which at least one target is known; bool, shape (n_samples,)."""
    if y.ndim == 1 or y.dtype.kind != "f":
        return np.broadcast_to(np.True_, len(y))
    return ~np.isnan(y).all(axis=1)


def check_known(y: np.ndarray) -> None:
    """Raise ValueError if no value of a column is known in the rows of positive weight."""
    if y.ndim == 1 or y.dtype.kind != "f":
        return
    is_unknown = np.isnan(y).all(axis=0)
    if is_unknown.any():
        raise ValueError(
            f"y[:, {int(np.argmax(is_unknown))}] is NaN, not known, in every row of positive "
            "weight: leave this target out"
        )


# --- labels


def check_labels(y: np.ndarray) -> None:
    """Raise ValueError for what are no labels, shape (n_samples,), in scikit-learn's words."""
    shown = y
    if len(y) > _MOST_SHOWN and y.dtype.kind != "O":
        # scikit-learn looks at all rows; of each label a few tell it as much
        few = np.repeat(distinct_labels(y), 3)
        shown = few if len(few) < len(y) else y
    try:
        check_classification_targets(shown)
    except ValueError as error:
        if y.dtype.kind == "f" and y.min() >= 0.0 and y.max() <= 1.0:
            raise ValueError(f"{error} Or {_PROBABILITIES}") from None
        if y.dtype.kind == "O":
            types = ", ".join(sorted({type(label).__name__ for label in y}))
            raise ValueError(
                f"{error} y holds Python objects of type {types}: labels are all text, or numbers "
                "of a dtype of their own, as y.astype(int) has"
            ) from None
        raise


def distinct_labels(y: np.ndarray) -> np.ndarray:
    """Return the labels in `y`, sorted."""
    found = [y[:0]]
    for rows in row_blocks(len(y)):
        some = y[rows]
        # the first rows tend to have all labels: comparing the others with few takes a tenth of the
        # time of sorting
        first = np.unique(some[:_FIRST_ROWS])
        is_new = np.ones(len(some), dtype=bool)
        for label in first if len(first) <= _MOST_COMPARED else ():
            is_new = is_new & (some != label)
        found += [first, np.unique(some[is_new])]
    return np.unique(np.concatenate(found))


def label_numbers(y: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return where each is among the sorted labels; uint8 if there are up to 256, else int64."""
    numbers: np.ndarray = np.zeros(
        len(y), np.uint8 if len(labels) <= LABELS_OF_A_BYTE else np.int64
    )
    for rows in row_blocks(len(y)):
        if len(labels) <= _MOST_COMPARED and y.dtype.kind in "biuf":
            for label in labels[1:]:
                numbers[rows] += y[rows] >= label
        else:
            numbers[rows] = np.searchsorted(labels, y[rows])
    return numbers


def places_among(classes: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return where each label is among the classes, int64; -1 if it is none.

    Numbers of different dtypes are compared exactly, which NumPy does not always do, and times
    whatever their units are. Objects may be labels of any dtype.
    """
    if classes.dtype.kind in "mM" and labels.dtype.kind == "O":
        with suppress(TypeError, ValueError):  # of what is no time
            if not any(isinstance(label, int | str) for label in labels):  # which NumPy reads, too
                labels = np.array(labels.tolist(), dtype=f"{classes.dtype.kind}8")
    kind, kinds = classes.dtype.kind, {classes.dtype.kind, labels.dtype.kind}
    if kinds & {"m", "M"} and len(kinds) > 1 and kind != "O":
        return np.full(len(labels), -1)  # times are no numbers, though those of ns become such
    if kind == labels.dtype.kind and kind in "mM":
        unit = np.result_type(labels, classes)
        labels, classes = labels.astype(unit).view(np.int64), classes.astype(unit).view(np.int64)
    known = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([known.get(label, -1) for label in labels.tolist()], dtype=np.int64)


def listed(labels: np.ndarray) -> list[Any]:
    """Return labels as errors show them: times as dates, which are numbers to Python."""
    return list(map(str, labels)) if labels.dtype.kind in "mM" else labels.tolist()


def read_indicator(y: np.ndarray, name: str) -> np.ndarray:
    """Return 1 where a row has a label, 0 where not, NaN where that is not known.

    Float64, shape (n_samples, n_labels). ValueError for any other value, with the remedy.
    """
    try:
        is_text = y.dtype.kind in "USmM"
        indicator = (y[:0] if is_text else y).astype(np.float64)
        values = set(y.flat if is_text else np.unique(indicator[~np.isnan(indicator)]).tolist())
    except (TypeError, ValueError):  # objects that are no numbers
        values = set(y.flat)
    others = sorted(map(str, values - {0.0, 1.0}))
    if others:
        raise ValueError(
            f"{name} has {y.shape[1]} columns and the value {others[0]}: each column is a label "
            "that rows have (1) or have not (0; NaN: not known). For several targets of any "
            "classes, use sklearn.multioutput.MultiOutputClassifier(XGBClassifierLite()); "
            f"{_PROBABILITIES}"
        )
    return indicator


# --- numbers


def check_target_range(y: np.ndarray, name: str) -> None:
    """Raise ValueError if the targets are too large or too close together for float32 gradients.

    Of several targets, shape (n_samples, n_targets), each is checked; NaN is let pass.
    """
    for number, column in enumerate(np.atleast_2d(y.T)):
        # these know no NaN, and make no array
        least = float(np.fmin.reduce(column, initial=np.nan))
        most = float(np.fmax.reduce(column, initial=np.nan))
        _check_range(least, most, name if y.ndim == 1 else f"{name}[:, {number}]")


def _check_range(least: float, most: float, name: str) -> None:
    largest = max(abs(least), abs(most))
    if largest > _LARGEST_TARGET:
        raise ValueError(
            f"{name} contains {largest:g}: targets beyond {_LARGEST_TARGET:g} are not supported; "
            "divide it by a constant"
        )
    spread = most - least
    if 0.0 < spread < _SMALLEST_SPREAD:
        raise ValueError(
            f"{name} varies by {spread:g} only, less than {_SMALLEST_SPREAD:g}; multiply it by a "
            "constant"
        )
