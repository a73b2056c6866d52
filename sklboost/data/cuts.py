"""Cut points: where the values of each feature are divided into bins."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklboost.data.raw_values import Values, column_blocks, row_blocks, value_blocks
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import mix_bits
from sklboost.engine.parallel import Team, ThreadTeam, assemble, next_task, share
from sklboost.engine.sorting import order_floats, sort_floats
from sklboost.engine.structs import BinCuts

# Weights of bins that differ by less than this part of their mean are equal, so that a tie stays
# one when all weights are multiplied by a number, which rounds them. Whole weights that are not
# equal differ by half a row divided by the number of bins or more: more than this up to 2^29 rows.
_TIE = 2.0**-30


class FeatureCuts(NamedTuple):
    """The cuts of one feature and the extreme values of its bins, as in BinCuts."""

    cuts: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


@inlined
def midpoint(below, above):
    """Return a float64 t with ``below < t <= above``: halfway where one lies between."""
    if math.isinf(below) or math.isinf(above):
        return above  # nothing lies halfway to infinity
    middle = below / 2.0 + above / 2.0  # halved first: their sum may overflow
    return middle if below < middle <= above else above


@kernel
def divide_values(ordered, weight, absent, sizes, distinct, bins):
    """Divide the values of one feature into bins; return how many there are.

    The first of `sizes` is how many distinct values may have a bin each; of more there are so many
    bins as the second says. `bins`, (3, max(sizes)), is filled with the smallest and the largest
    value of each, and the cut between it and the next; `distinct`, (2, n + 1), is scratch. The
    other arguments are as for :func:`distinct_values`.
    """
    values, mass = distinct
    n_bins, total = distinct_values(ordered, weight, absent, values, mass)
    lower, upper, cuts = bins
    if n_bins > sizes[0]:
        n_bins = merge_values(values[:n_bins], mass[:n_bins], total, sizes[1], lower, upper)
    else:
        for bin_ in range(n_bins):
            lower[bin_] = upper[bin_] = values[bin_]
    for bin_ in range(n_bins - 1):
        cuts[bin_] = midpoint(upper[bin_], lower[bin_ + 1])
    return n_bins


@inlined
def distinct_values(ordered, weight, absent, values, mass):
    """Fill `values` and `mass` with the distinct values of an increasing array and their weights.

    Returns how many there are, and the sum of the weights. NaN, at the end, is left out. Weights
    are made by :func:`exact_weights`, so their sums are exact; without any, each value counts 1.
    `absent` is the weight of the zeros that are not stored; then no others are.
    """
    # what is added to stays in registers
    n_distinct, last, last_mass, total = 0, np.nan, 0.0, absent
    for position in range(len(ordered) + 1):
        is_end = position == len(ordered) or ordered[position] != ordered[position]
        if absent > 0.0 and (is_end or ordered[position] > 0.0):
            values[n_distinct], mass[n_distinct] = 0.0, absent
            n_distinct, absent = n_distinct + 1, 0.0
        if is_end:
            break
        if ordered[position] != last:
            # of equal zeros, -0.0 and 0.0, the first depends on the order of the rows
            last, last_mass = ordered[position] + 0.0, 0.0
            values[n_distinct] = last
            n_distinct += 1
        added = weight[position] if len(weight) > 0 else 1.0
        last_mass += added
        total += added
        mass[n_distinct - 1] = last_mass
    return n_distinct, total


@inlined
def fair_share(mass, total, n_bins, room):
    """Return the weight of a bin if every value heavier than that has a bin of its own.

    And the weight of all others together, and how many are heavier. `total` is the sum of `mass`;
    what is heavier by less than `room` is not.
    """
    light, n_heavy = total, 0
    share_ = total / n_bins + room
    while True:
        n_heavy_before, n_heavy = n_heavy, 0
        for weight in mass:
            n_heavy += weight > share_
        if n_heavy > n_heavy_before:
            light = 0.0
            for weight in mass:
                light += 0.0 if weight > share_ else weight
        # ends: each time round there are more heavy values, or it is over
        if n_heavy <= n_heavy_before or n_heavy >= n_bins:
            return share_, light, n_heavy
        share_ = light / (n_bins - n_heavy) + room  # smaller, so perhaps more values are heavy


@inlined
def merge_values(values, mass, total, n_bins, lower, upper):
    """Gather distinct values in at most `n_bins` bins of about equal weight; return how many.

    Values heavier than a fair share have bins of their own, with a few light ones before them at
    the most; the others divide the rest evenly: a bin is closed where its weight is nearest its
    share of what is left. `values` are increasing, `mass` has their weights and `total` the sum;
    `lower` and `upper` are filled with the smallest and largest value of each bin.
    """
    room = _TIE * total / n_bins
    heavy, light_left, n_heavy = fair_share(mass, total, n_bins, room)
    light_bins = n_bins - n_heavy
    target = light_left / max(light_bins, 1) + room
    filled = 0.0  # light weight in the open bin
    bin_ = 0
    lower[0] = values[0]
    for position in range(len(values) - 1):
        bins_left = n_bins - bin_
        if bins_left == 1:
            break
        is_heavy, next_is_heavy = mass[position] > heavy, mass[position + 1] > heavy
        filled += 0.0 if is_heavy else mass[position]
        # before a heavy value a bin is closed if it is more full than not
        reach = filled + (filled if next_is_heavy else mass[position + 1] / 2.0)
        values_left = len(values) - 1 - position
        if is_heavy or reach > target or values_left < bins_left:
            upper[bin_] = values[position]
            bin_ += 1
            lower[bin_] = values[position + 1]
            light_left -= filled
            light_bins -= 0 if is_heavy else 1
            target = light_left / max(light_bins, 1) + room
            filled = 0.0
    upper[bin_] = values[-1]
    return bin_ + 1


def exact_weights(weight: np.ndarray) -> np.ndarray:
    """Round weights, not all 0, so that any of them add up to the same bits in any order.

    They become multiples of a power of two of which all together are less than 2^53. Positive ones
    stay positive.
    """
    if len(weight) == 0:
        return weight
    exact, most = np.empty(len(weight)), float(weight.max()) * len(weight)
    for _ in range(2):  # a sum of floats depends on the order; of rounded ones it does not
        step = math.ldexp(1.0, math.frexp(most)[1] - 52)
        for rows in row_blocks(len(weight)):
            exact[rows] = np.maximum(np.rint(weight[rows] / step), weight[rows] > 0.0) * step
        most = float(exact.sum())
    return exact


def heaviest_first(masses: np.ndarray) -> np.ndarray:
    """Order masses, sums of exact weights, from the largest on; equal ones by their place."""
    order = np.argsort(-masses)
    falls = -np.diff(masses[order], prepend=masses.max()) > _TIE * masses.mean()
    rank = np.empty(len(masses), dtype=np.int64)
    rank[order] = falls.cumsum()
    return rank.argsort(kind="stable")


def cut_feature(
    values: np.ndarray, weight: np.ndarray, absent: float, max_bin: int, missing: bool
) -> FeatureCuts:
    """Find the cuts of one feature, whose values may have NaN.

    At most `max_bin` distinct values become a bin each; otherwise there are `max_bin` bins, the one
    for missing values counted. `weight` and `absent` are as for :func:`distinct_values`.
    """
    if len(weight) == 0:
        ordered = sort_floats(values)
    else:
        ordered, order = order_floats(values)
        weight = weight[order]
    sizes = (max_bin, max(1, max_bin - int(missing)))
    # of few distinct values, most of this memory is never touched
    distinct, bins = np.empty((2, len(ordered) + 1)), np.empty((3, max(sizes)))
    n_bins = divide_values(ordered, weight, absent, sizes, distinct, bins)
    if n_bins == 0:
        nothing = np.zeros(1)
        return FeatureCuts(np.empty(0), nothing, nothing)
    lower, upper, cuts = bins[:, :n_bins].copy()
    return FeatureCuts(cuts[:-1], lower, upper)


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
def look_at(team, raw, rows, first, has_missing, sample):
    """Set ``has_missing[feature]`` to 1 where a value is NaN, and copy the values of some rows.

    Those of row ``rows[i]`` go to ``sample[:, first + i]``. Each member looks at a share.
    """
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
    start, stop = share(team, len(rows))
    for position in range(start, stop):
        of_row = rows[position] * raw.row_step
        for feature in range(raw.n_features):
            sample[feature, first + position] = raw.values[of_row + feature * raw.feature_step]


def survey(
    team: ThreadTeam, X: Values, rows: np.ndarray, tell: Callable[[int], None] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Look at all values once, block by block: which are missing, and the values of a sample.

    The first result is 1 where a feature has a missing value in any row, int64; the second has the
    values of `rows`, increasing numbers, shape (n_features, n_chosen). `tell` is called with the
    number of rows after each block of them.
    """
    n_features = X.shape[1]
    has_missing = np.zeros(n_features, dtype=np.int64)
    sample = np.empty((n_features, len(rows)), dtype=X.dtype)
    for block, raw in value_blocks(X, tell):
        first, stop = np.searchsorted(rows, (block.start, block.stop))
        chosen = rows[first:stop] - block.start
        team.run(look_at, raw, chosen, int(first), has_missing, sample)
    return has_missing, sample


def find_cuts(
    team: ThreadTeam,
    X: Values,
    weight: np.ndarray,
    max_bin: int,
    tell: Callable[[int], None] | None = None,
) -> tuple[BinCuts, np.ndarray]:
    """Find the cuts of every feature, and which features have missing values, 1 or 0.

    `weight`, shape (n_samples,) or (0,), is positive. Numbers have at most `max_bin` bins, each
    category has one. `tell` is called with the number of rows after each block of them that was
    read; the entries of a SparseTable are not read in blocks.
    """
    if isinstance(X, SparseTable):
        return find_entry_cuts(team, X.by_feature(), len(X), weight, max_bin)
    rows = rows_to_look_at(len(X))
    has_missing, sample = survey(team, X, rows, tell)
    sample_weight = weight
    if len(weight) > 0:
        weight = exact_weights(weight)
        sample_weight = weight[rows]
    cuts = cut_all(
        team,
        lambda feature: (sample[feature], sample_weight, 0.0),
        None if len(rows) == len(X) else lambda few: weigh_few(team, X, few, weight).__getitem__,
        has_missing,
        np.zeros(X.shape[1], np.int64) if isinstance(X, np.ndarray) else X.n_categories,
        max_bin,
    )
    return cuts, has_missing


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

    def total(weight: np.ndarray, n_rows: int) -> float:
        return float(weight.sum()) if len(weight) else float(n_rows)

    total_of_all = total(weight, n_samples)
    total_of_sample = total(weight[sampled] if len(weight) else weight, len(sample))

    def select(feature: int, is_sample: bool = False) -> WeightedValues:
        stored = slice(entries.starts[feature], entries.starts[feature + 1])
        rows, values = entries.numbers[stored], entries.values[stored]
        if is_sample:
            chosen = sampled[rows]
            rows, values = rows[chosen], values[chosen]
        of_rows = weight[rows] if len(weight) else weight
        absent = (total_of_sample if is_sample else total_of_all) - total(of_rows, len(rows))
        return values, of_rows, absent

    cuts = cut_all(
        team,
        lambda feature: select(feature, is_part),
        (lambda few: select) if is_part else None,
        has_missing,
        np.zeros_like(has_missing),
        max_bin,
    )
    return cuts, has_missing


def weigh_few(
    team: ThreadTeam, X: Values, features: list[int], weight: np.ndarray
) -> dict[int, WeightedValues]:
    """Return for each feature its distinct values, which are few, and their weights.

    Some values come several times. An array, which may be a memory map, is gone through once, with
    all features; tables are columns, and read one by one. `weight` is exact.
    """
    found: list[list[WeightedValues]] = [[] for _ in features]

    def weigh_features(team: Team, part: Values, weight: np.ndarray) -> None:
        if not assemble(team):
            return
        while (place := next_task(team, 0, len(features))) < len(features):
            found[place].append(weigh_distinct(part, features[place], weight))

    for rows in row_blocks(len(X)) if isinstance(X, np.ndarray) else [slice(0, len(X))]:
        part = X[rows] if isinstance(X, np.ndarray) else X
        team.run(weigh_features, part, weight[rows])
    joined = {}
    for feature, parts in zip(features, found, strict=True):
        values, masses, _ = zip(*parts, strict=True)
        joined[feature] = (np.concatenate(values), np.concatenate(masses), 0.0)
    return joined


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


def cut_all(
    team: ThreadTeam,
    in_sample: Select,  # called from several threads
    # is given features, and returns what gives their values in all rows; None: the sample has all
    whole: Callable[[list[int]], Select] | None,
    has_missing: np.ndarray,
    n_categories: np.ndarray,
    max_bin: int,
) -> BinCuts:
    """Find the cuts of every feature, and put them behind one another."""
    found: list[FeatureCuts] = [None] * len(n_categories)  # type: ignore[list-item]

    def cut_features(team: Team, select: Select, features: list[int]) -> None:
        if not assemble(team):
            return
        while (place := next_task(team, 0, len(features))) < len(features):
            feature = features[place]
            if n_categories[feature] > 0:  # a bin is a code
                codes = np.arange(n_categories[feature], dtype=np.float64)
                found[feature] = FeatureCuts(codes[1:] - 0.5, codes, codes)
            else:
                is_missing = bool(has_missing[feature])
                found[feature] = cut_feature(*select(feature), int(max_bin), is_missing)

    team.run(cut_features, in_sample, list(range(len(found))))
    if whole is not None:
        # few values: a rare one may not be in the sample, and each is to have a bin of its own
        few = [
            feature
            for feature, own in enumerate(found)
            if n_categories[feature] == 0 and (own.lower == own.upper).all()
        ]
        team.run(cut_features, whole(few), few)
    starts = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(feature.cuts) for feature in found], out=starts[1:])
    cuts, lower, upper = map(np.concatenate, zip(*found, strict=True))
    return BinCuts(cuts, starts, lower, upper, n_categories)
