import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sklboost.data import sparse_table as sparse_table_module
from sklboost.data.raw_values import value_column
from sklboost.data.sparse_table import join_sparse, sparse_table

nan = np.nan


def sparse_values(n_rows, n_features, density, seed=0, missing=0.1):
    """Return a dense array, mostly 0, with few distinct values, missing ones, and a column of 0."""
    random = np.random.default_rng(seed)
    X = np.where(
        random.random((n_rows, n_features)) < density,
        np.round(random.normal(size=(n_rows, n_features)), 1),
        0.0,
    )
    X[random.random(X.shape) < density * missing] = nan
    X[:, n_features // 2] = 0.0
    return X


def table_of(X):
    return sparse_table(sparse.csr_array(X))


def dense(table):
    values = np.full(table.shape, 99, dtype=table.dtype)
    for rows, block in table.blocks():
        values[rows] = block
    return values


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_the_values_are_those_of_the_matrix(dtype, kind):
    X = sparse_values(30, 7, 0.3).astype(dtype)
    table = sparse_table(kind(X))
    assert table.shape == (30, 7)
    assert (len(table), table.ndim, table.size) == (30, 2, np.count_nonzero(X))
    assert table.dtype == dtype
    assert_array_equal(dense(table), X)
    assert_array_equal(table.values(), X)
    assert_array_equal(value_column(table, 2), X[:, 2])
    assert repr(table) == f"<SparseTable of 30 rows and 7 features, {table.size} values>"


@pytest.mark.interpreted
def test_duplicates_are_summed_and_stored_zeros_dropped_in_a_copy():
    data, columns = np.array([5.0, 1.0, 2.0, 0.0, 3.0]), np.array([3, 1, 1, 2, 0])
    X = sparse.csr_array((data, columns, np.array([0, 4, 5])), shape=(2, 4))
    table = sparse_table(X)
    assert_array_equal(dense(table), [[0, 3, 0, 5], [3, 0, 0, 0]])
    entries = table.by_row
    assert list(entries.starts) == [0, 2, 3]
    assert list(entries.numbers) == [1, 3, 0]
    assert list(X.data) == [5.0, 1.0, 2.0, 0.0, 3.0]  # the user's array is as it was
    assert list(X.indices) == [3, 1, 1, 2, 0]


@pytest.mark.interpreted
def test_nothing_is_copied_of_a_matrix_in_order():
    X = sparse.csr_array(sparse_values(30, 7, 0.3))
    entries = sparse_table(X).by_row
    assert np.shares_memory(entries.values, X.data)
    assert np.shares_memory(entries.numbers, X.indices)


@pytest.mark.interpreted
def test_indices_of_eight_bytes():
    X = sparse.csr_array(sparse_values(30, 7, 0.3))
    wide = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)))
    for entries in (sparse_table(wide).by_row, sparse_table(wide).by_feature()):
        types = [array.dtype for array in entries]
        assert types == [np.int64, np.int32, np.float64]
        assert not any(array.flags.writeable for array in entries)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "rows", [slice(3, 9), slice(None, None, -2), np.array([5, 5, 0]), np.arange(30) % 3 == 0]
)
def test_rows_are_chosen_as_of_an_array(rows):
    X = sparse_values(30, 7, 0.3)
    assert_array_equal(dense(table_of(X)[rows]), X[rows])


@pytest.mark.interpreted
@pytest.mark.parametrize("n_rows", [1, 4, 29, 30, 31])
def test_blocks_of_rows(n_rows, monkeypatch):
    monkeypatch.setattr(sparse_table_module, "BLOCK_VALUES", 7 * n_rows)
    X = sparse_values(30, 7, 0.3)
    ranges = []
    for rows, block in table_of(X).blocks():
        assert_array_equal(block, X[rows])
        ranges.append(rows)
    assert ranges == [slice(i, min(i + n_rows, 30)) for i in range(0, 30, n_rows)]


@pytest.mark.interpreted
def test_joined_rows():
    X = sparse_values(30, 7, 0.3)
    assert_array_equal(dense(join_sparse(table_of(X[:11]), table_of(X[11:]))), X)


@pytest.mark.interpreted
def test_another_value_that_is_missing():
    X = np.array([[0, -1.0], [2, nan]])
    table = table_of(X)
    assert_array_equal(dense(table.with_missing(-1.0)), [[0, nan], [2, nan]])
    assert_array_equal(dense(table), X)
