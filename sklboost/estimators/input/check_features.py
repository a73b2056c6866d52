"""Features as a user gives them, checked and brought to one of the forms that the engine takes.

In: an array, a frame, a list, a sparse matrix or a BinnedMatrix. Out: a float array as it is, a
:class:`~sklboost.data.sparse_table.SparseTable`, the BinnedMatrix, or a
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
from sklboost.data.table import Column, Table
from sklboost.estimators.input.feature_names import fitted_names, given_names, order_of_fit
from sklboost.estimators.input.feature_tables import (
    Encodings,
    FeatureSettings,
    encoded_table,
    needs_table,
    settings_of,
    shape_of,
    source_of,
)
from sklboost.estimators.input.sparse_input import check_exact, read_sparse

# Beyond, the 32 bits of a gradient sum leave a row less than two steps.
_MOST_ROWS = 2**29

# NaN is a missing value and infinity an ordinary one, so neither is an error.
FEATURE_CHECKS: dict[str, Any] = {
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
    "accept_sparse": "csr",
}
# Only the shape is to be checked: of bins, which are integers, and of tables.
SHAPE_CHECKS: dict[str, Any] = {"dtype": None, "ensure_all_finite": False}


def given_source(
    estimator: BaseEstimator, X: Any, settings: FeatureSettings, encodings: Encodings
) -> tuple[Any, np.ndarray | None]:
    """Find out how features for a fit are to be read, and check their names.

    Returns
    -------
    source : FrameAdapter, ndarray or object
        As :func:`~sklboost.estimators.input.feature_tables.source_of` gives it.
    names : ndarray of object, shape (n_features,), or None

    Raises
    ------
    TypeError, ValueError
        If names are not all strings but some are, or if columns have the same name.
    """
    check_exact(X)
    columns = adapter_for(X)
    if columns is None:
        return X, given_names(X)
    check_names(columns.names or ())
    validate_data(estimator, X, skip_check_array=True)  # the names, in the words of scikit-learn
    return source_of(columns, settings, encodings), given_names(X)


def read_source(X: Any, settings: FeatureSettings, encodings: Encodings) -> Any:
    """Give checked features as a FrameAdapter if their columns have to be looked at one by one.

    Sparse ones become a SparseTable.
    """
    if isinstance(X, FrameAdapter):
        return X
    if issparse(X):
        return read_sparse(X, settings, encodings)
    if needs_table(settings, encodings):
        return ArrayTable(X)
    # what is contiguous in neither order is copied here, not again at every stage
    return X if X.flags.forc else np.ascontiguousarray(X)


def named_features(
    X: Any, settings: FeatureSettings, function_name: str
) -> tuple[Any, np.ndarray | None]:
    """Check X as for a fit, though there is no estimator; give its source and the names."""
    nobody = BaseEstimator()
    source, names = given_source(nobody, X, settings, None)
    if isinstance(source, FrameAdapter):
        validate_data(nobody, shape_of(source), estimator=function_name, **SHAPE_CHECKS)
    else:
        source = validate_data(nobody, source, estimator=function_name, **FEATURE_CHECKS)
    source = read_source(source, settings, None)
    check_number_of_rows(source)
    return source, names


def check_number_of_rows(source: FrameAdapter | np.ndarray) -> None:
    """Raise ValueError if there are more rows than gradients can be summed up of."""
    n_rows = source.n_rows if isinstance(source, FrameAdapter) else len(source)
    if n_rows > _MOST_ROWS:
        raise ValueError(f"X has {n_rows:,} rows: at most {_MOST_ROWS:,} are supported")


def features(estimator: BaseEstimator, X: Any, name: str = "X") -> Features:
    """Check features other than those of the fit: the same number and names, or the same bins.

    Parameters
    ----------
    estimator : estimator
        It remembers what it was fitted with.
    X : array-like of shape (n_samples, n_features)
        The columns of a frame may have any order.
    name : str
        Of the argument, for errors.

    Returns
    -------
    ndarray of float32 or float64, Table or BinnedMatrix; shape (n_samples, n_features)

    Raises
    ------
    TypeError, ValueError
        For what is no table of features, no rows, other features than those of the fit, or of other
        kinds. For unknown categories, if the estimator wants that.

    Warns
    -----
    UnknownCategoryWarning
        If there are unknown categories, unless that is an error.
    """
    if _is_plain(estimator, X):
        return X
    try:
        if isinstance(X, BinnedMatrix):
            return _checked_bins(estimator, X)
        return _checked_features(estimator, X, name)
    except (TypeError, ValueError) as error:
        if name == "X":  # as scikit-learn calls it
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def _checked_bins(estimator: BaseEstimator, X: BinnedMatrix) -> BinnedMatrix:
    if X.binning.digest != estimator._binning_digest:
        raise ValueError(
            f"{X!r} has other cut points or feature names than the data that this "
            f"{type(estimator).__name__} was fitted with, or fit was given raw values: pass the "
            "raw values, or rows of the BinnedMatrix that fit had its rows from"
        )
    check_array(X.bins, estimator=estimator, **SHAPE_CHECKS)
    return X


def _checked_features(estimator: BaseEstimator, X: Any, name: str) -> Features:
    settings, encodings = settings_of(estimator), estimator._encodings
    check_exact(X)
    columns = adapter_for(X)
    source = X if columns is None else source_of(columns, settings, encodings)
    order = order_of_fit(X, fitted_names(estimator))
    if not isinstance(source, FrameAdapter) or source.n_rows == 0 or source.n_columns == 0:
        shape = source if not isinstance(source, FrameAdapter) else shape_of(source)
        if columns is None and order is None:
            source = validate_data(estimator, X, reset=False, **FEATURE_CHECKS)
        else:
            source = check_array(shape, estimator=estimator, input_name="X", **FEATURE_CHECKS)
    if order is None:
        if columns is not None:
            check_names(columns.names or ())
            validate_data(estimator, X, reset=False, skip_check_array=True)
        order = range(estimator.n_features_in_)
    source = read_source(source, settings, encodings)
    if isinstance(source, FrameAdapter):
        return encoded_table(source, order, settings, encodings, name)
    return _in_order(source, list(order))


def _in_order(X: np.ndarray, order: list[int]) -> np.ndarray | Table:
    """Put columns in order, without a copy."""
    if order == list(range(X.shape[1])):
        return X
    return Table([Column(X[:, i]) for i in order], np.zeros(len(order), dtype=np.int64))


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Tell whether `X` is an array that all of scikit-learn's checks would give back as it is.

    They take longer than the prediction of one row.
    """
    return (
        type(X) is np.ndarray
        and (X.dtype == np.float64 or X.dtype == np.float32)  # in the order of this machine's bytes
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and X.flags.forc
        and not hasattr(estimator, "feature_names_in_")
        and estimator._encodings is None
        and math.isnan(estimator.missing)
    )


def check_has_values(X: Features) -> None:
    """Raise ValueError for a BinnedMatrix: leaves that are linear in the values need the values."""
    if isinstance(X, BinnedMatrix):
        raise ValueError(
            f"{X!r} has no values, only the numbers of their bins, and linear leaves (linear_tree="
            "True) multiply values: pass the raw values"
        )
