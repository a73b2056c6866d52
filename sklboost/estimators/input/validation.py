"""Checks and conversions of the data a user gives, to what the engine takes."""

from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import Features
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.estimators.fit.evaluation_sets import FitArguments, GivenSet
from sklboost.estimators.input.check_features import (
    FEATURE_CHECKS,
    SHAPE_CHECKS,
    check_number_of_rows,
    features,
    given_source,
    read_source,
)
from sklboost.estimators.input.feature_names import remember_names
from sklboost.estimators.input.feature_tables import (
    Encodings,
    check_same_reading,
    fit_table,
    remember_encodings,
    settings_of,
    shape_of,
    unless_plain,
)
from sklboost.estimators.input.rows import Rows
from sklboost.estimators.input.several_targets import (
    check_known,
    has_columns,
    known_rows,
    read_columns,
)
from sklboost.estimators.input.targets import check_targets
from sklboost.estimators.parameters.rules import is_integer

# Gradients are float32: beyond these they would overflow, or vanish, without a word.
_LARGEST_TARGET = 1e30
_SMALLEST_SPREAD = 1e-30

# Sums of weights, and of weights times gradients, stay normal numbers within these.
_WEIGHT_RANGE = (1e-100, 1e100)


def training_data(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    given: FitArguments,
    *,
    numeric: bool,
    encodings: Encodings = None,
) -> Rows:
    """Check what training is to learn from, remember the features, drop rows of weight 0.

    `encodings` are those of a model that is continued, if it has any.

    Raises
    ------
    ValueError
        For wrong shapes or lengths, no rows, targets or weights that are NaN or infinite, negative
        weights, weights that are all 0, a column of targets none of which is known.
    """
    if isinstance(X, BinnedMatrix):
        _, y = _with_targets(estimator, X.bins, y, numeric, SHAPE_CHECKS)
        _remember_binning(estimator, X, encodings)
    else:
        X, y = _features_and_targets(estimator, X, y, numeric, encodings)
        if isinstance(X, FrameAdapter):
            weight = _learning_weights(y, given.sample_weight)
            X, encodings = fit_table(X, settings_of(estimator), weight, encodings)
        else:
            encodings = None
        remember_encodings(estimator, encodings)
        estimator._binning_digest = None
    groups = np.empty(0) if given.groups is None else np.asarray(given.groups)
    if given.groups is not None and groups.shape != (len(X),):
        raise ValueError(
            f"groups has shape {groups.shape}: it must be 1-D, one label for each of the {len(X)} "
            "rows of X"
        )
    margin = base_margins(given.base_margin, X, "")
    rows = Rows(X, y, np.empty(0), margin, groups=groups)
    rows = _used(rows, given.sample_weight, "sample_weight")
    check_known(rows.y, "every row of positive weight: leave this target out")
    return rows


def _features_and_targets(
    estimator: BaseEstimator, X: Any, y: Any, numeric: bool, encodings: Encodings
) -> tuple[FrameAdapter | np.ndarray, np.ndarray]:
    """Check raw values and targets, and remember number and names of the features."""
    settings = settings_of(estimator)
    source, names = given_source(estimator, X, settings, encodings)
    if isinstance(source, FrameAdapter):
        _, y = _with_targets(estimator, shape_of(source), y, numeric, SHAPE_CHECKS)
    else:
        source, y = _with_targets(estimator, source, y, numeric, FEATURE_CHECKS)
    remember_names(estimator, names)
    source = read_source(source, settings, encodings)
    check_number_of_rows(source)
    return source, y


def _learning_weights(y: np.ndarray, sample_weight: Any) -> np.ndarray:
    """Give the weights of rows in learning what values there are: 0 for rows that are left out."""
    weight = known_rows(y).astype(np.float64)
    return weight if sample_weight is None else weight * row_weights(sample_weight, y)


def _with_targets(
    estimator: BaseEstimator, X: Any, y: Any, numeric: bool, checks: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Check features and targets, and remember number and names of the features."""
    if not has_columns(y):
        check_targets(y, "y", numeric=numeric)
        return validate_data(estimator, X, y, y_numeric=numeric, **checks)
    X = validate_data(estimator, X, **checks)
    y = read_columns(y, "y", numeric=numeric)
    check_consistent_length(X, y)
    return X, y


def validation_data(estimator: BaseEstimator, given: GivenSet, *, numeric: bool) -> Rows:
    """Check rows that are to be scored during training; drop those of weight 0, or no target.

    Raises
    ------
    ValueError
        As for the training data, and for other features.
    """
    name = given.argument
    X = features(estimator, given.X, name)
    if has_columns(given.y):
        y = read_columns(given.y, f"y of {name}", numeric=numeric)
    else:
        kind = "numeric" if numeric else None
        check_targets(given.y, f"y of {name}", numeric=numeric)
        y = check_array(given.y, dtype=kind, ensure_2d=False, input_name=f"y of {name}")
        y = column_or_1d(y)
    if len(y) != len(X):
        raise ValueError(f"{name} has {len(X)} rows, but its y has {len(y)}: pass one for each")
    margin = base_margins(given.base_margin, X, f" of {name}")
    rows = Rows(X, y, np.empty(0), margin)
    rows = _used(rows, given.sample_weight, f"sample_weight of {name}")
    if len(rows.y) == 0:
        raise ValueError(f"y of {name} is NaN, not known, in every row of positive weight")
    return rows


def _used(rows: Rows, sample_weight: Any, name: str) -> Rows:
    """Put the weights to the rows; leave out rows of weight 0, and those of no known target."""
    kept = known_rows(rows.y)
    if sample_weight is not None:
        rows = rows._replace(weight=row_weights(sample_weight, rows.X, name))
        kept &= rows.weight > 0.0
    return rows.take(kept)


def base_margins(base_margin: Any, X: Any, of: str) -> np.ndarray:
    """Give raw scores to start from as float64, shape (n_samples, n_outputs), or empty for None."""
    if base_margin is None:
        return np.empty((0, 0))
    name = f"base_margin{of}"
    margin = check_array(
        base_margin, dtype=np.float64, ensure_2d=False, allow_nd=True, input_name=name
    )
    if margin.ndim == 1:
        margin = margin[:, np.newaxis]
    if margin.ndim != 2 or len(margin) != len(X):
        raise ValueError(
            f"{name} has shape {np.shape(base_margin)}: it must be one raw score for each of the "
            f"{len(X)} rows, or one for each row and class or target"
        )
    return margin


def check_margin_outputs(margin: np.ndarray, n_outputs: int) -> None:
    """Raise ValueError unless there is a margin for every output."""
    if len(margin) > 0 and margin.shape[1] != n_outputs:
        raise ValueError(
            f"base_margin has {margin.shape[1]} column(s), but the model has {n_outputs} raw "
            "score(s) a row: one for each target, or label, or class of more than two"
        )


def _remember_binning(estimator: BaseEstimator, X: BinnedMatrix, encodings: Encodings) -> None:
    binning = X.binning
    if X.max_bin != estimator.max_bin:
        raise ValueError(
            f"max_bin={estimator.max_bin}, but X was binned with max_bin={X.max_bin}: set both to "
            "the same, or pass the raw values (to search for the best max_bin, for instance)"
        )
    remember_names(estimator, binning.feature_names)
    check_same_reading(binning.encodings, binning.missing, settings_of(estimator), X)
    if encodings is not None and repr(unless_plain(encodings)) != repr(binning.encodings):
        raise ValueError(
            f"{X!r} numbers its categories in another way than the model that is continued: pass "
            "the raw values"
        )
    remember_encodings(estimator, binning.encodings)
    estimator._binning_digest = binning.digest


def row_weights(sample_weight: Any, X: Features, name: str = "sample_weight") -> np.ndarray:
    """Give the weights as float64, shape (n_samples,); a single number counts for every row."""
    if isinstance(sample_weight, Real):
        sample_weight = np.full(len(X), sample_weight)
    weight = check_array(sample_weight, dtype=np.float64, ensure_2d=False, input_name=name)
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


def check_target_range(y: np.ndarray, name: str) -> None:
    """Raise ValueError if the targets are too large or too close together for float32 gradients.

    Of several targets, shape (n_samples, n_targets), each is looked at; NaN is let pass.
    """
    for number, column in enumerate(np.atleast_2d(y.T)):
        _check_range(column[~np.isnan(column)], name if y.ndim == 1 else f"{name}[:, {number}]")


def _check_range(y: np.ndarray, name: str) -> None:
    largest = float(np.abs(y).max(initial=0.0))
    if largest > _LARGEST_TARGET:
        raise ValueError(
            f"{name} contains {largest:g}: targets beyond {_LARGEST_TARGET:g} are not supported; "
            "divide it by a constant"
        )
    spread = float(np.ptp(y)) if len(y) else 0.0
    if 0.0 < spread < _SMALLEST_SPREAD:
        raise ValueError(
            f"{name} varies by {spread:g} only, less than {_SMALLEST_SPREAD:g}; multiply it by a "
            "constant"
        )


def check_iteration_range(iteration_range: Any, n_rounds: int) -> None:
    """Raise ValueError unless it is a pair of round numbers of a model with so many rounds."""
    is_pair = isinstance(iteration_range, tuple | list) and len(iteration_range) == 2
    if is_pair and all(map(is_integer, iteration_range)):
        first, stop = iteration_range
        if 0 <= first < (stop or n_rounds) <= n_rounds:
            return
    raise ValueError(
        f"iteration_range={iteration_range!r}: it must be the first round and the one after the "
        f"last, 0 <= first < last <= {n_rounds}; a last of 0 stands for {n_rounds}, all rounds"
    )
