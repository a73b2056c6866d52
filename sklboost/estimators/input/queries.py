"""Queries of a ranker: which rows are documents of one query, and how targets bring that along.

A ranker's targets have two columns once they are read: relevances, and numbers of queries. So rows
keep their query wherever they are chosen. Queries of validation rows have negative numbers: they
are others, whatever their labels.
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, column_or_1d

from sklboost.data.features import Features
from sklboost.data.frames import dask_kind, refuse_lazy
from sklboost.engine.structs import RemoteColumn
from sklboost.estimators.input.feature_names import FittedFeatures, column_names
from sklboost.estimators.input.features import features
from sklboost.estimators.input.rows import one_each, one_for_each_set, row_values
from sklboost.estimators.input.targets import RegressionTargets, Targets, apply, row_numbers
from sklboost.estimators.parameters.boosters import Parameters


class GivenQueries(NamedTuple):
    """Rows of a ranker as `fit` passes them on, and `score` reads them; RemoteColumns, perhaps."""

    y: Any  # float64, shape (n_samples, 2): relevances, and numbers of queries
    weight: Any  # float64, shape (n_samples,), or None
    labels: Any  # shape (n_samples,): what the user calls each row's query


# A column of this name in a frame of documents is their queries, and no feature, as in XGBoost.
_QID = "qid"


def split_queries(X: Any, qid: Any, group: Any, names: "QueryNames") -> tuple[Any, Any]:
    """Return a frame without its queries, and these; other documents, and their `qid`, as given."""
    if not has_queries(X):
        return X, qid
    if column_names(X).tolist().count(_QID) > 1:  # type: ignore[union-attr]
        raise ValueError(f"{names.X} has several columns 'qid': keep the one with the queries")
    if qid is not None or group is not None:
        given = names.qid if qid is not None else names.group
        raise ValueError(
            f"{names.X} has a column 'qid', whose values are the queries, and {given} is given: "
            f"leave out {given}, or the column"
        )
    return without_queries(X), X[_QID]


def has_queries(X: Any) -> bool:
    """Whether it is a frame with a column of queries."""
    refuse_lazy(X)
    names = column_names(X)
    return names is not None and _QID in (names.tolist() or ())  # bins may have none


def without_queries(X: Any) -> Any:
    """Return a frame without its column of queries."""
    if hasattr(X, "drop_columns"):  # Arrow
        return X.drop_columns([_QID])
    return X.drop(columns=_QID) if hasattr(X, "loc") else X.drop(_QID)


def features_of_documents(
    parameters: Parameters,
    fitted: FittedFeatures,
    X: Any,
    name: str = "X",
    *,
    by_position: bool = False,
) -> Features:
    """Read rows as :func:`features` does; a frame may have the queries that `fit` took from one."""
    # the names of a model of a file may be any
    if type(X) is not np.ndarray and has_queries(X) and _QID not in fitted.listed_names:
        X = without_queries(X)
    return features(parameters, fitted, X, name, by_position=by_position)


class QueryNames(NamedTuple):
    """What the arguments of a set of rows are called, for errors.

    The same checks read the rows of the training, `X_val` and each pair of `eval_set`.
    """

    y: str = "y"
    qid: str = "qid"
    group: str = "group"
    weight: str = "sample_weight"
    X: str = "X"


def read_given(
    y: Any,
    qid: Any,
    group: Any,
    sample_weight: Any,
    names: QueryNames | None = None,  # of validation rows; None: those of the training
    caller: str = "",  # the estimator's class in a fit
    *,
    stays: bool = False,
) -> GivenQueries:
    """Check relevances, queries and their weights, given by either way, as `fit` has them.

    With `stays` those of Dask collections stay on their cluster, if all of them are there.
    """
    is_validation, names = names is not None, names or QueryNames()
    if stays:
        # imports Dask
        from sklboost.estimators.input.cluster_features import cluster_queries

        y, qid, sample_weight = cluster_queries(y, qid, sample_weight, names, caller)
    is_read = isinstance(y, RemoteColumn)
    relevances: Any = y if is_read else RegressionTargets.read(y, names.y, caller)
    if relevances.ndim != 1:
        raise ValueError(
            f"{names.y} has shape {relevances.shape}: it must be 1-D, one relevance for each row"
        )
    labels = _query_labels(qid, group, relevances, names)
    queries = number_queries(labels, names.qid)
    numbers, weight = np.arange(len(queries.first)), None
    if sample_weight is not None:
        of_queries, weight = _spread_weights(sample_weight, queries, len(relevances), names.weight)
        # those of weight 0 come last: the others have the numbers that they have without them
        numbers = np.argsort(np.argsort(of_queries == 0.0, kind="stable"))
    of_rows = queries.spread(~numbers if is_validation else numbers)
    return GivenQueries(apply(as_targets, relevances, of_rows), weight, labels)


def as_targets(relevances: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return relevances and numbers of queries in two columns."""
    return np.column_stack([relevances, numbers]).astype(np.float64)


# What is at fault where scikit-learn calls `fit` or `score`, which passes qid on only if told to.
_ROUTING = (
    ". In cross_val_score, GridSearchCV and the like, call "
    "sklearn.set_config(enable_metadata_routing=True) once and give cross_val_score "
    "params={'qid': qid}, GridSearchCV.fit qid=qid"
)


def _query_labels(qid: Any, group: Any, relevances: Any, names: QueryNames) -> Any:
    n_rows = len(relevances)
    if (qid is None) == (group is None):
        what = "neither is" if qid is None else "both are"
        hint = _ROUTING if qid is None and names == QueryNames() else ""
        raise ValueError(
            f"{what} given of {names.qid} and {names.group}: a ranker needs one of them, the query "
            f"of each row ({names.qid}=[0, 0, 1], or a column 'qid' of a frame {names.X}) or the "
            f"number of rows of each query ({names.group}=[2, 1]){hint}"
        )
    if group is not None:
        sizes = row_values(group, names.group, "sizes")
        sizes = check_array(
            sizes,
            ensure_2d=False,
            allow_nd=True,
            ensure_min_samples=0,
            dtype=None,
            input_name=names.group,
        )
        if sizes.ndim != 1 and sizes.shape[1:] != (1,):
            raise ValueError(
                f"{names.group} has shape {sizes.shape}: it must be 1-D, the number of rows of "
                "each query"
            )
        sizes = column_or_1d(sizes)
        is_size = (sizes >= 1) & (sizes == np.floor(sizes)) & (sizes.dtype.kind != "b")
        wrong = f"their sum is {sizes.sum():g}" if sizes.sum() != n_rows else ""
        if not is_size.all():
            place = int(np.argmin(is_size))
            wrong = f"{names.group}[{place}] is {sizes[place]!s}"
        if wrong:
            raise ValueError(
                f"{names.group} has {len(sizes)} numbers, and {wrong}: they must be whole, >= 1, "
                f"and their sum the number of rows, {n_rows}; for one label a row, use {names.qid}"
            )
        sizes = sizes.astype(np.intp)
        if not isinstance(relevances, RemoteColumn):  # no search for each row
            return np.arange(len(sizes)).repeat(sizes)
        return apply(np.digitize, row_numbers(relevances), bins=sizes.cumsum())
    return one_each(qid, names.qid, "query", n_rows)


class NumberedQueries(NamedTuple):
    """The queries of rows, in the order in which they first appear.

    On a cluster the queries of each part of the rows have numbers of their own, and these are
    listed here, one part after the other.
    """

    # int64, shape (n_samples,): the number of each row's query, or a column: that in its part
    of_rows: Any
    # int64, shape (n_queries,): the first row of each query, or its first place in the list
    first: np.ndarray
    listed: np.ndarray = np.empty(0, np.intp)  # the numbers of the queries in the list
    ends: np.ndarray = np.empty(0, np.intp)  # of each part in the list, but of the last

    def spread(self, of_queries: np.ndarray) -> Any:
        """Return a number of each query for each of its rows."""
        if isinstance(self.of_rows, RemoteColumn):
            return self.of_rows.look_up(np.split(of_queries[self.listed], self.ends))
        return of_queries[self.of_rows]

    def of_first_rows(self, values: Any) -> np.ndarray:
        """Return the value of the first row of each query."""
        if isinstance(self.of_rows, RemoteColumn):
            values = np.concatenate(values.each(first_of_queries, self.of_rows))
        found: np.ndarray = values[self.first]
        return found


def number_queries(labels: Any, name: str) -> NumberedQueries:
    """Number the queries of rows with these labels."""
    if not isinstance(labels, RemoteColumn):
        return NumberedQueries(*_number_labels(labels, name))
    of_rows = labels.apply(numbers_of_labels, name=name).persist()
    parts = labels.each(first_of_queries, of_rows)
    listed, first = _number_labels(np.concatenate(parts), name)
    return NumberedQueries(of_rows, first, listed, np.cumsum([*map(len, parts)])[:-1])


def numbers_of_labels(labels: np.ndarray, name: str) -> np.ndarray:
    """Return the number of each label, in the order in which they first appear."""
    return _number_labels(labels, name)[0]


def first_of_queries(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return the value of the first row of each query; they are numbered in this order."""
    first: np.ndarray = values[np.unique(numbers, return_index=True)[1]]
    return first


def _number_labels(labels: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each label, in the order in which they first appear, and where."""
    if labels.dtype.kind == "O":
        codes: dict[Any, int] = {}
        try:
            numbers = np.array([codes.setdefault(label, len(codes)) for label in labels], np.intp)
        except TypeError as error:
            raise ValueError(f"{name} has labels that are none: {error}") from None
        return numbers, np.unique(numbers, return_index=True)[1]
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    places = np.argsort(np.argsort(first))
    return places[numbers.ravel()], np.sort(first)


def _spread_weights(
    given: Any, queries: NumberedQueries, n_rows: int, name: str
) -> tuple[np.ndarray, Any]:
    """Return the weights of queries, and of each row; they are given by rows or by queries."""
    n_queries = len(queries.first)
    if isinstance(given, Real):
        given = np.full(n_queries, given)
    weight: Any = given
    if not isinstance(given, RemoteColumn):
        weight = row_values(given, name, "weights")
        weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name=name)
    if weight.shape == (n_queries,):
        of_queries = np.asarray(weight)
        return of_queries, queries.spread(of_queries)
    if weight.shape != (n_rows,):
        raise ValueError(
            f"{name} has shape {weight.shape}: it must be 1-D, one weight for each of the "
            f"{n_queries} queries, in the order of their first rows, or for each of the "
            f"{n_rows} rows"
        )
    of_queries = queries.of_first_rows(weight)
    spread = queries.spread(of_queries)
    differs = weight != spread
    if differs.any():
        row = int(np.argmax(differs))
        raise ValueError(
            f"{name}[{row}]={weight[row]:g}, but the first row of this query has "
            f"{spread[row]:g}: all rows of a query have the same weight"
        )
    return of_queries, weight


# --- validation rows


def read_sets(arguments: dict[str, Any], *, stays: bool = False) -> dict[str, Any]:
    """Return the arguments of fit for validation rows with the queries in their targets.

    `arguments` are those of fit by name, with `qid_val` and `group_val`, or `eval_qid` and
    `eval_group`, which are not in the result. With `stays` those of Dask collections stay on their
    cluster. ValueError for queries without rows, or the reverse.
    """
    given = dict(arguments)
    own = {name: given.pop(name) for name in ("qid_val", "group_val", "eval_qid", "eval_group")}
    if given["X_val"] is not None and given["y_val"] is not None:
        names = QueryNames("y_val", "qid_val", "group_val", "sample_weight_val", "X_val")
        X, qid = split_queries(given["X_val"], own["qid_val"], own["group_val"], names)
        read = read_given(
            *(given["y_val"], qid, own["group_val"], given["sample_weight_val"], names),
            stays=stays and bool(dask_kind(X)),
        )
        given |= {"X_val": X, "y_val": read.y, "sample_weight_val": read.weight}
        own |= {"qid_val": None, "group_val": None}
    elif isinstance(given["eval_set"], list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 for pair in given["eval_set"]
    ):
        given |= _read_eval_set(given, own["eval_qid"], own["eval_group"], stays=stays)
        own |= {"eval_qid": None, "eval_group": None}
    for name, value in own.items():
        if value is not None:
            rows = "X_val and y_val" if name.endswith("_val") else "eval_set"
            raise ValueError(f"{name} is given without {rows}")
    return given


def _read_eval_set(given: dict[str, Any], qids: Any, groups: Any, *, stays: bool) -> dict[str, Any]:
    pairs = given["eval_set"]
    weights = given["sample_weight_eval_set"]
    listed = {"eval_qid": qids, "eval_group": groups, "sample_weight_eval_set": weights}
    listed = {name: one_for_each_set(of, len(pairs), name) for name, of in listed.items()}
    sets, own_weights = [], []
    for index, ((X, y), qid, group, weight) in enumerate(zip(pairs, *listed.values(), strict=True)):
        arguments = ("y of eval_set", *listed, "X of eval_set")
        names = QueryNames(*(f"{name}[{index}]" for name in arguments))
        X, qid = split_queries(X, qid, group, names)
        read = read_given(y, qid, group, weight, names, stays=stays and bool(dask_kind(X)))
        sets.append((X, read.y))
        own_weights.append(read.weight)
    return {"eval_set": sets, "sample_weight_eval_set": own_weights}


# --- what a fit learns of them


@dataclass(frozen=True, eq=False)
class RankingTargets(Targets):
    """Relevances of documents, with the numbers of their queries in a second column."""

    numeric = True
    stays = True
    task = "ranking"
    classes = None
    size = 1

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Any) -> "RankingTargets":
        """Check that there are queries."""
        _check_queries(y)
        return cls()

    def encode(self, y: Any, name: str) -> Any:
        """Return relevances and queries as they are."""
        _check_queries(y)
        return y if isinstance(y, RemoteColumn) else np.require(y, np.float64, ["A", "W"])

    def decode(self, y: np.ndarray) -> np.ndarray:
        """Return the relevances."""
        return np.array(y[:, 0])


def _check_queries(y: np.ndarray) -> None:
    if y.ndim != 2:
        raise ValueError(
            "a ranker learns from queries, and this method has no argument for them: call fit "
            "with qid or group"
        )
