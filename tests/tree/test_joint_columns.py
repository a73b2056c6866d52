"""Joint columns: which columns are joined, and that their histograms are those of each."""

import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone

import sklboost.tree.options.column_sampling as column_sampling
import tests.tree.growth as growth
from sklboost import XGBClassifierLite
from sklboost.tree.core.histogram import flush_accumulator
from sklboost.tree.core.workspace import NARROW_CELLS
from sklboost.tree.options.column_sampling import allocate_bins
from sklboost.tree.options.shared_columns import (
    MOST_BINS,
    group_columns,
    join_columns,
    single_columns,
)
from tests.tree.growth import assert_same_tree, binned, grow, params

N_VALUES = (2, 16, 300, 3, 16, 1, 100, 5, 2, 2)  # the third has too many for a joint column


def make_columns(n_rows, n_values=N_VALUES, seed=0, missing=0.1):
    """Return columns of so many values, the second with missing ones, and gradients of them."""
    random = np.random.default_rng(seed)
    X = np.column_stack([random.integers(n, size=n_rows) for n in n_values]).astype(np.float64)
    noise = random.normal(size=n_rows)
    gradient = (X[:, 0] * (X[:, 1] > 7) + 0.01 * X[:, 2] - 0.3 * X[:, -1] + noise).astype(
        np.float32
    )
    X[random.random(n_rows) < missing, 1] = np.nan
    return X, gradient, np.ones(n_rows, dtype=np.float32)


# --- which columns are joined


@pytest.mark.parametrize(
    ("n_bins", "groups"),
    [
        ([16, 16, 16, 16], [[0, 1], [2, 3]]),
        ([2] * 9, [[0, 1, 2, 3, 4, 5, 6, 7], [8]]),
        ([256, 2, 128, 3], [[0], [2, 1], [3]]),
        ([1, 256, 1], [[1, 0, 2]]),
        ([17, 16], [[0], [1]]),
    ],
)
def test_groups(n_bins, groups):
    assert group_columns(np.array(n_bins)) == groups


def test_every_column_is_in_one_group_that_has_room():
    random = np.random.default_rng(0)
    for _ in range(50):
        n_bins = random.integers(1, 257, size=random.integers(1, 60))
        groups = group_columns(n_bins)
        assert sorted(column for group in groups for column in group) == list(range(len(n_bins)))
        assert max(np.prod(n_bins[group]) for group in groups) <= MOST_BINS


@pytest.mark.parametrize("n_values", [N_VALUES, (16, 1, 16, 16, 1, 16)])
def test_a_joint_bin_is_made_of_the_bins_of_its_members(n_values):
    matrix = binned(make_columns(2_000, n_values, missing=0.0)[0])
    joint, starts = join_columns(matrix).joint, matrix.cell_starts
    assert 1 < joint.rows.shape[1] < len(matrix.columns)
    assert joint.members[-1] == len(matrix.columns)
    for index, bins in enumerate(joint.rows.T):
        for member in range(joint.members[index], joint.members[index + 1]):
            start, stop = joint.cells[:, member]
            column = starts.tolist().index(start)
            assert stop == starts[column + 1]
            assert_array_equal(bins % (stop - start), matrix.columns[column])
            bins = bins // (stop - start)
        assert not bins.any()


def test_many_columns_are_grouped_in_time():
    n_bins = np.full(30_000, 17)  # room for one each
    begin = time.process_time()
    assert len(group_columns(n_bins)) == 30_000
    assert time.process_time() - begin < 2.0  # 0.02 s; 30 s if each looks at all groups


@pytest.mark.parametrize(
    ("n_values", "n_rows"),
    [
        ((300,) * 10, 4_000),  # many bins
        ((300,) * 15 + (2, 2), 4_000),  # one addition of 17 saved
        ((16,) * 10, 1_000),  # few rows: 5 joint columns of 256 bins save 5 additions
    ],
)
def test_none_is_joined_where_that_saves_little(n_values, n_rows):
    bins = join_columns(binned(make_columns(n_rows, n_values)[0]))
    assert bins.joint.rows.shape == (0, 0)
    assert bins.least_joint_rows > 2**60


def test_some_are_joined_from_enough_rows_on():
    bins = join_columns(binned(make_columns(1_200, (16,) * 10)[0]))
    assert bins.joint.rows.shape == (1_200, 6)  # a column has 17 bins, that of missing values too
    assert bins.least_joint_rows == 256


@pytest.mark.parametrize(
    ("n_outputs", "max_bin", "are_on_disk", "changes"),
    [
        (2, 256, False, {}),
        (1, 300, False, {}),
        (1, 256, True, {}),
        (1, 256, False, dict(min_child_samples=2)),
        (1, 256, False, dict(colsample_bytree=0.3)),
    ],
)
def test_fits_without_joint_columns(n_outputs, max_bin, are_on_disk, changes):
    matrix = binned(make_columns(2_000)[0], max_bin)
    bins, _ = allocate_bins(matrix, params(**changes), n_outputs, are_on_disk=are_on_disk)
    assert len(bins.joint.rows) == 0


# --- histograms


@pytest.mark.interpreted
def test_marginal_sums():
    matrix = binned(make_columns(300, (4, 2, 30, 3, 2, 5))[0])
    joint = join_columns(matrix).joint
    packed = np.random.default_rng(1).integers(-1_000, 1_000, size=300)
    histogram = np.full(matrix.cell_starts[-1], 77)
    expected = np.zeros_like(histogram)
    for start, column in zip(matrix.cell_starts[:-1], matrix.columns, strict=True):
        np.add.at(expected, start + column.astype(np.int64), packed)
    width = NARROW_CELLS  # of each of the single columns
    accumulator = np.zeros(width * len(matrix.columns), dtype=np.int64)
    for n_before in range(2):  # the second time they are added
        for index in range(joint.n_columns):
            np.add.at(accumulator, width * index + joint.rows[:, index].astype(np.int64), packed)
        flush_accumulator(joint, (0, joint.n_columns), accumulator, histogram, n_before)
        assert not accumulator.any()
        assert_array_equal(histogram, expected * (1 + n_before))


SETTINGS = {
    "depthwise": dict(max_depth=6),
    "lossguide": dict(grow_policy="lossguide", max_depth=0, max_leaves=40),
    "half of the rows": dict(subsample=0.5, max_depth=4),
    "drawn features": dict(colsample_bytree=0.9, colsample_bynode=0.7, max_depth=4),
}


@pytest.mark.parametrize(
    ("name", "n_threads"), [*zip(SETTINGS, (1, 2, 5, 1), strict=True), ("depthwise", 5)]
)
def test_the_tree_is_that_of_single_columns(name, n_threads, monkeypatch):
    X, gradient, hessian = make_columns(20_000)
    matrix, settings = binned(X), params(**SETTINGS[name])
    joined = grow(matrix, gradient, hessian, settings, n_threads=n_threads)
    assert joined.inputs.bins.least_joint_rows < 1_000
    assert not joined.workspace.pool.accumulators.any()
    bins = single_columns(matrix.rows)
    nothing = np.empty((0, 0), dtype=np.uint8)
    monkeypatch.setattr(growth, "allocate_bins", lambda *_, **__: (bins, nothing))
    single = grow(matrix, gradient, hessian, settings, n_threads=n_threads)
    assert_same_tree(joined, single)
    assert len(joined.nodes) > 15


@pytest.mark.parametrize("name", ["categories", "sparse", "softmax", "forest"])
def test_so_is_the_model_of_an_estimator(name, monkeypatch):
    X, gradient, _ = make_columns(6_000)
    y = np.digitize(gradient, [-1.0, 0.0, 1.0])
    if name == "sparse":
        X = csr_array(np.hstack([np.nan_to_num(X), X[:, :1] == 0, X[:, :1] == 1]))
    changes = {
        "categories": dict(categorical_features=[1, 4, 6]),
        "forest": dict(num_parallel_tree=2, subsample=0.7, random_state=0),
    }.get(name, {})
    model = XGBClassifierLite(n_estimators=3, n_jobs=2, **changes)
    target = y if name == "softmax" else y > 1
    joined, made = model.fit(X, target).model_.nodes, []

    def make(matrix):
        made.append(join_columns(matrix))
        return single_columns(matrix.rows)

    monkeypatch.setattr(column_sampling, "join_columns", make)
    assert clone(model).fit(X, target).model_.nodes.tobytes() == joined.tobytes()
    assert made[0].joint.n_columns > 0
