import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sklboost.tree.core.workspace as workspace_module
from sklboost.tree.core.histogram import BLOCK_COLUMNS, add_rows
from sklboost.tree.core.workspace import NARROW_CELLS, OWN
from tests.tree.growth import (
    GROWTH,
    binned,
    make_data,
    params,
    plain_histogram,
    rows_by_splits,
    rows_in_partition,
    watch_growth,
)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize("columns", [(0, 20), (0, 7), (0, 8), (3, 20), (5, 17), (19, 20), (2, 2)])
@pytest.mark.parametrize(
    "row_list", [[0, 1, 7, 7, 8, 6], [0, 3, 7, 7, 49, 20]], ids=["near", "scattered"]
)
def test_rows_are_added_a_word_of_columns_at_a_time(row_list, columns, dtype):
    random = np.random.default_rng(columns[1])
    n_bins = NARROW_CELLS if dtype == np.uint8 else 900
    rows = random.integers(0, 256, (50, 20)).astype(dtype)
    rows[7] = 255 if dtype == np.uint8 else 899
    packed = random.integers(-(2**40), 2**40, 50)
    sums = np.zeros((20, n_bins), dtype=np.int64)
    row_list = np.array(row_list, dtype=np.uint32)
    add_rows(rows, packed, row_list, columns, sums.reshape(-1))
    expected = np.zeros_like(sums)
    for row in row_list:
        for column in range(*columns):
            expected[column, rows[row, column]] += packed[row]
    assert_array_equal(sums, expected)


def lane(workspace, slot, output):
    """Return the histogram of one output."""
    strips = workspace.pool.histograms[slot]
    n_lanes = 1 if workspace.tree.sums.shape[2] == 1 else 4
    return strips[output // n_lanes, output % n_lanes :: n_lanes]


def check_rows(matrix, rows, workspace):
    """Compare the rows of every node that owns rows with plain ones."""
    tree, all_rows = workspace.tree, []
    for node in range(tree.counts[0].n_nodes):
        if tree.growth[node].owns_rows == 1:
            own = rows_in_partition(node, workspace)
            assert_array_equal(np.sort(own), rows[node])
            all_rows.extend(own)
        elif tree.nodes[node].left < 0:  # the leaf of a last split: its parent has the rows
            assert tree.growth[tree.growth[node].parent].owns_rows == 1
    assert sorted(all_rows) == list(range(len(matrix.rows)))  # everyone once


def check_histograms(matrix, seen):
    """Return a function that compares histograms and rows of all nodes with plain ones."""

    def check(search, packed, workspace):
        tree, slots = workspace.tree, []
        rows = rows_by_splits(matrix, workspace)
        check_rows(matrix, rows, workspace)
        for node in range(tree.counts[0].n_nodes):
            if (slot := tree.growth[node].slot) < 0:
                continue
            slots.append(slot)
            for output, own in enumerate(packed):
                plain = plain_histogram(matrix, own, rows[node])
                assert_array_equal(lane(workspace, slot, output), plain)
                assert tree.sums[node, OWN, output] == own[rows[node]].sum()
            assert tree.growth[node].n_rows == len(rows[node])
        assert not workspace.pool.accumulators.any()
        free = workspace.pool.free_slots[: tree.counts[0].n_free]
        # every slot has one owner or is free: none is lost, none is given out twice
        assert sorted([*slots, *free]) == list(range(len(workspace.pool.free_slots)))
        searched = tree.searched[: tree.counts[0].n_searched]
        assert all(tree.growth[node].slot >= 0 for node in searched)
        seen.append(len(slots))

    return check


@pytest.mark.interpreted
@pytest.mark.parametrize("growth", GROWTH)
def test_every_histogram_is_of_the_rows_of_its_node(growth):
    X, gradient, hessian = make_data(0, 60, n_features=2)
    matrix, seen = binned(X), []
    watch_growth(
        matrix, gradient, hessian, params(**GROWTH[growth]), check_histograms(matrix, seen)
    )
    assert len(seen) >= 3


@pytest.mark.parametrize(("pool_bytes", "most"), [(1, 3), (3000, 11)])
@pytest.mark.parametrize("growth", [name for name in GROWTH if name != "symmetric"])
def test_few_slots(growth, pool_bytes, most, monkeypatch):
    monkeypatch.setattr(workspace_module, "_POOL_BYTES", pool_bytes)
    X, gradient, hessian = make_data(1, 60, n_features=4)
    matrix, seen = binned(X), []
    watch_growth(
        matrix, gradient, hessian, params(**GROWTH[growth]), check_histograms(matrix, seen)
    )
    assert max(seen) <= most


@pytest.mark.parametrize(
    ("growth", "n_threads", "shared_bytes"),
    [
        ("depthwise", 2, 1),
        ("depthwise", 5, 2**26),
        ("lossguide, 9 leaves", 5, 1),
        ("full", 2, 2**26),
    ],
)
def test_several_threads_build_the_same(growth, n_threads, shared_bytes, monkeypatch):
    monkeypatch.setattr(workspace_module, "SHARED_BYTES", shared_bytes)
    X, gradient, hessian = make_data(2, 20_000)
    matrix, seen = binned(X), []
    check = check_histograms(matrix, seen)
    watch_growth(matrix, gradient, hessian, params(**GROWTH[growth]), check, n_threads)
    assert len(seen) >= 3


# several threads have columns of their own at the root
@pytest.mark.parametrize(
    ("n_features", "n_threads"), [(1, 2), (1, 5), (40, 1), (40, 5), (41, 2), (130, 1), (130, 5)]
)
def test_more_features_than_fit_one_block(n_features, n_threads):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, n_features))
    matrix = binned(X)
    assert matrix.cell_starts[-1] == 256 * n_features
    assert (n_features > BLOCK_COLUMNS) == (n_features > 40)
    gradient = random.normal(size=400).astype(np.float32)
    settings, seen = params(max_depth=2), []
    check = check_histograms(matrix, seen)
    watch_growth(matrix, gradient, np.ones_like(gradient), settings, check, n_threads)


@pytest.mark.parametrize("max_bin", [1000, 65_535])
def test_wide_codes(max_bin):
    random = np.random.default_rng(0)
    X = random.normal(size=(20_000, 3))
    X[:, 1] = np.round(X[:, 1])
    X[::9, 2] = np.nan
    matrix = binned(X, max_bin)
    assert matrix.rows.dtype == np.uint16
    gradient = random.normal(size=len(X)).astype(np.float32)
    settings, seen = params(max_depth=3), []
    watch_growth(matrix, gradient, np.ones_like(gradient), settings, check_histograms(matrix, seen))
