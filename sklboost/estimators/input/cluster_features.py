"""Features in Dask collections, checked for a fit: they stay on the cluster.

Names, kinds and encodings are those of the same rows in one place. What an encoding is learnt from,
the distinct values of a column and their weights, comes here; all other values stay.
"""

from collections.abc import Callable, Sequence, Sized
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.dataframe.dispatch import concat
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sklboost.data.cuts import SAMPLE_ROWS, exact_weights
from sklboost.data.encoding import is_bool
from sklboost.data.frames import adapter_for, dask_kind
from sklboost.data.frames.adapter import ColumnAdapter, FrameAdapter, check_kinds, check_names
from sklboost.data.frames.numpy_arrays import ArrayTable, ObjectColumn, column_of
from sklboost.distributed.columns import ClusterColumn, open_column
from sklboost.distributed.features import ClusterFeatures
from sklboost.distributed.partitions import (
    Encoded,
    Encoder,
    Facts,
    Partitions,
    distinct_rows,
    open_collection,
)
from sklboost.estimators.input.feature_names import (
    Encodings,
    FittedFeatures,
    feature_keys,
    given_names,
    read_categories,
)
from sklboost.estimators.input.features import (
    SHAPE_CHECKS,
    FeatureSettings,
    check_bins_are_small,
    check_sparse,
    encoded_table,
    fit_encodings,
    is_auto,
    read_features,
    shape_of,
    unless_plain,
)
from sklboost.estimators.input.rows import one_each, read_margins, read_weights
from sklboost.estimators.input.targets import RegressionTargets

if TYPE_CHECKING:
    from sklboost.estimators.input.queries import QueryNames
    from sklboost.estimators.input.targets import Targets


class ClusterSource(FrameAdapter):
    """Columns whose values are in partitions on a cluster, with the facts of each partition.

    Those that are not just numbers have to be looked at: then a column has the distinct values of
    all partitions as its rows. The others are columns of numbers without rows.
    """

    def __init__(self, names: list[Any] | None, partitions: Partitions, facts: Sequence[Facts]):
        super().__init__(names, partitions.n_rows, facts[0].n_columns)
        self.partitions = partitions
        self.facts = facts

    @property
    def special(self) -> set[int]:
        """The columns that are not just numbers that float64 holds."""
        return {i for fact in self.facts for i in fact.special}

    @property
    def bools(self) -> set[int]:
        """The columns whose dtype is one of bools."""
        return {i for i, dtype in enumerate(self.facts[0].dtypes) if is_bool(dtype)}

    def read_column(self, i: int) -> ColumnAdapter:
        """Return a column of numbers without rows."""
        return column_of(np.empty(0))

    def look_at(self, columns: Sequence[int], weight: Any) -> list[np.ndarray]:
        """Read the distinct values of some columns; return the weights of the rows of all columns.

        Sums of `weight`, shape (n_rows,), are exact; shape (1,): all are 1.
        """
        masses = [np.empty(0)] * self.n_columns
        if not columns:
            return masses
        weights: Sequence[Any] = [None] * len(self.facts)
        if len(weight) > 1:
            weights = self.partitions.divide(weight)
        found = self.partitions.results(distinct_rows, weights, columns=list(columns))
        for place, i in enumerate(columns):
            parts = [of_partition[place] for of_partition in found]
            filled = [part for part in parts if len(part.rows) > 0] or parts[:1]
            self._columns[i] = _column_of([part.rows for part in filled])
            masses[i] = np.concatenate([part.masses for part in filled])
        return masses


def cluster_columns(
    X: Partitions,
    y: Any,
    sample_weight: Any,
    base_margin: Any,
    groups: Any,
    kind: "type[Targets]",
    caller: str = "",
    of: str = "",  # X, in the names of arguments of validation rows
) -> tuple[Any, Any, Any, Any]:
    """Read targets and weights where they are, if both are there, and the kind of targets can be.

    And raw scores and groups, if they are there, too. Else these are returned as they are.
    """
    is_weight_there = sample_weight is None or _is_there(sample_weight, 1)
    if not (kind.stays and _is_there(y, 2) and is_weight_there):
        return y, sample_weight, base_margin, groups
    column = kind.read_parts(partial(_opened, y, f"y{of}", X), f"y{of}", caller)
    if column is None:
        return y, sample_weight, base_margin, groups
    if sample_weight is not None:
        name = f"sample_weight{of}"
        sample_weight = _opened(sample_weight, name, X, partial(read_weights, name=name))
    if _is_there(base_margin, 2):
        name = f"base_margin{of}"
        base_margin = _opened(base_margin, name, X, partial(read_margins, name=name))
    if _is_there(groups, 1):
        labels = _opened(groups, "groups", X, partial(one_each, name="groups", what="group"))
        groups = groups if labels is None else labels
    return column, sample_weight, base_margin, groups


def cluster_queries(
    y: Any, qid: Any, sample_weight: Any, names: "QueryNames", caller: str
) -> tuple[Any, ...]:
    """Read relevances, labels of queries and weights where they are, if all of them are there.

    `qid` may be None, and weights a number, or in memory and of queries. Else they are returned as
    they are.
    """
    given = y, qid, sample_weight
    if not (_is_there(y, 1) and (qid is None or _is_there(qid, 1))):
        return given
    reads: Sequence[Callable[..., Any]] = (
        partial(RegressionTargets.read, name=names.y, caller=caller),
        partial(one_each, name=names.qid, what="query"),
        partial(read_weights, name=names.weight),
    )
    found, along = [*given], None
    for i, (name, read) in enumerate(zip((names.y, names.qid, names.weight), reads, strict=True)):
        if _is_there(given[i], 1):
            found[i] = column = _opened(given[i], name, along, read)
            if column is None or len(column) == 0:
                return given
            along = along or column.partitions()
    weight, n_rows = found[-1], len(found[0])
    if _is_there(weight, 1) or not isinstance(weight, Sized) or getattr(weight, "ndim", 1) == 0:
        return (*found,)
    return given if len(weight) == n_rows else (*found,)  # weights of rows, which are all here


def _is_there(given: Any, most: int) -> bool:
    """Whether it is a collection of at most so many dimensions, and not of a single column."""
    is_collection = isinstance(given, ClusterColumn) or (
        dask_kind(given) in ("Series", "Array", "DataFrame")
    )
    return is_collection and (given.ndim == 1 or (given.ndim <= most and given.shape[1] > 1))


def _opened(
    given: Any, name: str, X: Partitions | None, read: Callable[[Any], Any]
) -> ClusterColumn | None:
    """Return what :func:`open_column` does of a collection; what is a column already, along X."""
    if isinstance(given, ClusterColumn):
        return given if X is None else given.along(X)
    names = [*getattr(given, "columns", ())]
    return open_column(given, name, X, read_part, read=read, names=names)


def read_part(partition: Any, *, read: Callable[[Any], Any], names: list[Any]) -> np.ndarray:
    """Read a partition; of one without rows nothing is asked but the names of its columns."""
    if (columns := [*getattr(partition, "columns", names)]) != names:
        raise ValueError(
            f"a partition has the columns {columns}, and not {names}, which Dask knows: give all "
            "partitions the same columns, in the same order"
        )
    return read(partition) if len(partition) > 0 else np.empty(partition.shape)


def _column_of(parts: list[Any]) -> ColumnAdapter:
    """Return the rows of several frames, or arrays, of one column as one."""
    rows = concat(parts) if hasattr(parts[0], "iloc") else np.ma.concatenate(parts)
    if isinstance(rows, np.ma.MaskedArray) and not any(map(np.ma.isMaskedArray, parts)):
        rows = rows.data
    return (adapter_for(rows) or ArrayTable(rows)).column(0)


def cluster_source(X: Any, settings: FeatureSettings) -> tuple[ClusterSource, np.ndarray | None]:
    """Check the features of a fit that are a Dask collection, as :func:`fit_source` does others."""
    columns = names = None
    if dask_kind(X) == "DataFrame":
        columns, names = X.columns.tolist(), given_names(X._meta)
        check_names(columns)
        validate_data(BaseEstimator(), X._meta, skip_check_array=True)
    source = ClusterSource(columns, *open_collection(X))
    validate_data(BaseEstimator(), shape_of(source), estimator=settings.caller, **SHAPE_CHECKS)
    _check_alike(source)
    if source.facts[0].is_sparse:
        _check_sparse(source, settings)
    return source, names


def read_cluster(
    X: Any, fitted: FittedFeatures, settings: FeatureSettings, name: str
) -> ClusterFeatures:
    """Read features to be scored where they are, as :func:`read_features` does in one place."""
    partitions, facts = open_collection(X, name)
    if partitions.n_rows == 0 or facts[0].n_columns != fitted.n_features:
        read_features(X.compute(), fitted, settings, name)  # raises
    given = {"fitted": fitted, "settings": settings, "name": name}
    encoded = partitions.settled(encode_partition, **given)
    encoder = Encoder(fitted.encodings, fitted.missing, fitted.n_features, {})
    return ClusterFeatures(partitions.like(encoded), encoder)


def encode_partition(
    partition: Any, *, fitted: FittedFeatures, settings: FeatureSettings, name: str
) -> Encoded:
    """Return the features of a partition."""
    if partition.shape[0] == 0:
        return Encoded(np.empty((0, fitted.n_features)))
    features: Any = read_features(partition, fitted, settings, name)
    return Encoded(features)


def _check_alike(source: ClusterSource) -> None:
    """Raise ValueError unless all partitions have the same columns, with rows of the same dtypes.

    Numbers that float64 holds may have several.
    """
    first = next(fact for fact in source.facts if fact.n_rows > 0)
    names = None if source.names is None else tuple(source.names)
    for number, fact in enumerate(source.facts):
        if fact.names != names or fact.n_columns != source.n_columns:
            raise ValueError(
                f"partition {number} of X has the columns {_listed(fact)}, and the first one, or "
                f"what Dask knows of X, {_listed(source.facts[0]._replace(names=names))}: give all "
                "partitions the same columns, in the same order"
            )
        if fact.is_sparse != source.facts[0].is_sparse:
            raise ValueError(
                f"partition {number} of X is {'sparse' if fact.is_sparse else 'dense'}, and the "
                "first one is not: give all partitions one form"
            )
        for i in sorted(source.special) if fact.n_rows > 0 else ():
            if fact.dtypes[i] != first.dtypes[i]:
                raise ValueError(
                    f"{source.label(i)} is {first.dtypes[i]} in one partition of X and "
                    f"{fact.dtypes[i]} in partition {number}, counted from 0: give it one dtype, "
                    "X.astype does"
                )


def _listed(fact: Facts) -> str:
    return f"{list(range(fact.n_columns)) if fact.names is None else list(fact.names)}"


def _check_sparse(source: ClusterSource, settings: FeatureSettings) -> None:
    """Raise ValueError if sparse partitions are not plain numbers, or their bins are too large."""
    check_sparse(settings, None)
    # of the sample that decides on the cuts all values come here, too
    n_rows = max(max(fact.n_rows for fact in source.facts), min(source.n_rows, SAMPLE_ROWS))
    check_bins_are_small(
        (n_rows, source.n_columns),
        settings.max_bin,
        "X has sparse partitions: training on a cluster",
        "one machine, fit(X.compute(), ...),",
    )


def fit_cluster(
    source: ClusterSource, settings: FeatureSettings, weight: Any, encodings: Encodings
) -> tuple[ClusterFeatures, Encodings]:
    """Learn how the values of a fit become numbers; return the features, and this, as `fit_table`.

    Nothing is learnt of rows whose `weight`, float64 of shape (n_rows,), is 0; it may be a column.
    `encodings` are those of a model that the fit continues, or None.
    """
    every = range(source.n_columns)
    if encodings is None:
        names = feature_keys(source.names, len(every))
        declared = read_categories(settings.categorical_features, names)
        if is_auto(settings):
            declared |= source.bools
        columns = sorted(source.special | declared)
        is_one = isinstance(weight, np.ndarray) and weight.strides == (0,)  # all have the same
        exact = np.ones(1) if is_one or not columns else exact_weights(weight)
        masses = source.look_at(columns, exact)
        encodings = fit_encodings(source, settings, masses, exact)
    else:
        coded = {i for i, encoding in enumerate(encodings) if not encoding.is_plain}
        counts = source.look_at(sorted(source.special | coded), np.ones(1))
        check_kinds(source, every)  # what may be a category is known
        encoded_table(source, every, settings, encodings, "X", counts)
    objects = [i for i in every if isinstance(source.column(i), ObjectColumn)]
    examples = {i: source.column(i).examples() for i in objects}
    plain = unless_plain(encodings)
    encoder = Encoder(plain, settings.missing, len(every), examples)
    return ClusterFeatures(source.partitions, encoder), plain
