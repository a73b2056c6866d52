"""Histograms of shared columns give the bins of each feature what a column of its own gives."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.sparse_binning import bin_sparse
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.core.partition import fill_sides
from sklboost.tree.core.workspace import SPLIT_DTYPE
from sklboost.tree.options.feature_cells import copy_cells, missing_cell_of, sum_below
from sklboost.tree.options.row_sampling import row_keys
from tests.data.test_sparse_binning import bins_of
from tests.data.test_sparse_table import sparse_values, table_of
from tests.tree.growth import NO_WEIGHT, binned

pytestmark = pytest.mark.interpreted

X = sparse_values(60, 12, 0.1, seed=3)


def shared(values=X):
    with ThreadTeam(1) as team:
        return bin_sparse(team, table_of(values), NO_WEIGHT, 256)[0]


def histogram_of(matrix, packed):
    """Return the histogram of rows, for several outputs in one strip; `packed` has a row each."""
    cells = matrix.rows.astype(int) + matrix.cell_starts[:-1]
    histogram = np.zeros((int(matrix.cell_starts[-1]), packed.shape[1]), dtype=np.int64)
    for column in cells.T:
        np.add.at(histogram, column, packed)
    return histogram.reshape(1, -1)


@pytest.mark.parametrize("n_lanes", [1, 4])
def test_bins_have_what_their_rows_have(n_lanes):
    matrix = shared()
    assert matrix.places.is_shared.sum() > 8
    packed = np.random.default_rng(0).integers(1, 1000, (60, n_lanes))
    histogram, bins = histogram_of(matrix, packed), bins_of(matrix)
    for feature in range(12):
        n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
        for output in range(n_lanes):
            own, total = packed[:, output], packed[:, output].sum()
            cells = np.full(n_bins + 1, -7)
            copy_cells(matrix, histogram, feature, output, total, cells)
            expected = np.bincount(bins[:, feature], own, minlength=n_bins).astype(int)
            assert_array_equal(cells, [*expected, -7])
            n_values = n_bins - matrix.has_missing[feature]
            for bin_ in range(n_values + 1 if matrix.has_missing[feature] else n_values):
                below = sum_below(matrix, histogram, output, total, feature, bin_)
                assert below == expected[:bin_].sum()


def test_missing_values_have_the_last_cell_of_a_feature():
    matrix = shared()
    assert matrix.has_missing.any()
    for feature in np.flatnonzero(matrix.has_missing):
        cell, place = missing_cell_of(matrix, feature), matrix.places[feature]
        is_missing = matrix.columns[place.column] + matrix.cell_starts[place.column] == cell
        assert_array_equal(is_missing, np.isnan(X[:, feature]))


@pytest.mark.parametrize("default_left", [0, 1])
def test_rows_go_to_the_side_of_their_bin(default_left):
    matrix, sides = shared(), np.full(300, 9, dtype=np.uint8)
    bins, split = bins_of(matrix), np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
    for feature in range(12):
        n_bins = matrix.bin_starts[feature + 1] - matrix.bin_starts[feature]
        for bin_ in range(n_bins - matrix.has_missing[feature]):
            split.feature, split.bin, split.n_listed = feature, bin_, -1
            split.default_left = default_left
            fill_sides(split, np.empty(0, dtype=np.uint16), matrix, sides)
            column = matrix.columns[matrix.places[feature].column]
            goes_left = bins[:, feature] < bin_
            if matrix.has_missing[feature]:
                goes_left = np.where(np.isnan(X[:, feature]), default_left == 1, goes_left)
            assert_array_equal(sides[column], goes_left)


def test_rows_are_known_by_the_same_keys():
    y = np.random.default_rng(0).integers(0, 2, (1, 60)).astype(float)
    assert_array_equal(row_keys(shared(), y, NO_WEIGHT), row_keys(binned(X), y, NO_WEIGHT))
    others = np.roll(X, 1, axis=1)
    assert np.any(row_keys(shared(others), y, NO_WEIGHT) != row_keys(binned(X), y, NO_WEIGHT))
