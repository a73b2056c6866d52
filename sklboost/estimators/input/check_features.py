"""Features as users give them, checked and brought to one of the forms that the engine takes.

An array, a frame, a list, a sparse matrix or a BinnedMatrix becomes a float array (itself where
possible), a :class:`~sklboost.data.sparse_table.SparseTable`, a BinnedMatrix, or a
:class:`~sklboost.data.table.Table` of anything else. Shapes, names and numbers of features are
checked by scikit-learn, in its words.
"""

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import Features
from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.frames.checks import check_names
from sklboost.data.frames.numpy_arrays import ArrayTable
from sklboost.data.sparse_table import SparseTable, check_exact, sparse_table
from sklboost.data.table import Column, Table
from sklboost.estimators.input.feature_names import (
    Encodings,
    FittedFeatures,
    given_names,
    order_of_fit,
)
from sklboost.estimators.input.feature_tables import (
    FeatureSettings,
    encoded_table,
    feature_settings,
    needs_table,
    shape_of,
    unless_plain,
)
from sklboost.estimators.parameters.groups import Parameters

# Beyond, the 32 bits of a gradient sum leave a row less than two steps.
_MOST_ROWS = 2**29
# The bins of bin_features have a place for every value, stored or not.
_MOST_BIN_BYTES = 2**28

# NaN is a missing value and infinity an ordinary one, so neither is an error.
FEATURE_CHECKS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
    "accept_sparse": "csr",
}
# Only the shape is to be checked: of bins, which are integers, and of tables.
SHAPE_CHECKS: dict[str, Any] = {"dtype": None, "ensure_all_finite": False}


def fit_source(
    X: Any, settings: FeatureSettings, encodings: Encodings
) -> tuple[Any, np.ndarray | None]:
    """Check raw features for a fit; return what they are read from, and their names.

    The source is a FrameAdapter if columns have to be looked at one by one, else a float array or a
    SparseTable. The names, ndarray of object, are None if the user gave none.
    """
    check_exact(X)
    fitted = BaseEstimator()  # scikit-learn checks names for an estimator, and sets them on it
    columns, source = adapter_for(X), X
    if columns is not None:
        check_names(columns.names or ())
        validate_data(fitted, X, skip_check_array=True)
        source = _source_of(columns, settings, encodings)
    names = given_names(X)
    if isinstance(source, FrameAdapter):
        validate_data(fitted, shape_of(source), estimator=settings.caller, **SHAPE_CHECKS)
    else:
        source = validate_data(fitted, source, estimator=settings.caller, **FEATURE_CHECKS)
        names = getattr(fitted, "feature_names_in_", None) if names is None else names
        source = _read_array(source, settings, encodings)
    check_number_of_rows(source)
    return source, names


def check_number_of_rows(source: FrameAdapter | np.ndarray) -> None:
    """Raise ValueError if there are more rows than gradients can be summed up of."""
    n_rows = source.n_rows if isinstance(source, FrameAdapter) else len(source)
    if n_rows > _MOST_ROWS:
        raise ValueError(f"X has {n_rows:,} rows: at most {_MOST_ROWS:,} are supported")


def features(
    parameters: Parameters,
    fitted: FittedFeatures,
    X: Any,
    name: str = "X",
    *,
    by_position: bool = False,
) -> Features:
    """Check features for a fitted estimator, as :func:`read_features` does.

    `by_position`: columns are in the order of the fit, whatever their names.
    """
    if _is_plain(fitted, X):
        return X
    settings = feature_settings(type(parameters).__name__, parameters)
    if by_position and not isinstance(X, BinnedMatrix):
        fitted, X = fitted._replace(names=None), adapter_for(X) or X  # an adapter has columns only
    return read_features(X, fitted, settings, name)


@np.errstate(all="ignore")
def read_features(
    X: Any, fitted: FittedFeatures, settings: FeatureSettings, name: str = "X"
) -> Features:
    """Check features other than those of the fit: the same number and names, or the same bins.

    The columns of a frame may have any order. `name` is that of the argument, for errors: TypeError
    or ValueError for other features than those of the fit, or of other kinds, and for unknown
    categories, if the settings want that; else these are an UnknownCategoryWarning. What is missing
    and what a category stays as it was at fit, whatever the settings say now.
    """
    settings = settings._replace(missing=fitted.missing, categorical_features=None)
    try:
        if isinstance(X, BinnedMatrix):
            return _checked_bins(X, fitted)
        return _checked_values(X, fitted, settings, name)
    except (TypeError, ValueError) as error:
        if name == "X":  # as scikit-learn calls it
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def _checked_bins(X: BinnedMatrix, fitted: FittedFeatures) -> BinnedMatrix:
    if X.binning.digest != fitted.binning_digest:
        raise ValueError(
            f"{X!r} has other cut points or feature names than the data that this "
            f"{fitted.estimator_name} was fitted with, or fit was given raw values: pass the "
            "raw values, or rows of the BinnedMatrix that fit had its rows from"
        )
    check_array(X.bins, estimator=fitted.estimator_name, **SHAPE_CHECKS)
    return X


def _checked_values(
    X: Any, fitted: FittedFeatures, settings: FeatureSettings, name: str
) -> Features:
    check_exact(X)
    columns, encodings, caller = adapter_for(X), fitted.encodings, fitted.estimator_name
    source = X if columns is None else _source_of(columns, settings, encodings)
    order = order_of_fit(X, fitted.listed_names)
    if not isinstance(source, FrameAdapter) or source.n_rows == 0 or source.n_columns == 0:
        if columns is None and order is None:
            source = validate_data(_as_estimator(fitted), X, reset=False, **FEATURE_CHECKS)
        else:
            shape = shape_of(source) if isinstance(source, FrameAdapter) else source
            source = check_array(shape, estimator=caller, input_name="X", **FEATURE_CHECKS)
    if order is None:
        if columns is not None:
            check_names(columns.names or ())
            validate_data(_as_estimator(fitted), X, reset=False, skip_check_array=True)
        order = range(fitted.n_features)
    if not isinstance(source, FrameAdapter):
        source = _read_array(source, settings, encodings)
    if isinstance(source, FrameAdapter):
        return encoded_table(source, order, settings, encodings, name)
    return _in_order(source, list(order))


def _as_estimator(fitted: FittedFeatures) -> BaseEstimator:
    """Return an object whose features scikit-learn compares with, and whose class it names."""
    return type(fitted.estimator_name, (BaseEstimator,), fitted.attributes)()


def _source_of(columns: FrameAdapter, settings: FeatureSettings, encodings: Encodings) -> Any:
    """Return one array of all features where that will do, else the columns."""
    matrix = None if needs_table(settings, encodings) else columns.matrix()
    return columns if matrix is None else matrix


def _read_array(X: Any, settings: FeatureSettings, encodings: Encodings) -> Any:
    """Return what checked features are read from; sparse ones become a SparseTable."""
    if issparse(X):
        return _read_sparse(X, settings, encodings)
    if needs_table(settings, encodings):
        return ArrayTable(X)
    # what is contiguous in neither order is copied here, not again at every stage
    return X if X.flags.forc else np.ascontiguousarray(X)


def _in_order(X: np.ndarray, order: list[int]) -> np.ndarray | Table:
    """Put columns in order, without a copy."""
    if order == list(range(X.shape[1])):
        return X
    return Table([Column(X[:, i]) for i in order], np.zeros(len(order), dtype=np.int64))


def _is_plain(fitted: FittedFeatures, X: Any) -> bool:
    """Whether `X` is an array that all of scikit-learn's checks would return as it is.

    They take longer than the prediction of one row.
    """
    return (
        type(X) is np.ndarray
        and (X.dtype == np.float64 or X.dtype == np.float32)  # in the order of this machine's bytes
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == fitted.n_features
        and X.flags.forc
        and fitted.names is None
        and fitted.encodings is None
        and math.isnan(fitted.missing)
    )


# --- sparse matrices of scipy


def _read_sparse(X: Any, settings: FeatureSettings, encodings: Encodings) -> SparseTable:
    """Read a CSR matrix or array of floats; ValueError if its values are not plain numbers."""
    check_sparse(settings, encodings)
    table = sparse_table(X)
    return table.with_missing(settings.missing) if settings.has_marker else table


def check_sparse(settings: FeatureSettings, encodings: Encodings) -> None:
    """Raise ValueError if sparse features were to be anything but plain numbers."""
    if settings.missing == 0.0:
        raise ValueError(
            "missing=0, and X is sparse: whatever is not stored would be missing, and here an "
            "absent value is 0; leave `missing` as it is, or pass X.toarray()"
        )
    if unless_plain(encodings) is not None:
        raise ValueError(
            "X is sparse, and the model was fitted with features that are not just numbers "
            "(categories, times, or integers beyond 2^53): pass them as they were at fit"
        )
    if needs_table(settings._replace(missing=np.nan), None):
        raise ValueError(
            f"categorical_features={settings.categorical_features!r}, and X is sparse: its "
            "features are numbers; encode these categories one-hot, which costs nothing here, or "
            "pass a frame"
        )


# --- what some uses cannot take


def check_has_values(X: Features) -> None:
    """Raise ValueError for a BinnedMatrix: leaves that are linear in the values need the values."""
    if isinstance(X, BinnedMatrix):
        raise ValueError(
            f"{X!r} has no values, only the numbers of their bins, and linear leaves (linear_tree="
            "True) multiply values: pass the raw values"
        )


def check_is_dense(X: Features) -> None:
    """Raise ValueError for sparse features: leaves that are linear in them read every value."""
    if isinstance(X, SparseTable):
        raise ValueError(
            f"{X!r}: linear leaves (linear_tree=True) are not for sparse input; pass X.toarray(), "
            "or set linear_tree=False"
        )


def check_is_small(X: Features, max_bin: int) -> None:
    """Raise ValueError for sparse features whose bins would fill the memory."""
    if isinstance(X, SparseTable):
        check_bins_are_small(
            X.shape, max_bin, f"{X!r}: bin_features", "pass X itself to fit, which"
        )


def check_bins_are_small(shape: tuple[int, int], max_bin: int, who: str, remedy: str) -> None:
    """Raise ValueError if the bins of sparse features of this shape would fill the memory."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * (1 if max_bin <= 256 else 2)
    if n_bytes > _MOST_BIN_BYTES:
        raise ValueError(
            f"{who} gives each value a place, stored or not, and here that would be "
            f"{n_bytes / 2**30:.1f} GiB; {remedy} takes memory only for what is stored"
        )
