"""Thousands of categories of few rows: those that mean something are used, the others are not."""

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBRegressorLite


def make_data(n_categories, n_rows, effect, noise, seed=0):
    """Return a frame with a feature of many categories and one of numbers; target without noise."""
    random = np.random.default_rng(seed)
    code = random.integers(0, n_categories, n_rows)
    X = pd.DataFrame({"number": random.normal(size=n_rows), "category": code})
    X["category"] = X["category"].astype(pd.CategoricalDtype(range(n_categories)))
    expected = effect * random.normal(size=n_categories)[code] + 0.3 * X["number"].to_numpy()
    return X, expected, expected + noise * random.normal(size=n_rows)


def held_out_error(model, n_categories, n_rows, effect, noise):
    """Return the mean squared error of predictions for rows of categories that `fit` has seen."""
    X, expected, y = make_data(n_categories, n_rows + 4000, effect, noise)
    fitted, known = model.fit(X[:n_rows], y[:n_rows]), set(X["category"][:n_rows])
    test = np.flatnonzero(X["category"].isin(known).to_numpy() & (np.arange(len(X)) >= n_rows))
    return np.mean((fitted.predict(X.iloc[test]) - expected[test]) ** 2)


def test_four_rows_a_category_without_noise():
    model = XGBRegressorLite(n_estimators=200, learning_rate=0.1)
    # 0.05; 0.6 where categories of little cover are merged, 1 where they are not used at all
    assert held_out_error(model, 2000, 8000, effect=1.0, noise=0.0) < 0.1


def test_twenty_rows_a_category_with_much_noise():
    model = XGBRegressorLite(n_estimators=100, learning_rate=0.1)
    error = held_out_error(model, 1000, 20_000, effect=1.0, noise=4.0)
    assert error < 1.3
    model.set_params(cat_smooth=0)
    assert error < 0.5 * held_out_error(model, 1000, 20_000, effect=1.0, noise=4.0)


def test_categories_that_mean_nothing_do_little_harm():
    model = XGBRegressorLite(n_estimators=20, learning_rate=0.1)
    error = held_out_error(model, 1000, 20_000, effect=0.0, noise=1.0)
    model.set_params(cat_smooth=0)
    assert error < 0.25 * held_out_error(model, 1000, 20_000, effect=0.0, noise=1.0)


def test_gains_of_the_model_are_those_of_its_rows():
    X, _, y = make_data(50, 2000, effect=1.0, noise=1.0)
    model = XGBRegressorLite(n_estimators=3, reg_lambda=0.5, min_child_weight=0).fit(X, y)
    trees = model.trees_to_dataframe()
    assert (trees["Feature"] == "category").sum() > 10
    for tree, node in trees.loc[trees["Feature"] == "category", ["Tree", "Node"]].to_numpy()[:20]:
        split = model.explain_split(int(tree), int(node))
        sides = split.result("S_L") + split.result("S_R") - split.result("S")
        np.testing.assert_allclose(split.result("gain"), sides, rtol=1e-6)


@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson"])
def test_a_row_of_weight_two_is_the_row_twice(objective):
    X, expected, _ = make_data(80, 1500, effect=1.0, noise=0.0)
    random = np.random.default_rng(3)
    y, weight = random.poisson(np.exp(expected)).astype(float), random.integers(1, 4, 1500)
    settings = dict(objective=objective, n_estimators=5, cat_smooth=3.0)
    weighted = XGBRegressorLite(**settings).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(1500), weight)
    repeated = XGBRegressorLite(**settings).fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)
