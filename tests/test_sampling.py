"""Rows and features drawn at random, seen from the estimators."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features

UNIFORM = dict(subsample=0.5)
BY_GRADIENT = dict(subsample=0.3, sampling_method="gradient_based")
COLUMNS = dict(colsample_bytree=0.8, colsample_bylevel=0.8, colsample_bynode=0.7)
SAMPLING = {"uniform": UNIFORM, "gradient_based": BY_GRADIENT, "all": UNIFORM | COLUMNS}

each_sampling = pytest.mark.parametrize("sampling", SAMPLING.values(), ids=SAMPLING)


def make_data(n_rows, task="regression", n_values=6):
    """Return few distinct rows, so many equal ones, and targets of few values."""
    random = np.random.default_rng(0)
    X = random.integers(0, n_values, (n_rows, 4)).astype(float)
    X[random.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X).sum(axis=1) + 2 * random.normal(size=n_rows)
    edges = {"regression": np.arange(-5.0, 30.0, 2.0), "binary": [9.0], "multiclass": [7.0, 11.0]}
    return X, np.digitize(signal, edges[task])


def fit(X, y, task="regression", sample_weight=None, **settings):
    estimator = XGBRegressorLite if task == "regression" else XGBClassifierLite
    plain = dict(n_estimators=4, max_depth=4, random_state=3, min_child_weight=0.1)
    return estimator(**(plain | settings)).fit(X, y, sample_weight=sample_weight)


def assert_same_model(one, other):
    assert one.model_.nodes.tobytes() == other.model_.nodes.tobytes()
    assert_array_equal(one.model_.base_score, other.model_.base_score)


def roots(model):
    return model.model_.nodes[model.model_.tree_starts[:-1]]


@pytest.mark.interpreted
@each_sampling
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_weight_is_repetition_in_any_order(task, sampling):
    X, y = make_data(150, task)
    weight = np.random.default_rng(1).integers(0, 4, 150)
    order = np.random.default_rng(2).permutation(weight.sum())
    rows = np.repeat(np.arange(150), weight)[order]
    settings = dict(n_estimators=3, **sampling)
    weighted = fit(X, y, task, sample_weight=weight, **settings)
    assert_same_model(weighted, fit(X[rows], y[rows], task, **settings))


@pytest.mark.parametrize("scale", [0.25, 5000.0])
def test_other_weights(scale):
    X, y = make_data(500)
    weight = scale * (1 + np.arange(500) % 2)
    model = fit(X, y, sample_weight=weight, subsample=0.5, n_estimators=20)
    cover = roots(model).cover / scale
    assert cover.mean() == pytest.approx(375, abs=4 * np.sqrt(1250 * 0.25 / 20))
    assert len(set(cover)) > 5


@each_sampling
@pytest.mark.parametrize("max_bin", [16, 256])
def test_bins_are_as_good_as_values(sampling, max_bin):
    X, y = make_data(2000, n_values=1000)
    B, settings = bin_features(X, max_bin), dict(max_bin=max_bin, max_depth=8, **sampling)
    model = fit(B, y, **settings)
    assert_same_model(model, fit(X, y, **settings))
    assert_array_equal(model.predict(B), model.predict(X))


def test_gradient_based_sampling_of_everything_does_nothing():
    X, y = make_data(500)
    settings = dict(sampling_method="gradient_based")
    assert_same_model(fit(X, y, **settings), fit(X, y))


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "sampling",
    [
        UNIFORM,
        UNIFORM | dict(pruning="full"),
        BY_GRADIENT,
        BY_GRADIENT | dict(grow_policy="lossguide"),
    ],
)
def test_samples_without_rows(sampling):
    X, y = np.arange(3.0)[:, np.newaxis], np.array([1.0, 2.0, 6.0])
    model = fit(X, y, **(sampling | dict(subsample=1e-9, reg_lambda=0.0)))
    assert_array_equal(model.predict(X), 3.0)
    frame = model.trees_to_dataframe()
    assert list(frame["Feature"]) == ["Leaf"] * 4
    assert not frame[["Gain", "Cover", "Similarity", "Output"]].to_numpy().any()
