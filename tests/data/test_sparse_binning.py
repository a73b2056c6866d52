"""Sparse columns have the cuts and the bins of the same dense table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklboost.data.binning import bin_matrix
from sklboost.data.bundling import cell_of_bin
from sklboost.data.sparse_binning import bin_sparse
from sklboost.engine.parallel import ThreadTeam
from tests.data.test_sparse_table import sparse_values, table_of

NO_WEIGHT = np.empty(0)
inf, nan = np.inf, np.nan


def bins_of(matrix):
    """Give the bin of each value, from columns that features share."""
    bins = np.empty((len(matrix.rows), len(matrix.places)), dtype=int)
    for feature, place in enumerate(matrix.places):
        column = matrix.columns[place.column].astype(int) + matrix.cell_starts[place.column]
        n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
        bins[:, feature] = place.zero_bin
        for bin_ in range(n_bins):
            if not (place.is_shared and bin_ == place.zero_bin):
                bins[column == cell_of_bin(place, bin_), feature] = bin_
    return bins


def check_same_bins(X, weight=NO_WEIGHT, max_bin=256, n_threads=1):
    with ThreadTeam(n_threads) as team:
        expected, expected_cuts = bin_matrix(team, X, weight, max_bin)
        matrix, cuts = bin_sparse(team, table_of(X), weight, max_bin)
    for one, other in zip(cuts, expected_cuts, strict=True):
        assert one.dtype == other.dtype
        assert_array_equal(one, other)
    for name in ("bin_starts", "has_missing", "lower", "upper", "n_categories"):
        assert_array_equal(getattr(matrix, name), getattr(expected, name))
    assert_array_equal(matrix.rows, matrix.columns.T)
    assert_array_equal(matrix.places.zero_bin, expected.places.zero_bin)
    assert_array_equal(bins_of(matrix), expected.rows)
    # kernels know one kind of each
    for array, other in zip(matrix, expected, strict=True):
        assert array.flags.writeable == other.flags.writeable
        assert array.flags.c_contiguous
    return matrix


@pytest.mark.interpreted
def test_by_hand():
    X = np.array([[0, 2.0, 0, 1], [-1, 0, 0, 2], [0, nan, 0, 3], [5, 0, 0, 4]])
    matrix = check_same_bins(X)
    # the last feature is alone; in the other column 1, 2 are its -1 and 5, then 2 and missing
    assert list(matrix.places.column) == [1, 1, 0, 0]  # of the third all are 0
    assert list(matrix.places.is_shared) == [1, 1, 1, 0]
    assert_array_equal(matrix.rows, [[0, 3], [1, 1], [2, 4], [3, 2]])
    assert list(matrix.cell_starts) == [0, 4, 9]
    assert list(matrix.bin_starts) == [0, 3, 6, 7, 11]


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("max_bin", [2, 5, 256])
@pytest.mark.parametrize("density", [0.0, 0.01, 0.1, 0.6, 1.0])
def test_bins_are_those_of_the_dense_table(density, max_bin, n_threads):
    X = sparse_values(400, 30, density)
    weight = np.random.default_rng(1).exponential(size=400) ** 3
    for own_weight in (NO_WEIGHT, weight):
        matrix = check_same_bins(X, own_weight, max_bin, n_threads)
    assert matrix.rows.shape[1] <= 30
    if density == 0.01:
        assert matrix.rows.shape[1] < 10


def test_float32_and_infinite_values():
    X = sparse_values(300, 20, 0.2).astype(np.float32)
    X[::11, 3], X[::13, 4] = inf, -inf
    check_same_bins(X)


def test_columns_of_two_bytes():
    random = np.random.default_rng(0)
    X = np.zeros((2000, 40))
    X[np.arange(2000), random.integers(0, 40, 2000)] = random.normal(size=2000)
    matrix = check_same_bins(X)
    assert matrix.rows.dtype == np.uint16
    assert matrix.rows.shape[1] == 1


@pytest.mark.parametrize("max_bin", [10, 200])
def test_cuts_from_a_sample_of_the_rows(max_bin):
    X = sparse_values(210_000, 3, 0.2)
    X[7, 0], X[:, 1] = 77.0, np.where(np.arange(len(X)) % 5 == 0, np.arange(len(X)), 0)
    weight = np.random.default_rng(1).exponential(size=len(X))
    for own_weight in (NO_WEIGHT, weight):
        check_same_bins(X, own_weight, max_bin)


VALUES = st.sampled_from([0.0, 0.0, 0.0, 1.0, -1.0, 0.5, -2.0, 1e-300, 1e300, inf, -inf, nan])


@given(
    st.lists(st.lists(VALUES, min_size=4, max_size=4), min_size=1, max_size=25),
    st.sampled_from([2, 3, 256]),
    st.booleans(),
)
def test_any_values(rows, max_bin, weighted):
    X = np.array(rows)
    weight = 0.1 + np.arange(len(X)) % 5 / 3.0 if weighted else NO_WEIGHT
    check_same_bins(X, weight, max_bin)
