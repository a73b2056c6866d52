"""Histograms of the columns that a tree's features are in, and of no others."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sklboost.tree.options.column_sampling as column_sampling
from sklboost.boosting.settings import feature_rules
from sklboost.data.binning import bin_sparse
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.core.workspace import allocate_workspace
from sklboost.tree.options.column_sampling import allocate_bins
from tests.data.test_sparse_table import sparse_values, table_of
from tests.tree.growth import NO_WEIGHT, assert_same_tree, binned, grow, make_data, params


def bundled(values):
    with ThreadTeam(1) as team:
        return bin_sparse(team, table_of(values), NO_WEIGHT, 256)[0]


def grow_both(matrix, gradient, hessian, settings, monkeypatch, **changes):
    """Return the tree of a copy of the drawn columns, and that of histograms of all columns."""
    bins, _ = allocate_bins(matrix, settings, 1, are_on_disk=False)
    assert bins.rows.shape[1] < len(matrix.columns)
    # copies of the derivatives: draws by gradients modify them
    copied = grow(matrix, gradient.copy(), hessian.copy(), settings, **changes)
    with monkeypatch.context() as patch:
        patch.setattr(column_sampling, "_COPY", np.inf)
        built_of_all = grow(matrix, gradient, hessian, settings, **changes)
    assert built_of_all.inputs.bins.rows is matrix.rows
    return copied, built_of_all


SETTINGS = {
    "depthwise": dict(max_depth=5),
    "lossguide": dict(grow_policy="lossguide", max_depth=0, max_leaves=20),
    "half of the rows": dict(subsample=0.5, max_depth=4),
    "gradient-based": dict(subsample=0.5, sampling_method="gradient_based", max_depth=4),
    "other draws": dict(colsample_bylevel=0.7, colsample_bynode=0.7, max_depth=4),
    "three columns": dict(colsample_bytree=0.3),
    "one column": dict(colsample_bytree=0.05),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("n_outputs", [1, 5])
def test_the_tree_is_that_of_all_columns(name, n_outputs, monkeypatch):
    X, gradient, hessian = make_data(0, 90, n_features=10)
    if n_outputs > 1:
        gradient = np.array([np.roll(gradient, output) for output in range(n_outputs)])
        hessian = np.array([hessian] * n_outputs)
    settings = params(**(dict(colsample_bytree=0.5) | SETTINGS[name]))
    for key in range(3):
        trees = grow_both(binned(X), gradient, hessian, settings, monkeypatch, key=key)
        assert_same_tree(*trees)
        assert len(trees[0].nodes) > 3
        used = trees[0].workspace.pool.n_columns[0]
        assert used == trees[0].inputs.columns.n_of_tree[0]
        assert used == max(1, int(settings.colsample_bytree * 10))


@pytest.mark.parametrize(("n_threads", "max_bin"), [(1, 1000), (2, 256), (5, 1000)])
def test_several_threads_and_wide_codes(n_threads, max_bin, monkeypatch):
    random = np.random.default_rng(1)
    X = random.normal(size=(10_000, 50))
    gradient = (X[:, 0] + X[:, 30] * X[:, 40] + random.normal(size=len(X))).astype(np.float32)
    hessian, settings = np.ones_like(gradient), params(max_depth=4, colsample_bytree=0.5)
    matrix = binned(X, max_bin)
    trees = grow_both(matrix, gradient, hessian, settings, monkeypatch, n_threads=n_threads)
    assert_same_tree(*trees)
    assert not trees[0].workspace.pool.accumulators.any()


def test_features_that_share_columns(monkeypatch):
    X = sparse_values(300, 60, 0.1, seed=3)
    matrix = bundled(X)
    n_columns = len(matrix.columns)
    assert 5 < n_columns < 60
    gradient = (X.sum(axis=1) - X[:, 0]).astype(np.float32)
    hessian, n_built = np.ones_like(gradient), set()
    for key in range(8):
        settings = params(max_depth=3, colsample_bytree=0.1)
        trees = grow_both(matrix, gradient, hessian, settings, monkeypatch, key=key)
        assert_same_tree(*trees)
        sample, pool = trees[0].inputs.columns, trees[0].workspace.pool
        drawn = sample.of_tree[: sample.n_of_tree[0]]
        listed = pool.columns[: pool.n_columns[0]]
        assert_array_equal(listed, np.unique(matrix.places.column[drawn]))
        copied = trees[0].inputs.bins.rows[:, : len(listed)]
        assert_array_equal(copied, matrix.rows[:, listed])
        n_built.add(len(listed))
    assert len(n_built) > 1  # some of the drawn features are together


@pytest.mark.interpreted
@pytest.mark.parametrize("n_outputs", [1, 5])
def test_what_other_columns_hold_is_not_read(n_outputs):
    X, gradient, hessian = make_data(0, 200, n_features=10)
    matrix, settings = binned(X), params(max_depth=3, colsample_bytree=0.4)
    gradient, hessian = np.array([gradient] * n_outputs), np.array([hessian] * n_outputs)
    for key in range(3):
        workspace = allocate_workspace(matrix, settings, n_outputs, 1, n_built=4)
        workspace.pool.histograms[:] = 2**40 + 12345
        expected = grow(matrix, gradient, hessian, settings, key=key)
        found = grow(matrix, gradient, hessian, settings, key=key, workspace=workspace)
        assert_same_tree(found, expected)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("fraction", "max_depth", "max_leaves", "n_built"),
    [
        (1.0, 6, 0, 10),
        (0.8, 6, 0, 10),  # 8 x (3.5 additions + 1 copy) of a row are more than 10 x 3.5
        (0.7, 6, 0, 7),
        (0.55, 6, 0, 6),  # room for what rounding may make of 5.5
        (0.5, 1, 0, 10),  # 5 x (1 + 1) are as many as 10 x 1
        (0.4, 1, 0, 4),
        (0.7, 0, 2, 10),  # a depth of 1
        (0.7, 0, 64, 7),
        (0.01, 6, 0, 1),
    ],
)
def test_columns_are_copied_where_that_saves_time(fraction, max_depth, max_leaves, n_built):
    matrix = binned(np.arange(30.0).reshape(3, 10))
    settings = params(max_depth=max_depth, max_leaves=max_leaves, colsample_bytree=fraction)
    bins, _ = allocate_bins(matrix, settings, 1, are_on_disk=False)
    assert bins.rows.shape == (3, n_built)
    assert (bins.rows is matrix.rows) == (n_built == 10)
    assert allocate_bins(matrix, settings, 1, are_on_disk=True)[0].rows is matrix.rows


def test_weights_of_0_leave_fewer_columns(monkeypatch):
    X, gradient, hessian = make_data(0, 200, n_features=10)
    rules = feature_rules(10, weights=[1.0, 2.0] + [0.0] * 8)
    settings = params(max_depth=3, colsample_bytree=0.5)
    trees = grow_both(binned(X), gradient, hessian, settings, monkeypatch, rules=rules)
    assert_same_tree(*trees)
    assert_array_equal(trees[0].workspace.pool.columns[:2], [0, 1])
    assert trees[0].workspace.pool.n_columns[0] == 2
