"""The unit of a user's loss does not matter, however small or large its derivatives are."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import Loss, XGBRegressorLite, check_loss
from tests.custom_losses import compiled

# no rule of the parameters counts in the unit of the derivatives
FREE = dict(n_estimators=6, max_depth=3, min_child_weight=0, reg_lambda=0, random_state=0)


@pytest.fixture(scope="module")
def problem():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 4))
    return X, 3 * X[:, 0] + np.sin(X[:, 1]) + 0.1 * random.normal(size=500)


def scaled(of_gradient, of_hessian):
    def objective(y_true, y_pred):
        return (y_pred - y_true) * of_gradient, np.full(y_true.shape, of_hessian)

    return objective


def fit(objective, X, y, **settings):
    return XGBRegressorLite(objective=objective, **(FREE | settings)).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "powers"),  # which are even: lines take roots
    [
        ({}, [-996, -80, 120, 996]),
        (dict(subsample=0.5), [-996, 400]),
        # gradients become as small as 2^-1000 times those
        (dict(subsample=0.3, sampling_method="gradient_based"), [-400, -30, 134]),
        (dict(linear_tree=True, linear_lambda=0.0), [-134, 30, 996]),
        (
            dict(
                *[dict(grow_policy="lossguide", max_depth=0, max_leaves=9)],
                monotone_constraints=[1, 0, 0, 0],
            ),
            [-60, 100],
        ),
        (dict(multi_strategy="multi_output_tree"), [-996, 400]),
    ],
)
def test_a_power_of_two_changes_nothing(problem, settings, powers):
    X, y = problem
    if "multi_strategy" in settings:
        y = np.c_[y, -y, y**2]
    expected = fit(scaled(1.0, 1.0), X, y, **settings).predict(X)
    for factor in 2.0 ** np.array(powers):
        assert_array_equal(fit(scaled(factor, factor), X, y, **settings).predict(X), expected)


@pytest.mark.parametrize("seed", range(8))
def test_a_factor_of_the_weights_moves_no_threshold(seed):
    random = np.random.default_rng(seed)
    X, weight = random.normal(size=(1000, 4)), random.integers(1, 4, 1000).astype(float)
    y = X[:, 0] + np.sin(3 * X[:, 1]) + random.normal(size=1000)
    model, expected = XGBRegressorLite(**FREE), XGBRegressorLite(**FREE)
    expected.fit(X, y, sample_weight=weight)
    for factor in (1 / weight.mean(), 1 / weight.sum(), 1e3 / 7):
        model.fit(X, y, sample_weight=weight * factor)
        tables = (own.trees_to_dataframe()[["Feature", "Split"]] for own in (model, expected))
        pd.testing.assert_frame_equal(*tables, check_exact=True)
        # gradients are rounded to another unit
        assert_allclose(model.predict(X), expected.predict(X), atol=1e-5)


@pytest.mark.parametrize("factor", [1e-300, 1e-38, 1e-7, 1e9, 1e300])
def test_the_pruning_path(problem, factor):
    X, y = problem
    expected, found = (
        XGBRegressorLite(objective=scaled(unit, unit), **FREE).cost_complexity_pruning_path(X, y)
        for unit in (1.0, factor)
    )
    assert_allclose(found.ccp_alphas, expected.ccp_alphas, rtol=1e-4)
    assert_allclose(found.impurities, expected.impurities, rtol=1e-4)


@pytest.mark.parametrize("factor", [1e-300, 1e38])
def test_a_compiled_function(problem, factor):
    X, y = problem
    own = compiled(lambda y_true, y_pred: ((y_pred - y_true) * factor, factor))
    assert_allclose(fit(own, X, y).predict(X), fit(scaled(1, 1), X, y).predict(X), atol=1e-6)
    several = np.c_[y, 1e-3 * y]
    several[::3, 1] = np.nan
    expected = fit(scaled(1, 1), X, several).predict(X)
    assert_allclose(fit(own, X, several).predict(X), expected, atol=1e-6)


class Tiny(Loss):
    """Half the squared error, in a unit that is far from 1."""

    takes_weight = True

    def gradients(self, y, raw_score, weight):
        factor = (weight if len(weight) else 1.0) * 1e-30
        return (raw_score - y) * factor, np.ones_like(raw_score) * factor


@pytest.mark.parametrize("unit", [1.0, 1e-50, 1e60])
def test_weights_that_the_loss_includes(problem, unit):
    X, y = problem
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    expected = XGBRegressorLite(objective=scaled(1.0, 1.0), **FREE).fit(X, y, weight).predict(X)
    model = XGBRegressorLite(objective=Tiny(), **FREE).fit(X, y, unit * weight)
    assert_allclose(model.predict(X), expected, atol=1e-6)


@pytest.mark.parametrize("ratio", [1e-30, 1e-12, 1e12, 1e30])
def test_hessians_far_from_the_gradients(problem, ratio):
    X, y = problem
    # leaf weights are G / H, so one round says it all
    one = fit(scaled(ratio, ratio), X, y, n_estimators=1).predict(X)
    other = fit(scaled(1.0, ratio), X, y, n_estimators=1, learning_rate=0.3).predict(X)
    assert_allclose(other * ratio, one, rtol=1e-5)
    plain = fit(scaled(1.0, 1.0), X, y, n_estimators=1, reg_lambda=2.0).predict(X)
    own = fit(scaled(ratio, ratio), X, y, n_estimators=1, reg_lambda=2.0 * ratio).predict(X)
    assert_allclose(own, plain, rtol=1e-5)


@pytest.mark.parametrize("power", [-830, 100])
def test_hessians_that_are_0_in_some_rows_and_very_different_in_others(problem, power):
    X, y = problem
    weight = np.where(np.arange(len(y)) % 5 == 0, 1e-9, 1.0)
    weight[1::5] = 0.0

    def of_unit(unit):
        return lambda y_true, y_pred: ((y_pred - y_true) * weight * unit, weight * unit)

    expected = fit(of_unit(1.0), X, y).predict(X)
    assert_array_equal(fit(of_unit(2.0**power), X, y).predict(X), expected)
    assert np.std((expected - y)[weight == 1.0]) < 0.3 * np.std(y)


def test_derivatives_far_from_1_are_compared_with_differences():
    class Half(Loss):
        def gradients(self, y, raw_score):
            return (raw_score - y) * 1e-40, np.full(y.shape, 1e-40)

        def value(self, y, raw_score, weight):
            return 1e-40 * np.mean((raw_score - y) ** 2) / 2

    check_loss(Half(), [1.0, 2.0, 3.0])


def test_a_compiled_function_whose_first_rows_are_far_from_the_others(problem):
    X, y = problem
    rare = np.arange(len(y)) % (len(y) // 64) == 0  # the rows that are asked first
    y = np.where(rare, y + 1000.0, y)

    def derivatives(y_true, y_pred):
        unit = 1e-60 if y_true > 500.0 else 1.0
        return (y_pred - y_true) * unit, unit

    def objective(y_true, y_pred):
        unit = np.where(y_true > 500.0, 1e-60, 1.0)
        return (y_pred - y_true) * unit, unit

    settings = dict(base_score=0.0)
    prediction = fit(compiled(derivatives), X, y, **settings).predict(X)
    assert_allclose(prediction, fit(objective, X, y, **settings).predict(X), atol=1e-6)
    assert np.abs(prediction - y)[~rare].mean() < 1.0
