"""Cut points: where the values of each feature are divided into bins.

With many rows a sample decides, chosen by a hash of the row number, so that the choice does not
depend on how rows are divided among threads or machines; a feature of few values in the sample is
then looked at whole.

Sparse features have the cuts of the same dense ones: the zeros of a feature are one distinct value,
whose weight is that of all rows less that of the rows with an entry. Weights are rounded so that
this is exact.
"""

from collections.abc import Callable

import numpy as np

from sklboost.data.feature_cuts import FeatureCuts, cut_categories, cut_feature, exact_weights
from sklboost.data.raw_values import (
    Values,
    categories_of,
    column_blocks,
    ignore_progress,
    value_blocks,
)
from sklboost.data.row_arrays import row_blocks
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.hashing import mix_bits
from sklboost.engine.parallel import Team, ThreadTeam, assemble, next_task, share
from sklboost.engine.structs import BinCuts

SAMPLE_ROWS = 200_000
# Values are looked at in blocks that stay in the first-level cache.
_BLOCK_ROWS = 256

# Values of a feature, their weights (none: all 1), and the weight of zeros that are not stored.
WeightedValues = tuple[np.ndarray, np.ndarray, float]
Select = Callable[[int], WeightedValues]


@kernel
def sample_rows(n_samples, rows):
    """List about ``len(rows)`` of the rows, chosen by a hash of their number; return how many."""
    n_chosen = 0
    for row in range(n_samples):
        if n_chosen < len(rows):
            bits = np.float64(mix_bits(np.uint64(row & 0xFFFFFFFF)))
            rows[n_chosen] = row
            n_chosen += bits * n_samples < SAMPLE_ROWS * 4294967296.0
    return n_chosen


def rows_to_look_at(n_samples: int) -> np.ndarray:
    """Return the numbers of all rows, or of a sample where there are many."""
    if n_samples <= SAMPLE_ROWS:
        return np.arange(n_samples)
    # the number that the hash picks varies by its square root: 450 around 200,000
    rows = np.empty(SAMPLE_ROWS + 5000, dtype=np.int64)
    return rows[: sample_rows(n_samples, rows)]


@kernel
def find_missing(team, raw, has_missing):
    """Set ``has_missing[feature]`` to 1 where a value is NaN; each member looks at a share."""
    if not assemble(team):
        return
    start, stop = share(team, raw.n_samples)
    for block in range(start, stop, _BLOCK_ROWS):
        for feature in range(raw.n_features):
            n_missing = 0
            for row in range(block, min(block + _BLOCK_ROWS, stop)):
                value = raw.values[row * raw.row_step + feature * raw.feature_step]
                n_missing += value != value
            if n_missing > 0:
                has_missing[feature] = 1  # all who write here write 1


@kernel
def copy_rows(team, raw, rows, first, sample):
    """Fill ``sample[feature, first + i]`` with the values of row ``rows[i]``; each a share."""
    if not assemble(team):
        return
    start, stop = share(team, len(rows))
    for position in range(start, stop):
        of_row = rows[position] * raw.row_step
        for feature in range(raw.n_features):
            sample[feature, first + position] = raw.values[of_row + feature * raw.feature_step]


def survey(
    team: ThreadTeam,
    X: Values,
    rows: np.ndarray,
    tell: Callable[[int], None] = ignore_progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Look at all values once, block by block.

    Parameters
    ----------
    team : ThreadTeam
    X : ndarray of float32 or float64, or table; shape (n_samples, n_features)
    rows : ndarray of int64, shape (n_chosen,)
        The rows of the sample, increasing.
    tell : callable, optional
        Called with the number of rows after each block of them.

    Returns
    -------
    has_missing : ndarray of int64, shape (n_features,)
        1 where a feature has missing values, in any row.
    sample : ndarray of float32 or float64, shape (n_features, n_chosen)
        The values of the sample.
    """
    n_features = X.shape[1]
    has_missing = np.zeros(n_features, dtype=np.int64)
    sample = np.empty((n_features, len(rows)), dtype=X.dtype)
    for block, raw in value_blocks(X, tell):
        team.run(find_missing, raw, has_missing)
        first, stop = np.searchsorted(rows, (block.start, block.stop))
        team.run(copy_rows, raw, rows[first:stop] - block.start, int(first), sample)
    return has_missing, sample


def find_cuts(
    team: ThreadTeam,
    X: Values,
    weight: np.ndarray,
    max_bin: int,
    tell: Callable[[int], None] = ignore_progress,
) -> tuple[BinCuts, np.ndarray]:
    """Find the cuts of every feature, and which features have missing values.

    Parameters
    ----------
    team : ThreadTeam
    X : ndarray of float32 or float64, or table; shape (n_samples, n_features)
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive. Empty: all 1.
    max_bin : int
        Of numbers; each category has a bin.
    tell : callable, optional
        Called with the number of rows after each block of them that was read; the entries of a
        SparseTable are not read in blocks.

    Returns
    -------
    cuts : BinCuts
    has_missing : ndarray of int64, shape (n_features,)
        1 where a feature has missing values, in any row.
    """
    if isinstance(X, SparseTable):
        return find_entry_cuts(team, X.by_feature(), len(X), weight, max_bin)
    rows = rows_to_look_at(len(X))
    has_missing, sample = survey(team, X, rows, tell)
    weight = exact_weights(weight)
    sample_weight = weight[rows] if len(weight) else weight

    def in_sample(feature: int) -> WeightedValues:
        return sample[feature], sample_weight, 0.0

    def in_all(features: list[int]) -> Select:
        return weigh_few(team, X, features, weight).__getitem__

    whole = in_all if len(rows) < len(X) else None
    return cut_all(team, in_sample, whole, has_missing, categories_of(X), max_bin), has_missing


def find_entry_cuts(
    team: ThreadTeam, entries: Entries, n_samples: int, weight: np.ndarray, max_bin: int
) -> tuple[BinCuts, np.ndarray]:
    """Find what :func:`find_cuts` finds, of sparse features; `entries` are listed by features."""
    n_missing = np.concatenate([[0], np.cumsum(np.isnan(entries.values))])[entries.starts]
    has_missing = (np.diff(n_missing) > 0).astype(np.int64)
    sample = rows_to_look_at(n_samples)
    is_part, sampled = len(sample) < n_samples, np.zeros(n_samples, dtype=bool)
    sampled[sample] = True
    weight = exact_weights(weight)
    total = _total(weight, n_samples)
    total_of_sample = _total(weight[sampled] if len(weight) else weight, len(sample))

    def select(feature: int, is_sample: bool) -> WeightedValues:
        stored = slice(entries.starts[feature], entries.starts[feature + 1])
        rows, values = entries.numbers[stored], entries.values[stored]
        if is_sample:
            chosen = sampled[rows]
            rows, values = rows[chosen], values[chosen]
        of_rows = weight[rows] if len(weight) else weight
        absent = (total_of_sample if is_sample else total) - _total(of_rows, len(rows))
        return values, of_rows, absent

    def in_sample(feature: int) -> WeightedValues:
        return select(feature, is_part)

    def in_all(features: list[int]) -> Select:
        return lambda feature: select(feature, False)

    n_categories, whole = np.zeros_like(has_missing), in_all if is_part else None
    return cut_all(team, in_sample, whole, has_missing, n_categories, max_bin), has_missing


def weigh_few(
    team: ThreadTeam, X: Values, features: list[int], weight: np.ndarray
) -> dict[int, WeightedValues]:
    """Return for each feature its distinct values, which are few, and their weights.

    Some values come several times. An array, which may be a memory map, is gone through once, with
    all features; tables are columns, and read one by one. `weight` is exact.
    """
    found: list[list[WeightedValues]] = [[] for _ in features]
    blocks = row_blocks(len(X)) if isinstance(X, np.ndarray) else [slice(0, len(X))]
    for rows in blocks:
        part = X[rows] if isinstance(X, np.ndarray) else X
        team.run(_weigh_features, part, features, weight[rows], found)
    joined = {}
    for feature, parts in zip(features, found, strict=True):
        values, masses, _ = zip(*parts, strict=True)
        joined[feature] = (np.concatenate(values), np.concatenate(masses), 0.0)
    return joined


def _weigh_features(
    team: Team,
    X: Values,
    features: list[int],
    weight: np.ndarray,
    found: list[list[WeightedValues]],
) -> None:
    """Add to `found` what a block has; each member of the team takes one feature after another."""
    if not assemble(team):
        return
    while (place := next_task(team, 0, len(features))) < len(features):
        found[place].append(weigh_distinct(X, features[place], weight))


def weigh_distinct(X: Values, feature: int, weight: np.ndarray) -> WeightedValues:
    """Return the distinct values of a feature, some of them several times, and their weights.

    Looked at in blocks of rows, since they are few where this is asked for. `weight` is exact.
    """
    found, masses, first = [np.empty(0, X.dtype)], [np.empty(0)], 0
    for values in column_blocks(X, feature):
        of_rows = weight[first : first + len(values)]
        if len(weight) == 0:
            distinct, mass = np.unique(values, return_counts=True)
        else:
            distinct, places = np.unique(values, return_inverse=True)
            mass = np.bincount(places, of_rows, minlength=len(distinct))
        n_present = len(distinct) - np.count_nonzero(np.isnan(distinct))  # NaN is last
        found.append(distinct[:n_present])
        masses.append(mass[:n_present].astype(np.float64))
        first += len(values)
    return np.concatenate(found), np.concatenate(masses), 0.0


def _total(weight: np.ndarray, n_rows: int) -> float:
    return float(weight.sum()) if len(weight) else float(n_rows)


def cut_all(
    team: ThreadTeam,
    in_sample: Select,
    whole: Callable[[list[int]], Select] | None,
    has_missing: np.ndarray,
    n_categories: np.ndarray,
    max_bin: int,
) -> BinCuts:
    """Find the cuts of every feature, and put them behind one another.

    Parameters
    ----------
    team : ThreadTeam
    in_sample : callable
        Returns the values of a feature in the sample; called from several threads.
    whole : callable or None
        Is given features, and returns what gives their values in all rows. None: the sample has
        all rows.
    has_missing, n_categories : ndarray of int64, shape (n_features,)
    max_bin : int
    """
    found: list[FeatureCuts] = [None] * len(n_categories)  # type: ignore[list-item]
    everything = list(range(len(found)))
    team.run(_cut_features, in_sample, everything, has_missing, n_categories, int(max_bin), found)
    if whole is not None:
        # few values: a rare one may not be in the sample, and each is to have a bin of its own
        few = [i for i in everything if n_categories[i] == 0 and _are_single(found[i])]
        team.run(_cut_features, whole(few), few, has_missing, n_categories, int(max_bin), found)
    starts = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(feature.cuts) for feature in found], out=starts[1:])
    cuts, lower, upper = map(np.concatenate, zip(*found, strict=True))
    return BinCuts(cuts, starts, lower, upper, n_categories)


def _are_single(cuts: FeatureCuts) -> bool:
    """Whether every bin has one value."""
    return bool((cuts.lower == cuts.upper).all())


def _cut_features(
    team: Team,
    select: Select,
    features: list[int],
    has_missing: np.ndarray,
    n_categories: np.ndarray,
    max_bin: int,
    found: list[FeatureCuts],
) -> None:
    """Fill `found` for some features; each member of the team takes one after another."""
    if not assemble(team):
        return
    while (place := next_task(team, 0, len(features))) < len(features):
        feature = features[place]
        if n_categories[feature] > 0:
            found[feature] = cut_categories(int(n_categories[feature]))
        else:
            found[feature] = cut_feature(*select(feature), max_bin, bool(has_missing[feature]))
