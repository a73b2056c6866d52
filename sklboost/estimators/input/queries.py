"""Queries of a ranker: which rows are documents of one query, and how targets bring that along.

A ranker's targets have two columns once they are read: relevances, and numbers of queries. So rows
keep their query wherever they are chosen. Queries of validation rows have negative numbers: they
are others, whatever their labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_array, column_or_1d

from sklboost.estimators.input.arguments import one_each, row_values
from sklboost.estimators.input.targets import Targets, read_targets


class GivenQueries(NamedTuple):
    """Rows of a ranker as `fit` passes them on."""

    y: np.ndarray  # float64, shape (n_samples, 2): relevances, and numbers of queries
    weight: np.ndarray | None  # float64, shape (n_samples,), or None
    labels: np.ndarray  # shape (n_samples,): what the user calls each row's query


class QueryNames(NamedTuple):
    """What the arguments of a set of rows are called, for errors."""

    y: str = "y"
    qid: str = "qid"
    group: str = "group"
    weight: str = "sample_weight"


def read_given(
    y: Any,
    qid: Any,
    group: Any,
    sample_weight: Any,
    names: QueryNames | None = None,
    caller: str = "",
) -> GivenQueries:
    """Check relevances, queries and their weights, given by either way.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
    qid : array-like of shape (n_samples,) or None
        The query of each row: numbers, text, or other labels.
    group : array-like of int, shape (n_queries,), or None
        Or how many rows each query has, one query after the other.
    sample_weight : array-like of shape (n_queries,) or (n_samples,), or None
    names : QueryNames or None
        Of validation rows; None: those of the training.
    caller : str
        Name of the estimator's class in a fit; empty: other rows.

    Raises
    ------
    ValueError
        If there are no queries, or both forms; for wrong lengths, labels that are missing, weights
        that differ within a query.
    """
    is_validation, names = names is not None, names or QueryNames()
    relevances = read_targets(y, names.y, numeric=True, caller=caller)
    if relevances.ndim != 1:
        raise ValueError(
            f"{names.y} has shape {relevances.shape}: it must be 1-D, one relevance for each row"
        )
    labels = _query_labels(qid, group, len(relevances), names)
    numbers, first = _number_queries(labels, names.qid)
    weight = None
    if sample_weight is not None:
        weight = _spread_weights(sample_weight, numbers, first, names.weight)
    numbers = ~numbers if is_validation else numbers
    return GivenQueries(np.column_stack([relevances, numbers]).astype(np.float64), weight, labels)


def _query_labels(qid: Any, group: Any, n_rows: int, names: QueryNames) -> np.ndarray:
    if (qid is None) == (group is None):
        what = "neither is" if qid is None else "both are"
        raise ValueError(
            f"{what} given of {names.qid} and {names.group}: a ranker needs one of them, the query "
            f"of each row ({names.qid}=[0, 0, 1]) or the number of rows of each query "
            f"({names.group}=[2, 1])"
        )
    if group is not None:
        sizes = row_values(group, names.group, "sizes")
        sizes = column_or_1d(
            check_array(sizes, ensure_2d=False, dtype=None, input_name=names.group)
        )
        is_size = (sizes >= 1) & (sizes == np.floor(sizes)) & (sizes.dtype.kind != "b")
        place = int(np.argmin(is_size))
        wrong = f"their sum is {sizes.sum():g}" if sizes.sum() != n_rows else ""
        wrong = wrong if is_size.all() else f"{names.group}[{place}] is {sizes[place]!s}"
        if wrong:
            raise ValueError(
                f"{names.group} has {len(sizes)} numbers, and {wrong}: they must be whole, >= 1, "
                f"and their sum the number of rows, {n_rows}; for one label a row, use {names.qid}"
            )
        return np.repeat(np.arange(len(sizes)), sizes.astype(np.intp))
    return one_each(qid, names.qid, "query", n_rows)


def _number_queries(labels: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each row's query, in the order in which they first appear, and where."""
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


def _spread_weights(given: Any, numbers: np.ndarray, first: np.ndarray, name: str) -> np.ndarray:
    """Return the weight of each row, given by rows or by queries."""
    if isinstance(given, Real):
        given = np.full(len(first), given)
    weight = row_values(given, name, "weights")
    weight = check_array(weight, dtype=np.float64, ensure_2d=False, input_name=name)
    if weight.shape == (len(first),):
        spread: np.ndarray = weight[numbers]
        return spread
    if weight.shape != numbers.shape:
        raise ValueError(
            f"{name} has shape {weight.shape}: it must be 1-D, one weight for each of the "
            f"{len(first)} queries, in the order of their first rows, or for each of the "
            f"{len(numbers)} rows"
        )
    differs = weight != weight[first][numbers]
    if differs.any():
        row = int(np.argmax(differs))
        raise ValueError(
            f"{name}[{row}]={weight[row]:g}, but the first row of this query has "
            f"{weight[first][numbers][row]:g}: all rows of a query have the same weight"
        )
    return weight


# --- validation rows


def read_sets(
    arguments: dict[str, Any],
) -> dict[str, Any]:
    """Return the arguments of fit for validation rows with the queries in their targets.

    `arguments` are those of fit by name, with `qid_val` and `group_val`, or `eval_qid` and
    `eval_group`, which are not in the result. ValueError for queries without rows, or the reverse.
    """
    given = dict(arguments)
    own = {name: given.pop(name) for name in ("qid_val", "group_val", "eval_qid", "eval_group")}
    if given["X_val"] is not None and given["y_val"] is not None:
        names = QueryNames("y_val", "qid_val", "group_val", "sample_weight_val")
        read = read_given(
            *(given["y_val"], own["qid_val"], own["group_val"], given["sample_weight_val"]),
            names,
        )
        given |= {"y_val": read.y, "sample_weight_val": read.weight}
        own |= {"qid_val": None, "group_val": None}
    elif isinstance(given["eval_set"], list | tuple) and _are_pairs(given["eval_set"]):
        given |= _read_eval_set(given, own["eval_qid"], own["eval_group"])
        own |= {"eval_qid": None, "eval_group": None}
    for name, value in own.items():
        if value is not None:
            rows = "X_val and y_val" if name.endswith("_val") else "eval_set"
            raise ValueError(f"{name} is given without {rows}")
    return given


def _are_pairs(sets: Sequence[Any]) -> bool:
    return all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in sets)


def _read_eval_set(given: dict[str, Any], qids: Any, groups: Any) -> dict[str, Any]:
    pairs = given["eval_set"]
    weights = given["sample_weight_eval_set"]
    listed = {"eval_qid": qids, "eval_group": groups, "sample_weight_eval_set": weights}
    for name, values in listed.items():
        if values is None:
            listed[name] = [None] * len(pairs)
        elif not isinstance(values, list | tuple) or len(values) != len(pairs):
            raise ValueError(
                f"{name} must be a list with one entry (or None) for each of the {len(pairs)} "
                "pairs of eval_set"
            )
    read = [
        read_given(
            *(pair[1], qid, group, weight),
            QueryNames(*(f"{name}[{index}]" for name in ("y of eval_set", *listed))),
        )
        for index, (pair, qid, group, weight) in enumerate(
            zip(pairs, *listed.values(), strict=True)
        )
    ]
    return {
        "eval_set": [(pair[0], of_set.y) for pair, of_set in zip(pairs, read, strict=True)],
        "sample_weight_eval_set": [of_set.weight for of_set in read],
    }


# --- what a fit learns of them


@dataclass(frozen=True, eq=False)
class RankingTargets(Targets):
    """Relevances of documents, with the numbers of their queries in a second column."""

    numeric = True
    task = "ranking"
    classes = None
    size = 1

    @classmethod
    def learn(cls, y: np.ndarray, weight: np.ndarray, parameters: Any) -> "RankingTargets":
        """Check that there are queries."""
        _check_queries(y)
        return cls()

    def encode(self, y: np.ndarray, name: str) -> np.ndarray:
        """Return relevances and queries as they are."""
        _check_queries(y)
        return np.require(y, np.float64, ["A", "W"])

    def decode(self, y: np.ndarray) -> np.ndarray:
        """Return the relevances."""
        return np.array(y[:, 0])


def _check_queries(y: np.ndarray) -> None:
    if y.ndim != 2:
        raise ValueError(
            "a ranker learns from queries, and this method has no argument for them: call fit "
            "with qid or group"
        )
