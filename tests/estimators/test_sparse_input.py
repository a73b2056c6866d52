"""Sparse matrices give the model and the predictions of the same dense table, to the last bit."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features
from tests.data.test_sparse_table import sparse_values

FORMS = {
    "CSR matrix": sparse.csr_matrix,
    "CSR array": sparse.csr_array,
    "CSC matrix": sparse.csc_matrix,
    "CSC array": sparse.csc_array,
    "COO matrix": sparse.coo_matrix,
    "COO array": sparse.coo_array,
    "LIL array": sparse.lil_array,
}
DTYPES = [bool, np.int8, np.int64, np.float32, np.float64]
SETTINGS = {
    "plain": {},
    "few bins": dict(max_bin=7),
    "leaf by leaf": dict(grow_policy="lossguide", max_depth=0, max_leaves=15),
    "rows and columns drawn": dict(subsample=0.6, colsample_bynode=0.5, random_state=1),
    "drawn by gradients": dict(subsample=0.4, sampling_method="gradient_based", random_state=1),
    "early stopping": dict(early_stopping_rounds=2, random_state=0),
    "early stopping, all rows again": dict(early_stopping_rounds=2, refit=True, random_state=0),
    "dart": dict(booster="dart", rate_drop=0.4, random_state=3),
    "random thresholds": dict(extra_trees=True, random_state=1),
    "forest": dict(num_parallel_tree=3, subsample=0.5, random_state=1),
    "monotone": dict(monotone_constraints={3: 1, 5: -1}),
}
TARGETS = {
    "numbers": (XGBRegressorLite, lambda y: y, {}),
    "two classes": (XGBClassifierLite, lambda y: (y > 0).astype(int), {}),
    "three classes": (XGBClassifierLite, lambda y: np.digitize(y, [-0.3, 0.3]), {}),
    "vector trees": (
        XGBClassifierLite,
        lambda y: np.digitize(y, [-0.3, 0.3]),
        dict(multi_strategy="multi_output_tree"),
    ),
}


def make_data(n_rows=500, n_features=25, density=0.1, seed=0):
    X = sparse_values(n_rows, n_features, density, seed)
    random = np.random.default_rng(seed)
    y = np.nan_to_num(X).sum(axis=1) + 0.3 * random.normal(size=n_rows)
    return X, y, random.exponential(size=n_rows) + 0.1


def assert_same_model(one, other, X, stored):
    for name in one.model_.nodes.dtype.names:
        assert_array_equal(one.model_.nodes[name], other.model_.nodes[name], err_msg=name)
    assert one.evals_result_ == other.evals_result_
    assert one.fit_report_.n_bins == other.fit_report_.n_bins
    assert one.fit_report_.constant_features == other.fit_report_.constant_features
    name = "predict_proba" if hasattr(one, "predict_proba") else "predict"
    expected = getattr(one, name)(X)
    for estimator in (one, other):
        assert_array_equal(getattr(estimator, name)(stored), expected)
    assert_array_equal(other.apply(stored), one.apply(X))
    assert_array_equal(list(other.staged_predict(stored))[-1], one.predict(X))


@pytest.mark.parametrize(
    ("how", "target"),
    [
        *zip(SETTINGS, itertools.cycle(TARGETS), strict=False),
        *(("plain", target) for target in TARGETS),
    ],
)
def test_same_bits_as_dense(how, target):
    kind, of_y, more = TARGETS[target]
    X, y, weight = make_data()
    weight[::9] = 0.0
    weight = None if how == "plain" else weight
    estimator = kind(**dict(n_estimators=6, max_depth=4, n_jobs=1) | SETTINGS[how] | more)
    dense = estimator.fit(X, of_y(y), sample_weight=weight)
    stored = sparse.csr_array(X)
    other = kind(**estimator.get_params()).fit(stored, of_y(y), sample_weight=weight)
    assert_same_model(dense, other, X, stored)
    assert dense.model_.nodes.gain.max() > 0


@pytest.mark.parametrize("density", [0.003, 0.05])
def test_two_threads_and_columns_of_two_bytes(density):
    X, y, weight = make_data(4000, 300, density)
    X = np.where(X != 0, X + np.arange(4000)[:, np.newaxis] / 1e5, 0.0)  # more bins than 256
    stored = sparse.csr_array(X)
    models = [
        XGBRegressorLite(n_estimators=4, n_jobs=n_jobs).fit(values, y, sample_weight=weight)
        for values, n_jobs in ((X, 1), (stored, 1), (stored, 2))
    ]
    for model in models[1:]:
        assert_same_model(models[0], model, X, stored)


@pytest.mark.parametrize(("form", "dtype"), list(zip(FORMS, itertools.cycle(DTYPES), strict=False)))
def test_every_form_and_dtype(form, dtype):
    X = np.round(np.nan_to_num(make_data()[0])).astype(dtype)
    y = make_data()[1]
    dense = XGBRegressorLite(n_estimators=3).fit(X.astype(float), y)
    stored = FORMS[form](X)
    before = stored.copy()
    model = XGBRegressorLite(n_estimators=3).fit(stored, y)
    assert_same_model(dense, model, X.astype(float), stored)
    assert (before != stored).nnz == 0


def test_validation_rows_in_any_form():
    X, y, weight = make_data(800)
    stored = sparse.csr_array(X)
    how = dict(n_estimators=8, eval_metric=["rmse", "mae"])
    logs = []
    for train, validation in ((X, X), (stored, stored), (X, stored), (stored, X)):
        model = XGBRegressorLite(**how).fit(
            train[:500],
            y[:500],
            X_val=validation[500:],
            y_val=y[500:],
            sample_weight_val=weight[500:],
        )
        logs.append(model.evals_result_)
    assert logs[0] == logs[1] == logs[2] == logs[3]


def test_refit_with_validation_rows():
    X, y, _ = make_data(800)
    stored = sparse.csr_array(X)
    how = dict(n_estimators=30, early_stopping_rounds=2, refit=True)
    fits = [
        XGBRegressorLite(**how).fit(own[:500], y[:500], X_val=own[500:], y_val=y[500:])
        for own in (X, stored)
    ]
    assert_same_model(*fits, X, stored)
    with pytest.raises(ValueError, match="pass both as sparse matrices, or neither"):
        XGBRegressorLite(**how).fit(stored[:500], y[:500], X_val=X[500:], y_val=y[500:])


def test_missing_is_also_another_value():
    X, y, _ = make_data()
    marked = np.where(np.isnan(X), -99.0, X)
    dense = XGBRegressorLite(n_estimators=3).fit(X, y)
    model = XGBRegressorLite(n_estimators=3, missing=-99.0).fit(sparse.csr_array(marked), y)
    for name in ("threshold", "default_left", "value"):
        assert_array_equal(model.model_.nodes[name], dense.model_.nodes[name])
    assert_array_equal(model.predict(sparse.csr_array(marked)), dense.predict(X))
    with pytest.raises(ValueError, match="missing=0, and X is sparse"):
        XGBRegressorLite(missing=0).fit(sparse.csr_array(X), y)


def test_bins_made_before():
    X, y, weight = make_data()
    stored = sparse.csr_array(X)
    for own in (None, weight):
        B, expected = bin_features(stored, sample_weight=own), bin_features(X, sample_weight=own)
        assert_array_equal(B.bins, expected.bins)
        assert B.binning.digest == expected.binning.digest
    model = XGBRegressorLite(n_estimators=3).fit(bin_features(stored), y)
    assert_array_equal(
        model.predict(stored), XGBRegressorLite(n_estimators=3).fit(stored, y).predict(X)
    )


def test_bins_of_a_wide_matrix_are_refused():
    wide = sparse.csr_array((100_000, 5000))
    with pytest.raises(ValueError, match=r"here that would be 0.5 GiB; pass X itself to fit"):
        bin_features(wide)


def test_integers_that_float64_has_not():
    X, y = sparse.csr_array(np.eye(10, dtype=np.int64) * (2**53 + 1)), np.arange(10.0)
    with pytest.raises(ValueError, match="an integer as large as 9007199254740993"):
        XGBRegressorLite().fit(X, y)
    model = XGBRegressorLite(n_estimators=1).fit(sparse.csr_array(np.eye(10)), y)
    with pytest.raises(ValueError, match="beyond 2\\^53"):
        model.predict(-X)
    XGBRegressorLite(n_estimators=1).fit(sparse.csr_array(np.eye(10, dtype=np.int64) * 2**53), y)


def test_what_sparse_input_cannot_be():
    X, y, _ = make_data()
    stored = sparse.csr_array(X)
    with pytest.raises(ValueError, match="linear_tree=True"):
        XGBRegressorLite(linear_tree=True).fit(stored, y)
    with pytest.raises(ValueError, match=r"categorical_features=\[3\], and X is sparse"):
        XGBRegressorLite(categorical_features=[3]).fit(stored, y)


def test_a_model_of_categories_refuses_sparse_rows():
    frame = pd.DataFrame({"a": pd.Categorical(list("xyzxyz")), "b": np.arange(6.0)})
    model = XGBRegressorLite(n_estimators=1).fit(frame, np.arange(6.0))
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="features that are not just numbers"),
    ):
        model.predict(sparse.csr_array(np.eye(6)[:, :2]))
