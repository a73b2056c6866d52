"""`min_child_samples`: no leaf has fewer rows, whatever the trees are made of."""

import itertools

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer

from sklboost import XGBClassifierLite, XGBRegressorLite

LEAST = 17
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(600, 5)).round(1)
X[RANDOM.random(X.shape) < 0.1] = np.nan
X[:, 3] = RANDOM.integers(0, 12, 600)
X[RANDOM.random(600) < 0.05, 3] = np.nan
SIGNAL = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + 0.5 * (np.nan_to_num(X[:, 3]) % 3)
SIGNAL += 0.3 * RANDOM.normal(size=600)
TWO, THREE = (SIGNAL > 1.2).astype(int), np.digitize(SIGNAL, [0.8, 1.8])
FIVE = np.digitize(SIGNAL, np.quantile(SIGNAL, [0.1, 0.4, 0.7, 0.9]))
LABELS = {"two": TWO, "three": THREE, "five": FIVE}
WEIGHT = RANDOM.integers(1, 4, 600).astype(float)
BARE = dict(n_estimators=4, min_child_weight=0, reg_lambda=0, random_state=0)
KINDS = {
    "numbers": {},
    "categories": dict(categorical_features=[3]),
    "one category": dict(categorical_features=[3], max_cat_to_onehot=20),
    "best first": dict(grow_policy="lossguide", max_leaves=12, max_depth=0),
    "every split": dict(pruning="full"),
    "monotone": dict(monotone_constraints=[1, 0, 0, 0, 0]),
    "smoothed": dict(path_smooth=2.0),
    "random thresholds": dict(extra_trees=True),
    "parallel trees": dict(num_parallel_tree=3, colsample_bynode=0.5),
    "vector trees": dict(multi_strategy="multi_output_tree"),
    "vector trees of categories": dict(
        multi_strategy="multi_output_tree",
        categorical_features=[3],
        monotone_constraints=[1, 0, 0, 0, 0],
    ),
    "linear leaves": dict(linear_tree=True),
    "class weights": dict(class_weight="balanced"),
    "dart": dict(booster="dart", rate_drop=0.3),
}


def fewest(model, weight):
    """Return the least number of rows in a leaf."""
    leaves = model.apply(X).reshape(len(X), -1).T.astype(int)
    return min(np.bincount(leaf, weight)[np.unique(leaf)].min() for leaf in leaves)


@pytest.mark.parametrize(
    ("kind", "labels"), [*zip(KINDS, itertools.cycle(LABELS), strict=False), ("numbers", "three")]
)
def test_every_leaf_has_so_many_rows(kind, labels):
    y = LABELS[labels]
    for weight in (None, WEIGHT):
        model = XGBClassifierLite(min_child_samples=LEAST, **BARE, **KINDS[kind])
        model.fit(X, y, sample_weight=weight)
        counted = np.ones(len(X)) if weight is None else weight
        assert fewest(model, counted) == LEAST
        assert len(model.trees_to_dataframe()) > 4 * 9
        model.set_params(min_child_samples=0).fit(X, y, sample_weight=weight)
        assert fewest(model, counted) < LEAST


@pytest.mark.parametrize("changes", [{}, dict(objective="reg:absoluteerror")])
def test_losses_whose_cover_is_the_number_of_rows(changes):
    model = XGBRegressorLite(min_child_samples=LEAST, **BARE, **changes)
    same = XGBRegressorLite(**{**BARE, "min_child_weight": LEAST}, **changes)
    for weight in (None, WEIGHT):
        prediction = model.fit(X, SIGNAL, sample_weight=weight).predict(X)
        assert_array_equal(prediction, same.fit(X, SIGNAL, sample_weight=weight).predict(X))
    assert fewest(model, WEIGHT) == LEAST


def test_rows_that_are_not_drawn_do_not_count():
    for method in ("uniform", "gradient_based"):
        sampled = dict(subsample=0.5, sampling_method=method)
        model = XGBClassifierLite(min_child_samples=60, **BARE, **sampled).fit(X, TWO)
        root = model.trees_to_dataframe().query("Node == 0")
        assert (root["Feature"] != "Leaf").any()
        model = XGBClassifierLite(min_child_samples=190, **BARE, **sampled).fit(X, TWO)
        assert (model.trees_to_dataframe()["Feature"] == "Leaf").all()
        model = XGBClassifierLite(min_child_samples=190, **BARE).fit(X, TWO)
        assert not (model.trees_to_dataframe()["Feature"] == "Leaf").all()


def test_targets_that_are_not_known_do_not_count():
    y = np.exp(np.column_stack([SIGNAL, -SIGNAL]))
    y[::3, 0] = np.nan
    model = XGBRegressorLite(min_child_samples=LEAST, objective="count:poisson", **BARE).fit(X, y)
    leaves = model.apply(X)[:, 0].astype(int)
    is_known = np.arange(600) % 3 != 0
    assert np.bincount(leaves, is_known)[np.unique(leaves)].min() == LEAST


def test_weight_2_is_the_row_twice():
    repeats = WEIGHT.astype(int)
    settings = dict(min_child_samples=LEAST, categorical_features=[3], **BARE)
    model = XGBClassifierLite(**settings).fit(X, THREE, sample_weight=WEIGHT)
    twice = XGBClassifierLite(**settings)
    twice.fit(np.repeat(X, repeats, axis=0), np.repeat(THREE, repeats))
    assert_allclose(model.predict_proba(X), twice.predict_proba(X), rtol=1e-6)


def test_weights_of_fractions_and_large_ones():
    half = XGBClassifierLite(min_child_samples=3, **BARE)
    half.fit(X, TWO, sample_weight=np.full(600, 1 / 3))  # 9 of them are 3, but for rounding
    assert fewest(half, np.ones(600)) == 9
    large = XGBClassifierLite(min_child_samples=10**6, **BARE)
    large.fit(X, TWO, sample_weight=np.full(600, 1e12))
    assert fewest(large, np.ones(600)) == 1


def test_sparse_rows_are_counted_as_dense_ones():
    dense = np.where(RANDOM.random((3000, 12)) < 0.08, RANDOM.integers(1, 9, (3000, 12)), 0.0)
    dense[:, :4] *= (np.arange(3000)[:, np.newaxis] % 4 == np.arange(4)) * 1.0  # share a column
    y = (dense[:, 0] + dense[:, 5] - dense[:, 6] + RANDOM.normal(size=3000) > 0.5).astype(int)
    settings = dict(min_child_samples=40, **BARE)
    model = XGBClassifierLite(**settings).fit(dense, y)
    sparse = XGBClassifierLite(**settings).fit(csr_array(dense), y)
    assert_array_equal(model.predict_proba(dense), sparse.predict_proba(csr_array(dense)))
    _, counts = np.unique(model.apply(dense)[:, 0], return_counts=True)
    assert counts.min() >= 40
    assert len(counts) > 4


def test_beside_lightgbm():
    data, y = load_breast_cancer(return_X_y=True)
    # one round: later LightGBM guesses numbers of rows from sums of hessians
    common = dict(n_estimators=1, learning_rate=0.1, max_depth=3, reg_lambda=0.0, n_jobs=1)
    common |= dict(min_child_weight=0.0, min_child_samples=30)
    model = XGBClassifierLite(max_bin=600, **common).fit(data, y)
    exact = dict(num_leaves=8, max_bin=600, min_data_in_bin=1, verbose=-1)
    peer = lightgbm.LGBMClassifier(**exact, **common).fit(data, y)
    assert_allclose(model.predict_proba(data), peer.predict_proba(data), rtol=1e-3)
    free = XGBClassifierLite(max_bin=600, **{**common, "min_child_samples": 0}).fit(data, y)
    assert np.abs(free.predict_proba(data) - model.predict_proba(data)).max() > 0.01


def test_derivations_name_it():
    model = XGBClassifierLite(min_child_samples=250, **BARE).fit(X, TWO)
    nodes = model.trees_to_dataframe().query("Tree == 0")
    assert nodes["Feature"][0] != "Leaf"
    assert "at least min_child_samples, 250, rows" in model.explain_split(0).text
    text = model.explain_split(0, node=int(nodes["Node"].max())).text
    assert "A leaf: no split that is allowed and leaves min_child_samples, 250, rows on" in text
    regressor = XGBRegressorLite(min_child_samples=400, **BARE).fit(X, SIGNAL)
    assert "not enough for two children of min_child_weight 400" in regressor.explain_split(0).text
