"""The same bits for every number of threads, on more rows than the sample that cut points use."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite

N_ROWS = 210_000  # cut points come from a sample of about 200,000
N_JOBS = [1, 2, 3, 8]


@pytest.fixture(scope="module")
def data():
    """Return X with few values, heavy tails, missing values, a column twice; and a noisy signal."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 5)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = np.exp(3 * X[:, 2])
    X[random.random(N_ROWS) < 0.3, 3] = np.nan
    X[:, 4] = X[:, 0]  # whichever thread looks at it first, the lower column wins the tie
    signal = X[:, 0] * (X[:, 1] > 0) + np.log(X[:, 2]) / 3 + np.nan_to_num(X[:, 3])
    return X, signal + random.normal(size=N_ROWS)


def targets(signal, task):
    if task == "regression":
        return signal
    if task == "binary":
        return (signal > 0.5).astype(int)
    return np.digitize(signal, [-1.0, 0.0, 1.5])


def fit(X, y, task, n_jobs, sample_weight=None, **settings):
    estimator = XGBRegressorLite if task == "regression" else XGBClassifierLite
    model = estimator(n_estimators=3, n_jobs=n_jobs, random_state=7, **settings)
    return model.fit(X, y, sample_weight=sample_weight)


def bits(model, X):
    """Return all that a model holds and says, as arrays to be compared bit by bit."""
    frame = model.trees_to_dataframe()
    numbers = frame[["Split", "Gain", "Cover", "Similarity", "Output"]].to_numpy(dtype=float)
    names = frame[["ID", "Feature", "Yes", "No", "Missing"]].fillna("").to_numpy()
    outputs = model.predict(X) if not hasattr(model, "classes_") else model.predict_proba(X)
    return numbers.view(np.int64), names, np.ascontiguousarray(outputs).view(np.int64)


def assert_same_bits(one, other):
    for first, second in zip(one, other, strict=True):
        assert_array_equal(first, second)


@pytest.mark.parametrize(
    "growth",
    [
        dict(grow_policy="depthwise", max_depth=6),
        dict(grow_policy="lossguide", max_depth=0, max_leaves=31),
    ],
    ids=["depthwise", "lossguide"],
)
@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_number_of_threads_changes_no_bit(data, task, growth):
    X, signal = data
    y = targets(signal, task)
    results = [bits(fit(X, y, task, n_jobs, **growth), X) for n_jobs in N_JOBS]
    assert len(results[0][0]) > 3 * 40  # three trees worth the name
    for result in results[1:]:
        assert_same_bits(results[0], result)


@pytest.mark.parametrize("max_bin", [16, 1000])
def test_number_of_threads_changes_no_bit_with_weights_and_other_bins(data, max_bin):
    X, signal = data
    weight = np.random.default_rng(1).exponential(size=N_ROWS)
    weight[::10] = 0.0
    settings = dict(sample_weight=weight, max_bin=max_bin, max_depth=4)
    results = [bits(fit(X, signal, "regression", n_jobs, **settings), X) for n_jobs in N_JOBS]
    for result in results[1:]:
        assert_same_bits(results[0], result)


def test_number_of_threads_of_prediction_changes_no_bit(data):
    X, signal = data
    model = fit(X, targets(signal, "multiclass"), "multiclass", 1)
    expected = bits(model, X)
    leaves = model.apply(X)
    for n_jobs in N_JOBS[1:]:
        model.set_params(n_jobs=n_jobs)
        assert_same_bits(expected, bits(model, X))
        assert_array_equal(model.apply(X), leaves)


def test_same_seed_same_bits_and_another_seed_other_bits(data):
    X, signal = data
    first, second = (bits(fit(X, signal, "regression", 2), X) for _ in range(2))
    assert_same_bits(first, second)
    other = XGBRegressorLite(n_estimators=3, random_state=8).fit(X, signal)
    assert np.any(bits(other, X)[2] != first[2])  # another seed rounds the gradients otherwise


def test_a_row_is_predicted_alike_alone_and_among_others(data):
    X, signal = data
    model = fit(X, signal, "regression", 2)
    prediction = model.predict(X)
    for rows in (slice(0, 1), slice(5, 70), slice(100_000, 100_003), slice(1, None, 50)):
        assert_array_equal(model.predict(X[rows]), prediction[rows])
