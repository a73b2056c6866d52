import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.data.features import value_array
from sklboost.estimators.predict.fitted_model import add_scores
from sklboost.inspection.shap import add_contributions, lay_out_edges, mean_scores
from sklboost.tree.predict.assembly import assemble_model
from tests.inspection.shap.definitions import (
    exact_values,
    game,
    interaction_values,
    shapley_values,
)
from tests.small_models import features
from tests.tree.growth import as_trees, make_nodes, params

N_FEATURES = 4


def make_data(n_rows=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, N_FEATURES)).round(1)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + X[:, 3] + 0.1 * random.normal(size=n_rows)
    X[random.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(y)


def categories(n_rows=300):
    random = np.random.default_rng(3)
    codes, number = random.integers(0, 9, (n_rows, 2)), random.normal(size=n_rows)
    y = random.normal(size=9)[codes[:, 0]] * number + random.normal(size=9)[codes[:, 1]]
    categories = np.array([*"abcdefghi", None], dtype=object)
    missing = random.random((n_rows, 2)) < 0.1
    texts = categories[np.where(missing, 9, codes)]
    frame = pd.DataFrame({"number": number, "one": texts[:, 0], "two": texts[:, 1]})
    return frame.astype({"one": "category", "two": "category"}), y


def fit(kind):
    """Return a model and rows; fewer features than levels, so that they repeat on a path."""
    X, y = make_data()
    common = dict(n_estimators=3, max_depth=5, learning_rate=0.5)
    classes = np.digitize(y, [-0.5, 1.5])
    vector = dict(multi_strategy="multi_output_tree")
    if kind == "categories":
        X, y = categories()
        return XGBRegressorLite(**common, max_cat_to_onehot=2).fit(X, y), X
    estimator, target, more = {
        "regression": (XGBRegressorLite, y, {}),
        "two classes": (XGBClassifierLite, y > 0, {}),
        "three classes": (XGBClassifierLite, classes, {}),
        "vector leaves": (XGBClassifierLite, classes, vector),
        "two targets": (XGBRegressorLite, np.stack([y, -y * y], axis=1), vector),
        "quantiles": (XGBRegressorLite, y, dict(objective="quantile", quantile_alpha=[0.1, 0.9])),
        "dart": (XGBRegressorLite, y, dict(booster="dart", rate_drop=0.9, random_state=0)),
        "sampled": (XGBRegressorLite, y, dict(subsample=0.3, colsample_bynode=0.5)),
        "two leaves": (XGBRegressorLite, y, dict(max_depth=1)),
        "one leaf": (XGBRegressorLite, y, dict(gamma=1e9)),
    }[kind]
    return estimator(**(common | more)).fit(X, target), X


KINDS = [
    *("regression", "two classes", "three classes", "vector leaves", "two targets"),
    *("quantiles", "dart", "sampled", "two leaves", "one leaf", "categories"),
]


def explained(model, X, background=None, trees=None, n_jobs=1):
    trees = trees or (0, model.model_.n_trees)
    own, shape = model.model_, (len(X), model.model_.n_outputs, model.model_.n_features)
    single, pairs = np.zeros(shape), np.zeros((*shape, shape[-1]))
    X = features(model, X)
    background = None if background is None else features(model, background)
    add_contributions(own, X, trees, background, n_jobs, single)
    add_contributions(own, X, trees, background, n_jobs, pairs)
    return single, pairs


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_the_definition_and_add_up_to_raw_scores(kind):
    model, X = fit(kind)
    own, rows = model.model_, X[:3]
    numbers = value_array(features(model, rows))
    for background in (None, X[10:13]):
        single, pairs = explained(model, rows, background)
        others = None if background is None else value_array(features(model, background))
        for row in range(3):
            value = game(own, numbers[row], (0, own.n_trees), others)
            assert_allclose(single[row], shapley_values(value, X.shape[1]), atol=1e-12)
            assert_allclose(pairs[row], interaction_values(value, X.shape[1]), atol=1e-12)
    single, pairs = explained(model, X)
    mean = own.base_score + mean_scores(lay_out_edges(own), (0, own.n_trees), own.n_outputs)
    raw_scores = model._scored(X)[1].T
    assert_allclose(single.sum(axis=2) + mean, raw_scores, atol=1e-12)
    assert_allclose(pairs.sum(axis=3), single, atol=1e-12)
    assert_array_equal(pairs, pairs.swapaxes(2, 3))


def test_many_background_rows_are_the_mean_of_parts():
    model, X = fit("regression")
    X_background = np.concatenate([X, X[::-1] + 0.05, X[:57]])  # more than are taken at once
    together, _ = explained(model, X[:3], X_background)
    parts = [explained(model, X[:3], X_background[[row]])[0] for row in range(len(X_background))]
    assert_allclose(together, np.mean(parts, axis=0), atol=1e-12)


def test_the_same_bits_for_any_threads_and_however_rows_are_split(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(1500, 10))
    model = XGBRegressorLite(n_estimators=40, max_depth=7).fit(X, np.prod(X[:, :3], axis=1))
    whole, pairs = explained(model, X)
    background = X[:5]
    from_background, _ = explained(model, X[:300], background)
    for n_jobs in (2, 3):
        assert_array_equal(explained(model, X, n_jobs=n_jobs)[0], whole)
        assert_array_equal(explained(model, X[:300], n_jobs=n_jobs)[1], pairs[:300])
        assert_array_equal(explained(model, X[:300], background, n_jobs=n_jobs)[0], from_background)
    for rows in (slice(0, 1), slice(7, 70), slice(1000, 1500)):
        assert_array_equal(explained(model, X[rows])[0], whole[rows])
    module = "sklboost.inspection.shap._WAITING_VALUES"
    monkeypatch.setattr(module, 70 * 110)  # blocks of 70 rows
    assert_array_equal(explained(model, X)[1], pairs)


def chain_model(n_splits, n_features, seed=0):
    random = np.random.default_rng(seed)
    nodes, cover = [dict(cover=1.0)], 1.0
    for split in range(n_splits):
        parent, leaf, rest = 2 * split, 2 * split + 1, 2 * split + 2
        kept = cover * random.uniform(0.3, 0.97)
        left, right = random.permutation([leaf, rest]).tolist()
        feature, threshold = split % n_features, random.normal()
        nodes[parent] |= dict(feature=feature, threshold=threshold, left=left, right=right)
        nodes += [dict(value=random.normal(), cover=cover - kept), dict(cover=kept)]
        cover = kept
    nodes[-1] |= dict(value=1.0)
    trees = as_trees([make_nodes(*nodes)], params())
    return assemble_model(trees, np.zeros(1), n_features)


def row_values(model, X):
    out = np.zeros((len(X), 1, X.shape[1]))
    add_contributions(model, X, (0, 1), None, 1, out)
    return out[:, 0]


@pytest.mark.interpreted
def test_nodes_without_cover_are_divided_in_halves():
    root = dict(feature=0, threshold=0.0, left=1, right=2)
    nodes = make_nodes(root, dict(value=7.0, cover=0.0), dict(value=8.0, cover=0.0))
    model = assemble_model(as_trees([nodes], params()), np.zeros(1), 1)
    assert mean_scores(lay_out_edges(model), (0, 1), 1).tolist() == [7.5]
    assert row_values(model, np.array([[1.0]])).tolist() == [[0.5]]


@pytest.mark.parametrize(("n_splits", "n_features"), [(3, 3), (18, 18), (40, 11), (60, 2)])
def test_deep_trees_are_exact(n_splits, n_features):
    model = chain_model(n_splits, n_features)
    X = np.random.default_rng(1).normal(size=(3, n_features))
    values = row_values(model, X)
    for row, own in zip(X, values, strict=True):
        assert_allclose(own, exact_values(model, row), rtol=1e-11, atol=1e-14)


def test_a_chain_of_hundreds_of_features_adds_up():
    model = chain_model(500, 400)
    X = np.random.default_rng(1).normal(size=(5, 400)) - 1.0
    mean = mean_scores(lay_out_edges(model), (0, 1), 1)
    values = row_values(model, X)
    raw_score = np.zeros((1, 5))
    add_scores(model, X, (0, 1), raw_score, 1)
    assert_allclose(values.sum(axis=1) + mean, raw_score[0], atol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_backgrounds", [0, 2])
def test_features_that_come_back_on_a_path(n_backgrounds):
    model, X = chain_model(7, 3), np.random.default_rng(1).normal(size=(4, 3))
    background = X[2 : 2 + n_backgrounds] if n_backgrounds > 0 else None
    single, pairs = np.zeros((2, 1, 3)), np.zeros((2, 1, 3, 3))
    add_contributions(model, X[:2], (0, 1), background, 1, single)
    add_contributions(model, X[:2], (0, 1), background, 1, pairs)
    for row in range(2):
        value = game(model, X[row], (0, 1), background)
        assert_allclose(single[row], shapley_values(value, 3), atol=1e-14)
        assert_allclose(pairs[row], interaction_values(value, 3), atol=1e-14)


@pytest.mark.interpreted
def test_worked_example():
    # x0 < 0: 1, else (x1 < 0: 2, else 6); half of the rows each way
    nodes = make_nodes(
        dict(feature=0, threshold=0.0, left=1, right=2, cover=4.0),
        dict(value=1.0, cover=2.0),
        dict(feature=1, threshold=0.0, left=3, right=4, cover=2.0),
        dict(value=2.0, cover=1.0),
        dict(value=6.0, cover=1.0),
    )
    model = assemble_model(as_trees([nodes], params()), np.zeros(1), 3)
    # nothing known: 2.5; x0 >= 0 known: 4; x1 >= 0 known: 3.5; both: 6
    edges = lay_out_edges(model)
    assert mean_scores(edges, (0, 1), 1).tolist() == [2.5]
    X = np.array([[1.0, 1.0, 1.0]])
    assert_allclose(row_values(model, X), [[(1.5 + 2.5) / 2, (1.0 + 2.0) / 2, 0.0]])
    pairs = np.zeros((1, 1, 3, 3))
    add_contributions(model, X, (0, 1), None, 1, pairs)
    # beyond what each adds by itself, both add 1, in two halves
    assert_allclose(pairs[0, 0], [[1.5, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 0.0]])
    # a background row that goes left, then right: with x0 of the row, its x1 leads to 6
    out = np.zeros((1, 1, 3))
    add_contributions(model, X, (0, 1), np.array([[-1.0, 2.0, 0.0]]), 1, out)
    assert_allclose(out[0, 0], [5.0, 0.0, 0.0])
