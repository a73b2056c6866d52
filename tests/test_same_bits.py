"""The same bits for every number of threads, on more rows than the sample that cut points use."""

from itertools import cycle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite

N_ROWS = 210_000  # cut points come from a sample of about 200,000
N_JOBS = [2, 3, 8]


@pytest.fixture(scope="module")
def data():
    """Return X and a noisy signal.

    X has few values, heavy tails, missing values, a column twice, and one of many categories.
    """
    random = np.random.default_rng(0)
    X = random.normal(size=(N_ROWS, 6)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = np.exp(3 * X[:, 2])
    X[random.random(N_ROWS) < 0.3, 3] = np.nan
    X[:, 4] = X[:, 0]  # whichever thread looks at it first, the lower column wins the tie
    X[:, 5] = random.integers(0, 700, N_ROWS)
    signal = X[:, 0] * (X[:, 1] > 0) + np.log(X[:, 2]) / 3 + np.nan_to_num(X[:, 3])
    signal += 2 * random.normal(size=700)[X[:, 5].astype(int)]
    return X, signal + random.normal(size=N_ROWS)


def targets(signal, task):
    if task == "regression":
        return signal
    if task == "binary":
        return (signal > 0.5).astype(int)
    return np.digitize(signal, [-1.0, 0.0, 1.5])


def fit(X, y, task, n_jobs, sample_weight=None, **settings):
    """Fit a model that is judged by the first rows after each round."""
    estimator = XGBRegressorLite if task == "regression" else XGBClassifierLite
    model = estimator(n_estimators=3, n_jobs=n_jobs, random_state=7, **settings)
    first = slice(0, 150_000)
    validation = dict(X_val=X[first], y_val=y[first])
    if sample_weight is not None:
        validation["sample_weight_val"] = sample_weight[first]
    return model.fit(X, y, sample_weight=sample_weight, **validation)


def bits(model, X):
    """Return all that a model holds and says, as arrays to be compared bit by bit."""
    frame = model.trees_to_dataframe()
    names = frame[["ID", "Feature", "Yes", "No", "Missing"]].fillna("").to_numpy()
    outputs = model.predict(X) if not hasattr(model, "classes_") else model.predict_proba(X)
    metrics = [own for of_set in model.evals_result_.values() for own in of_set.values()]
    outputs, metrics = (np.ascontiguousarray(own).view(np.int64) for own in (outputs, metrics))
    nodes = np.frombuffer(model.model_.nodes.tobytes(), dtype=np.uint8)
    return nodes, names, outputs, metrics


def assert_same_bits(one, other):
    for first, second in zip(one, other, strict=True):
        assert_array_equal(first, second)


LOSSGUIDE = dict(grow_policy="lossguide", max_depth=0, max_leaves=31)
COLUMNS = dict(colsample_bytree=0.8, colsample_bylevel=0.8, colsample_bynode=0.7)
SETTINGS = {
    "regression": ("regression", dict(max_depth=6)),
    "binary, leaf by leaf": ("binary", LOSSGUIDE),
    "multiclass": ("multiclass", dict(max_depth=6)),
    "few bins, pruned": ("binary", dict(max_bin=16, pruning="full", gamma=1.0)),
    "many bins, limits": ("regression", dict(max_bin=1000, pruning="pre", reg_alpha=1.0)),
    "rows": ("multiclass", dict(subsample=0.5)),
    "rows by gradient": ("binary", dict(subsample=0.3, sampling_method="gradient_based")),
    "rows and columns": ("binary", dict(subsample=0.5) | COLUMNS),
    "monotone": ("regression", dict(monotone_constraints=(1, -1, 0, 1, 0, 0))),
    "monotone, leaf by leaf": (
        "binary",
        dict(monotone_constraints=(1, -1, 0, 1, 0, 0)) | LOSSGUIDE,
    ),
    "interactions": ("regression", dict(interaction_constraints=[[0, 1], [1, 2, 3]]) | COLUMNS),
    "categories": ("multiclass", dict(categorical_features=[1, 5])),
    "a few categories at random": ("binary", dict(categorical_features=[1], extra_trees=True)),
    "smoothed": ("regression", dict(path_smooth=4.0)),
    "random thresholds": ("regression", dict(extra_trees=True)),
    "weighted columns": ("binary", dict(feature_weights=[1, 2, 3, 4, 5, 6]) | LOSSGUIDE | COLUMNS),
    "several metrics": ("regression", dict(eval_metric=["mae", "rmse"])),
    "metrics of ranks": ("binary", dict(eval_metric=["auc", "error"], subsample=0.9)),
    "quantiles": (
        "regression",
        dict(objective="reg:quantileerror", quantile_alpha=[0.2, 0.8], subsample=0.7),
    ),
    "dart": ("regression", dict(booster="dart", rate_drop=0.3, one_drop=True, subsample=0.8)),
    "forests": ("binary", dict(num_parallel_tree=2, subsample=0.8)),
    "linear leaves": ("multiclass", dict(linear_tree=True, subsample=0.4)),
    "rows of leaves": ("multiclass", dict(min_child_samples=500)),
    "rows of leaves of vector trees": (
        "multiclass",
        dict(min_child_samples=500, multi_strategy="multi_output_tree"),
    ),
    "one split a depth": ("multiclass", dict(grow_policy="symmetric", subsample=0.7) | COLUMNS),
}


@pytest.mark.parametrize(("name", "n_jobs"), list(zip(SETTINGS, cycle(N_JOBS), strict=False)))
def test_number_of_threads_changes_no_bit(data, name, n_jobs):
    X, signal = data
    task, settings = SETTINGS[name]
    weight = None
    if "max_bin" in settings or settings.get("subsample", 1.0) < 1.0:
        weight = np.random.default_rng(1).exponential(size=N_ROWS)
        weight[::10] = 0.0
    y = targets(signal, task)
    models = [fit(X, y, task, n, weight, **settings) for n in (1, n_jobs)]
    assert [model.fit_report_.n_threads for model in models] == [1, n_jobs]
    one, several = (bits(model, X) for model in models)
    assert len(one[1]) > 3 * 30  # three trees worth the name
    assert_same_bits(one, several)


def test_number_of_threads_of_prediction_changes_no_bit(data):
    X, signal = data
    model = fit(X, targets(signal, "multiclass"), "multiclass", 1)
    expected = bits(model, X)
    leaves = model.apply(X)
    for n_jobs in N_JOBS:
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
