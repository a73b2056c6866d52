import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.binning import rank_values, rounded_up, table_sizes

inf, nan = np.inf, np.nan
MANY = [256, 257, 511, 512, 4095, 4096, 10_000]


def ranks_of(values, thresholds, missing_rank=0, dtype=np.uint8, more_room=0):
    """Rank values, as many as there are, in a table of these thresholds."""
    n_thresholds = len(thresholds)
    length, shift = map(int, table_sizes(np.array(n_thresholds)))
    table = np.full(length + more_room, nan, dtype=values.dtype)
    table[:n_thresholds] = thresholds
    padded = np.zeros(-(-len(values) // 64) * 64, dtype=values.dtype)
    padded[: len(values)] = values
    ranks = np.full(len(padded), 77, dtype=dtype)
    rank_values(padded, table, np.uint64(shift), dtype(missing_rank), ranks)
    return ranks[: len(values)]


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_thresholds", [0, 1, 2, 15, 16, 17, 32, 33, 239, 240, 255, *MANY])
def test_rank_is_the_number_of_thresholds_at_or_below(n_thresholds, dtype):
    random = np.random.default_rng(n_thresholds)
    thresholds = np.unique(random.normal(size=n_thresholds).astype(dtype))
    values = random.normal(scale=2.0, size=128).astype(dtype)
    values[:2] = [-inf, inf]
    if n_thresholds > 0:
        values[2:4] = thresholds[[0, -1]]
        values[4:68] = random.choice(thresholds, 64)
    rank_dtype = np.uint8 if n_thresholds < 256 else np.uint16
    expected = np.searchsorted(thresholds, values, side="right")
    for more_room in (0, 5, 16, 100):  # as in a table of a feature with fewer cuts than others
        ranks = ranks_of(values, thresholds, dtype=rank_dtype, more_room=more_room)
        assert_array_equal(ranks, expected)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("missing_rank", "dtype", "float_dtype"),
    [(0, np.uint8, float), (255, np.uint8, np.float32), (40_000, np.uint16, float)],
)
def test_missing_and_infinite_values(missing_rank, dtype, float_dtype):
    values = np.tile([nan, -inf, -0.0, 0.5, inf, -nan, 1.0, -1.0], 8).astype(float_dtype)
    ranks = ranks_of(values, [-inf, 0.0, inf], missing_rank, dtype)
    assert_array_equal(ranks[:8], [missing_rank, 1, 2, 2, 3, missing_rank, 2, 1])
    ranks = ranks_of(values, [-inf, 0.0, 1.0], missing_rank, dtype)
    assert_array_equal(ranks[:8], [missing_rank, 1, 2, 2, 3, missing_rank, 3, 1])
    ranks = ranks_of(values, np.arange(-100.0, 100.0) / 100.0, missing_rank, dtype)
    assert_array_equal(ranks[[0, 5]], missing_rank)


THRESHOLDS = [0.1, 0.5, -0.1, 1e300, -1e300, inf, -inf, 2.0**-149, 1e-60, -1e-60, 0.0]


@pytest.mark.interpreted
def test_equal_thresholds():
    values = np.array([0.0, 1.0, 1.5, 2.0, nan])
    assert_array_equal(ranks_of(values, [1.0, 1.0, 1.0, 2.0]), [0, 3, 3, 4, 0])
    many = np.repeat(np.arange(20.0), 20)
    assert_array_equal(ranks_of(values, many, dtype=np.uint16), [20, 40, 40, 60, 0])


def test_thresholds_of_float32_are_the_next_above():
    thresholds = np.array(THRESHOLDS)
    rounded = rounded_up(thresholds)
    assert rounded.dtype == np.float32
    assert (rounded >= thresholds).all()
    with np.errstate(over="ignore"):
        below = np.nextafter(rounded, np.float32(-inf))
    assert (below < thresholds)[thresholds > -inf].all()
    assert rounded[[5, 6]].tolist() == [inf, -inf]
