import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.tree.core.partition import divide_rows, fill_sides, own_all_rows
from sklboost.tree.core.workspace import SPLIT_DTYPE, RowPartition, allocate_workspace
from tests.tree.growth import (
    GROWTH,
    binned,
    grow,
    make_data,
    params,
    rows_by_splits,
    rows_in_partition,
    run,
    watch_growth,
)

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


@pytest.mark.interpreted
@pytest.mark.parametrize("bins", [[], [0], [9], [0, 0, 0], [9, 9, 9]])
def test_all_rows_on_one_side(bins):
    column = np.array(bins, dtype=np.uint8)
    source = np.arange(len(bins), dtype=np.uint32)
    target = np.full(len(bins), 99, dtype=np.uint32)
    n_left = divide_rows(column, source, sides_of(range(5), 10), target)
    assert n_left == sum(bin_ < 5 for bin_ in bins)
    assert sorted(target) == list(source)


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_divided_as_a_plain_mask_does(seed):
    random = np.random.default_rng(seed)
    column = random.integers(0, 300, 1000).astype(np.uint16)
    source = random.permutation(1000)[:700].astype(np.uint32)
    target = np.empty_like(source)
    sides = random.integers(0, 2, 300).astype(np.uint8)
    n_left = divide_rows(column, source, sides, target)
    left = sides[column[source]] == 1
    assert_array_equal(target[:n_left], source[left])
    assert_array_equal(target[n_left:][::-1], source[~left])


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


def check_rows(matrix, seen):
    """Return a function that compares the rows of every node that owns rows with plain ones."""

    def check(search, packed, workspace):
        growth, all_rows = workspace.tree.growth, []
        plain = rows_by_splits(matrix, workspace)
        nodes = workspace.tree.nodes
        for node in range(workspace.tree.counts[0].n_nodes):
            if growth[node].owns_rows == 1:
                own = rows_in_partition(node, workspace)
                assert_array_equal(np.sort(own), plain[node])
                all_rows.extend(own)
            elif nodes[node].left < 0:  # the leaf of a last split: its parent has the rows
                parent = growth[node].parent
                assert growth[parent].owns_rows == 1
        assert sorted(all_rows) == list(range(len(matrix.rows)))  # everyone once
        seen.append(workspace.tree.counts[0].n_nodes)

    return check


@pytest.mark.interpreted
@pytest.mark.parametrize("growth", GROWTH)
def test_rows_of_every_node(growth):
    X, gradient, hessian = make_data(3, 60)
    matrix, seen = binned(X), []
    watch_growth(matrix, gradient, hessian, params(**GROWTH[growth]), check_rows(matrix, seen))
    assert seen[-1] >= 7


@pytest.mark.parametrize("n_threads", [2, 5])
@pytest.mark.parametrize("growth", ["depthwise", "lossguide, 9 leaves", "full"])
def test_rows_of_every_node_with_several_threads(growth, n_threads):
    X, gradient, hessian = make_data(4, 10_000)
    matrix, seen = binned(X), []
    check = check_rows(matrix, seen)
    watch_growth(matrix, gradient, hessian, params(**GROWTH[growth]), check, n_threads)
    assert seen[-1] >= 7


@pytest.mark.interpreted
@pytest.mark.parametrize("gamma", [0.0, 2.0, 1e9])
@pytest.mark.parametrize("growth", GROWTH)
def test_every_row_gets_the_value_of_its_leaf(growth, gamma):
    X, gradient, hessian = make_data(5, 60)
    X[X[:, 2] == 3.0, 2] = np.inf
    settings = params(**(dict(gamma=gamma) | GROWTH[growth]))
    grown = grow(binned(X), gradient, hessian, settings)
    expected = []
    for row in X:
        node = 0
        while (split := grown.nodes[node])["left"] >= 0:
            value = row[split["feature"]]
            left = split["default_left"] if np.isnan(value) else value < split["threshold"]
            node = split["left"] if left else split["right"]
        expected.append(grown.nodes[node]["value"])
    assert_array_equal(grown.raw_score, expected)
    assert (len(grown.nodes) == 1) == (gamma == 1e9)


def test_values_are_added_to_what_is_there():
    X, gradient, hessian = make_data(6, 60)
    matrix, settings = binned(X), params(max_depth=2)
    workspace = allocate_workspace(matrix, settings, 1, 1)
    first = grow(matrix, gradient, hessian, settings, workspace=workspace)
    again = grow(matrix, gradient, hessian, settings, workspace=workspace)
    assert_array_equal(first.raw_score, again.raw_score)  # a used workspace is as good as new
    assert len(np.unique(first.raw_score)) > 1
