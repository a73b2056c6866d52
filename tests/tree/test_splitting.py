import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.engine.compiling import kernel
from sklboost.engine.elementary import hash_key
from sklboost.tree.core.formulas import leaf_weight, similarity_at
from sklboost.tree.core.gain_limits import (
    BLOCK_BINS,
    Blocks,
    fill_limits,
    limits_of_node,
    may_improve,
    sum_blocks,
)
from sklboost.tree.core.quantization import pack, unpack, weigh
from sklboost.tree.core.splitting import SearchTask, fill_gains, scan_features
from sklboost.tree.core.workspace import SPLIT_DTYPE, allocate_workspace
from sklboost.tree.options.constrained_weights import clip_to_bounds, fill_constrained_gains
from tests.tree.growth import (
    NO_WEIGHT,
    binned,
    make_search,
    params,
    plain_histogram,
    quantize_together,
    run,
)

pytestmark = pytest.mark.interpreted

inf, nan = np.inf, np.nan


def prepare(X, gradient, hessian=None, **settings):
    """Return (search, histogram of all rows, total) for one node that owns all rows."""
    gradient = np.asarray(gradient, dtype=np.float32)
    hessian = np.ones_like(gradient) if hessian is None else np.asarray(hessian, dtype=np.float32)
    matrix = binned(np.asarray(X, dtype=float).reshape(len(gradient), -1))
    workspace = allocate_workspace(matrix, params(max_depth=1), 1, 1)
    derivatives = weigh(*np.atleast_2d(gradient, hessian), NO_WEIGHT, 1)
    to_quantize = (derivatives, np.uint64(0), workspace.gradients, workspace.machines)
    run(quantize_together, *to_quantize)
    packed, scales = workspace.gradients.packed, workspace.gradients.scales
    histogram = plain_histogram(matrix, packed[0], np.arange(len(gradient)))
    search = make_search(matrix, scales, params(**settings), packed=packed)
    return search, histogram, packed.sum()


def task_of(search, histogram, total, bounds=(-inf, inf)):
    """Return a workspace and the search of a node that is a root, but for its bounds."""
    workspace = allocate_workspace(search.matrix, params(max_depth=1), 1, 1)
    scratch, output = workspace.scratch, workspace.tree.outputs[0, 0]
    sums = unpack(total, search.scales[0])
    weight = clip_to_bounds(leaf_weight(*sums, search.params), *bounds)
    output.weight, output.hessian, (output.lower, output.upper) = weight, sums[1], bounds
    similarity = similarity_at(*sums, weight, search.params)
    limits = limits_of_node(search, total, similarity, scratch.blocks, 0)
    # a kernel that returns views to Python returns the arrays that they are views of
    limits = limits._replace(blocks=Blocks(*(array[0] for array in scratch.blocks)))
    workspace.tree.growth[0].n_rows = 1000
    facts, rows = (0, 0, 0, total, similarity, limits), (scratch.sums[0], scratch.gains[0])
    return workspace, SearchTask(*facts, histogram, *rows)


def gains_of(search, histogram, total, left_start, sums, *, sign=0, bounds=(-inf, inf)):
    """Return the gains of all splits."""
    workspace, task = task_of(search, histogram, total, bounds=bounds)
    gains = np.empty(len(sums))
    constraint = (np.int64(sign), np.int64(left_start))
    fill_constrained_gains(search, workspace, task, constraint, sums, gains)
    if sign == 0 and bounds == (-inf, inf) and search.params.path_smooth == 0.0:
        plain = np.empty(len(sums))
        fill_gains(search, task, sums, left_start, plain)
        assert_array_equal(plain, gains)  # the same where nothing holds a leaf weight
    return gains


def scan(search, histogram, total, feature=0, best=None, key=0):
    """Return the best split of one feature, or the given one if none is better."""
    if best is None:
        best = np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
        best.gain, best.feature = -inf, -1
    search.columns.key[0] = key
    workspace, task = task_of(search, histogram, total)
    scan_features(search, workspace, task, np.array([feature]), best)
    return best


# --- the worked example: what may be split -------------------------------------------------------

DOSAGE, RESIDUALS = [10.0, 20.0, 25.0, 35.0], [-10.5, 6.5, 7.5, -7.5]


@pytest.mark.parametrize(
    ("least", "allowed"), [(1.0, [1, 2, 3]), (1.5, [2]), (2.0, [2]), (2.1, [])]
)
def test_min_child_weight(least, allowed):
    search, histogram, total = prepare(DOSAGE, np.negative(RESIDUALS), min_child_weight=least)
    sums = np.cumsum(histogram) - histogram
    found = gains_of(search, histogram, total, np.int64(0), sums)
    assert list(np.flatnonzero(found > -inf)) == allowed
    assert scan(search, histogram, total).feature == (0 if allowed else -1)


def test_children_without_hessian_are_not_allowed():
    search, _, _ = prepare(DOSAGE, [1, -1, 1, -1])
    histogram = np.array([pack(1.0, 0.0), pack(-1.0, 5.0), pack(1.0, 5.0), pack(-1.0, 0.0)])
    sums = np.cumsum(histogram) - histogram
    found = gains_of(search, histogram, histogram.sum(), np.int64(0), sums)
    assert_array_equal(found > -inf, [False, False, True, False])


# --- order and bounds of the leaf weights, random thresholds ------------------------------------


def gains_of_dosage(sign=0, bounds=(-inf, inf)):
    search, histogram, total = prepare(DOSAGE, np.negative(RESIDUALS))
    sums = np.cumsum(histogram) - histogram
    return gains_of(search, histogram, total, np.int64(0), sums, sign=sign, bounds=bounds)


def test_only_splits_in_order():
    # weights left and right: -10.5 and 2.17, -2 and 0, 1.17 and -7.5
    assert_array_equal(gains_of_dosage(1) > -inf, [False, True, True, False])
    assert_array_equal(gains_of_dosage(-1) > -inf, [False, False, False, True])
    free = gains_of_dosage(0)
    for sign in (1, -1):
        allowed = gains_of_dosage(sign) > -inf
        assert_array_equal(gains_of_dosage(sign)[allowed], free[allowed])


def test_gains_of_bounded_weights():
    # at 15: weights -10.5 and 13 / 6 become -3 and 1; that of the node is -1, as without bounds
    gain = (2 * 10.5 * 3 - 3**2) + (2 * 6.5 * 1 - 3 * 1**2) - 4
    assert_allclose(gains_of_dosage(0, (-3.0, 1.0))[1], gain)
    # both sides at the bound: no order is broken, nothing is gained
    assert_allclose(gains_of_dosage(1, (-1.0, -1.0))[1:], 0.0, atol=1e-9)


def test_one_random_threshold():
    X, gradient = np.arange(8.0), np.array([5, 1, 1, 1, -1, -1, -1, -5])
    search, histogram, total = prepare(X, gradient, extra_trees=True)
    best = np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
    bins = []
    for key in range(700):
        best.gain = -inf
        scan(search, histogram, total, best=best, key=hash_key(key, 0, 0))
        bins.append(int(best.bin))
        assert best.below == best.bin - 1
        left = gradient[: best.bin].sum()
        assert_allclose(best.gain, left**2 / best.bin + left**2 / (8 - best.bin), rtol=1e-6)
    counts = np.bincount(bins, minlength=8)
    assert counts[0] == 0
    assert np.abs(counts[1:] - 100).max() < 45  # 4.5 standard deviations


def test_random_thresholds_and_missing_values():
    X, gradient = [0, 1, 2, nan, nan], [3, 0, -3, -4, -4]
    search, histogram, total = prepare(X, gradient, extra_trees=True)
    found = set()
    for key in range(60):
        best = scan(search, histogram, total, key=hash_key(key, 0, 0))
        found.add((int(best.bin), int(best.default_left)))
    assert found == {(0, 1), (1, 0), (2, 0)}  # missing alone is one of the places
    for X in ([1, 1, 1], [nan, nan, nan]):
        search, histogram, total = prepare(X, [1, 2, -3], extra_trees=True)
        assert scan(search, histogram, total).gain == -inf


# --- limits of gains, which spare the search of most bins ----------------------------------------


@pytest.mark.parametrize("settings", [
    {}, dict(reg_lambda=1.0), dict(reg_alpha=3.0), dict(max_delta_step=0.1),
    dict(reg_lambda=0.5, reg_alpha=1.0, max_delta_step=0.5, min_child_weight=3.0),
    dict(path_smooth=3.0), dict(reg_lambda=0.5, reg_alpha=0.5, path_smooth=1.0),
])  # fmt: skip
@pytest.mark.parametrize("sign", [0, 1])
def test_the_bound_hides_no_better_split(settings, sign):
    random = np.random.default_rng(0)
    n_tight = 0
    for _ in range(40):
        n = random.integers(2, 30)
        gradient = random.normal(random.normal(), 1.0, n)
        search, histogram, total = prepare(np.arange(n), gradient, **settings)
        bounds = sorted(random.normal(size=2)) if sign else (-inf, inf)
        task = task_of(search, histogram, total, bounds=tuple(bounds))[1]
        sums = np.cumsum(histogram[:-1]) - histogram[:-1]
        for missing in (np.int64(0), histogram[-1]):  # the last bin as if it were missing values
            held = dict(sign=sign, bounds=tuple(bounds))
            best = max(
                gains_of(search, histogram, total, start, sums, **held).max()
                for start in (np.int64(0), missing)
            )
            if best == -inf:
                continue
            assert may_improve(task.limits, sums, missing, best)
            more = 1.0001 * (best + task.similarity) + 1e-9 - task.similarity
            n_tight += not may_improve(task.limits, sums, missing, more)
    # without penalties it is the gain itself; with them it may be larger
    assert n_tight > (12 if settings in ({}, {"reg_lambda": 1.0}) and not sign else -1)


@kernel
def blocks_with_sums(cells, blocks):
    return sum_blocks(cells, blocks)


def limits_of(task, cells, left_start=0):
    """Return the limit of each block of a feature's cells."""
    blocks = task.limits.blocks
    limits = blocks.limits[0, : blocks_with_sums(cells, blocks)]
    fill_limits(task.limits, np.int64(left_start), limits)
    return limits


def most_of_blocks(numbers):
    """Return the largest number of each block."""
    starts = range(0, len(numbers), BLOCK_BINS)
    return np.array([numbers[start : start + BLOCK_BINS].max() for start in starts])


def test_sums_of_blocks():
    for n_bins in (1, 7, 8, 9, 16, 30):
        cells = np.random.default_rng(n_bins).integers(-(2**50), 2**50, n_bins)
        starts = np.arange(0, n_bins, BLOCK_BINS)
        search, _, total = prepare(np.arange(n_bins), np.ones(n_bins))
        blocks = task_of(search, cells, total)[1].limits.blocks
        assert blocks_with_sums(cells, blocks) == len(starts)
        before = np.concatenate([[0], np.cumsum(cells)])
        assert_array_equal(blocks.sums, [*before[starts], before[-1]])
        assert_array_equal(blocks.positive_sums, np.add.reduceat(np.maximum(cells, 0), starts))


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
            limits = limits_of(task, cells, left_start)
            assert (limits >= most_of_blocks(gains)).all()


@pytest.mark.parametrize("n_rows", [500, 5000])
def test_few_blocks_have_a_limit_above_the_best_gain(n_rows):
    random = np.random.default_rng(0)
    X = random.normal(size=n_rows)
    settings = dict(reg_lambda=1.0, min_child_weight=1.0)
    search, histogram, total = prepare(X, (X > 0.3) + random.normal(size=n_rows), **settings)
    task = task_of(search, histogram, total)[1]
    limits = limits_of(task, histogram)
    best = gains_of(search, histogram, total, 0, np.cumsum(histogram) - histogram).max()
    assert 1 <= (limits >= best).sum() <= 4 < len(limits) / 4


def test_limits_where_no_split_is_allowed():
    gradient = np.repeat([1.0, -1.0], 16)
    search, histogram, total = prepare(np.arange(32.0), gradient, min_child_weight=12.0)
    limits = limits_of(task_of(search, histogram, total)[1], histogram)
    assert_array_equal(limits > -inf, [False, True, True, False])  # 12 to 20 rows on the left
    search, histogram, total = prepare(np.arange(32.0), gradient, min_child_weight=17.0)
    limits = limits_of(task_of(search, histogram, total)[1], histogram)
    assert_array_equal(limits, -inf)


@pytest.mark.parametrize(("reg_lambda", "hessian_unit"), [(0.0, 1e-200), (1.0, 1e-200), (1e300, 1)])
def test_no_limits_where_their_numbers_would_overflow(reg_lambda, hessian_unit):
    gradient = 1e6 * np.repeat([1.0, -1.0], 8)
    search, histogram, total = prepare(np.arange(16.0), gradient, reg_lambda=reg_lambda)
    search.scales[0, 1] *= hessian_unit
    task = task_of(search, histogram, total)[1]
    assert_array_equal(limits_of(task, histogram), inf)
    sums = np.cumsum(histogram) - histogram
    for best_gain in (-inf, 1e300):
        assert may_improve(task.limits, sums, np.int64(0), best_gain)
    assert scan(search, histogram, total).feature == 0


def test_limits_with_an_alpha_that_overflows():
    search, _, total = prepare(np.arange(16.0), np.ones(16), reg_alpha=1e308)
    blocks = allocate_workspace(search.matrix, params(max_depth=1), 1, 1).scratch.blocks
    assert limits_of_node(search, total, nan, blocks, 0).rest == inf


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
        assert limits_of(task, histogram)[0] >= gain
        assert may_improve(task.limits, sums, np.int64(0), gain * (1.0 - 1e-9))
        assert not may_improve(task.limits, sums, np.int64(0), gain * (1.0 + 1e-5))


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


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize(
    ("n_bins", "settings"),
    [
        (1, dict(reg_lambda=1.0)),
        (2, dict(min_child_weight=2.0)),
        (8, dict(reg_lambda=0.3, reg_alpha=1.0)),
        (8, dict(reg_lambda=1.0)),
        (13, dict(min_child_weight=2.0)),
        (40, dict(reg_lambda=0.3, reg_alpha=1.0)),
        (40, dict(reg_lambda=1.0)),
    ],
)
def test_the_best_split_is_that_of_a_list_of_all(n_bins, has_missing, settings):
    random = np.random.default_rng(n_bins)
    X = np.append(np.arange(float(n_bins)), [nan] * has_missing)
    search, histogram, _ = prepare(X, np.ones(len(X)), **settings)
    search.scales[0] = 1.0
    n_found = n_kept = 0
    for _ in range(50):
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
        assert min(n_found, n_kept) > 10
