"""Cut points: where the values of each feature are divided into bins."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from sklboost.data.raw_values import Values, column_blocks, read_only, row_blocks, value_blocks
from sklboost.data.sparse_table import Entries, SparseTable
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import mix_bits
from sklboost.engine.parallel import FAR_APART, Team, ThreadTeam, assemble, next_task, share
from sklboost.engine.sorting import COUNTS_SHAPE, sort_bits, sort_floats
from sklboost.engine.structs import BinCuts

# Weights of bins that differ by less than this part of their mean are equal, so that a tie stays
# one when all weights are multiplied by a number, which rounds them. Whole weights that are not
# equal differ by half a row divided by the number of bins or more: more than this up to 2^29 rows.
_TIE = 2.0**-30


@inlined
def midpoint(below, above):
    """Return a float64 t with ``below < t <= above``: halfway where one lies between."""
    if math.isinf(below) or math.isinf(above):
        return above  # nothing lies halfway to infinity
    middle = below / 2.0 + above / 2.0  # halved first: their sum may overflow
    return middle if below < middle <= above else above


@inlined
def divide_values(ordered, rows, weight, absent, sizes, distinct, bins):
    """Divide the values of one feature into bins; return how many there are, at least 1.

    The first of `sizes` is how many distinct values may have a bin each; of more there are so many
    bins as the second says. `bins`, (3, n) with n no less than either, is filled with the smallest
    and the largest value of each, and the cut between it and the next; `distinct`, (2, n), is
    scratch. The other arguments are as for :func:`distinct_values`.
    """
    values, mass = distinct[0], distinct[1]  # unpacked, they would not be known as contiguous
    n_bins = distinct_values(ordered, rows, weight, absent, values, mass)
    lower, upper, cuts = bins
    if n_bins == 0:
        lower[0] = upper[0] = 0.0
        return 1
    if n_bins > sizes[0]:
        n_bins = merge_values(values[:n_bins], mass[:n_bins], mass[n_bins], sizes[1], lower, upper)
    else:
        for bin_ in range(n_bins):
            lower[bin_] = upper[bin_] = values[bin_]
    for bin_ in range(n_bins - 1):
        cuts[bin_] = midpoint(upper[bin_], lower[bin_ + 1])
    return n_bins


@kernel
def distinct_values(ordered, rows, weight, absent, values, mass):
    """Fill `values` and `mass` with the distinct values of an increasing array and their weights.

    Returns how many there are; behind their weights is the sum. NaN, at the end, is left out.
    Value i weighs ``weight[rows[i]]``. Weights are made by :func:`exact_weights`, so their sums are
    exact; without any, each value counts 1. `absent` is the weight of the zeros that are not
    stored; then no others are.
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
            last, last_mass = ordered[position], 0.0
            values[n_distinct] = last
            n_distinct += 1
        added = weight[rows[position]] if len(weight) > 0 else 1.0
        last_mass += added
        total += added
        mass[n_distinct - 1] = last_mass
    mass[n_distinct] = total
    return n_distinct


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


def exact_weights(weight: Any) -> Any:
    """Round weights, not all 0, so that any of them add up to the same bits in any order.

    They become multiples of a power of two of which all together are less than 2^53. Positive ones
    stay positive. Return an array, or a column of a column.
    """
    if len(weight) == 0:
        return weight
    step = exact_step(weight)
    if not isinstance(weight, np.ndarray):
        return _round_weights(weight, step)
    exact = np.empty(len(weight))
    for rows in row_blocks(len(weight)):
        exact[rows] = _round_weights(weight[rows], step)
    return exact


def exact_step(weight: Any) -> float:
    """Return the power of two whose multiples exact weights are."""
    most = float(weight.max()) * len(weight)
    # a sum of floats depends on the order; of rounded ones it does not
    return _fine_step(exact_total(weight, _fine_step(most)))


def exact_total(weight: Any, step: float) -> float:
    """Return the sum of the weights rounded to multiples of `step`."""
    if not isinstance(weight, np.ndarray):
        return float(_round_weights(weight, step).sum())
    blocks = row_blocks(len(weight))
    return float(sum(_round_weights(weight[rows], step).sum() for rows in blocks))


def _round_weights(weight: Any, step: float) -> Any:
    """Round weights to multiples of `step`, positive ones to positive multiples."""
    return np.maximum(np.rint(weight / step), weight > 0.0) * step


def _fine_step(most: float) -> float:
    """Return a power of two of which `most` is less than 2^53."""
    return math.ldexp(1.0, math.frexp(most)[1] - 52)


def heaviest_first(masses: np.ndarray) -> np.ndarray:
    """Order masses, sums of exact weights, from the largest on; equal ones by their place."""
    order = np.argsort(-masses)
    falls = -np.diff(masses[order], prepend=masses.max()) > _TIE * masses.mean()
    rank = np.empty(len(masses), dtype=np.int64)
    rank[order] = falls.cumsum()
    return rank.argsort(kind="stable")


SAMPLE_ROWS = 200_000
# Values are looked at in blocks that stay in the first-level cache.
_BLOCK_ROWS = 256


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
        after = min(block + _BLOCK_ROWS, stop)
        if raw.feature_step == 1:  # rows lie in one piece, which vector instructions look at
            n_missing = 0
            for value in raw.values[block * raw.row_step : after * raw.row_step]:
                n_missing += value != value
            if n_missing == 0:
                continue
        for feature in range(raw.n_features):
            n_missing = 0
            for row in range(block, after):
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
    """Look at all values once: return which features lack some, and the values of these `rows`."""
    n_features = X.shape[1]
    has_missing = np.zeros(n_features, dtype=np.int64)
    sample = np.empty((n_features, len(rows)), dtype=X.dtype)
    for block, raw in value_blocks(X, tell):
        first, stop = np.searchsorted(rows, (block.start, block.stop))
        chosen = rows[first:stop] - block.start
        team.run(look_at, raw, chosen, int(first), has_missing, sample)
    return has_missing, sample


class StoredValues(NamedTuple):
    """Values of features, those of one behind those of another, and the weights of their rows."""

    entries: Entries  # without `numbers` each feature has a value of every row, in order
    chosen: np.ndarray  # bool, shape (n_rows,): the rows that are looked at; (0,): all
    weight: np.ndarray  # float64, shape (n_rows,): exact; (0,): all 1
    # float64, shape (n_features,): of all rows that are looked at. What is left of it weigh zeros
    # that are not stored.
    totals: np.ndarray


def whole_columns(columns: np.ndarray, weight: np.ndarray) -> StoredValues:
    """Return the values of features, an array of shape (n_features, n_rows), as they are."""
    n_features, n_rows = columns.shape
    arrays = (np.arange(n_features + 1) * n_rows, np.empty(0, np.int32), columns.reshape(-1))
    totals = np.full(n_features, weight.sum() if len(weight) > 0 else n_rows, dtype=np.float64)
    return StoredValues(Entries(*map(read_only, arrays)), np.zeros(0, bool), weight, totals)


def find_cuts(
    team: ThreadTeam,
    X: Values,
    weight: np.ndarray,
    max_bin: int,
    tell: Callable[[int], None] | None = None,
) -> tuple[BinCuts, np.ndarray]:
    """Find the cuts of every feature, and which features have missing values, 1 or 0.

    Numbers have at most `max_bin` bins, each category has one. `weight` is positive, or empty.
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
        whole_columns(sample, sample_weight),
        None if len(rows) == len(X) else lambda few: weigh_few(team, X, few, weight),
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
    sample, weight = rows_to_look_at(n_samples), exact_weights(weight)
    sampled = np.zeros(n_samples if len(sample) < n_samples else 0, dtype=bool)
    sampled[sample[: len(sampled)]] = True

    def stored(chosen: np.ndarray) -> StoredValues:
        of_rows = weight[chosen] if len(weight) > 0 and len(chosen) > 0 else weight
        n_chosen = np.count_nonzero(chosen) if len(chosen) > 0 else n_samples
        total = float(of_rows.sum()) if len(weight) > 0 else float(n_chosen)
        return StoredValues(entries, chosen, weight, np.full(len(has_missing), total))

    whole = (lambda few: stored(np.zeros(0, dtype=bool))) if len(sampled) > 0 else None
    no_categories = np.zeros_like(has_missing)
    return cut_all(team, stored(sampled), whole, has_missing, no_categories, max_bin), has_missing


def weigh_few(team: ThreadTeam, X: Values, features: list[int], weight: np.ndarray) -> StoredValues:
    """Return the distinct values of some features, which are few, and their exact weights.

    An array, which may be a memory map, is gone through once, with all features; tables are
    columns, and read one by one.
    """
    found: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in features]

    def weigh_features(team: Team, part: Values, weight: np.ndarray) -> None:
        if not assemble(team):
            return
        while (place := next_task(team, 0, len(features))) < len(features):
            found[place].append(weigh_distinct(part, features[place], weight))

    blocks = row_blocks(len(X)) if isinstance(X, np.ndarray) else [slice(0, len(X))]
    for rows in blocks if features else []:
        part = X[rows] if isinstance(X, np.ndarray) else X
        team.run(weigh_features, part, weight[rows])
    return join_distinct(X.shape[1], features, found)


def weigh_distinct(X: Values, feature: int, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of a feature, some of them several times, and their weights.

    Looked at in blocks of rows, since they are few where this is asked for. `weight` is exact.
    """
    found, masses, first = [np.empty(0, X.dtype)], [np.empty(0)], 0
    for values in column_blocks(X, feature):
        of_rows = weight[first : first + len(values)]
        ordered, order = sort_floats(values, np.arange(len(of_rows)))
        distinct, mass = np.empty((2, len(values) + 1))  # mostly never touched
        n_distinct = distinct_values(ordered, order, of_rows, 0.0, distinct, mass)
        found.append(distinct[:n_distinct].astype(X.dtype))
        masses.append(mass[:n_distinct].copy())
        first += len(values)
    return np.concatenate(found), np.concatenate(masses)


def join_distinct(
    n_features: int,
    features: list[int],
    found: Sequence[Sequence[tuple[np.ndarray, np.ndarray]]],
) -> StoredValues:
    """Join what was found of some features: of each, parts of its values and their weights."""
    lengths, totals = np.zeros(n_features, np.int64), np.zeros(n_features)
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    for feature, own in sorted(zip(features, found, strict=True), key=lambda pair: pair[0]):
        parts += own
        lengths[feature] = sum(len(mass) for _, mass in own)
        totals[feature] = sum(float(mass.sum()) for _, mass in own)
    values, weight = map(np.concatenate, zip(*parts, strict=True)) if parts else np.empty((2, 0))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    arrays = (starts, np.arange(len(values), dtype=np.int32), values)
    return StoredValues(Entries(*map(read_only, arrays)), np.zeros(0, bool), weight, totals)


class _Scratch(NamedTuple):
    """What each member sorts the values of a feature in."""

    bits: np.ndarray  # uint32 or uint64, shape (2, n_members, n)
    values: np.ndarray  # the same memory, as floats
    rows: np.ndarray  # int64, shape (2, n_members, n); (2, n_members, 0) without weights
    counts: np.ndarray  # int64, shape (n_members, *COUNTS_SHAPE)
    distinct: np.ndarray  # float64, shape (n_members, 2, n)


class _Found(NamedTuple):
    """The bins of all features: those of number i have the room from ``starts[i]`` on."""

    starts: np.ndarray  # int64, shape (n_features + 1,)
    n_bins: np.ndarray  # int64, shape (n_features,)
    bins: np.ndarray  # float64, shape (3, n): as `divide_values` fills them


@kernel
def cut_features(team, stored, features, limits, scratch, found):
    """Find the bins of some features; `limits` are the most bins, and which have missing values.

    At most `max_bin` distinct values become a bin each; otherwise there are `max_bin` bins, the one
    for missing values counted.
    """
    if not assemble(team):
        return
    max_bin, has_missing = limits
    starts, numbers, given = stored.entries.starts, stored.entries.numbers, stored.entries.values
    chosen, weight = stored.chosen, stored.weight
    place = next_task(team, 0, len(features))
    while place < len(features):
        feature = features[place]
        values, rows = scratch.values[0, team.rank], scratch.rows[0, team.rank]
        first, stop = starts[feature], starts[feature + 1]
        n_values, mass = 0, 0.0
        if len(numbers) == 0:
            n_values, mass = stop - first, stored.totals[feature]
            for row in range(n_values):
                values[row] = given[first + row]
            for row in range(min(n_values, len(rows))):
                rows[row] = row
        for index in range(first, first if len(numbers) == 0 else stop):
            row = numbers[index]
            if len(chosen) == 0 or chosen[row]:
                values[n_values] = given[index]
                if len(rows) > 0:
                    rows[n_values] = row
                mass += weight[row] if len(rows) > 0 else 1.0
                n_values += 1
        n_rows = min(n_values, len(rows))
        in_spare = sort_bits(
            scratch.bits[0, team.rank, :n_values],
            scratch.rows[0, team.rank, :n_rows],
            scratch.bits[1, team.rank, :n_values],
            scratch.rows[1, team.rank, :n_rows],
            scratch.counts[team.rank],
        )
        found.n_bins[feature] = divide_values(
            scratch.values[in_spare, team.rank, :n_values],
            scratch.rows[in_spare, team.rank],
            weight,
            stored.totals[feature] - mass,
            (max_bin, max(1, max_bin - has_missing[feature])),
            scratch.distinct[team.rank],
            found.bins[:, found.starts[feature] : found.starts[feature + 1]],
        )
        place = next_task(team, 0, len(features))


def cut_all(
    team: ThreadTeam,
    in_sample: StoredValues,
    # is given features, and returns their values in all rows; None: the sample has all
    whole: Callable[[list[int]], StoredValues] | None,
    has_missing: np.ndarray,
    n_categories: np.ndarray,
    max_bin: int,
) -> BinCuts:
    """Find the cuts of every feature, and put them behind one another."""
    # of entries that are sampled, too, these are all
    room = np.minimum(np.diff(in_sample.entries.starts) + 1, max_bin)
    room = np.where(n_categories > 0, n_categories, room)
    starts = np.concatenate([[0], np.cumsum(room)])
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], room)
    # of categories a bin is a code
    found = _Found(starts, np.array(n_categories), np.array([place, place, place + 0.5]))
    lower, upper, cuts = found.bins

    def cut(stored: StoredValues, features: np.ndarray) -> None:
        dtype = stored.entries.values.dtype
        longest = int(np.diff(stored.entries.starts).max(initial=0))
        shape = (2, team.size, longest + FAR_APART)
        bits = np.empty(shape, f"u{dtype.itemsize}")
        rows = np.empty(shape if len(stored.weight) > 0 else (*shape[:2], 0), np.int64)
        counts = np.empty((team.size, *COUNTS_SHAPE), np.int64)
        distinct = np.empty((team.size, 2, shape[2]))
        scratch = _Scratch(bits, bits.view(dtype), rows, counts, distinct)
        team.run(cut_features, stored, features, (int(max_bin), has_missing), scratch, found)

    cut(in_sample, np.flatnonzero(n_categories == 0))
    if whole is not None:
        # few values: a rare one may not be in the sample, and each is to have a bin of its own
        few = [
            feature
            for feature, (first, n_bins) in enumerate(zip(starts, found.n_bins, strict=False))
            if n_categories[feature] == 0
            and (lower[first : first + n_bins] == upper[first : first + n_bins]).all()
        ]
        stored = whole(few)
        if few:
            cut(stored, np.array(few))
    bins_of_place = np.repeat(found.n_bins, room)
    is_bin, is_cut = place < bins_of_place, place + 1 < bins_of_place
    ends = np.concatenate([[0], np.cumsum(found.n_bins - 1)])
    return BinCuts(cuts[is_cut], ends, lower[is_bin], upper[is_bin], n_categories)
