"""Tables of features: which columns are categories, and how all of them become numbers.

A fit learns the encodings, and later tables are made by them. Frames and arrays of nothing but
numbers that float64 holds exactly are read as plain arrays.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.encoding import Encoding, encode, fit_encoding
from sklboost.data.feature_cuts import exact_weights
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.frames.checks import check_kinds, kind_changed
from sklboost.data.table import Column, Table
from sklboost.estimators.input.feature_names import Encodings, FittedFeatures, feature_keys
from sklboost.estimators.input.feature_rules import read_categories
from sklboost.estimators.input.user_warnings import warn_user
from sklboost.estimators.parameters.groups import Parameters
from sklboost.estimators.parameters.rules import value_of

# Columns that an error lists.
_MOST_NAMED = 10


class UnknownCategoryWarning(UserWarning):
    """Some values of categories do not occur in the training; they count as missing.

    Given once for each line of code that predicts, or that begins a search, unless a filter of
    ``warnings`` says "always".
    """


class FeatureSettings(NamedTuple):
    """The parameters that say how features are read, and whose they are."""

    caller: str  # the estimator's class or the function, for errors
    # the parameters
    categorical_features: Any
    enable_categorical: bool
    unknown_category: str
    missing: float
    max_bin: int

    @property
    def has_marker(self) -> bool:
        """Whether there is a further value that counts as missing."""
        return not math.isnan(self.missing)


def feature_settings(caller: str, parameters: Parameters) -> FeatureSettings:
    """Return the settings of an estimator of the class `caller`."""
    values = {name: value_of(parameters, name) for name in FeatureSettings._fields[1:]}
    return FeatureSettings(caller, **values)


def unless_plain(encodings: Encodings) -> Encodings:
    """Return the encodings, or None if all features are numbers as they are."""
    return None if all(encoding.is_plain for encoding in encodings or ()) else encodings


def needs_table(settings: FeatureSettings, encodings: Encodings) -> bool:
    """Whether even an array of floats has to be encoded."""
    declared = settings.categorical_features
    is_declared = declared is not None and not isinstance(declared, str) and len(declared) > 0
    return settings.has_marker or is_declared or unless_plain(encodings) is not None


def shape_of(source: FrameAdapter) -> np.ndarray:
    """Return an array of the shape of a table that takes no memory, for scikit-learn's checks."""
    return np.broadcast_to(np.float32(0.0), (source.n_rows, source.n_columns))


def fit_table(
    source: FrameAdapter, settings: FeatureSettings, weight: np.ndarray, encodings: Encodings
) -> tuple[Table, Encodings]:
    """Make the table of a fit, and learn how its values become numbers.

    Nothing is learnt of rows of weight 0. `encodings` are those of a model that the fit continues,
    which stay as they are, or None. TypeError or ValueError for columns that can be no features,
    and for categories if there are to be none.
    """
    if encodings is None or len(encodings) != source.n_columns:  # of another model: an error soon
        encodings = fit_encodings(source, settings, [exact_weights(weight)] * source.n_columns)
    else:
        check_kinds(source, range(source.n_columns))  # what may be a category is known
    table = encoded_table(source, range(source.n_columns), settings, encodings, "X")
    return table, unless_plain(encodings)


def fit_encodings(
    source: FrameAdapter, settings: FeatureSettings, weights: Sequence[np.ndarray]
) -> tuple[Encoding, ...]:
    """Learn how the values of each column become numbers, as :func:`fit_table` does.

    `weights` are those of the rows of each column, such that sums of them are exact.
    """
    names = feature_keys(source.names, source.n_columns)
    declared = read_categories(settings.categorical_features, names)
    check_kinds(source, declared)
    _read_categories(source, declared, settings)
    return tuple(
        fit_encoding(source, i, weights[i], settings.missing, i in declared)
        for i in range(source.n_columns)
    )


def encoded_table(
    source: FrameAdapter,
    order: Sequence[int],
    settings: FeatureSettings,
    encodings: Encodings,
    name: str,
    counts: Sequence[np.ndarray] | None = None,
) -> Table:
    """Make a table by known encodings.

    Parameters
    ----------
    source : FrameAdapter
    order : sequence of int
        The column of each feature.
    settings : FeatureSettings
    encodings : tuple of Encoding, or None
    name : str
        Of the argument, for warnings and errors: of columns of other kinds than at fit, and of
        unknown categories.
    counts : sequence of ndarray, optional
        Of how many rows of the user each row of a column tells. None: of one.
    """
    known = (Encoding(),) * len(order) if encodings is None else encodings
    encoded = list(zip(order, known, strict=True))
    for i, encoding in encoded:
        if encoding.kind == "number":
            source.read_as_numbers(i)
    wrong = [
        _words_of_change(source, i, encoding)
        for i, encoding in encoded
        if not _fits(source, i, encoding)
    ]
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


def categories_by_code(encodings: Encodings) -> list[list[list[Any]]]:
    """Return for each feature, for each code of its categories, the categories of this code."""
    by_code: list[list[list[Any]]] = []
    for encoding in encodings or ():
        by_code.append([[] for _ in range(encoding.n_categories)])
        pairs = zip(encoding.listed_categories, encoding.codes.tolist(), strict=True)
        for category, code in pairs:
            by_code[-1][code].append(category)
    return by_code


def binned_features(
    X: BinnedMatrix, settings: FeatureSettings, encodings: Encodings
) -> FittedFeatures:
    """Return what a fit remembers of features that were binned before.

    ValueError if the parameters of the estimator would have made other bins, or if its categories
    have other numbers than `encodings`, those of a model that the fit continues.
    """
    binning, missing = X.binning, X.binning.missing
    if X.max_bin != settings.max_bin:
        raise ValueError(
            f"max_bin={settings.max_bin}, but X was binned with max_bin={X.max_bin}: set both to "
            "the same, or pass the raw values (to search for the best max_bin, for instance)"
        )
    if not (missing == settings.missing or (math.isnan(missing) and not settings.has_marker)):
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


def _read_categories(source: FrameAdapter, declared: set[int], settings: FeatureSettings) -> None:
    """Take categories that are not among those the user lists as numbers.

    ValueError if they are none, or where the user wants no categories at all.
    """
    kinds = [source.column(i).kind for i in range(source.n_columns)]
    found = [i for i, kind in enumerate(kinds) if kind == "category" or i in declared]
    if found and not settings.enable_categorical:
        raise ValueError(
            f"enable_categorical=False, but there are categories: {_listed(source, found)}. Set "
            "it to True, or turn them into numbers"
        )
    if isinstance(settings.categorical_features, str):
        return
    left = [i for i in found if i not in declared and not source.read_as_numbers(i)]
    if left:
        raise ValueError(
            "categorical_features does not list columns whose categories are not numbers: "
            f"{_listed(source, left)}. List them, turn them into numbers (their codes, if their "
            'order means something), or set it to "from_dtype"'
        )


def _listed(source: FrameAdapter, columns: list[int]) -> str:
    return ", ".join(f"{source.label(i)} ({source.column(i).dtype_name})" for i in columns)


def _fits(source: FrameAdapter, i: int, encoding: Encoding) -> bool:
    column = source.column(i)
    if encoding.fits(column.kind, column.times()[2] if column.kind == "time" else ""):
        return True
    # a column without any value has the dtype that its library gives to nothing
    return column.kind != "unsupported" and column.is_empty()


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
