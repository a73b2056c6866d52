"""Cut points of features on a cluster: the same, bit for bit, as those of the rows in one place.

Each partition gives its rows of the sample. Of features that have few values in the sample, it also
gives the distinct values in all its rows, and their weights.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sklboost.data.binning import VALUES_PER_THREAD
from sklboost.data.cuts import (
    Select,
    WeightedValues,
    cut_all,
    rows_to_look_at,
    survey,
    weigh_distinct,
)
from sklboost.data.feature_cuts import exact_weights
from sklboost.distributed.columns import Encoder
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts
from sklboost.engine.thread_counts import n_threads_for

if TYPE_CHECKING:
    from sklboost.distributed.features import ClusterFeatures


class ClusterCuts(NamedTuple):
    """Where the values of each feature are divided."""

    cuts: BinCuts
    # int64, shape (n_features,): 1 where a feature has missing values, in any row
    has_missing: np.ndarray
    # bool, shape (n_features,): whether a feature has the same value in every row, or is missing in
    # every row
    is_constant: np.ndarray


@np.errstate(all="ignore")
def find_cluster_cuts(
    X: "ClusterFeatures", weight: np.ndarray, max_bin: int, n_jobs: int | None
) -> ClusterCuts:
    """Find what `find_cuts` finds of the same rows in one place, in one pass or two.

    `weight` is positive, float64, of shape (n_samples,) or (0,); `n_jobs` is for the work here.
    """
    rows, n_categories = rows_to_look_at(len(X)), X.encoder.n_categories
    of_partitions = np.split(rows, np.searchsorted(rows, X.bounds[1:-1]))
    sampled = [part - first for part, first in zip(of_partitions, X.bounds[:-1], strict=True)]
    missing, samples = zip(*X.results(survey_partition, sampled), strict=True)
    has_missing, sample = np.max(missing, axis=0), np.concatenate(samples, axis=1)
    weight = exact_weights(weight)
    sample_weight = weight[rows] if len(weight) else weight
    distinct: dict[int, WeightedValues] = {}

    def in_sample(feature: int) -> WeightedValues:
        return sample[feature], sample_weight, 0.0

    def whole(few: list[int]) -> Select:
        # and of those two categories, of which one may have no row
        pairs = np.flatnonzero((n_categories > 0) & (n_categories <= 2)).tolist()
        distinct.update(_distinct_values(X, weight, [*few, *pairs]))
        return distinct.__getitem__

    n_threads = n_threads_for(n_jobs, sample.size, VALUES_PER_THREAD)
    is_part = len(rows) < len(X)
    with ThreadTeam(n_threads) as team:
        cuts = cut_all(
            team, in_sample, whole if is_part else None, has_missing, n_categories, max_bin
        )
    select = distinct.__getitem__ if is_part else in_sample
    is_constant = np.zeros(len(has_missing), dtype=bool)
    for feature in np.flatnonzero(np.diff(cuts.starts) + 1 + has_missing <= 2).tolist():
        values = select(feature)[0]
        n_found = len(np.unique(values[~np.isnan(values)])) + has_missing[feature]
        is_constant[feature] = n_found == 1
    return ClusterCuts(cuts, has_missing, is_constant)


def _distinct_values(
    X: "ClusterFeatures", weight: np.ndarray, features: list[int]
) -> dict[int, WeightedValues]:
    """Return the distinct values of some features in all rows, and their weights."""
    if not features:
        return {}
    weights: Sequence[Any] = X.divide(weight) if len(weight) else [None] * (len(X.bounds) - 1)
    found = X.results(distinct_values_of, weights, features=features)
    joined = {}
    for place, feature in enumerate(features):
        values, masses = zip(*(of_partition[place] for of_partition in found), strict=True)
        joined[feature] = (np.concatenate(values), np.concatenate(masses), 0.0)
    return joined


# --- tasks


@np.errstate(all="ignore")
def survey_partition(
    partition: Any, rows: slice | np.ndarray, sampled: np.ndarray, *, encoder: Encoder
) -> tuple[np.ndarray, np.ndarray]:
    """Return which features have missing values in some rows, and the values of those sampled.

    `sampled` are places among the `rows`. See :func:`~sklboost.data.cuts.survey`.
    """
    with ThreadTeam(1) as team:
        return survey(team, encoder.features(partition, rows), sampled)


@np.errstate(all="ignore")
def distinct_values_of(
    partition: Any,
    rows: slice | np.ndarray,
    weight: np.ndarray | None,
    *,
    features: list[int],
    encoder: Encoder,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return for each of some features its distinct values, but NaN, and the weight of each."""
    X, weight = encoder.features(partition, rows), np.empty(0) if weight is None else weight
    return [weigh_distinct(X, feature, weight)[:2] for feature in features]
