import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.core.partition import fill_sides, place_threshold
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


# --- thresholds ----------------------------------------------------------------------------------

inf = np.inf


def place(values, below, bin_, max_bin=256):
    """Return the threshold of a split between two bins, and the first bin on its right."""
    split = np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
    split.feature, split.below, split.bin = 1, below, bin_
    matrix = binned(np.column_stack([np.zeros(len(values)), values]), max_bin)
    threshold = place_threshold(split, matrix)
    return threshold, int(split.bin)


@pytest.mark.parametrize(
    ("below", "bin_", "expected"),
    [
        (0, 1, (1.5, 1)),
        (1, 2, (5.0, 2)),
        (0, 2, (4.5, 2)),  # the value 2 between, of other rows, is on the left
        (1, 3, (5.5, 2)),  # 8 is on the right
        (0, 3, (5.0, 2)),
        (-1, 0, (-inf, 0)),  # only missing values go left
        (-1, 2, (-inf, 0)),
    ],
)
def test_halfway_between_the_neighbours_in_the_node(below, bin_, expected):
    assert place([1.0, 2.0, 8.0, 9.0, np.nan], below, bin_) == expected


@pytest.mark.parametrize(
    ("values", "below", "bin_", "expected"),
    [
        # halfway on a value of other rows: it goes right
        ([1.0, 2.0, 3.0], 0, 2, (2.0, 1)),
        # nothing is halfway to an infinity
        ([-inf, 1.0, 8.0], 0, 1, (1.0, 1)),
        ([-inf, 1.0, 8.0], 0, 2, (4.5, 2)),
        ([1.0, 8.0, inf], 0, 2, (inf, 2)),
        ([-inf, 1.0, inf], 0, 2, (inf, 2)),
        ([-inf, inf], 0, 1, (inf, 1)),
        # no number lies between
        ([1.0, np.nextafter(1.0, 2.0)], 0, 1, (np.nextafter(1.0, 2.0), 1)),
        ([-1e308, 1e308, 1.7e308], 0, 2, (3.5e307, 1)),
    ],
)
def test_extreme_values(values, below, bin_, expected):
    threshold, first_right = place(values, below, bin_)
    assert threshold == pytest.approx(expected[0], rel=1e-15)
    assert first_right == expected[1]


# five bins of two values each: cuts at 2, 6.5, 25, 45
PAIRS = [0.0, 1.0, 3.0, 4.0, 9.0, 20.0, 30.0, 40.0, 50.0, 60.0]


@pytest.mark.parametrize(
    ("below", "bin_", "expected"),
    [
        (0, 1, (2.0, 1)),  # neighbouring bins: halfway is the cut
        (0, 2, (6.5, 2)),  # halfway, 5, is between two bins: the cut there
        (1, 3, (25.0, 3)),  # halfway, 17, is in a bin: the nearer cut
        (0, 3, (6.5, 2)),  # 15.5 likewise
        (0, 4, (25.0, 3)),  # 25.5
        (-1, 3, (-inf, 0)),
    ],
)
def test_where_bins_have_several_values_the_nearest_cut(below, bin_, expected):
    assert place(PAIRS, below, bin_, max_bin=5) == expected


def test_the_lower_of_two_cuts_as_near():
    # halfway from 1 to 9 is 5, cuts at 3 and 7
    values = [0.0, 1.0, 5.0, 5.0, 5.0, 9.0, 10.0]
    assert place(values, 0, 2, max_bin=3) == (3.0, 1)


@pytest.mark.parametrize(("seed", "max_bin"), [(0, 5), (1, 5), (2, 30), (3, 30), (4, 256)])
def test_values_and_bins_go_the_same_way(seed, max_bin):
    random = np.random.default_rng(seed)
    values = np.round(random.normal(size=100) * random.choice([1, 1000], 100), 1)
    values[:3] = [-inf, inf, 0.0]
    matrix = binned(values[:, np.newaxis], max_bin)
    bins = matrix.columns[0].astype(int)
    n_bins = bins.max() + 1
    split = np.zeros(1, dtype=SPLIT_DTYPE).view(np.recarray)[0]
    for _ in range(50):
        below, bin_ = sorted(random.choice(n_bins, 2, replace=False))
        split.below, split.bin = below, bin_
        threshold = place_threshold(split, matrix)
        assert below < split.bin <= bin_
        assert list(values < threshold) == list(bins < split.bin)
