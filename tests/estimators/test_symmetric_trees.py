"""``grow_policy="symmetric"``: what users are promised; the oracle compares whole trees."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features

SYMMETRIC = dict(grow_policy="symmetric", n_estimators=5, max_depth=5, random_state=0)
KINDS = {
    "plain": {},
    "full": dict(pruning="full"),
    "random thresholds": dict(extra_trees=True),
    "drawn": dict(subsample=0.6, colsample_bytree=0.7, colsample_bylevel=0.7, colsample_bynode=0.8),
    "held": dict(monotone_constraints={0: 1, 1: -1}, path_smooth=3.0, min_child_samples=20),
    "vector trees": dict(multi_strategy="multi_output_tree"),
    "linear leaves": dict(linear_tree=True),
    "dart": dict(booster="dart", rate_drop=0.5),
    "forest": dict(num_parallel_tree=2, subsample=0.5),
}


def make_data(n_rows=1500):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 5)).round(2)
    X[:, 1] = random.integers(0, 4, n_rows)
    X[random.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0] * X[:, 2]) - np.nan_to_num(X[:, 1]) + random.normal(size=n_rows)
    return X, signal, random.uniform(0.5, 2.0, n_rows)


def common_splits(model):
    """Return the different splits (feature, threshold, side of missing values) of each tree."""
    nodes = model.trees_to_dataframe().query("Feature != 'Leaf'")
    nodes = nodes.assign(left=nodes["Missing"] == nodes["Yes"])
    return [
        set(map(tuple, own[["Feature", "Split", "left"]].values))
        for _, own in nodes.groupby("Tree")
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_as_many_different_splits_as_depths_and_the_same_bits_on_any_threads(kind):
    X, signal, weight = make_data()
    y = np.digitize(signal, [-2.0, 0.0])
    fits = []
    for n_jobs in (1, 2, 3):
        model = XGBClassifierLite(**SYMMETRIC, **KINDS[kind], n_jobs=n_jobs)
        if kind == "linear leaves":
            model.set_params(objective="multi:softprob")
        fits.append(model.fit(X, y, sample_weight=weight))
        assert np.array_equal(model.decision_function(X), fits[0].decision_function(X))
        assert fits[0].trees_to_dataframe().equals(model.trees_to_dataframe())
    n_splits = [len(own) for own in common_splits(fits[0])]
    assert max(n_splits) <= 5
    assert sum(n_splits) >= 4 * len(n_splits)


@pytest.mark.parametrize("pruning", ["post", "full"])
@pytest.mark.parametrize("n_rows", [60, 2500])
def test_passing_over_blocks_of_bins_changes_no_split(n_rows, pruning):
    """A `min_child_samples` of 1 forbids nothing, but then every split's gain is computed."""
    random = np.random.default_rng(n_rows)
    numbers = random.normal(size=(n_rows, 30)).round(2)
    numbers[:, 1] = random.integers(0, 4, n_rows)
    numbers[:, 2] = numbers[:, 0]  # of equal splits the first one is taken
    numbers[random.random(numbers.shape) < 0.1] = np.nan
    numbers[:, 3] = np.where(random.random(n_rows) < 0.5, np.nan, 1.0)
    one_hot = np.eye(20)[random.integers(0, 20, n_rows)]  # features that share a column
    X = np.hstack([numbers, one_hot])
    signal = np.nan_to_num(X[:, 0] * X[:, 4]) + np.isnan(X[:, 3]) + X[:, 30] - X[:, 45]
    y, weight = signal + random.normal(size=n_rows), random.uniform(1.0, 2.0, n_rows)
    settings = SYMMETRIC | dict(n_estimators=20, subsample=0.9, reg_lambda=0.0, pruning=pruning)
    for model in (XGBRegressorLite(**settings), XGBRegressorLite(**settings, reg_alpha=0.5)):
        fits = [
            model.set_params(min_child_samples=least).fit(X, y, sample_weight=weight).predict(X)
            for least in (0, 1)
        ]
        assert np.array_equal(*fits)


@pytest.mark.parametrize("settings", [{}, dict(monotone_constraints={0: 1}), dict(max_bin=16)])
def test_of_one_split_as_other_trees_are(settings):
    X, signal, weight = make_data()
    settings = dict(n_estimators=20, max_depth=1, **settings)
    scores = [
        XGBRegressorLite(grow_policy=policy, **settings)
        .fit(X, signal, sample_weight=weight)
        .predict(X)
        for policy in ("depthwise", "symmetric")
    ]
    assert np.array_equal(*scores)


def test_a_node_that_is_not_divided_waits_for_later_splits():
    # f1 is the second split, but has one value where f0 is 0; there f2 divides
    X = np.array([[0, 5, 0], [0, 5, 1], [1, 0, 0], [1, 0, 0], [1, 9, 0], [1, 9, 0]], dtype=float)
    y = np.array([0.0, 1.0, 100.0, 100.0, 140.0, 140.0])
    model = XGBRegressorLite(
        grow_policy="symmetric", n_estimators=1, learning_rate=1, max_depth=3, reg_lambda=0
    ).fit(X, y)
    table = model.trees_to_dataframe()
    assert list(table["Feature"]) == ["f0", "f2", "f1", "Leaf", "Leaf", "Leaf", "Leaf"]
    assert_allclose(model.predict(X), y, atol=1e-5)
    shallow = model.set_params(max_depth=2).fit(X, y)
    assert list(shallow.trees_to_dataframe()["Feature"]) == ["f0", "Leaf", "f1", "Leaf", "Leaf"]
    assert "later depths" in str(shallow.explain_split(tree=0, node=1))


def test_sparse_and_binned_features_and_files(tmp_path):
    X, signal, _ = make_data()
    X[np.abs(X) < 0.7] = 0.0
    model = XGBRegressorLite(**SYMMETRIC).fit(X, signal)
    for form in (csr_array(X), bin_features(X)):
        other = XGBRegressorLite(**SYMMETRIC).fit(form, signal)
        assert np.array_equal(other.predict(X), model.predict(X))
    model.save_model(tmp_path / "model.json")
    loaded = XGBRegressorLite().load_model(tmp_path / "model.json")
    assert loaded.model_.params_of(0) == model.model_.params_of(0)
    more = XGBRegressorLite(**SYMMETRIC).fit(X, signal, init_model=loaded)
    whole = XGBRegressorLite(**(SYMMETRIC | dict(n_estimators=10))).fit(X, signal)
    assert np.array_equal(more.predict(X), whole.predict(X))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (dict(max_depth=0), "max_depth=0 with.*from 1 to 16"),
        (dict(max_depth=17), "max_depth=17 with.*from 1 to 16"),
        (dict(max_leaves=8), "max_leaves=8 with.*max_leaves=0"),
        (dict(interaction_constraints=[[0, 1]]), "interaction_constraints=None"),
        (dict(categorical_features=[1]), r"categories \(of \[1\]\).*grow_policy='depthwise'"),
    ],
)
def test_what_is_refused(settings, words):
    X, signal, _ = make_data(50)
    with pytest.raises(ValueError, match=words):
        XGBRegressorLite(**(SYMMETRIC | settings)).fit(X, signal)
