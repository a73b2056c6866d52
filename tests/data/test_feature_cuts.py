import math
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.data.cuts import cut_all, exact_weights, midpoint, whole_columns
from sklboost.engine.parallel import ThreadTeam

NO_WEIGHT = np.empty(0)
inf, nan = math.inf, math.nan


class FeatureCuts(NamedTuple):
    cuts: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def cut(values, max_bin=256, weight=NO_WEIGHT, dtype=float):
    values = np.asarray(values, dtype=dtype)
    has_missing = np.array([np.isnan(values).any()], dtype=np.int64)
    stored = whole_columns(values[np.newaxis], np.asarray(weight, dtype=float))
    with ThreadTeam(1) as team:
        cuts = cut_all(team, stored, None, has_missing, np.zeros(1, dtype=np.int64), max_bin)
    return FeatureCuts(cuts.cuts, cuts.lower, cuts.upper)


def assert_same_cuts(one, other):
    for first, second in zip(one, other, strict=True):
        assert_array_equal(first, second)


# --- midpoints -----------------------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("below", "above", "expected"),
    [
        (1.0, 2.0, 1.5),
        (-3.0, 3.0, 0.0),
        (-0.0, 1.0, 0.5),
        (1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 2)),  # nothing between
        (0.0, 5e-324, 5e-324),
        (-5e-324, 0.0, 0.0),
        (1.5e308, 1.7e308, 1.6e308),  # their sum overflows
        (-1.7e308, 1.7e308, 0.0),
        (-inf, 3.0, 3.0),
        (3.0, inf, inf),
        (-inf, inf, inf),
        (2.0**53, 2.0**53 + 2, 2.0**53 + 2),
    ],
)
def test_midpoint(below, above, expected):
    assert midpoint(below, above) == expected
    assert below < midpoint(below, above) <= above


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_exact_weights_add_up_to_the_same_bits_in_any_order(scale):
    weight = np.random.default_rng(0).exponential(size=300) ** 4 * scale
    exact = exact_weights(weight)
    assert_allclose(exact, weight, rtol=1e-9, atol=weight.max() * 300 * 2.0**-51)
    assert (exact > 0.0).all()
    assert exact.cumsum()[-1] == exact[::-1].cumsum()[-1] == np.sort(exact).cumsum()[-1]
    assert exact.sum() - exact[:7].cumsum()[-1] == exact[7:].cumsum()[-1]


@pytest.mark.interpreted
def test_whole_weights_stay_what_they_are():
    weight = np.arange(1.0, 40.0)
    assert_array_equal(exact_weights(weight), weight)
    assert len(exact_weights(NO_WEIGHT)) == 0


# --- one feature, every distinct value a bin -----------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("n_values", [2, 5, 16])
@pytest.mark.parametrize("missing", [False, True])
def test_every_distinct_value_is_a_bin_up_to_max_bin(n_values, missing):
    values = np.repeat(np.arange(n_values, dtype=float), np.arange(n_values) + 1)
    values = np.append(values, nan) if missing else values
    assert list(cut(values, max_bin=n_values).lower) == list(range(n_values))
    if n_values > 2:
        fewer = cut(values, max_bin=n_values - 1)  # now the missing bin counts, too
        assert len(fewer.lower) == n_values - 1 - missing


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("values", "cuts", "bins"),
    [
        ([3, 1, 1, 8, 3, 3], [2, 5.5], [1, 3, 8]),
        ([nan, nan], [], [0.0]),
        ([7.0, 7.0, nan], [], [7.0]),
        ([-0.0, 0.0, 1.0], [0.5], [0.0, 1.0]),
        ([-inf, 0.0, inf], [0.0, inf], [-inf, 0.0, inf]),
        ([inf, -inf, nan], [inf], [-inf, inf]),
        ([inf, inf], [], [inf]),
        ([5e-324, 0.0], [5e-324], [0.0, 5e-324]),
    ],
)
def test_every_distinct_value_of_any_column_is_a_bin(values, cuts, bins):
    found = cut(values)
    assert found.cuts.dtype == found.lower.dtype == float
    assert list(found.cuts) == cuts
    assert list(found.lower) == list(found.upper) == bins


@pytest.mark.interpreted
@pytest.mark.parametrize("first", [1.7e18, 2.0**53, 1.0, -1e-300, 123456789.123])
def test_float64_values_that_differ_in_the_last_bit_are_different(first):
    values = [first]
    for _ in range(5):
        values.append(np.nextafter(values[-1], inf))
    found = cut(values[::-1])
    assert list(found.lower) == values
    bins = np.searchsorted(found.cuts, values, side="right")
    assert list(bins) == list(range(6))


# --- one feature, more values than bins ----------------------------------------------------------


@pytest.mark.interpreted
def test_bins_of_equal_weight():
    found = cut(np.arange(12), max_bin=4)
    assert list(found.cuts) == [2.5, 5.5, 8.5]
    assert list(found.lower) == [0, 3, 6, 9]
    assert list(found.upper) == [2, 5, 8, 11]


@pytest.mark.interpreted
def test_bins_of_equal_weight_with_weights():
    found = cut(np.arange(6), max_bin=3, weight=[4, 1, 3, 2, 1, 1])
    assert list(found.upper) == [0, 2, 5]


@pytest.mark.interpreted
@pytest.mark.parametrize(("heavy", "alone"), [(0, 0), (5, 1), (10, 2)])
def test_a_heavy_value_has_a_bin_of_its_own(heavy, alone):
    values = np.concatenate([np.arange(11), np.full(50, heavy)])
    found = cut(values, max_bin=3)
    assert found.lower[alone] == found.upper[alone] == heavy
    assert len(found.lower) == 3
    if heavy == 5:
        assert list(found.upper) == [4, 5, 10]


@pytest.mark.interpreted
def test_two_bins():
    assert list(cut(np.arange(10), max_bin=2).cuts) == [4.5]
    one = cut([*range(10), nan], max_bin=2)  # the other one is for missing values
    assert len(one.cuts) == 0
    assert (one.lower[0], one.upper[0]) == (0, 9)


@pytest.mark.parametrize("seed", range(10))
def test_all_bins_are_used_and_beside_its_heaviest_value_none_holds_more_than_its_share(seed):
    random = np.random.default_rng(seed)
    n_values, max_bin = int(random.integers(20, 400)), int(random.integers(2, 20))
    values = np.sort(random.normal(size=n_values))
    weight = random.exponential(size=n_values) ** 3  # some are as heavy as ten others
    found = cut(values, max_bin=max_bin, weight=weight)
    assert len(found.lower) == max_bin
    assert list(found.lower[1:]) == list(values[np.searchsorted(values, found.upper[:-1]) + 1])
    assert (found.upper[:-1] < found.cuts).all()
    assert (found.cuts <= found.lower[1:]).all()
    for low, high in zip(found.lower, found.upper, strict=True):
        inside = weight[(values >= low) & (values <= high)]
        # a heavy value may be joined by the few light ones before it
        assert inside.sum() - inside.max() <= 1.5 * weight.sum() / max_bin


def test_light_values_on_both_sides_of_a_heavy_one_share_the_bins_evenly():
    values = np.arange(96.0)
    found = cut(values, max_bin=8, weight=np.where(values == 40, 1000.0, 1.0))
    counts = np.searchsorted(values, found.upper, side="right") - np.searchsorted(
        values, found.lower
    )
    assert len(counts) == 8
    assert counts[3] == 1
    assert set(np.delete(counts, 3)) <= {12, 13, 14, 15}  # 95 values in 7 bins


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_repetitions(seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=200).round(2)
    values[:10] = nan
    weight = random.integers(1, 5, 200)
    weighted = cut(values, max_bin=9, weight=weight)
    assert_same_cuts(weighted, cut(np.repeat(values, weight), max_bin=9))
    assert len(weighted.cuts) == 7
    assert_same_cuts(weighted, cut(values, max_bin=9, weight=weight * 1024.0))


@pytest.mark.parametrize(
    "draw_weight",
    [
        lambda random, values: random.integers(1, 4, len(values)),
        lambda random, values: random.poisson(3, len(values)) + 1,
        lambda random, values: np.rint(np.exp(2 * random.normal(size=len(values)))) + 1,
        lambda random, values: np.where(values > 0, 1000, 1),
        lambda random, values: random.exponential(size=len(values)) ** 3,
    ],
    ids=["few", "counts", "of_many_sizes", "by_value", "real"],
)
def test_a_factor_of_all_weights_changes_no_cut(draw_weight):
    random = np.random.default_rng(0)
    for n_rows in np.exp(random.uniform(np.log(20), np.log(20_000), 60)).astype(int):
        values = random.normal(size=n_rows)
        if n_rows % 2:
            values = values.round(int(random.integers(1, 4)))
        max_bin = int(random.integers(2, 300))
        weight = draw_weight(random, values).astype(float)
        expected = cut(values, max_bin, exact_weights(weight))
        for factor in (1 / weight.mean(), 1 / weight.sum(), 0.1, np.exp(random.uniform(-99, 99))):
            assert_same_cuts(cut(values, max_bin, exact_weights(weight * factor)), expected)
        if (weight == weight.astype(int)).all():
            copies = np.repeat(values, weight.astype(int))
            assert_same_cuts(cut(copies, max_bin), expected)


def test_the_order_of_the_rows_does_not_matter():
    random = np.random.default_rng(0)
    values, weight = random.normal(size=500).round(1), random.integers(1, 9, 500)
    order = random.permutation(500)
    first = cut(values, max_bin=12, weight=weight)
    assert_same_cuts(first, cut(values[order], max_bin=12, weight=weight[order]))
