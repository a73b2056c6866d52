"""Whole trees: what must not change a bit, and what the limits mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sklboost.tree.core.workspace as workspace_module
from sklboost.data.raw_values import RowArrays
from sklboost.engine import parallel
from sklboost.tree.core.growing import grow_tree
from sklboost.tree.core.workspace import allocate_workspace
from tests.tree import growth
from tests.tree.growth import (
    GROWTH,
    assert_same_tree,
    binned,
    follow,
    grow,
    make_data,
    params,
    watch_growth,
)


def leaves(grown):
    return grown.nodes[grown.nodes["left"] < 0]


def depth_of(nodes, node=0):
    if nodes[node]["left"] < 0:
        return 0
    return 1 + max(depth_of(nodes, nodes[node][side]) for side in ("left", "right"))


def continuous(seed, n_rows, n_features):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features))
    X[random.random(X.shape) < 0.05] = np.nan
    gradient = (np.nan_to_num(X[:, 0]) + random.normal(size=n_rows)).astype(np.float32)
    return X, gradient, random.uniform(0.1, 1, n_rows).astype(np.float32)


@pytest.mark.parametrize("limit", [{}, dict(max_leaves=23, max_depth=0), dict(max_leaves=9)])
@pytest.mark.parametrize("growth", [name for name in GROWTH if name != "symmetric"])
def test_few_histogram_slots_change_no_bit(growth, limit, monkeypatch):
    X, gradient, hessian = continuous(0, 400, 3)
    matrix, settings = binned(X), params(**(GROWTH[growth] | limit))
    expected = grow(matrix, gradient, hessian, settings)
    n_cells = int(matrix.cell_starts[-1])
    for n_slots in (3, 4, 5, 8, 20):
        monkeypatch.setattr(workspace_module, "_POOL_BYTES", 8 * n_cells * n_slots)
        workspace = allocate_workspace(matrix, settings, 1, 1)
        assert len(workspace.pool.histograms) <= n_slots
        assert_same_tree(expected, grow(matrix, gradient, hessian, settings, workspace=workspace))


@pytest.mark.parametrize(("n_threads", "pool_bytes"), [(2, 1), (5, 2**28)])
@pytest.mark.parametrize("growth", GROWTH)
def test_the_number_of_threads_changes_no_bit(growth, pool_bytes, n_threads, monkeypatch):
    monkeypatch.setattr(workspace_module, "_POOL_BYTES", pool_bytes)
    X, gradient, hessian = make_data(1, 5000, 4)
    matrix, settings = binned(X), params(**(dict(min_child_weight=20.0) | GROWTH[growth]))
    one = grow(matrix, gradient, hessian, settings)
    assert_same_tree(one, grow(matrix, gradient, hessian, settings, n_threads=n_threads))
    assert len(one.nodes) >= 15


@pytest.mark.parametrize("policy", ["depthwise", "lossguide"])
def test_without_limits_every_row_has_a_leaf(policy):
    random = np.random.default_rng(0)
    X, gradient = random.normal(size=(300, 2)), random.normal(size=300).astype(np.float32)
    settings = params(max_depth=0, grow_policy=policy, pruning="full", reg_lambda=0.0)
    grown = grow(binned(X, max_bin=1000), gradient, np.ones_like(gradient), settings)
    assert len(leaves(grown)) == 300
    assert_array_equal(leaves(grown)["cover"], 1.0)
    assert_allclose(grown.raw_score, -gradient, atol=1e-6)


def test_a_chain_as_deep_as_there_are_rows():
    # no split has any gain, so the first position wins and takes one row off, again and again
    n = 250
    gradient = np.full(n, -2.0, dtype=np.float32)
    settings = params(max_depth=0, pruning="full")
    X = np.arange(float(n))[:, np.newaxis]
    grown = grow(binned(X), gradient, np.ones_like(gradient), settings)
    assert len(leaves(grown)) == n
    assert depth_of(grown.nodes) == n - 1
    assert_array_equal(grown.raw_score, 2.0)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_rows", [1, 2, 3])
@pytest.mark.parametrize("growth", GROWTH)
def test_few_rows(growth, n_rows):
    X = np.arange(float(n_rows))[:, np.newaxis]
    gradient = np.array([1.0, -2.0, 4.0], dtype=np.float32)[:n_rows]
    grown = grow(binned(X), gradient, np.ones_like(gradient), params(**GROWTH[growth]))
    assert len(leaves(grown)) == n_rows
    assert_allclose(grown.raw_score, -gradient, rtol=1e-6)


def test_a_row_without_weight_worth_a_step_is_still_where_prediction_puts_it():
    """Hessians that round to nothing must not make a bin look empty."""
    random = np.random.default_rng(0)
    X = random.integers(0, 30, (500, 2)).astype(float)
    X[random.random(X.shape) < 0.1] = np.nan
    gradient = random.normal(size=500) * 10.0 ** random.uniform(-12, 3, 500)
    hessian = 10.0 ** random.uniform(-16, 3, 500)
    grown = grow(
        binned(X), gradient.astype(np.float32), hessian.astype(np.float32), params(max_depth=6)
    )
    leaves_of_rows = [follow(grown.nodes, row) for row in X]
    assert_array_equal(grown.raw_score, grown.nodes["value"][leaves_of_rows])


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_workspace_can_be_used_again_for_a_larger_and_a_smaller_tree(n_threads):
    X, gradient, hessian = make_data(5, 500)
    matrix, large = binned(X), params(max_depth=6)
    small = large._replace(max_depth=2)
    workspace = allocate_workspace(matrix, large, 1, n_threads)
    options = dict(n_threads=n_threads, workspace=workspace)
    for settings in (large, small, large):
        fresh = grow(matrix, gradient, hessian, settings)
        assert_same_tree(fresh, grow(matrix, gradient, hessian, settings, **options))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_on_disk_are_gone_through_in_small_blocks(n_threads, tmp_path, monkeypatch):
    monkeypatch.setattr(workspace_module, "BLOCK_ROWS", 100)
    X, gradient, hessian = make_data(5, 3000)
    matrix, settings = binned(X), params(max_depth=5)
    arrays = RowArrays(tmp_path)
    workspace = allocate_workspace(matrix, settings, 1, n_threads, arrays=arrays)
    assert workspace.partition.n_counted == 30
    assert len(workspace.pool.accumulators[0]) > 2**4  # one for each node of a level
    grown = grow(matrix, gradient, hessian, settings, n_threads=n_threads, workspace=workspace)
    assert_same_tree(grown, grow(matrix, gradient, hessian, settings))
    assert workspace.pool.accumulator_used.sum() >= 2**3  # those of the last level


@pytest.mark.parametrize(("n_rows", "n_merges"), [(2_000, 0), (30_000, 3)])
def test_members_meet_three_times_a_depth_and_once_where_parts_are_added_up(
    n_rows, n_merges, monkeypatch
):
    random, n_meetings = np.random.default_rng(0), []
    X = random.integers(0, 256, (n_rows, 4)).astype(float)
    gradient = (X[:, 0] + X[:, 1]).astype(np.float32)

    def grow_and_count(team, *arguments):
        grow_tree(team, *arguments)
        if team.rank == 0:
            n_meetings.append(int(team.state[parallel._GENERATION]))

    monkeypatch.setattr(growth, "grow_tree", grow_and_count)
    grow(binned(X), gradient, np.ones_like(gradient), params(max_depth=3), n_threads=16)
    start, root, others = 1, 2, 3 * 2  # the root's rows are not divided
    assert n_meetings == [start + root + others + n_merges]


@pytest.mark.parametrize(("n_features", "n_threads"), [(1, 2), (3, 5), (40, 2), (40, 5)])
def test_chunks_of_features_change_nothing(n_features, n_threads):
    random = np.random.default_rng(0)
    # equal features, so that all their splits are ties
    X = np.repeat(random.integers(0, 5, (300, 1)).astype(float), n_features, axis=1)
    gradient = random.normal(size=300).astype(np.float32)
    matrix, hessian, settings = binned(X), np.ones_like(gradient), params(max_depth=3)
    chunks = []

    def note_chunks(search, packed, workspace):
        chunks.append(workspace.tree.counts[0].n_chunks)

    watch_growth(matrix, gradient, hessian, settings, note_chunks, n_threads)
    assert max(chunks) == min(n_features, 4 * n_threads)
    one = grow(matrix, gradient, hessian, settings)
    assert_same_tree(one, grow(matrix, gradient, hessian, settings, n_threads=n_threads))
    assert set(one.nodes["feature"]) == {0, -1}  # the first of the equal ones
