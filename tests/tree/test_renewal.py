import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost import XGBRegressorLite
from sklboost.objectives.start_values import weighted_quantile
from sklboost.tree.options.renewal import largest_of, round_weights, select_quantile, select_value

# --- the quantile of some values -----------------------------------------------------------------


def selected(values, weights, alpha):
    values, weights = np.array(values, dtype=float), np.array(weights, dtype=float)
    weights *= 2.0**40  # of which rounding is a small part
    return select_quantile(values, weights, alpha, weights.sum())


@pytest.mark.interpreted
def test_selection_is_the_averaged_inverse_of_the_distribution():
    for seed in range(30):
        random = np.random.default_rng(seed)
        n = int(random.integers(1, 60))
        values = random.integers(0, random.integers(1, 40) + 1, n).astype(float)  # many are equal
        weights = random.integers(1, 4, n)
        alpha = random.choice([0.1, 0.25, 0.5, 0.75, 0.9, random.uniform(0.01, 0.99)])
        repeated = np.repeat(values, weights)
        expected = np.quantile(repeated, alpha, method="averaged_inverted_cdf")
        ones = np.ones(len(repeated))
        assert_allclose(selected(values, weights, alpha), expected)
        assert_allclose(selected(repeated, ones, alpha), expected)
        # the start value of the losses is the same quantile
        assert_allclose(weighted_quantile(values, weights.astype(float), alpha), expected)


@pytest.mark.interpreted
def test_with_equal_weights_it_is_the_nth_smallest():
    for seed in range(30):
        random = np.random.default_rng(seed)
        values = random.integers(0, 1 + seed, random.integers(1, 20)).astype(float)  # with ties
        values[values == 3] = np.inf
        for n, expected in enumerate(np.sort(values)):
            ones, found = np.ones(len(values)), values.copy()
            assert select_value(found, ones, 0, 0.0, n + 1.0)[0] == expected


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e30, 1e300])
def test_weights_are_as_exact_in_light_leaves_as_in_heavy_ones(size):
    random = np.random.default_rng(0)
    given = random.integers(1, 100, 500) * size
    weights = given.copy()
    total = round_weights(weights, largest_of(weights), 100_000)
    assert total == weights.sum() < 2.0**53
    assert (weights == np.rint(weights)).all()
    assert_allclose(weights / total, given / given.sum(), rtol=1e-8)
    assert round_weights(np.zeros(3), largest_of(np.zeros(3)), 3) == 3.0


# --- of the residuals in a leaf ------------------------------------------------------------------


def make_data(n=600, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    X[::9, 1] = np.nan
    y = X[:, 0] ** 2 + np.nan_to_num(X[:, 1]) + random.standard_t(2, n)
    return X, y, random.integers(1, 4, n).astype(float)


def test_rows_of_little_weight_have_quantiles_where_others_weigh_far_more():
    X, y, weight = make_data()
    X[:, 0] = np.where(X[:, 0] > 0, 1.0, -1.0)
    light = X[:, 0] > 0
    model = XGBRegressorLite(
        objective="reg:quantileerror", quantile_alpha=0.8, n_estimators=1, learning_rate=1.0
    ).set_params(max_depth=1, min_child_weight=0.0)
    model.fit(X[:, :1], y, np.where(light, 1.0, 1e13) * weight)
    expected = weighted_quantile(y[light], weight[light], 0.8)
    assert_allclose(model.predict([[1.0]]), expected)


SETTINGS = {
    "depthwise": {},
    "lossguide": dict(grow_policy="lossguide", max_leaves=7, max_depth=0),
    "pruned": dict(gamma=5.0, pruning="post"),
    "stump": dict(max_depth=1),
    "limited": dict(max_delta_step=0.3),
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize(("weighted", "alpha"), [(False, 0.5), (True, 0.9)])
def test_leaves_hold_the_quantiles_of_their_residuals(settings, weighted, alpha):
    X, y, weight = make_data()
    model = XGBRegressorLite(
        objective="reg:quantileerror",
        quantile_alpha=alpha,
        n_estimators=3,
        learning_rate=0.7,
        **{"max_depth": 3} | settings,
    ).fit(X, y, weight if weighted else None)
    leaves = model.apply(X)
    before = np.full(len(y), model.model_.base_score[0])
    assert before[0] == weighted_quantile(y, weight if weighted else np.empty(0), alpha)
    limit = settings.get("max_delta_step", np.inf)
    for round_, stage in enumerate(model.staged_predict(X)):
        for leaf in np.unique(leaves[:, round_]):
            in_leaf = leaves[:, round_] == leaf
            leaf_weight = weight[in_leaf] if weighted else np.empty(0)
            middle = weighted_quantile((y - before)[in_leaf], leaf_weight, alpha)
            step = np.clip(middle, -limit, limit)
            assert_allclose(stage[in_leaf] - before[in_leaf], 0.7 * step, atol=1e-12)
        before = stage


def test_rows_that_were_not_drawn_have_no_say():
    X, y, _ = make_data(5000)
    model = XGBRegressorLite(
        objective="reg:absoluteerror", n_estimators=1, max_depth=1, subsample=0.5, random_state=0
    ).fit(X, y)
    leaves, steps = model.apply(X)[:, 0], model.predict(X) - model.model_.base_score[0]
    for leaf in np.unique(leaves):
        in_leaf = leaves == leaf
        everybody = 0.3 * np.median(y[in_leaf] - model.model_.base_score[0])
        assert steps[in_leaf][0] != everybody  # of half of them
        assert abs(steps[in_leaf][0] - everybody) < 0.1
