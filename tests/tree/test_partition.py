import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.core.partition import divide_rows, fill_sides, own_all_rows
from sklboost.tree.core.workspace import SPLIT_DTYPE, RowPartition
from tests.tree.growth import GROWTH, binned, follow, grow, make_data, params, run

# A feature with bins 0 to 3 and, where there are missing values, bin 4 for them.
X_OF_FIVE = np.array([[2.0, 5.0], [0.0, 5.0], [np.nan, 5.0], [3.0, 5.0], [1.0, 5.0]])


def make_split(bin_, default_left, feature=0):
    split = np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
    split.feature, split.bin, split.default_left = feature, bin_, default_left
    return split


NO_CATEGORY = np.empty(0, dtype=np.uint16)


def sides_of(left_bins, n_bins):
    """Return the table of sides in which just these bins go left."""
    return np.isin(np.arange(n_bins), left_bins).astype(np.uint8)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("bin_", "default_left", "left_bins"),
    [
        (1, 0, [0]),
        (3, 0, [0, 1, 2]),
        (4, 0, [0, 1, 2, 3]),  # only the missing values go right
        (1, 1, [0, 4]),
        (3, 1, [0, 1, 2, 4]),
        (0, 1, [4]),  # only the missing values go left
    ],
)
def test_which_bins_go_left(bin_, default_left, left_bins):
    matrix = binned(X_OF_FIVE)
    sides = np.full(6, 99, dtype=np.uint8)
    fill_sides(make_split(bin_, default_left), NO_CATEGORY, matrix, sides)
    assert_array_equal(sides[:5], sides_of(left_bins, 5))
    assert sides[5] == 99


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_rows_are_divided_by_hand(dtype):
    column = np.array([2, 0, 4, 3, 1, 0], dtype=dtype)
    source = np.array([5, 3, 2, 0, 1], dtype=np.uint32)
    target = np.full(5, 99, dtype=np.uint32)
    n_left = divide_rows(column, source, sides_of([0, 1], 5), target)
    assert n_left == 2
    assert list(target) == [5, 1, 0, 2, 3]  # in order; the others backwards
    n_left = divide_rows(column, source, sides_of([0, 1, 4], 5), target)
    assert n_left == 3
    assert list(target) == [5, 2, 1, 0, 3]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_rows", [1, 3, 1000])
def test_the_root_owns_all_rows(n_rows, n_threads):
    n_blocks = 2 * n_threads
    lists = np.full((2, n_rows), 2**32 - 1, dtype=np.uint32)
    bounds = np.full((2, n_blocks, 3), -1, dtype=np.int64)
    partition = RowPartition(
        lists, bounds[0], bounds[1], n_blocks, np.empty((n_threads, 1), np.uint8)
    )
    run(own_all_rows, partition, n_threads=n_threads)
    assert_array_equal(lists[0], np.arange(n_rows))
    assert partition.start[0, 0] == 0
    assert_array_equal(partition.start[1:, 0], partition.stop[:-1, 0])
    assert partition.stop[-1, 0] == n_rows


@pytest.mark.interpreted
@pytest.mark.parametrize("gamma", [0.0, 2.0, 1e9])
@pytest.mark.parametrize("growth", GROWTH)
def test_every_row_gets_the_value_of_its_leaf(growth, gamma):
    X, gradient, hessian = make_data(5, 60)
    X[X[:, 2] == 3.0, 2] = np.inf
    settings = params(**(dict(gamma=gamma) | GROWTH[growth]))
    grown = grow(binned(X), gradient, hessian, settings)
    leaves = [follow(grown.nodes, row) for row in X]
    assert_array_equal(grown.raw_score, grown.nodes["value"][leaves])
    assert (len(grown.nodes) == 1) == (gamma == 1e9)
