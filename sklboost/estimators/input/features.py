"""Features as users give them, checked and brought to one of the forms that the engine takes.

A fit reads them with :func:`fit_source` and :func:`fit_table`, which learns what text, categories
and times become; predictions and scores with :func:`features`.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.cuts import exact_weights
from sklboost.data.dates import warning_of_dates
from sklboost.data.encoding import Encoding, encode, fit_encoding, is_category_by_itself
from sklboost.data.features import Features
from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import FrameAdapter, check_kinds, check_names, kind_changed
from sklboost.data.frames.numpy_arrays import PLAIN, ArrayTable
from sklboost.data.sparse_table import check_exact, sparse_table
from sklboost.data.table import Column, Table
from sklboost.estimators.input.feature_names import (
    Encodings,
    FittedFeatures,
    feature_keys,
    given_names,
    order_of_fit,
    read_categories,
)
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.boosters import Parameters
from sklboost.estimators.parameters.rules import value_of
from sklboost.files.values import NotStorableError, value_document

# Columns that an error lists.
_MOST_NAMED = 10
# More distinct text than this, and than this share of the values, names the rows.
_FEW_CATEGORIES, _MOST_DISTINCT = 20, 0.5
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


class UnknownCategoryWarning(UserWarning):
    """Some values of categories do not occur in the training; they count as missing.

    It names the line of code that predicts. In the processes and threads of a search each worker
    warns for itself.
    """


class FeatureSettings(NamedTuple):
    """The parameters that say how features are read."""

    caller: str  # the estimator's class or the function, for errors
    categorical_features: Any
    enable_categorical: bool
    unknown_category: str
    missing: float
    max_bin: int


def feature_settings(caller: str, parameters: Parameters) -> FeatureSettings:
    """Return the settings of an estimator of the class `caller`."""
    values = {name: value_of(parameters, name) for name in FeatureSettings._fields[1:]}
    return FeatureSettings(caller, **values)


# --- features of a fit


def fit_source(
    X: Any, settings: FeatureSettings, encodings: Encodings
) -> tuple[Any, np.ndarray | None]:
    """Check raw features for a fit; return what they are read from, and their names, or None.

    The source is a FrameAdapter if columns have to be looked at one by one, else a float array or a
    SparseTable.
    """
    if issparse(X):
        check_exact(X)
    fitted = BaseEstimator()  # scikit-learn checks names for an estimator, and sets them on it
    columns, source = adapter_for(X), X
    if columns is not None:
        check_names(columns.names or ())
        validate_data(fitted, X, skip_check_array=True)
        source = _source_of(columns, settings, encodings)
    names = None if columns is None else given_names(X)
    if isinstance(source, FrameAdapter):
        validate_data(fitted, shape_of(source), estimator=settings.caller, **SHAPE_CHECKS)
    else:
        source = validate_data(fitted, source, estimator=settings.caller, **FEATURE_CHECKS)
        names = getattr(fitted, "feature_names_in_", None) if names is None else names
        source = _read_array(source, settings, encodings)
    return source, names


def fit_table(
    source: FrameAdapter, settings: FeatureSettings, weight: np.ndarray, encodings: Encodings
) -> tuple[Table, Encodings]:
    """Make the table of a fit, and learn how its values become numbers.

    Nothing is learnt of rows of weight 0. `encodings` are those of a model that the fit continues,
    which stay as they are, or None.
    """
    if encodings is None:
        exact = exact_weights(weight)
        encodings = fit_encodings(source, settings, [exact] * source.n_columns, exact)
    else:
        check_kinds(source, range(source.n_columns))  # what may be a category is known
    table = encoded_table(source, range(source.n_columns), settings, encodings, "X")
    return table, unless_plain(encodings)


def fit_encodings(
    source: FrameAdapter,
    settings: FeatureSettings,
    weights: Sequence[np.ndarray],
    weight: np.ndarray,
) -> tuple[Encoding, ...]:
    """Learn how the values of each column become numbers, as :func:`fit_table` does.

    `weights` are the weights of the rows of each column, such that sums of them are exact. `weight`
    are those of the rows of the fit: others where a column has each of its values once.
    """
    columns = range(source.n_columns)
    names = feature_keys(source.names, source.n_columns)
    by_content = is_auto(settings)
    declared = read_categories(settings.categorical_features, names)
    check_kinds(source, columns if by_content else declared)
    found = [i for i in columns if source.column(i).kind == "category" or i in declared]
    if not isinstance(settings.categorical_features, str) and settings.enable_categorical:
        # categories that the user does not list are the numbers that they are
        left = [i for i in found if i not in declared and not source.read_as_numbers(i)]
        if left:
            raise ValueError(
                "categorical_features does not list columns whose categories are not numbers: "
                f"{_listed(source, left)}. List them, turn them into numbers (their codes, if "
                'their order means something), or set it to "from_dtype"'
            )
    encodings = tuple(
        fit_encoding(source, i, weights[i], settings.missing, i in declared, is_auto=by_content)
        for i in columns
    )
    if by_content:
        found = [i for i in columns if encodings[i].n_categories > 0]
    if found and not settings.enable_categorical:
        raise ValueError(
            f"enable_categorical=False, but there are categories: {_listed(source, found)}. Set "
            "it to True, or turn them into numbers"
        )
    if by_content:
        mean = float(weight.sum() / (weight > 0.0).sum())
        _check_are_few(source, encodings, weights, mean)
        _warn_of_categories(source, encodings)
    return encodings


def _check_are_few(
    source: FrameAdapter,
    encodings: Sequence[Encoding],
    weights: Sequence[np.ndarray],
    mean: float,
) -> None:
    """Raise ValueError if columns of text name the rows instead of telling what they share."""
    for i, encoding in enumerate(encodings):
        column, n_distinct = source.column(i), len(encoding.categories)
        if column.kind not in ("text", "mixed") or n_distinct <= _FEW_CATEGORIES:
            continue
        n_values = round(float(weights[i][column.categories()[0] >= 0].sum()) / mean)
        if n_distinct > _MOST_DISTINCT * n_values:
            hint = ""
            if all(map(_is_numeric, encoding.categories)):
                hint = "convert it to numbers, as pandas.to_numeric does, "
            raise ValueError(
                f"{source.label(i)} ({column.dtype_name}) has {n_distinct:,} distinct values among "
                f"{n_values:,}, such as {encoding.categories[0]!r}: categories that nearly every "
                f"row has for itself teach nothing about other rows; {hint}leave it out, make "
                "features of what is in it, or list the categories in categorical_features, this "
                "column among them"
            )


def _warn_of_categories(source: FrameAdapter, encodings: Sequence[Encoding]) -> None:
    """Warn of categories, not asked for, many of which are dates, or that no file can hold."""
    for i, encoding in enumerate(encodings):
        column = source.column(i)
        if encoding.n_categories == 0 or column.kind not in ("text", "mixed"):
            continue
        of_dates = warning_of_dates(column)
        if of_dates:
            warn_user(f"{source.label(i)}: {of_dates}")
        if column.kind == "mixed":
            try:
                value_document(encoding.categories)
            except NotStorableError as error:
                warn_user(
                    f"categories of {source.label(i)}: {error}, so save_model will refuse this "
                    "model: turn them into text, or keep the model with pickle"
                )


def _is_numeric(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _listed(source: FrameAdapter, columns: list[int]) -> str:
    return ", ".join(f"{source.label(i)} ({source.column(i).dtype_name})" for i in columns)


def binned_features(
    X: BinnedMatrix, settings: FeatureSettings, encodings: Encodings
) -> FittedFeatures:
    """Return what a fit remembers of features that were binned before."""
    binning, missing = X.binning, X.binning.missing
    if X.max_bin != settings.max_bin:
        raise ValueError(
            f"max_bin={settings.max_bin}, but X was binned with max_bin={X.max_bin}: set both to "
            "the same, or pass the raw values (to search for the best max_bin, for instance)"
        )
    if not (missing == settings.missing or (math.isnan(missing) and math.isnan(settings.missing))):
        raise ValueError(
            f"missing={settings.missing}, but X was binned with missing={missing}: set both to "
            "the same"
        )
    names = feature_keys(binning.feature_names, X.shape[1])
    numbered = enumerate(binning.encodings or ())
    found = {i for i, encoding in numbered if encoding.kind == "category"}
    declared = found
    if not isinstance(settings.categorical_features, str):
        declared = read_categories(settings.categorical_features, names)
    if declared != found or (found and not settings.enable_categorical):
        raise ValueError(
            f"X was binned with the categories {[names[i] for i in sorted(found)]}, and this "
            "estimator is to have others: leave categorical_features and enable_categorical as "
            "they are, and say in bin_features which features are categories"
        )
    if encodings is not None and repr(unless_plain(encodings)) != repr(binning.encodings):
        raise ValueError(
            f"{X!r} numbers its categories in another way than the model that is continued: pass "
            "the raw values"
        )
    return FittedFeatures(
        estimator_name=settings.caller,
        n_features=X.shape[1],
        names=binning.feature_names,
        encodings=binning.encodings,
        binning_digest=binning.digest,
        missing=missing,
    )


# --- features to be predicted or scored


def features(
    parameters: Parameters,
    fitted: FittedFeatures,
    X: Any,
    name: str = "X",
    *,
    by_position: bool = False,  # columns are in the order of the fit, whatever their names
) -> Features:
    """Check features for a fitted estimator, as :func:`read_features` does."""
    if (
        # an array that all of scikit-learn's checks would return as it is: they take longer than
        # the prediction of one row
        type(X) is np.ndarray
        and (X.dtype == np.float64 or X.dtype == np.float32)  # in the order of this machine's bytes
        and X.ndim == 2
        and len(X) > 0
        and X.shape[1] == fitted.n_features
        and X.flags.forc
        and fitted.encodings is None
        and math.isnan(fitted.missing)
    ):
        if fitted.names is not None and not by_position:
            _warn_of_names(fitted, has_names=False)
        return X
    settings = feature_settings(type(parameters).__name__, parameters)
    if by_position and not isinstance(X, BinnedMatrix):
        fitted, X = fitted._replace(names=None), adapter_for(X) or X  # an adapter has columns only
    return read_features(X, fitted, settings, name)


def _warn_of_names(fitted: FittedFeatures, *, has_names: bool) -> None:
    """Warn as scikit-learn's checks do if names are on one side only.

    Theirs forget that they have, and warn again at every call. `has_names`: as strings, in X.
    """
    name, had_names = fitted.estimator_name, "feature_names_in_" in fitted.attributes
    if had_names and not has_names:
        warn_user(f"X does not have valid feature names, but {name} was fitted with feature names")
    elif has_names and not had_names:
        warn_user(f"X has feature names, but {name} was fitted without feature names")


@np.errstate(all="ignore")
def read_features(
    X: Any, fitted: FittedFeatures, settings: FeatureSettings, name: str = "X"
) -> Features:
    """Check features to be predicted or scored: the same number and names as at fit, or its bins.

    The columns of a frame may have any order. Missing values and categories stay as they were at
    fit, whatever the settings say now.
    """
    settings = settings._replace(missing=fitted.missing, categorical_features=None)
    try:
        if not isinstance(X, BinnedMatrix):
            return _checked_values(X, fitted, settings, name)
        if X.binning.digest != fitted.binning_digest:
            raise ValueError(
                f"{X!r} has other cut points or feature names than the data that this "
                f"{fitted.estimator_name} was fitted with, or fit was given raw values: pass the "
                "raw values, or rows of the BinnedMatrix that fit had its rows from"
            )
        check_array(X.bins, estimator=fitted.estimator_name, **SHAPE_CHECKS)
        return X
    except (TypeError, ValueError) as error:
        if name == "X":  # as scikit-learn calls it
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


def _checked_values(
    X: Any, fitted: FittedFeatures, settings: FeatureSettings, name: str
) -> Features:
    if issparse(X):
        check_exact(X)
    columns, encodings, caller = adapter_for(X), fitted.encodings, fitted.estimator_name
    source = X if columns is None else _source_of(columns, settings, encodings)
    order = order_of_fit(X, fitted.listed_names)
    if order is None:
        seen = BaseEstimator()  # on which scikit-learn sets the names, if they are any for it
        if columns is not None:
            validate_data(seen, X, skip_check_array=True)
        _warn_of_names(fitted, has_names=hasattr(seen, "feature_names_in_"))
    is_plain = type(source) is np.ndarray and source.ndim == 2 and source.dtype in PLAIN
    if not (is_plain or isinstance(source, FrameAdapter)) or 0 in source.shape:
        shape = shape_of(source) if isinstance(source, FrameAdapter) else source
        source = check_array(shape, estimator=caller, input_name="X", **FEATURE_CHECKS)
    if order is None:
        if columns is not None:
            check_names(columns.names or ())
        # the number of features, which is all that this object knows
        of_fit = type(caller, (BaseEstimator,), {"n_features_in_": fitted.n_features})()
        validate_data(of_fit, source, reset=False, skip_check_array=True)
        order = range(fitted.n_features)
    if not isinstance(source, FrameAdapter):
        source = _read_array(source, settings, encodings)
    if isinstance(source, FrameAdapter):
        return encoded_table(source, order, settings, encodings, name)
    if list(order) == list(range(source.shape[1])):
        return source
    # in another order, without a copy
    return Table([Column(source[:, i]) for i in order], np.zeros(len(order), dtype=np.int64))


def encoded_table(
    source: FrameAdapter,
    order: Sequence[int],
    settings: FeatureSettings,
    encodings: Encodings,
    name: str,
    counts: Sequence[np.ndarray] | None = None,
) -> Table:
    """Make a table by known encodings; `order` has the column of each feature.

    `counts`: for each column, how many rows of the user each of its rows stands for; None: one.
    """
    known = (Encoding(),) * len(order) if encodings is None else encodings
    encoded = list(zip(order, known, strict=True))
    for i, encoding in encoded:
        if encoding.kind == "number":
            source.read_as_numbers(i)
    wrong = []
    for i, encoding in encoded:
        given = source.column(i)
        if encoding.fits(given.kind, given.times()[2] if given.kind == "time" else ""):
            continue
        # a column without any value has the dtype that its library gives to nothing
        if given.kind == "unsupported" or not given.is_empty():
            wrong.append(_words_of_change(source, i, encoding))
    if wrong:
        more = [f"and {len(wrong) - _MOST_NAMED} more columns"] * (len(wrong) > _MOST_NAMED)
        raise ValueError("\n".join(wrong[:_MOST_NAMED] + more))
    columns: list[Column] = []
    unknown: dict[str, tuple[int, Any]] = {}
    for i, encoding in encoded:
        column, of_column = encode(source, i, encoding, settings.missing)
        columns.append(column)
        if of_column is not None:
            n_rows = len(of_column.rows) if counts is None else counts[i][of_column.rows].sum()
            unknown[source.label(i)] = int(n_rows), of_column.first
    if unknown:
        _report_unknown(unknown, settings, name)
    return Table(columns, np.array([encoding.n_categories for encoding in known], dtype=np.int64))


def _words_of_change(source: FrameAdapter, i: int, encoding: Encoding) -> str:
    column = source.column(i)
    was, now = encoding.kind, str(column.kind)
    if encoding.is_coded:
        was = "code"
    if was == "time":
        was = encoding.unit.partition("[")[0]
    if now == "time":
        now = column.times()[2].partition("[")[0]
    return kind_changed(source.label(i), was, now, column.dtype_name)


def _report_unknown(
    unknown: dict[str, tuple[int, Any]], settings: FeatureSettings, name: str
) -> None:
    listed = "; ".join(
        f"{label}: {n_rows} row(s), the first is {first!r}"
        for label, (n_rows, first) in unknown.items()
    )
    if settings.unknown_category == "error":
        raise ValueError(
            f"{name} has categories that no row of the training has: {listed}. Leave these rows "
            'out, or set unknown_category="missing"'
        )
    warn_user(
        f"{name} has categories that no row of the training has, and they count as missing: "
        f'{listed} (unknown_category="error" refuses them)',
        UnknownCategoryWarning,
    )


def categories_by_code(encodings: Encodings) -> list[list[list[Any]]]:
    """Return for each feature, for each code of its categories, the categories of this code."""
    by_code: list[list[list[Any]]] = []
    for encoding in encodings or ():
        by_code.append([[] for _ in range(encoding.n_categories)])
        pairs = zip(encoding.listed_categories, encoding.codes.tolist(), strict=True)
        for category, code in pairs:
            by_code[-1][code].append(category)
    return by_code


# --- the form that features are read in


def _source_of(columns: FrameAdapter, settings: FeatureSettings, encodings: Encodings) -> Any:
    """Return one array of all features where that will do, else the columns."""
    if needs_table(settings, encodings):
        return columns
    if encodings is None and is_auto(settings):
        every = map(columns.column, range(columns.n_columns))
        if any(map(is_category_by_itself, every)):
            return columns
    matrix = columns.matrix()
    return columns if matrix is None else matrix


def is_auto(settings: FeatureSettings) -> bool:
    """Whether columns become categories, or times, by what is in them."""
    value = settings.categorical_features
    return isinstance(value, str) and value == "auto"


def _read_array(X: Any, settings: FeatureSettings, encodings: Encodings) -> Any:
    """Return what checked features are read from; sparse ones become a SparseTable."""
    if issparse(X):
        check_sparse(settings, encodings)
        table = sparse_table(X)
        return table if math.isnan(settings.missing) else table.with_missing(settings.missing)
    if needs_table(settings, encodings):
        return ArrayTable(X)
    # what is contiguous in neither order is copied here, not again at every stage
    return X if X.flags.forc else np.ascontiguousarray(X)


def needs_table(settings: FeatureSettings, encodings: Encodings) -> bool:
    """Whether even an array of floats has to be encoded."""
    declared = settings.categorical_features
    is_declared = declared is not None and not isinstance(declared, str) and len(declared) > 0
    is_encoded = any(not encoding.is_plain for encoding in encodings or ())
    return not math.isnan(settings.missing) or is_declared or is_encoded


def unless_plain(encodings: Encodings) -> Encodings:
    """Return the encodings, or None if all features are numbers as they are."""
    return None if all(encoding.is_plain for encoding in encodings or ()) else encodings


def shape_of(source: FrameAdapter) -> np.ndarray:
    """Return an array of the shape of a table that takes no memory, for scikit-learn's checks."""
    return np.broadcast_to(np.float32(0.0), (source.n_rows, source.n_columns))


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


def check_bins_are_small(shape: tuple[int, int], max_bin: int, who: str, remedy: str) -> None:
    """Raise ValueError if the bins of sparse features of this shape would fill the memory."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * (1 if max_bin <= 256 else 2)
    if n_bytes > _MOST_BIN_BYTES:
        raise ValueError(
            f"{who} gives each value a place, stored or not, and here that would be "
            f"{n_bytes / 2**30:.1f} GiB; {remedy} takes memory only for what is stored"
        )
