"""Sparse columns have the cuts and the bins of the same dense table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sklboost.data import binning as sparse_binning
from sklboost.data.binning import bin_sparse, bundle_features, cell_of_bin, share_columns
from sklboost.data.features import training_bins
from sklboost.data.sparse_table import Entries
from sklboost.engine.parallel import ThreadTeam
from tests.data.test_sparse_table import sparse_values, table_of

NO_WEIGHT = np.empty(0)
inf, nan = np.inf, np.nan


def bins_of(matrix):
    """Return the bin of each value, from columns that features share."""
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
        expected, expected_cuts = training_bins(team, X, weight, max_bin)
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


@pytest.mark.parametrize(
    ("density", "max_bin", "n_threads"),
    [(0.0, 5, 3), (0.01, 2, 1), (0.01, 256, 3), (0.1, 256, 1), (0.1, 2, 3), (0.6, 5, 1)]
    + [(0.6, 256, 3), (1.0, 2, 3), (1.0, 256, 1)],
)
def test_bins_are_those_of_the_dense_table(density, max_bin, n_threads):
    X = sparse_values(400, 30, density)
    weight = np.random.default_rng(1).exponential(size=400) ** 3
    for own_weight in (NO_WEIGHT, weight):
        matrix = check_same_bins(X, own_weight, max_bin, n_threads)
    assert matrix.rows.shape[1] <= 30
    if density == 0.01:
        assert matrix.rows.shape[1] < 10


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


# --- which features share a column ----------------------------------------------------------------


def entries_of(*rows_of_features):
    """Return entries in these rows of each feature."""
    starts = np.cumsum([0, *map(len, rows_of_features)])
    numbers = np.concatenate(rows_of_features).astype(np.int32)
    return Entries(starts, numbers, np.ones(len(numbers), dtype=np.uint16))


def random_entries(seed, n_features, n_rows, density):
    random = np.random.default_rng(seed)
    mask = random.random((n_features, n_rows)) < density * random.random((n_features, 1)) ** 2
    return entries_of(*(np.flatnonzero(row) for row in mask))


def plain_columns(entries, n_cells, n_rows, most_cells):
    """Do the same with sets."""
    taken, filled, columns = [], [], {}
    counts = np.diff(entries.starts)
    for feature in sorted(range(len(counts)), key=lambda f: (-counts[f], f)):
        rows = set(entries.numbers[entries.starts[feature] : entries.starts[feature + 1]].tolist())
        column = 0
        while column < len(taken) and (
            taken[column] & rows or filled[column] + n_cells[feature] > most_cells
        ):
            column += 1
        if column == len(taken):
            taken.append(set())
            filled.append(1)
        taken[column] |= rows
        filled[column] += n_cells[feature]
        columns[feature] = column
    return [columns[feature] for feature in range(len(counts))]


@pytest.mark.interpreted
def test_columns_by_hand():
    # the one of most entries first: 1, then 3, whose row 0 is taken there; 0 and 4 fit to 1, 2 to 3
    entries = entries_of([3], [0, 1, 2], [1], [0, 4], [])
    bundles = bundle_features(entries, np.array([3, 2, 4, 2, 1]), 5)
    assert list(bundles.column) == [0, 0, 1, 1, 0]
    assert not bundles.is_alone.any()
    # the cell 0 is for rows without entry
    assert list(bundles.first_cell) == [1, 3, 1, 4, 4]
    assert list(bundles.n_cells) == [4, 5]


@pytest.mark.interpreted
def test_a_feature_alone_keeps_all_its_cells():
    entries = entries_of([0, 1, 2], [1], [2, 0], [])
    bundles = bundle_features(entries, np.array([3, 2, 2, 1]), 3)
    assert list(bundles.column) == [0, 1, 1, 0]  # the last one, always 0, needs no cell
    assert list(bundles.is_alone) == [True, False, False, False]
    # of two features with as many entries the first comes first; cells go by number
    assert list(bundles.first_cell[:3]) == [0, 1, 2]
    assert list(bundles.n_cells) == [3, 3]


@pytest.mark.parametrize("most_cells", [5, 60, 2**16])
@pytest.mark.parametrize("density", [0.02, 0.5])
def test_the_first_column_with_room_is_taken(density, most_cells):
    for seed in range(3):
        entries = random_entries(seed, 400, 50, density)
        n_cells = np.random.default_rng(seed).integers(0, 8, 400)
        columns = share_columns(entries, n_cells, 50, most_cells)
        # more columns than are filled at a time, in some of the cases
        assert list(columns) == plain_columns(entries, n_cells, 50, most_cells)
    assert columns.max() > 256 or density < 0.5 or most_cells > 5


@pytest.mark.parametrize(("n_features", "is_byte"), [(100, True), (2000, False)])
def test_two_bytes_only_where_they_save_half_of_the_columns(n_features, is_byte):
    # diagonal: all features fit into one column of any number of cells
    entries = entries_of(*np.arange(n_features)[:, np.newaxis])
    bundles = bundle_features(entries, np.full(n_features, 4), n_features)
    assert (bundles.n_cells.max() <= 256) == is_byte
    assert len(bundles.n_cells) == (2 if is_byte else 1)


def test_more_cells_than_two_bytes_can_number(monkeypatch):
    monkeypatch.setattr(sparse_binning, "_MOST_CELLS", 900)
    entries = entries_of(*np.arange(40)[:, np.newaxis])
    bundles = bundle_features(entries, np.full(40, 300), 40)
    assert bundles.n_cells.max() <= 900
    # 1 + 3 * 299 is not too much, 1 + 4 * 299 is
    assert_array_equal(np.bincount(bundles.column), [3] * 13 + [1])
