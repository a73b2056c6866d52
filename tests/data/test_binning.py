import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.binning import apply_cuts
from sklboost.data.cuts import find_cuts
from sklboost.data.features import training_bins
from sklboost.engine.parallel import ThreadTeam

NO_WEIGHT = np.empty(0)
inf, nan = math.inf, math.nan


def binned(X, max_bin=256, n_threads=1):
    with ThreadTeam(n_threads) as team:
        return training_bins(team, X, NO_WEIGHT, max_bin)[0]


def plain_bins(X, max_bin):
    """Bin by binary search over the cuts, a feature at a time."""
    with ThreadTeam(1) as team:
        cuts, _ = find_cuts(team, X, NO_WEIGHT, max_bin)
    bins = np.empty(X.shape, dtype=int)
    for feature in range(X.shape[1]):
        feature_cuts = cuts.cuts[cuts.starts[feature] : cuts.starts[feature + 1]]
        bins[:, feature] = np.searchsorted(feature_cuts, X[:, feature], side="right")
        bins[np.isnan(X[:, feature]), feature] = len(feature_cuts) + 1
    return bins


def assert_same_matrix(one, other):
    for first, second in zip(one, other, strict=True):
        assert first.dtype == second.dtype
        assert_array_equal(first, second)


def make_X(n_rows=600):
    """Return columns of many values, few, one, none, infinite ones; missing values in some."""
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 6))
    X[:, 1] = np.round(X[:, 1])
    X[:, 2] = 4.0
    X[:, 3] = nan
    X[:, 4] = random.choice([-inf, 0.0, 1.0, inf], n_rows)
    X[::7, 4:] = nan
    return X


@pytest.mark.interpreted
def test_bins_by_hand():
    X = np.array(
        [[3.0, nan, 5.0, -inf], [1.0, nan, 5.0, inf], [nan, nan, 5.0, 0.0], [8.0, nan, 5.0, -0.0]]
    )
    matrix = binned(X)
    assert_array_equal(matrix.rows, [[1, 1, 0, 0], [0, 1, 0, 2], [3, 1, 0, 1], [2, 1, 0, 1]])
    assert list(matrix.cell_starts) == [0, 4, 6, 7, 10]
    assert list(matrix.has_missing) == [1, 1, 0, 0]
    values = [1, 3, 8, nan, 0, nan, 5, -inf, 0, inf]
    assert_array_equal(matrix.lower, values)
    assert_array_equal(matrix.upper, values)
    assert matrix.rows.dtype == np.uint8


@pytest.mark.parametrize("max_bin", [2, 3, 255, 256, 257, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_are_those_of_a_plain_search(max_bin, dtype):
    X = make_X().astype(dtype)
    matrix = binned(X, max_bin)
    assert_array_equal(matrix.rows, plain_bins(X.astype(float), max_bin))
    assert_array_equal(matrix.columns, matrix.rows.T)
    assert matrix.rows.flags.c_contiguous
    assert matrix.columns.flags.c_contiguous


@pytest.mark.parametrize(
    ("n_values", "missing", "max_bin", "dtype", "n_cells"),
    [
        (256, False, 256, np.uint8, 256),
        (255, True, 256, np.uint8, 256),
        (256, True, 256, np.uint16, 257),  # every value still has a bin
        (257, True, 256, np.uint8, 256),  # of which one is for missing values
        (257, False, 256, np.uint8, 256),
        (257, False, 257, np.uint16, 257),
        (65_535, True, 65_535, np.uint16, 65_536),
        (70_000, True, 65_535, np.uint16, 65_535),
    ],
)
def test_width_of_the_codes(n_values, missing, max_bin, dtype, n_cells):
    X = np.arange(n_values + 1, dtype=float)[::-1, np.newaxis] - 1
    X[-1] = nan if missing else 0.0
    matrix = binned(X.copy(), max_bin)
    assert matrix.rows.dtype == matrix.columns.dtype == dtype
    assert matrix.cell_starts[1] == n_cells
    assert matrix.rows[:-1].min() == 0
    assert matrix.rows[0, 0] == n_cells - 1 - missing  # the largest value
    assert matrix.rows[-1, 0] == (n_cells - 1 if missing else 0)
    assert len(np.unique(matrix.rows)) == n_cells


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_and_cuts_tell_the_same_side(dtype):
    """A row is left of a cut by its bin exactly if it is by its value."""
    random = np.random.default_rng(0)
    neighbours = [[1.0]]  # a cut halfway between two of them is none of them
    for _ in range(300):
        neighbours.append(np.nextafter(neighbours[-1], dtype(2.0), dtype=dtype))
    tiny = np.nextafter(dtype(0.0), np.array([[1], [-1]], dtype))
    X = np.concatenate([random.normal(size=(500, 1)), neighbours, tiny, [[0.0]]]).astype(dtype)
    with ThreadTeam(1) as team:
        for max_bin in (7, 256, 1000):
            cuts, has_missing = find_cuts(team, X, NO_WEIGHT, max_bin)
            bins = apply_cuts(team, X, cuts, has_missing).columns[0]
            for number, value in enumerate(cuts.cuts):
                assert_array_equal(bins <= number, X[:, 0] < value)
            assert_array_equal(cuts.lower[bins] <= X[:, 0], True)
            assert_array_equal(X[:, 0] <= cuts.upper[bins], True)


def test_cuts_of_float64_and_values_of_float32():
    values = np.float32(1.0) + np.arange(200, dtype=np.float32)[:, np.newaxis] * np.spacing(
        np.float32(1.0)
    )
    between = values.astype(np.float64)
    for part in (0.25, 0.5, 0.75):  # several cuts between two neighbours of float32
        between = np.append(between, values + part * float(np.spacing(np.float32(1.0))), axis=0)
    with ThreadTeam(1) as team:
        cuts, has_missing = find_cuts(team, between, NO_WEIGHT, 1000)
        bins = apply_cuts(team, values, cuts, has_missing).rows
        assert_array_equal(bins, apply_cuts(team, values.astype(float), cuts, has_missing).rows)
    assert_array_equal(bins[:, 0], np.searchsorted(cuts.cuts, values[:, 0], side="right"))
