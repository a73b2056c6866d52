import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.data.raw_values import raw_matrix
from sklboost.tree.predict import walking as ranking
from sklboost.tree.predict.walking import rank_thresholds, ranked_walk
from tests.tree.test_prediction import leaves, make_model, scores, split

inf, nan = np.inf, np.nan


@pytest.fixture
def rank_all(monkeypatch):
    """Let ranks be used for few rows and trees, too."""
    monkeypatch.setattr(ranking, "_LEAST_ROWS", 1)
    monkeypatch.setattr(ranking, "_SPLITS_PER_RANK", {4: 0.01, 8: 0.01})
    monkeypatch.setattr(ranking, "_COMPARISONS_PER_SPLIT", 1000)


@pytest.mark.interpreted
def test_columns_are_sides_and_stretches_of_thresholds():
    left, right = 1, 0
    trees = [
        [split(feature, threshold, 1, default_left), dict(value=1.0), dict(value=2.0)]
        for feature, threshold, default_left in [
            *((1, float(k), right) for k in range(300)),
            *((0, 5.0, left), (0, 4.0, left), (0, 5.0, right), (0, 4.0, left)),
        ]
    ]
    ranked = rank_thresholds(make_model(*trees), np.dtype(np.float64))
    assert list(ranked.features) == [0, 0, 1, 1]
    assert list(ranked.missing_ranks) == [0, 255, 255, 255]
    assert [np.isfinite(table).sum() for table in ranked.tables] == [2, 1, 255, 45]
    # the thresholds 4 and 5 of feature 0, then those of feature 1; that of two trees is made once
    assert list(ranked.columns) == [0, 0, 1] + [2] * 255 + [3] * 45
    assert list(ranked.ranks) == [1, 2, 1, *range(1, 256), *range(1, 46)]
    assert list(ranked.starts) == [0, 303]
    assert list(ranked.comparisons[:, 32]) == [*range(3, 303), 1, 0, 2, 0]


def stumps(thresholds):
    return [[split(0, k, 1), dict(value=1.0), dict(value=2.0)] for k in thresholds]


@pytest.mark.interpreted
def test_each_group_of_trees_makes_its_comparisons_once(monkeypatch):
    monkeypatch.setattr(ranking, "_MOST_COMPARISONS", 3 * 63)
    some = rank_thresholds(make_model(*stumps(np.arange(378.0) % 189)), np.dtype(np.float64))
    assert some.group_trees == 378  # no more than a group may have
    assert list(some.starts) == [0, 189]
    many = rank_thresholds(make_model(*stumps(np.arange(380.0) // 2)), np.dtype(np.float64))
    assert many.group_trees == 3  # of 63 splits each, if they were so large
    assert list(np.diff(many.starts)) == [2] * 126 + [1]
    assert list(many.comparisons[:7, 32]) == [0, 0, 1, 0, 1, 1, 0]


def stairs(thresholds, height):
    """Return a tree that adds `height` for each of increasing thresholds that x1 reaches."""
    nodes = []
    for step, threshold in enumerate(thresholds):
        nodes += [split(1, threshold, len(nodes) + 1), dict(value=step * height)]
    return [*nodes, dict(value=len(thresholds) * height)]


@pytest.mark.interpreted
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_groups_begin_within_a_round(n_outputs, rank_all, monkeypatch):
    monkeypatch.setattr(ranking, "_MOST_COMPARISONS", 13 * 63)
    # some are deeper than what 512 rows pass together
    thresholds = [k + 200.0 * np.arange(8 if k % 11 == 4 else 5) for k in range(200)]
    model = make_model(
        *(stairs(t, 1 / (3 + k)) for k, t in enumerate(thresholds)), n_outputs=n_outputs
    )
    X = np.random.default_rng(0).uniform(0, 1000, size=(518, 2))
    for start, stop in [(0, 200), (5, 31), (12, 14), (190, 200)]:
        ranked = ranked_walk(model, raw_matrix(X), (start, stop), 1)
        assert ranked.ranking.group_trees == 13
        expected = np.zeros((n_outputs, len(X)))
        for tree in range(start, stop):
            n_steps = np.searchsorted(thresholds[tree], X[:, 1], side="right")
            expected[tree % n_outputs] += n_steps * (1 / (3 + tree))
        assert_array_equal(scores(model, X, (start, stop)), expected)


VECTOR = dict(max_depth=3, multi_strategy="multi_output_tree")


def data_with_missing_values(n_rows, dtype):
    X = np.random.default_rng(0).normal(size=(n_rows, 4)).astype(dtype)
    X[::7, 0], X[3::11, 1], X[5], X[6] = nan, nan, inf, -inf
    X[:, 3] = X[:, 3].round(1)
    return X


@pytest.mark.parametrize(
    ("make", "n_targets", "settings", "dtype", "most"),
    [
        (XGBRegressorLite, 1, dict(max_depth=6), np.float32, 8192),
        (XGBRegressorLite, 1, dict(max_depth=9, min_child_weight=0), np.float64, 63),
        (XGBRegressorLite, 2, dict(max_depth=3), np.float64, 8192),
        (XGBRegressorLite, 2, VECTOR, np.float32, 63),
        (XGBRegressorLite, 2, VECTOR, np.float64, 8192),
        (XGBClassifierLite, 3, dict(max_depth=2), np.float32, 63),
        (XGBClassifierLite, 3, dict(max_depth=2), np.float64, 8192),
    ],
)
def test_same_bits_as_by_values(make, n_targets, settings, dtype, most, rank_all, monkeypatch):
    monkeypatch.setattr(ranking, "_MOST_COMPARISONS", most)
    X = data_with_missing_values(1100, dtype)
    y = np.column_stack([np.nansum(X[:, k : k + 2].clip(-9, 9), axis=1) for k in range(n_targets)])
    y = y.argmax(axis=1) if make is XGBClassifierLite else np.squeeze(y)
    model = make(n_estimators=40, **settings).fit(X, y).model_
    assert len(rank_thresholds(model, np.dtype(dtype)).starts) > (2 if most == 63 else 1)
    for rows in (X, X[:3], X[:70], np.asfortranarray(X[::2])):
        for trees in [(0, model.n_trees), (model.trees_per_round, 3 * model.trees_per_round)]:
            assert ranked_walk(model, raw_matrix(rows), trees, 1) is not None
            by_ranks = [scores(model, rows, trees, n_threads) for n_threads in (1, 2)]
            with monkeypatch.context() as patch:
                patch.setattr(ranking, "_LEAST_ROWS", len(X) + 1)
                by_values = scores(model, rows, trees)
            assert_array_equal(by_ranks, [by_values] * 2)


def test_ranks_are_used_where_they_pay(monkeypatch):
    X = np.random.default_rng(0).normal(size=(3000, 5))
    model = XGBRegressorLite(n_estimators=60).fit(X, X.sum(axis=1)).model_
    all_trees = (0, model.n_trees)
    ranked = ranked_walk(model, raw_matrix(X), all_trees, 1)
    assert ranked.scratch.columns.dtype == np.uint8
    assert ranked_walk(model, raw_matrix(X[:1000]), all_trees, 1) is None
    assert ranked_walk(model, raw_matrix(X), (0, 1), 1) is None  # there are few splits
    # there are enough, but all trees would make their comparisons
    assert ranked_walk(model, raw_matrix(X), (0, 3), 1) is None
    with monkeypatch.context() as patch:
        patch.setattr(ranking, "_COMPARISONS_PER_SPLIT", 1000)
        assert ranked_walk(model, raw_matrix(X), (0, 3), 1) is not None
    # sorted once for each dtype
    assert ranked_walk(model, raw_matrix(X), all_trees, 2).ranking is ranked.ranking
    single = ranked_walk(model, raw_matrix(X.astype(np.float32)), all_trees, 1)
    assert single.ranking.tables.dtype == np.float32
    assert pickle.loads(pickle.dumps(model)).rankings == {}


def test_categories_and_trees_without_a_split_are_not_ranked(rank_all):
    X = np.random.default_rng(0).integers(0, 9, size=(1100, 2)).astype(np.float64)
    model = XGBRegressorLite(n_estimators=5, categorical_features=[0]).fit(X, X[:, 0] % 3).model_
    assert ranked_walk(model, raw_matrix(X), (0, 5), 1) is None
    leaf = make_model([dict(value=7.0)])
    assert ranked_walk(leaf, raw_matrix(X), (0, 1), 1) is None
    assert_array_equal(scores(leaf, X), [[7.0] * len(X)])
    assert_array_equal(leaves(leaf, X), np.zeros((len(X), 1)))
