import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.boosting.settings import feature_rules
from sklboost.engine.hashing import hash_key
from sklboost.tree.core.formulas import leaf_weight, similarity_at
from sklboost.tree.core.gain_limits import Blocks, limit_terms, may_improve
from sklboost.tree.core.quantization import pack, quantize, unpack, weigh
from sklboost.tree.core.splitting import SearchTask, fill_gains, scan_features
from sklboost.tree.core.workspace import SPLIT_DTYPE, allocate_workspace
from sklboost.tree.options.inherited_weights import clip_to_bounds, fill_held_gains
from tests.tree.growth import (
    NO_WEIGHT,
    assert_same_tree,
    binned,
    grow,
    make_data,
    make_search,
    params,
    plain_histogram,
    run,
    watch_growth,
)

inf, nan = np.inf, np.nan


def prepare(X, gradient, hessian=None, signs=None, **settings):
    """Return (search, histogram of all rows, total) for one node that owns all rows."""
    gradient = np.asarray(gradient, dtype=np.float32)
    hessian = np.ones_like(gradient) if hessian is None else np.asarray(hessian, dtype=np.float32)
    matrix = binned(np.asarray(X, dtype=float).reshape(len(gradient), -1))
    workspace = allocate_workspace(matrix, params(max_depth=1), 1, 1)
    derivatives = weigh(*np.atleast_2d(gradient, hessian), NO_WEIGHT)
    run(quantize, derivatives, np.uint64(0), workspace.gradients, workspace.machines)
    packed, scales = workspace.gradients.packed, workspace.gradients.scales
    histogram = plain_histogram(matrix, packed[0], np.arange(len(gradient)))
    rules = feature_rules(matrix.rows.shape[1], signs=signs)
    search = make_search(matrix, scales, params(**settings), rules, packed=packed)
    return search, histogram, packed.sum()


def task_of(search, histogram, total, bounds=(-inf, inf)):
    """Return a workspace and the search of a node that is a root, but for its bounds."""
    workspace = allocate_workspace(search.matrix, params(max_depth=1), 1, 1)
    scratch, output = workspace.scratch, workspace.tree.outputs[0, 0]
    sums = unpack(total, search.scales[0])
    weight = clip_to_bounds(leaf_weight(*sums, search.params), *bounds)
    output.weight, output.hessian, (output.lower, output.upper) = weight, sums[1], bounds
    similarity = similarity_at(*sums, weight, search.params)
    terms = limit_terms(search, total, similarity)
    workspace.tree.growth[0].n_rows = 1000
    facts, rows = (0, 0, 0, total, similarity, terms), (scratch.sums[0], scratch.gains[0])
    blocks = Blocks(*(array[0] for array in scratch.blocks))
    return workspace, SearchTask(*facts, histogram, *rows, blocks)


def gains_of(search, histogram, total, left_start, sums, *, sign=0, bounds=(-inf, inf)):
    """Return the gains of all splits."""
    workspace, task = task_of(search, histogram, total, bounds=bounds)
    gains = np.empty(len(sums))
    constraint = (np.int64(sign), np.int64(left_start))
    fill_held_gains(search, workspace, task, constraint, sums, gains)
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


@pytest.mark.parametrize("settings", [
    {}, dict(reg_lambda=1.0), dict(reg_alpha=3.0), dict(max_delta_step=0.1),
    dict(reg_lambda=0.5, reg_alpha=1.0, max_delta_step=0.5, min_child_weight=3.0),
    dict(path_smooth=3.0), dict(reg_lambda=0.5, reg_alpha=0.5, path_smooth=1.0),
])  # fmt: skip
@pytest.mark.parametrize("sign", [0, 1])
def test_the_bound_hides_no_better_split(settings, sign):
    random = np.random.default_rng(0)
    n_tight = 0
    for _ in range(300):
        n = random.integers(2, 30)
        gradient = random.normal(random.normal(), 1.0, n)
        search, histogram, total = prepare(np.arange(n), gradient, **settings)
        bounds = sorted(random.normal(size=2)) if sign else (-inf, inf)
        task = task_of(search, histogram, total, bounds=tuple(bounds))[1]
        sums = np.cumsum(histogram[:-1]) - histogram[:-1]
        for missing in (np.int64(0), histogram[-1]):  # the last bin as if it were missing values
            best = max(
                gains_of(
                    search, histogram, total, start, sums, sign=sign, bounds=tuple(bounds)
                ).max()
                for start in (np.int64(0), missing)
            )
            if best == -inf:
                continue
            assert may_improve(task.limit_terms, sums, missing, best)
            more = 1.0001 * (best + task.similarity) + 1e-9 - task.similarity
            n_tight += not may_improve(task.limit_terms, sums, missing, more)
    # without penalties it is the gain itself; with them it may be larger
    assert n_tight > (100 if settings in ({}, {"reg_lambda": 1.0}) and not sign else -1)


# --- the worked example: dosage 10, 20, 25, 35, residuals -10.5, 6.5, 7.5, -7.5 ------------------

DOSAGE, RESIDUALS = [10.0, 20.0, 25.0, 35.0], [-10.5, 6.5, 7.5, -7.5]


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("reg_lambda", "gains"),
    [(0.0, [120.3333, 4.0, 56.3333]), (1.0, [62.4875, 2.1333, 27.9875])],
)
def test_worked_gains(reg_lambda, gains):
    search, histogram, total = prepare(DOSAGE, np.negative(RESIDUALS), reg_lambda=reg_lambda)
    sums = np.cumsum(histogram) - histogram
    found = gains_of(search, histogram, total, np.int64(0), sums)
    assert_allclose(found, [-inf, *gains], atol=5e-5)  # nothing before the first bin
    best = scan(search, histogram, total)
    assert_allclose(best.gain, gains[0], atol=5e-5)
    assert (best.feature, best.bin, best.below, best.default_left) == (0, 1, 0, 0)
    assert unpack(best.left_sum, search.scales[0]) == (10.5, 1.0)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("least", "allowed"), [(1.0, [1, 2, 3]), (1.5, [2]), (2.0, [2]), (2.1, [])]
)
def test_min_child_weight(least, allowed):
    search, histogram, total = prepare(DOSAGE, np.negative(RESIDUALS), min_child_weight=least)
    sums = np.cumsum(histogram) - histogram
    found = gains_of(search, histogram, total, np.int64(0), sums)
    assert list(np.flatnonzero(found > -inf)) == allowed
    assert scan(search, histogram, total).feature == (0 if allowed else -1)


@pytest.mark.interpreted
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


@pytest.mark.interpreted
def test_only_splits_in_order():
    # weights left and right: -10.5 and 2.17, -2 and 0, 1.17 and -7.5
    assert_array_equal(gains_of_dosage(1) > -inf, [False, True, True, False])
    assert_array_equal(gains_of_dosage(-1) > -inf, [False, False, False, True])
    free = gains_of_dosage(0)
    for sign in (1, -1):
        allowed = gains_of_dosage(sign) > -inf
        assert_array_equal(gains_of_dosage(sign)[allowed], free[allowed])


@pytest.mark.interpreted
def test_gains_of_bounded_weights():
    # at 15: weights -10.5 and 13 / 6 become -3 and 1; that of the node is -1, as without bounds
    gain = (2 * 10.5 * 3 - 3**2) + (2 * 6.5 * 1 - 3 * 1**2) - 4
    assert_allclose(gains_of_dosage(0, (-3.0, 1.0))[1], gain)
    # both sides at the bound: no order is broken, nothing is gained
    assert_allclose(gains_of_dosage(1, (-1.0, -1.0))[1:], 0.0, atol=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("sign", [0, 1, -1])
def test_missing_values_alone_have_no_order(sign):
    search, histogram, total = prepare([0, 1, nan, nan], [1, 1, -3, -3], signs=[sign])
    best = scan(search, histogram, total)
    assert (best.bin, best.below, best.default_left) == (0, -1, 1)


@pytest.mark.interpreted
def test_constraint_of_the_feature_at_hand():
    X = np.array([[0, 3], [1, 2], [2, 1], [3, 0]])
    search, histogram, total = prepare(X, [3, 1, -1, -3], signs=[-1, -1])  # weights rise with f0
    assert scan(search, histogram, total, feature=0).feature == -1
    assert scan(search, histogram, total, feature=1).bin == 2


@pytest.mark.interpreted
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


@pytest.mark.interpreted
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


# --- ties, empty bins, missing values ------------------------------------------------------------


@pytest.mark.interpreted
def test_the_first_of_equal_splits_wins():
    X = np.array([[0, 5], [1, 5], [2, 7], [3, 7]])
    search, histogram, total = prepare(X, [0, -1, 1, 0], reg_lambda=1.0)
    first = scan(search, histogram, total)
    assert first.bin == 2  # 1 | -1 in the middle
    search, histogram, total = prepare([0, 1, 2], [1, -2, 1], reg_lambda=1.0)
    assert scan(search, histogram, total).bin == 1  # as good as bin 2
    X = np.array([[0, 0], [1, 1]])  # two features that are equal
    search, histogram, total = prepare(X, [1, -1])
    best = scan(search, histogram, total)
    gain = best.gain
    best = scan(search, histogram, total, feature=1, best=best)
    assert (best.feature, best.gain) == (0, gain)
    assert scan(search, histogram, total, feature=1).gain == gain


@pytest.mark.interpreted
def test_missing_right_wins_a_tie():
    # the missing row has gradient 0 and, with hessian 1 on either side of equal ones, no preference
    search, histogram, total = prepare([0, 1, nan], [1, -1, 0])
    best = scan(search, histogram, total)
    assert (best.bin, best.default_left) == (1, 0)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("gradient_of_missing", "bin_", "default_left"), [(5.0, 1, 1), (-5.0, 1, 0)]
)
def test_missing_values_go_where_they_are_alike(gradient_of_missing, bin_, default_left):
    search, histogram, total = prepare([0, 1, nan, nan], [5, -5] + [gradient_of_missing] * 2)
    best = scan(search, histogram, total)
    assert (best.bin, best.default_left) == (bin_, default_left)
    assert best.below == 0
    expected = (15.0, 3.0) if default_left else (5.0, 1.0)
    assert_allclose(unpack(best.left_sum, search.scales[0]), expected, rtol=1e-7)


@pytest.mark.interpreted
def test_missing_values_alone():
    search, histogram, total = prepare([0, 1, nan, nan], [1, 1, -3, -3])
    best = scan(search, histogram, total)
    assert (best.bin, best.below, best.default_left) == (0, -1, 1)
    assert_allclose(unpack(best.left_sum, search.scales[0]), (-6.0, 2.0), rtol=1e-7)
    assert_allclose(best.gain, 36 / 2 + 4 / 2 - 16 / 4)


@pytest.mark.interpreted
@pytest.mark.parametrize("X", [[4, 4, 4], [nan, nan, nan]])
def test_nothing_to_split(X):
    search, histogram, total = prepare(X, [1, 2, -3])
    assert scan(search, histogram, total).gain == -inf


@pytest.mark.interpreted
def test_bins_that_are_empty_in_the_node_are_passed_over():
    search, histogram, total = prepare([0, 1, 2, 3, 4], [1, 9, 9, 9, -1])
    for empty in (1, 2, 3):  # a node without these rows
        total -= histogram[empty]
        histogram[empty] = 0
    best = scan(search, histogram, total)
    assert (best.below, best.bin) == (0, 4)
    assert_allclose(best.gain, 2.0)


# --- random data ---------------------------------------------------------------------------------


def plain_best(X, gradient, hessian, settings):
    """Try every split of every feature with plain float64 sums."""
    best = (-inf,)

    def similarity(G, H):
        T = np.sign(G) * max(abs(G) - settings.reg_alpha, 0)
        return T**2 / (H + settings.reg_lambda)

    for feature in range(X.shape[1]):
        x = X[:, feature]
        missing = np.isnan(x)
        for value in np.unique(x[~missing]):
            for default_left in range(1 + missing.any()):
                left = (x < value) | (missing & bool(default_left))
                H_left, H_right = hessian[left].sum(), hessian[~left].sum()
                if min(H_left, H_right) < settings.min_child_weight or left.all() or not left.any():
                    continue
                gain = similarity(gradient[left].sum(), H_left)
                gain += similarity(gradient[~left].sum(), H_right)
                gain -= similarity(gradient.sum(), hessian.sum())
                if gain > best[0] + 1e-9:
                    best = gain, feature, value, default_left
    return best


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(12))
def test_the_best_split_of_all(seed):
    X, gradient, hessian = make_data(seed, 25)
    settings = dict(reg_lambda=seed % 3 / 2, reg_alpha=seed % 2 / 2, min_child_weight=seed % 4)
    search, histogram, total = prepare(X, gradient, hessian, **settings)
    best = None
    for feature in range(X.shape[1]):
        best = scan(search, histogram, total, feature, best)
    exact = gradient.astype(float), hessian.astype(float)
    gain, feature, value, default_left = plain_best(X, *exact, search.params)
    lower = search.matrix.lower[search.matrix.cell_starts[best.feature] + best.bin]
    assert (best.feature, lower, best.default_left) == (feature, value, default_left)
    assert_allclose(best.gain, gain, rtol=1e-6)


@pytest.mark.parametrize("n_threads", [2, 5])
@pytest.mark.parametrize("n_features", [1, 3, 40])
def test_chunks_of_features_change_nothing(n_features, n_threads):
    random = np.random.default_rng(0)
    # equal features, so that all their splits are ties
    X = np.repeat(random.integers(0, 5, (300, 1)).astype(float), n_features, axis=1)
    gradient = random.normal(size=300).astype(np.float32)
    matrix, hessian, settings = binned(X), np.ones_like(gradient), params(max_depth=3)
    chunks = []

    def note_chunks(search, packed, workspace):
        chunks.append(workspace.tree.counts[0].n_chunks)

    watch_growth(matrix, gradient, hessian, settings, note_chunks, n_threads)
    assert max(chunks) == min(n_features, 4 * n_threads)
    one = grow(matrix, gradient, hessian, settings)
    assert_same_tree(one, grow(matrix, gradient, hessian, settings, n_threads=n_threads))
    assert set(one.nodes["feature"]) == {0, -1}  # the first of the equal ones
