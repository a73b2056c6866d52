"""One tree a round with a value for each class: ``multi_strategy="multi_output_tree"``."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.engine.model import NODE_DTYPE
from tests.small_models import small


def make_data(n_rows=500, n_classes=5, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 5))
    X[:, 1] = np.round(X[:, 1])
    X[random.random(X.shape) < 0.1] = np.nan
    score = np.nan_to_num(X) @ random.normal(size=(5, n_classes))
    return X, (score + random.gumbel(size=score.shape)).argmax(axis=1)


def vector(**parameters):
    return small(XGBClassifierLite, multi_strategy="multi_output_tree", **parameters)


def assert_same_model(one, other):
    for name in NODE_DTYPE.names:
        assert_array_equal(one.model_.nodes[name], other.model_.nodes[name], err_msg=name)
    assert_array_equal(one.model_.outputs, other.model_.outputs)


def assert_equals_leaves(model, X):
    """Compare raw scores with the sum of the values of the leaves that `apply` gives."""
    starts = model.model_.tree_starts
    values = model.model_.outputs["value"][model.apply(X) + starts[:-1]].sum(axis=1)
    assert_allclose(model.decision_function(X), values + model.model_.base_score)


# within the first levels of prediction, and deeper
@pytest.mark.parametrize(("max_depth", "dtype"), [(3, np.float32), (8, np.float64)])
def test_raw_scores_are_sums_of_leaf_vectors(max_depth, dtype):
    X, y = make_data()
    X = X.astype(dtype)
    model = vector(max_depth=max_depth, n_estimators=6).fit(X, y)
    assert (model.model_.n_trees, model.model_.n_rounds, model.model_.n_outputs) == (6, 6, 5)
    assert model.model_.outputs.shape == (len(model.model_.nodes), 5)
    assert model.apply(X).shape == (500, 6)
    assert_equals_leaves(model, X)
    for n_rows in (1, 7, 8, 65):  # few rows take another way
        margin = model.decision_function(X[:n_rows])
        assert_array_equal(margin, model.decision_function(X)[:n_rows])
    stages = list(model.staged_predict(X))
    assert_array_equal(stages[-1], model.predict(X))
    assert_array_equal(stages[2], model.predict(X, iteration_range=(0, 3)))
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("settings", [
    {}, dict(subsample=0.5), dict(subsample=0.4, sampling_method="gradient_based"),
    dict(colsample_bynode=0.5), dict(grow_policy="lossguide", max_leaves=9, max_depth=0),
    dict(gamma=2.0, reg_alpha=0.3, max_delta_step=0.5), dict(path_smooth=3.0),
    dict(extra_trees=True), dict(num_parallel_tree=3, subsample=0.7), dict(ccp_alpha=0.003),
    dict(booster="dart", rate_drop=0.4),
])  # fmt: skip
def test_every_setting_goes_with_it(settings):
    X, y = make_data(6000)
    one, three = (
        vector(n_jobs=n_jobs, random_state=0, n_estimators=5, **settings).fit(X, y)
        for n_jobs in (1, 3)
    )
    assert_same_model(one, three)
    assert_equals_leaves(one, X[:300])
    assert log_loss(y, one.predict_proba(X)) < log_loss(
        y, np.tile(np.bincount(y) / 6000, (6000, 1))
    )
    assert (one.model_.n_rounds, one.n_estimators_) == (5, 5)


@pytest.mark.parametrize("max_depth", [3, 8])
def test_validation_scores_are_those_of_predictions(max_depth):
    X, y = make_data(700)
    model = vector(max_depth=max_depth, n_estimators=5)
    model.fit(X[:500], y[:500], X_val=X[500:], y_val=y[500:])
    found = model.evals_result_["validation_0"]["mlogloss"]
    for round_, value in enumerate(found):
        proba = model.predict_proba(X[500:], iteration_range=(0, round_ + 1))
        assert_allclose(value, log_loss(y[500:], proba), rtol=1e-6)


def test_early_stopping_keeps_whole_rounds():
    X, y = make_data(700)
    given = dict(X_val=X[500:], y_val=y[500:])
    model = vector(n_estimators=80, max_depth=6, early_stopping_rounds=3)
    model.fit(X[:500], y[:500], **given)
    assert 1 < model.model_.n_trees == model.best_iteration_ + 1 < 70
    plain = vector(n_estimators=model.best_iteration_ + 1, max_depth=6).fit(X[:500], y[:500])
    assert_same_model(model, plain)


def test_a_model_is_continued_as_if_it_had_not_ended():
    X, y = make_data()
    whole = vector(n_estimators=7).fit(X, y)
    first = vector(n_estimators=3).fit(X, y)
    assert_same_model(vector(n_estimators=4).fit(X, y, init_model=first), whole)
    warm = vector(n_estimators=3, warm_start=True).fit(X, y)
    assert_same_model(warm.set_params(n_estimators=7).fit(X, y), whole)


def test_trees_of_another_kind_do_not_go_with_it():
    X, y = make_data()
    plain = small(XGBClassifierLite).fit(X, y)
    message = r"multi_strategy='multi_output_tree', but init_model was fitted with 'one_output_per"
    with pytest.raises(ValueError, match=message):
        vector().fit(X, y, init_model=plain)
    message = "linear_tree=True does not go with multi_strategy='multi_output_tree'"
    with pytest.raises(ValueError, match=message):
        vector(linear_tree=True).fit(X, y)
    two = y > 2  # with one raw score there is no difference
    both = vector().fit(X, two, init_model=small(XGBClassifierLite).fit(X, two))
    assert both.model_.n_rounds == 16


@pytest.mark.parametrize("estimator", [XGBRegressorLite, XGBClassifierLite])
def test_with_one_raw_score_it_makes_no_difference(estimator):
    X, y = make_data()
    two = (y > 2).astype(int)
    plain, other = (
        small(estimator, multi_strategy=strategy, gamma=0.1, max_depth=5).fit(X, two)
        for strategy in ("one_output_per_tree", "multi_output_tree")
    )
    assert_same_model(plain, other)
    assert_array_equal(plain.predict(X), other.predict(X))
    assert other.model_.outputs.shape[1] == 0


def test_tables_have_lists():
    X, y = make_data()
    model = vector(n_estimators=2, reg_lambda=2.0, learning_rate=0.5).fit(X, y)
    table, outputs = model.trees_to_dataframe(), model.model_.outputs
    assert len(table) == len(outputs)
    for row, own in zip(table.itertuples(), outputs, strict=True):
        weights = -own.gradient / (own.hessian + 2.0)
        assert_allclose(row.Output, weights)
        assert_allclose(row.Similarity, (own.gradient**2 / (own.hessian + 2.0)).sum())
        assert_allclose(row.Cover, own.hessian.mean())
        if row.Feature == "Leaf":
            assert_allclose(row.Gain, 0.5 * weights)
    root, left, right = (table[f"0-{node}" == table.ID].iloc[0] for node in (0, 1, 2))
    assert_allclose(root.Gain, left.Similarity + right.Similarity - root.Similarity, rtol=1e-9)


@pytest.mark.parametrize("settings", [dict(max_depth=6, gamma=1.0), dict(path_smooth=4.0)])
def test_every_output_keeps_monotone_constraints(settings):
    X, _ = make_data(1000)
    y = np.nan_to_num(X[:, 0] - X[:, 1]) + np.random.default_rng(1).standard_t(3, len(X))
    quantiles = dict(objective="reg:quantileerror", quantile_alpha=[0.2, 0.5, 0.8])
    model = small(XGBRegressorLite, multi_strategy="multi_output_tree", **quantiles, **settings)
    constraints = [1, -1, 0, 0, 0]
    assert not model.fit(X, y).verify_monotone(constraints).holds
    model.set_params(monotone_constraints=constraints).fit(X, y)
    assert model.verify_monotone().holds
    assert model.model_.n_trees == 8
    grid = np.repeat(X[:50], 30, axis=0)
    grid[:, 0] = np.tile(np.linspace(-3, 3, 30), 50)
    rising = model.predict(grid).reshape(50, 30, 3)
    assert (np.diff(rising, axis=1) >= 0).all()
    assert np.ptp(rising, axis=1).max() > 0.1


def test_quantiles_of_one_tree_are_renewed_each():
    random = np.random.default_rng(0)
    X = random.integers(0, 3, (900, 1)).astype(float)
    y = X[:, 0] + random.exponential(size=900)
    categories = [0.1, 0.5, 0.9]
    model = XGBRegressorLite(
        objective="reg:quantileerror", quantile_alpha=categories, n_estimators=1, learning_rate=1.0,
        multi_strategy="multi_output_tree",
    ).fit(X, y)  # fmt: skip
    assert model.model_.n_trees == 1
    for value in range(3):
        own = y[X[:, 0] == value]
        expected = np.quantile(own, categories, method="averaged_inverted_cdf")
        assert_allclose(model.predict([[value]])[0], expected, rtol=1e-6)
