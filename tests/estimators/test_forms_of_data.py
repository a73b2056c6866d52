"""Arrays in any order and layout, of features and of targets, give the same model."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from tests.small_models import outputs, small


def as_kinds(X):
    """Return the same numbers, exact in float32, in arrays that lie in memory in other ways."""
    read_only = X.copy()
    read_only.setflags(write=False)
    padded = np.zeros((2 * len(X), X.shape[1] + 3))
    padded[::2, 1:-2] = X
    return {
        "float64": X,
        "float32": X.astype(np.float32),
        "big-endian": X.astype(">f8"),
        "read-only": read_only,
        "Fortran order": np.asfortranarray(X),
        "strided": padded[::2, 1:-2],
        "reversed": X[::-1, ::-1].copy()[::-1, ::-1],
        "pandas": pd.DataFrame(X).add_prefix("c"),
    }


def test_same_model_from_every_form_of_the_data(binary):
    X, y = binary
    X = np.asarray(X[:, :6], dtype=np.float32).astype(float)
    expected = small(XGBClassifierLite).fit(X, y)
    splits = expected.trees_to_dataframe()["Split"]
    for kind, data in as_kinds(X).items():
        model = small(XGBClassifierLite).fit(data, y)
        assert_array_equal(outputs(model, data), outputs(expected, X), kind)
        assert_array_equal(model.apply(data), expected.apply(X), kind)
        assert_array_equal(model.trees_to_dataframe()["Split"], splits, kind)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        dict(objective="reg:gamma", n_jobs=2),
        dict(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8]),
        dict(objective=lambda y_true, y_pred: (y_pred - y_true, np.ones_like(y_true))),
        dict(subsample=0.5, early_stopping_rounds=2, random_state=0),
        dict(booster="dart", rate_drop=0.5, random_state=0),
        dict(linear_tree=True),
        dict(ccp_alpha=0.1),
    ],
)
def test_targets_of_float32(settings, regression):
    X, y = regression
    short = (y / 7).astype(np.float32)
    read_only, padded = short.copy(), np.zeros((len(y), 3), dtype=np.float32)
    read_only.setflags(write=False)
    padded[:, 1] = short
    expected = small(XGBRegressorLite, **settings).fit(X, short.astype(float))
    for form in (short, read_only, padded[:, 1]):
        model = small(XGBRegressorLite, **settings).fit(X, form)
        assert model.model_.nodes.tobytes() == expected.model_.nodes.tobytes()
        assert model.evals_result_ == expected.evals_result_
        assert_array_equal(outputs(model, X), outputs(expected, X))


def test_several_targets_of_float32(regression):
    X, y = regression
    y = (np.array([y, -y]).T / 7).astype(np.float32)
    y[::5, 1] = np.nan
    model, expected = (small(XGBRegressorLite).fit(X, own) for own in (y, y.astype(float)))
    assert_array_equal(outputs(model, X), outputs(expected, X))


def test_large_integers_and_timestamps_are_not_rounded_to_float32():
    # neighbours that are the same number in float32
    start = 1_700_000_000
    X = start + np.arange(40)[:, np.newaxis]
    assert len(np.unique(X.astype(np.float32))) == 1
    y = (np.arange(40) % 8 < 4).astype(float)
    model = XGBRegressorLite(n_estimators=1, learning_rate=1.0, reg_lambda=0, max_depth=0)
    for data in (X, X.astype(float)):
        assert_allclose(model.fit(data, y).predict(data), y)
    assert model.trees_to_dataframe()["Split"].dropna().isin(start + np.arange(40) - 0.5).all()


def test_float32_model_on_float64_rows():
    # 0.1 as float32 is larger than 0.1: thresholds are between the numbers that were seen
    X = np.array([[0.1], [0.2], [0.3], [0.4]], dtype=np.float32)
    model = XGBRegressorLite(n_estimators=1, max_depth=0).fit(X, [0.0, 1.0, 0.0, 1.0])
    assert_array_equal(model.predict(X), model.predict(X.astype(float)))
