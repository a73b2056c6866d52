"""Categories of few rows: noise among them does little harm, and gains and weights are right."""

import numpy as np
import pandas as pd
import pytest

from sklboost import XGBRegressorLite


def make_data(n_categories, n_rows, noise, seed=0):
    """Return a frame with a feature of many categories and one of numbers; target without noise."""
    random = np.random.default_rng(seed)
    code = random.integers(0, n_categories, n_rows)
    X = pd.DataFrame({"number": random.normal(size=n_rows), "category": code})
    X["category"] = X["category"].astype(pd.CategoricalDtype(range(n_categories)))
    expected = random.normal(size=n_categories)[code] + 0.3 * X["number"].to_numpy()
    return X, expected, expected + noise * random.normal(size=n_rows)


def test_twenty_rows_a_category_with_much_noise():
    X, expected, y = make_data(1000, 24_000, noise=4.0)
    model = XGBRegressorLite(n_estimators=100, learning_rate=0.1)
    errors = []
    for cat_smooth in (model.cat_smooth, 0):
        model.set_params(cat_smooth=cat_smooth).fit(X[:20_000], y[:20_000])
        errors.append(np.mean((model.predict(X[20_000:]) - expected[20_000:]) ** 2))
    assert errors[0] < 1.3
    assert errors[0] < 0.5 * errors[1]


def test_gains_of_the_model_are_those_of_its_rows():
    X, _, y = make_data(50, 2000, noise=1.0)
    model = XGBRegressorLite(n_estimators=3, reg_lambda=0.5, min_child_weight=0).fit(X, y)
    trees = model.trees_to_dataframe()
    assert (trees["Feature"] == "category").sum() > 10
    for tree, node in trees.loc[trees["Feature"] == "category", ["Tree", "Node"]].to_numpy()[:20]:
        split = model.explain_split(int(tree), int(node))
        sides = split.result("S_L") + split.result("S_R") - split.result("S")
        np.testing.assert_allclose(split.result("gain"), sides, rtol=1e-6)


@pytest.mark.parametrize("objective", ["reg:squarederror", "count:poisson"])
def test_a_row_of_weight_two_is_the_row_twice(objective):
    X, expected, _ = make_data(80, 1500, noise=0.0)
    random = np.random.default_rng(3)
    y, weight = random.poisson(np.exp(expected)).astype(float), random.integers(1, 4, 1500)
    settings = dict(objective=objective, n_estimators=5, cat_smooth=3.0)
    weighted = XGBRegressorLite(**settings).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(1500), weight)
    repeated = XGBRegressorLite(**settings).fit(X.iloc[rows], y[rows])
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-7)
