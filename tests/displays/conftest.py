"""What the tests of this room share: one fit of several."""

import pytest
from sklearn.datasets import load_diabetes, load_iris

from sklboost import XGBClassifierLite, XGBRegressorLite


@pytest.fixture(scope="package")
def regressor():
    """Return a model with validation results: its best round is not the last that was done."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = XGBRegressorLite(n_estimators=60, max_depth=4, early_stopping_rounds=5)
    sets = [(X[:300], y[:300]), (X[300:], y[300:])]
    return model.fit(X[:300], y[:300], eval_set=sets)


@pytest.fixture(scope="package")
def classifier():
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = load_iris().target_names
    return XGBClassifierLite(n_estimators=3, max_depth=2).fit(X, names[y])
