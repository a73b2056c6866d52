"""Cut points from the stored values of sparse features: the very ones of the same dense table.

In: a :class:`~sklboost.data.sparse_table.SparseTable` and the weights of its rows. Out:
:class:`~sklboost.engine.structs.BinCuts`.

The one idea: a feature's zeros are one distinct value, and its weight is that of all rows less that
of those with an entry. Weights are rounded so that this is exact.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.cuts import (
    FeatureCuts,
    cut_feature,
    exact_weights,
    join_cuts,
    rows_to_look_at,
)
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.parallel import ThreadTeam, next_task
from sklboost.engine.structs import BinCuts


class _Looked(NamedTuple):
    """What the cuts are found from.

    Attributes
    ----------
    entries : Entries
        By features.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Exact; empty: all 1.
    in_sample : ndarray of bool, shape (n_samples,) or (0,)
        Which rows are looked at first; empty: all.
    """

    entries: Entries
    weight: np.ndarray
    in_sample: np.ndarray


def find_sparse_cuts(
    team: ThreadTeam, table: SparseTable, weight: np.ndarray, max_bin: int
) -> tuple[BinCuts, np.ndarray]:
    """Find the cuts of every feature, and which features have missing values.

    Parameters
    ----------
    team : ThreadTeam
    table : SparseTable
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive. Empty: all 1.
    max_bin : int

    Returns
    -------
    cuts : BinCuts
    has_missing : ndarray of int64, shape (n_features,)
        1 where a feature has missing values, in any row.
    """
    return cut_entries(team, table.by_feature(), len(table), weight, max_bin)


def cut_entries(
    team: ThreadTeam, entries: Entries, n_samples: int, weight: np.ndarray, max_bin: int
) -> tuple[BinCuts, np.ndarray]:
    """Do what :func:`find_sparse_cuts` does for entries that are listed by features."""
    n_missing = np.concatenate([[0], np.cumsum(np.isnan(entries.values))])[entries.starts]
    has_missing = (np.diff(n_missing) > 0).astype(np.int64)
    rows, in_sample = rows_to_look_at(n_samples), np.empty(0, dtype=bool)
    if len(rows) < n_samples:
        in_sample = np.zeros(n_samples, dtype=bool)
        in_sample[rows] = True
    looked = _Looked(entries, exact_weights(weight), in_sample)
    found: list[FeatureCuts] = [None] * len(has_missing)  # type: ignore[list-item]
    team.run(_cut_features, looked, n_samples, max_bin, has_missing, found)
    return join_cuts(found, np.zeros_like(has_missing)), has_missing


def _cut_features(team, looked, n_samples, max_bin, has_missing, found):
    entries, weight, in_sample = looked
    whole = _weight_of(weight, n_samples)
    of_sample = _weight_of(weight[in_sample] if len(weight) else weight, int(in_sample.sum()))
    while (feature := next_task(team, 0)) < len(found):
        missing = bool(has_missing[feature])
        own = slice(entries.starts[feature], entries.starts[feature + 1])
        rows, values = entries.numbers[own], entries.values[own]
        if len(in_sample) > 0:
            chosen = in_sample[rows]
            cuts = _cut(values[chosen], rows[chosen], weight, of_sample, max_bin, missing)
            found[feature] = cuts
            if (cuts.lower != cuts.upper).any():
                continue
            # few values: a rare one may not be in the sample, and each is to have its own bin
        found[feature] = _cut(values, rows, weight, whole, max_bin, missing)


def _cut(values, rows, weight, total, max_bin, missing):
    own_weight = weight[rows] if len(weight) else weight
    absent = total - _weight_of(own_weight, len(rows))
    return cut_feature(values, own_weight, absent, max_bin, missing)


def _weight_of(weight: np.ndarray, n_rows: int) -> float:
    """Give the weight of so many rows; without weights it is their number."""
    return float(weight.sum()) if len(weight) else float(n_rows)
