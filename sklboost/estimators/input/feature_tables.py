"""From the user's frame to a table of features: which columns are categories, and how all encode.

In: a :class:`~sklboost.data.frames.adapter.FrameAdapter` and what the user has set. Out: a
:class:`~sklboost.data.table.Table`; from a fit also the encodings, which later tables are made by.
Frames and arrays of nothing but numbers that float64 holds take the way of plain arrays.
"""

import math
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.encoding import Encoding, Unknown, encode, fit_encoding
from sklboost.data.frames.adapter import FrameAdapter
from sklboost.data.frames.checks import check_kinds, kind_changed
from sklboost.data.table import Column, Table
from sklboost.estimators.input.callers import stack_level
from sklboost.estimators.input.feature_rules import read_categories

Encodings = tuple[Encoding, ...] | None  # None: all features are numbers as they are

# Columns that an error lists.
_MOST_NAMED = 10


class UnknownCategoryWarning(UserWarning):
    """Some values of categories do not occur in the training; they count as missing."""


class FeatureSettings(NamedTuple):
    """The parameters that say how features are read."""

    categorical_features: Any
    enable_categorical: bool
    unknown_category: str
    missing: float

    @property
    def has_marker(self) -> bool:
        """Whether there is a further value that counts as missing."""
        return not math.isnan(self.missing)


def settings_of(estimator: Any) -> FeatureSettings:
    """Give the settings of an estimator."""
    return FeatureSettings(*(getattr(estimator, name) for name in FeatureSettings._fields))


def unless_plain(encodings: Encodings) -> Encodings:
    """Give the encodings, or None if all features are numbers as they are."""
    return None if all(own.is_plain for own in encodings or ()) else encodings


def needs_table(settings: FeatureSettings, encodings: Encodings) -> bool:
    """Tell whether even an array of floats has to be encoded."""
    declared = settings.categorical_features
    is_declared = declared is not None and not isinstance(declared, str) and len(declared) > 0
    return settings.has_marker or is_declared or unless_plain(encodings) is not None


def source_of(columns: FrameAdapter, settings: FeatureSettings, encodings: Encodings) -> Any:
    """Give what features are to be read from: one array where that will do, else the columns."""
    matrix = None if needs_table(settings, encodings) else columns.matrix()
    return columns if matrix is None else matrix


def shape_of(source: FrameAdapter) -> np.ndarray:
    """Give an array of the shape of a table that takes no memory, for scikit-learn's checks."""
    return np.broadcast_to(np.float32(0.0), (source.n_rows, source.n_columns))


def fit_table(
    source: FrameAdapter, settings: FeatureSettings, weight: np.ndarray, encodings: Encodings
) -> tuple[Table, Encodings]:
    """Make the table of a fit, and learn by what its values become numbers.

    Parameters
    ----------
    source : FrameAdapter
    settings : FeatureSettings
    weight : ndarray of float64, shape (n_rows,)
        Of rows of weight 0 nothing is learnt.
    encodings : tuple of Encoding, or None
        Those of a model that the fit continues, which stay as they are; None: to be learnt.

    Raises
    ------
    TypeError, ValueError
        For columns that can be no features; for categories where there are to be none.
    """
    if encodings is None or len(encodings) != source.n_columns:  # of another model: an error soon
        encodings = fit_encodings(source, settings, weight)
    table = encoded_table(source, range(source.n_columns), settings, encodings, "X")
    return table, unless_plain(encodings)


def fit_encodings(
    source: FrameAdapter, settings: FeatureSettings, weight: np.ndarray
) -> tuple[Encoding, ...]:
    """Learn by what the values of each column become numbers, as :func:`fit_table` does."""
    names = feature_names(source.names, source.n_columns)
    declared = read_categories(settings.categorical_features, names)
    check_kinds(source, declared)
    _check_categories(source, declared, settings)
    return tuple(
        fit_encoding(source, i, weight, settings.missing, i in declared)
        for i in range(source.n_columns)
    )


def encoded_table(
    source: FrameAdapter,
    order: Sequence[int],
    settings: FeatureSettings,
    encodings: Encodings,
    name: str,
) -> Table:
    """Make a table by encodings that are known.

    Parameters
    ----------
    source : FrameAdapter
    order : sequence of int
        The column of each feature.
    settings : FeatureSettings
    encodings : tuple of Encoding, or None
    name : str
        Of the argument, for warnings.

    Raises
    ------
    ValueError
        If columns are of other kinds than at fit. For unknown categories, if that is asked for.

    Warns
    -----
    UnknownCategoryWarning
        If there are unknown categories, unless that is an error.
    """
    known = (Encoding(),) * len(order) if encodings is None else encodings
    encoded = list(zip(order, known, strict=True))
    wrong = [_words_of_change(source, i, own) for i, own in encoded if not _fits(source, i, own)]
    if wrong:
        more = [f"and {len(wrong) - _MOST_NAMED} more columns"] * (len(wrong) > _MOST_NAMED)
        raise ValueError("\n".join(wrong[:_MOST_NAMED] + more))
    columns: list[Column] = []
    unknown: dict[str, Unknown] = {}
    for i, own in encoded:
        column, of_column = encode(source, i, own, settings.missing)
        columns.append(column)
        if of_column is not None:
            unknown[source.label(i)] = of_column
    if unknown:
        _tell_unknown(unknown, settings, name)
    return Table(columns, np.array([own.n_categories for own in known], dtype=np.int64))


def feature_names(names: Sequence[Any] | None, n_features: int) -> list[str]:
    """Give the names of features; f0, f1, ... if not all of them have names that are strings."""
    if names is None or not all(isinstance(name, str) for name in names):
        return [f"f{i}" for i in range(n_features)]
    return list(names)


def remember_encodings(estimator: Any, encodings: Encodings) -> None:
    """Keep on an estimator what its features become numbers by, and the levels of categories."""
    estimator._encodings = encodings
    names = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    pairs = zip(names, encodings or (), strict=False)
    categories = {name: own.categories for name, own in pairs if own.kind == "category"}
    if categories:
        estimator.categories_ = categories


def categories_by_code(encodings: Encodings) -> list[list[list[Any]]]:
    """Give for each feature, for each code of its categories, the levels that have this code."""
    by_code: list[list[list[Any]]] = []
    for own in encodings or ():
        by_code.append([[] for _ in range(own.n_categories)])
        for category, code in zip(own.categories.tolist(), own.codes.tolist(), strict=True):
            by_code[-1][code].append(category)
    return by_code


def check_same_reading(
    encodings: Encodings, missing: float, settings: FeatureSettings, X: Any
) -> None:
    """Raise ValueError if an estimator would have read other features than `X` was binned from."""
    if not (missing == settings.missing or (math.isnan(missing) and not settings.has_marker)):
        raise ValueError(
            f"missing={settings.missing}, but X was binned with missing={missing}: set both to "
            "the same"
        )
    names = feature_names(X.feature_names_in_, X.shape[1])
    found = {i for i, own in enumerate(encodings or ()) if own.kind == "category"}
    declared = found
    if not isinstance(settings.categorical_features, str):
        declared = read_categories(settings.categorical_features, names)
    if declared != found or (found and not settings.enable_categorical):
        raise ValueError(
            f"X was binned with the categories {[names[i] for i in sorted(found)]}, and this "
            "estimator is to have others: leave categorical_features and enable_categorical as "
            "they are, and say in bin_features which features are categories"
        )


def _check_categories(source: FrameAdapter, declared: set[int], settings: FeatureSettings) -> None:
    """Raise ValueError for categories where the user wants none."""
    kinds = [source.column(i).kind for i in range(source.n_columns)]
    found = [i for i, kind in enumerate(kinds) if kind == "category" or i in declared]
    if found and not settings.enable_categorical:
        raise ValueError(
            f"enable_categorical=False, but there are categories: {_listed(source, found)}. Set "
            "it to True, or turn them into numbers"
        )
    if isinstance(settings.categorical_features, str):
        return
    left = [i for i in found if i not in declared]
    if left:
        raise ValueError(
            "categorical_features does not list columns that are categories by their dtype: "
            f"{_listed(source, left)}. List them, turn them into numbers, or set it to "
            '"from_dtype"'
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
    if was == "time":
        was = encoding.unit.partition("[")[0]
    if now == "time":
        now = column.times()[2].partition("[")[0]
    return kind_changed(source.label(i), was, now, column.dtype_name)


def _tell_unknown(unknown: dict[str, Unknown], settings: FeatureSettings, name: str) -> None:
    listed = "; ".join(
        f"{label}: {own.n_rows} row(s), the first is {own.first!r}"
        for label, own in unknown.items()
    )
    if settings.unknown_category == "error":
        raise ValueError(
            f"{name} has categories that no row of the training has: {listed}. Leave these rows "
            'out, or set unknown_category="missing"'
        )
    warnings.warn(
        f"{name} has categories that no row of the training has, and they count as missing: "
        f'{listed} (unknown_category="error" refuses them)',
        UnknownCategoryWarning,
        stacklevel=stack_level(),
    )
