"""Sparse data sets: the shapes that the table names, and what other processes load."""

import numpy as np
import pytest
from scipy import sparse

from benchmarks import sparse_data, sparse_fit
from benchmarks.datasets import Dataset


def test_wide_has_twenty_values_a_column():
    drawn = sparse_data.load("wide", 0)
    assert drawn.X_train.shape == drawn.X_test.shape == (20_000, 20_000)
    assert drawn.X_train.dtype == np.float32
    assert drawn.X_train.nnz == pytest.approx(400_000, rel=0.01)
    assert len(drawn.y_train) == len(drawn.y_test) == 20_000


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'narrow': it must be one of wide"):
        sparse_data.load("narrow", 0)


def test_what_is_saved_is_loaded_by_parts(tmp_path):
    X = sparse.random(40, 30, 0.1, "csr", np.float32, random_state=0)
    y = np.arange(40.0)
    sparse_fit.save(Dataset("tiny", "regression", X[10:], y[10:], X[:10], y[:10]), tmp_path)
    for part, rows in (("train", slice(10, None)), ("test", slice(10))):
        loaded, target = sparse_fit.load(tmp_path, part)
        np.testing.assert_array_equal(loaded.toarray(), X[rows].toarray())
        np.testing.assert_array_equal(target, y[rows])
