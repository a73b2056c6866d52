import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.core.partition import fill_sides
from sklboost.tree.core.workspace import SPLIT_DTYPE
from tests.tree.growth import GROWTH, binned, follow, grow, make_data, params

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
