import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.engine.compiling import kernel
from sklboost.tree.core.gain_limits import (
    BLOCK_BINS,
    Blocks,
    allocate_blocks,
    fill_limits,
    limit_terms,
    may_improve,
    sum_blocks,
)
from sklboost.tree.core.quantization import pack
from sklboost.tree.core.workspace import SPLIT_DTYPE
from tests.tree.test_splitting import gains_of, prepare, scan, task_of

inf, nan = np.inf, np.nan


@kernel
def blocks_with_sums(cells, blocks):
    return sum_blocks(cells, blocks)


def blocks_from(cells):
    """Return the blocks of a feature's cells, with their sums, and how many there are."""
    blocks = Blocks(*(array[0] for array in allocate_blocks(1, len(cells))))
    return blocks, blocks_with_sums(cells, blocks)


def limits_of(search, task, cells, left_start=0):
    """Return the limit of each block of a feature's cells."""
    blocks, n_blocks = blocks_from(cells)
    limits = blocks.limits[0, :n_blocks]
    terms = limit_terms(search, task.total, task.similarity)
    fill_limits(terms, blocks, np.int64(left_start), limits)
    return limits


def most_of_blocks(numbers):
    """Return the largest number of each block."""
    starts = range(0, len(numbers), BLOCK_BINS)
    return np.array([numbers[start : start + BLOCK_BINS].max() for start in starts])


@pytest.mark.interpreted
@pytest.mark.parametrize("n_bins", [1, 7, 8, 9, 16, 30])
def test_sums_of_blocks(n_bins):
    cells = np.random.default_rng(n_bins).integers(-(2**50), 2**50, n_bins)
    starts = np.arange(0, n_bins, BLOCK_BINS)
    blocks, n_blocks = blocks_from(cells)
    assert n_blocks == len(starts)
    before = np.concatenate([[0], np.cumsum(cells)])
    assert_array_equal(blocks.sums, [*before[starts], before[-1]])
    assert_array_equal(blocks.positive_sums, np.add.reduceat(np.maximum(cells, 0), starts))


@pytest.mark.interpreted
@pytest.mark.parametrize("settings", [
    {}, dict(reg_lambda=1.0), dict(reg_lambda=1e9), dict(reg_alpha=3.0), dict(max_delta_step=0.1),
    dict(reg_lambda=0.5, reg_alpha=1.0, max_delta_step=0.5, min_child_weight=3.0),
])  # fmt: skip
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30])
def test_no_gain_is_above_the_limit_of_its_block(settings, scale):
    random = np.random.default_rng(0)
    for n in (2, 5, 8, 21, 64):
        X, mean = random.integers(0, n, 3 * n), random.normal()
        gradient = scale * (random.normal(mean, 1.0, 3 * n) + 0.1 * X)
        hessian = random.uniform(0.1, 1.0, 3 * n)
        search, histogram, total = prepare(X, gradient, hessian, **settings)
        cells, missing = histogram[:-1], histogram[-1]  # the last bin as if of missing values
        sums = np.cumsum(cells) - cells
        task = task_of(search, histogram, total)[1]
        for left_start in (np.int64(0), missing):
            gains = gains_of(search, histogram, total, left_start, sums)
            limits = limits_of(search, task, cells, left_start)
            assert (limits >= most_of_blocks(gains)).all()


@pytest.mark.parametrize("n_rows", [500, 5000])
def test_few_blocks_have_a_limit_above_the_best_gain(n_rows):
    random = np.random.default_rng(0)
    X = random.normal(size=n_rows)
    settings = dict(reg_lambda=1.0, min_child_weight=1.0)
    search, histogram, total = prepare(X, (X > 0.3) + random.normal(size=n_rows), **settings)
    task = task_of(search, histogram, total)[1]
    limits = limits_of(search, task, histogram)
    best = gains_of(search, histogram, total, 0, np.cumsum(histogram) - histogram).max()
    assert 1 <= (limits >= best).sum() <= 4 < len(limits) / 4


@pytest.mark.interpreted
def test_limits_where_no_split_is_allowed():
    gradient = np.repeat([1.0, -1.0], 16)
    search, histogram, total = prepare(np.arange(32.0), gradient, min_child_weight=12.0)
    limits = limits_of(search, task_of(search, histogram, total)[1], histogram)
    assert_array_equal(limits > -inf, [False, True, True, False])  # 12 to 20 rows on the left
    search, histogram, total = prepare(np.arange(32.0), gradient, min_child_weight=17.0)
    limits = limits_of(search, task_of(search, histogram, total)[1], histogram)
    assert_array_equal(limits, -inf)


@pytest.mark.interpreted
@pytest.mark.parametrize(("reg_lambda", "hessian_unit"), [(0.0, 1e-200), (1.0, 1e-200), (1e300, 1)])
def test_no_limits_where_their_numbers_would_overflow(reg_lambda, hessian_unit):
    gradient = 1e6 * np.repeat([1.0, -1.0], 8)
    search, histogram, total = prepare(np.arange(16.0), gradient, reg_lambda=reg_lambda)
    search.scales[0, 1] *= hessian_unit
    task = task_of(search, histogram, total)[1]
    assert_array_equal(limits_of(search, task, histogram), inf)
    sums = np.cumsum(histogram) - histogram
    for best_gain in (-inf, 1e300):
        assert may_improve(limit_terms(search, total, 0.0), sums, np.int64(0), best_gain)
    assert scan(search, histogram, total).feature == 0


@pytest.mark.interpreted
def test_limits_with_an_alpha_that_overflows():
    search, _, total = prepare(np.arange(16.0), np.ones(16), reg_alpha=1e308)
    assert limit_terms(search, total, nan).rest == inf


@pytest.mark.interpreted
@pytest.mark.parametrize("reg_lambda", [0.2, 1e-5, 0.7 * 2.0**-20])
def test_the_divisor_of_a_small_side_does_not_cancel(reg_lambda):
    # a side with a hessian of 1 beside one of 2^32: H + lambda would be rounded
    search, _, _ = prepare(np.arange(2.0), [1, -1], reg_lambda=reg_lambda)
    search.scales[0] = 1.0
    for cells in (
        [pack(1e6, 2.0**32 - 3), pack(-1e6, 1.0)],
        [pack(-1e6, 1.0), pack(1e6, 4e9)],
        [pack(1e9, 4e9), pack(-1e6, 1.0)],  # gradients that do not cancel
    ):
        histogram = np.array(cells)
        total, sums = histogram.sum(), np.cumsum(histogram) - histogram
        task = task_of(search, histogram, total)[1]
        gain = gains_of(search, histogram, total, 0, sums)[1]
        assert limits_of(search, task, histogram)[0] >= gain
        assert may_improve(task.limit_terms, sums, np.int64(0), gain * (1.0 - 1e-9))
        assert not may_improve(task.limit_terms, sums, np.int64(0), gain * (1.0 + 1e-5))


def best_by_listing(search, histogram, total, has_missing, best):
    """Return gain, bin, bin below, side of missing values and left sum, from a list of all splits.

    The first of equal ones, and `best`, such a tuple, unless one is better.
    """
    cells = histogram[:-1] if has_missing else histogram
    occupied = np.flatnonzero(cells)
    sums = (np.cumsum(cells) - cells)[occupied]
    starts = [0, histogram[-1]] if has_missing and histogram[-1] != 0 else [0]
    gains = np.array([gains_of(search, histogram, total, start, sums) for start in starts])
    for place in range(len(occupied)):
        for default_left in range(len(starts)):
            if gains[default_left, place] > best[0]:
                below = occupied[place - 1] if place > 0 else -1
                left = starts[default_left] + sums[place]
                best = (gains[default_left, place], occupied[place], below, default_left, left)
    return best


@pytest.mark.interpreted
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("n_bins", [1, 2, 8, 13, 40])
@pytest.mark.parametrize("settings", [
    dict(reg_lambda=1.0), dict(min_child_weight=2.0), dict(reg_lambda=0.3, reg_alpha=1.0),
])  # fmt: skip
def test_the_best_split_is_that_of_a_list_of_all(n_bins, has_missing, settings):
    random = np.random.default_rng(n_bins)
    X = np.append(np.arange(float(n_bins)), [nan] * has_missing)
    search, histogram, _ = prepare(X, np.ones(len(X)), **settings)
    search.scales[0] = 1.0
    n_found = n_kept = 0
    for _ in range(100):
        # few values, so that there are ties; many empty bins, also at both ends
        gradient = random.integers(-2, 3, len(histogram)) * (random.random(len(histogram)) < 0.4)
        hessian = np.abs(gradient) + (random.random(len(histogram)) < 0.1)
        cells = (gradient.astype(np.int64) << 32) + hessian.astype(np.int64)
        if has_missing:
            cells[-1] = random.integers(0, 2) * ((random.integers(-3, 4) << 32) + 4)
        total, nothing = cells.sum(), (-inf, 0, 0, 0, 0)
        if total == 0:
            continue
        gain = best_by_listing(search, cells, total, has_missing, nothing)[0]
        # as if a feature before had a gain: none, the same, a little less
        for start in (-inf, gain, gain - 0.1):
            best = np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
            best.gain = start
            expected = best_by_listing(search, cells, total, has_missing, (start, 0, 0, 0, 0))
            best = scan(search, cells, total, best=best)
            found = (best.gain, best.bin, best.below, best.default_left, best.left_sum)
            assert found == expected
            n_found += best.gain > start
            n_kept += -inf < start == best.gain
    if n_bins > 2:
        assert min(n_found, n_kept) > 20
