import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.data.features import training_bins
from sklboost.data.table import Column, Table
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.core.partition import fill_sides
from sklboost.tree.options.categories import sort_categories, sort_ends
from tests import reference
from tests.tree.growth import NO_WEIGHT, SPLIT_DTYPE, grow, params, records


def binned(X, n_categories):
    """Bin features of which some are the codes of categories."""
    table = Table([Column(column) for column in np.asarray(X, float).T], np.array(n_categories))
    with ThreadTeam(1) as team:
        return training_bins(team, table, NO_WEIGHT, 256)[0]


def left_categories(grown, node=0):
    split = grown.workspace.tree.splits[node]
    return sorted(grown.workspace.tree.categories[node, : split.n_listed].tolist())


def grow_on_categories(categories, gradient, n_categories, **settings):
    """Grow a tree on one categorical feature, all hessians being 1."""
    matrix = binned(np.asarray(categories, float)[:, np.newaxis], [n_categories])
    gradient = np.asarray(gradient, np.float32)
    return grow(matrix, gradient, np.ones_like(gradient), params(**settings))


@pytest.mark.interpreted
def test_categories_are_sorted_by_key_then_number():
    random = np.random.default_rng(0)
    for n_categories in (0, 1, 2, 9, 33, 40):
        keys, bins = random.integers(0, 6, n_categories).astype(float), np.arange(n_categories)
        expected = sorted(bins.tolist(), key=lambda bin_: (keys[bin_], bin_))
        sorted_keys = np.sort(keys)
        sort_categories(keys, bins, n_categories)
        assert bins.tolist() == expected
        assert_array_equal(keys, sorted_keys)


@pytest.mark.interpreted
def test_the_best_two_sets_by_hand():
    # the mean gradients of 0 to 3 are 3, -1, 2, -2: 1 and 3 on one side, 0 and 2 on the other
    grown = grow_on_categories(
        [0, 0, 1, 1, 2, 2, 3, 3], [3, 3, -1, -1, 2, 2, -2, -2], 4, max_depth=1
    )
    root = grown.nodes[0]
    assert left_categories(grown) == [1, 3]
    assert np.isnan(root.threshold)
    assert_allclose(root.gain, 36 / 4 + 100 / 4 - 16 / 8, rtol=1e-6)
    assert_allclose(grown.raw_score, [-2.5, -2.5, 1.5, 1.5, -2.5, -2.5, 1.5, 1.5], rtol=1e-6)


@pytest.mark.interpreted
@pytest.mark.parametrize("max_cat_to_onehot", [1, 99])
def test_missing_values_alone(max_cat_to_onehot):
    rows = [0, 1, 2, 3, np.nan, np.nan], [1, 1, 1, 1, -5, -5], 4
    grown = grow_on_categories(*rows, max_depth=1, max_cat_to_onehot=max_cat_to_onehot)
    assert left_categories(grown) == []
    assert grown.nodes[0].default_left == 1
    assert_allclose(grown.raw_score, [-1, -1, -1, -1, 5, 5], rtol=1e-6)


@pytest.mark.interpreted
def test_smoothing_moves_rare_categories_to_the_middle():
    # category 2 has one row of gradient 9, categories 0 and 1 ten rows of 1 and of 2
    categories, gradient = [0] * 10 + [1] * 10 + [2], [1.0] * 10 + [2.0] * 10 + [9.0]
    for smooth, left in ((0.0, [2]), (10.0, [0])):
        settings = dict(max_depth=1, max_cat_to_onehot=1, cat_smooth=smooth)
        # the order is 0 1 2, or 0 2 1, where no place sets category 2 apart
        assert left_categories(grow_on_categories(categories, gradient, 3, **settings)) == left


@pytest.mark.interpreted
def test_categories_are_told_apart_as_far_as_their_rows_agree():
    # eight categories of four rows: first the rows of each agree, then they are as far apart as all
    categories = np.arange(8).repeat(4)
    agreeing = np.array([3.0, -1.0, 2.0, -2.0, 1.0, -3.0, 4.0, -4.0]).repeat(4)
    mixed = np.random.default_rng(1).permutation(agreeing)
    number = np.tile([0.0, 0.0, 1.0, 1.0], 8)
    X = np.c_[categories, number]
    settings = params(max_depth=1, cat_smooth=1.0)
    for gradient, feature in ((agreeing, 0), (mixed, 1)):
        # the number's gain is 8: less than that of the luckiest categories, in both cases
        gradient = (gradient + 0.5 * (1 - 2 * number)).astype(np.float32)
        grown = grow(binned(X, [8, 0]), gradient, np.ones_like(gradient), settings)
        assert grown.nodes[0].feature == feature
        by_gain = params(max_depth=1, cat_smooth=0.0)
        grown = grow(binned(X, [8, 0]), gradient, np.ones_like(gradient), by_gain)
        assert grown.nodes[0].feature == 0


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(4))
def test_only_the_ends_are_sorted_of_many_categories(seed):
    random = np.random.default_rng(seed)
    keys, bins = random.integers(0, 30, 200).astype(float), np.arange(200)
    expected = sorted(bins.tolist(), key=lambda bin_: (keys[bin_], bin_))
    pairs = dict(zip(bins.tolist(), keys.tolist(), strict=True))
    sort_ends(keys, bins, 20)
    assert bins.tolist()[:20] == expected[:20]
    assert bins.tolist()[-20:] == expected[-20:]
    assert sorted(bins.tolist()) == list(range(200))
    assert keys.tolist() == [pairs[bin_] for bin_ in bins.tolist()]


@pytest.mark.parametrize("weighted", [False, True])
def test_what_a_node_knows_of_its_spread(weighted):
    X, gradient, hessian = make_data(1, 800, 30)
    weight = np.arange(800) % 4 + 0.5 if weighted else NO_WEIGHT
    grown = grow(binned(X, [30, 30, 0]), gradient, hessian, params(cat_smooth=5.0), weight=weight)
    root, weight = grown.outputs[0], weight if weighted else np.ones(800)
    assert_allclose(root.spread, (weight * gradient.astype(float) ** 2 / hessian).sum(), rtol=1e-3)
    assert root.total_weight == weight.sum()


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(6))
def test_no_two_sets_are_better(seed):
    random = np.random.default_rng(seed)
    categories = np.r_[np.arange(7), random.integers(0, 7, 30)]
    gradient = random.normal(size=len(categories)).astype(np.float32)
    best = -np.inf
    for size in range(1, 4):
        for chosen in itertools.combinations(range(7), size):
            sides = np.isin(categories, chosen), ~np.isin(categories, chosen)
            best = max(best, sum(gradient[side].sum() ** 2 / side.sum() for side in sides))
    grown = grow_on_categories(categories, gradient, 7, max_depth=1, max_cat_to_onehot=1)
    parent = gradient.sum() ** 2 / len(categories)
    assert_allclose(grown.nodes[0].gain, best - parent, rtol=1e-5)


def test_which_categories_go_left():
    matrix = binned(np.array([[0.0], [1.0], [2.0], [3.0], [np.nan]]), [4])
    split = records(1, SPLIT_DTYPE)[0]
    split.feature, split.n_listed, split.default_left = 0, 2, 1
    sides = np.full(6, 99, dtype=np.uint8)
    fill_sides(split, np.array([3, 1, 0], dtype=np.uint16), matrix, sides)
    assert sides.tolist() == [0, 1, 0, 1, 1, 99]


def make_data(seed, n_rows, n_categories, missing=True):
    """Return two features of categories and one of numbers; gradients; hessians."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 3)).round(1)
    X[:, :2] = random.integers(0, n_categories, (n_rows, 2))
    effects = random.normal(size=n_categories)
    gradient = effects[X[:, 0].astype(int)] * X[:, 2] + random.normal(size=n_rows)
    if missing:
        X[random.random(X.shape) < 0.15] = np.nan
    hessian = random.uniform(0.1, 1.0, n_rows)
    return X, gradient.astype(np.float32), hessian.astype(np.float32)


SETTINGS = {
    "defaults": dict(cat_smooth=10.0),
    "no smoothing": {},
    "one hot": dict(max_cat_to_onehot=99),
    "short lists": dict(max_cat_threshold=2),
    "regularised": dict(reg_lambda=1.0, reg_alpha=0.1, min_child_weight=2.0, cat_smooth=1.0),
    "leaf by leaf": dict(grow_policy="lossguide", max_depth=0, max_leaves=12),
    "pruned": dict(gamma=1.0, cat_smooth=1.0),
}


@pytest.mark.interpreted
@pytest.mark.parametrize(("seed", "missing"), [(0, False), (1, True), (2, True)])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_trees_are_those_of_the_oracle(seed, settings, missing):
    X, gradient, hessian = make_data(seed, 60, 9, missing)
    n_categories = (9, 9, 0)
    settings = dict(max_depth=4, reg_lambda=0.5) | settings
    grown = grow(binned(X, n_categories), gradient, hessian, params(**settings))
    plain = dict(learning_rate=1.0, min_child_weight=0.0, cat_smooth=0.0) | settings
    oracle = reference.Tree(
        *(X, gradient.astype(float), hessian.astype(float)),
        reference.Settings(n_categories=n_categories, **plain),
    )
    for number, node in enumerate(oracle.nodes):
        own = grown.nodes[number]
        assert_allclose(own.cover, node.hessian, rtol=1e-5)
        assert own.feature == (node.feature if node.children else -1)
        if node.children:
            assert own.default_left == node.default_left
            assert_allclose(own.gain, node.gain, rtol=1e-4, atol=1e-4)
            if node.categories is not None:
                assert left_categories(grown, number) == sorted(node.categories)
    expected = [oracle.leaf_of(x).weight for x in X]
    assert_allclose(grown.raw_score, expected, rtol=1e-4, atol=1e-5)


def test_several_outputs_use_the_one_in_which_categories_differ_most():
    random = np.random.default_rng(0)
    categories = np.arange(8).repeat(20)
    X, noise = categories[:, np.newaxis].astype(float), random.normal(size=160) * 0.01
    gradient = np.array([noise, np.where(categories % 2 == 0, 3.0, -3.0), noise]).astype(np.float32)
    settings = params(max_depth=1, multi_strategy="multi_output_tree", cat_smooth=10.0)
    grown = grow(binned(X, [8]), gradient, np.ones_like(gradient), settings)
    assert left_categories(grown) in ([0, 2, 4, 6], [1, 3, 5, 7])
    # the sums of the left child, found from the listed categories, are those of its rows
    goes_left = np.isin(categories, left_categories(grown))
    for side, node in ((goes_left, 1), (~goes_left, 2)):
        assert_allclose(
            grown.outputs[node].gradient, gradient[:, side].sum(axis=1), rtol=1e-4, atol=1e-3
        )


@pytest.mark.parametrize("max_cat_to_onehot", [1, 99])
def test_several_outputs_with_missing_values(max_cat_to_onehot):
    X, gradient, hessian = make_data(3, 500, 6)
    gradients = np.array([gradient, -gradient, gradient**2])
    settings = dict(multi_strategy="multi_output_tree", max_cat_to_onehot=max_cat_to_onehot)
    settings |= dict(cat_smooth=1.0)
    matrix = binned(X, [6, 6, 0])
    grown = grow(matrix, gradients, np.array([hessian] * 3), params(max_depth=3, **settings))
    parents = np.flatnonzero(grown.nodes.left >= 0)
    assert len(parents) > 3
    for field in ("gradient", "hessian"):
        sums = grown.outputs[field]
        children = sums[grown.nodes.left[parents]] + sums[grown.nodes.right[parents]]
        assert_allclose(children, sums[parents], rtol=1e-5, atol=1e-3)
    leaves = grown.nodes.left < 0
    assert_allclose(grown.outputs["hessian"][leaves, 0].sum(), hessian.sum(), rtol=1e-5)
