"""Rows scored from bins get the bits that prediction from raw values gives."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite
from sklboost.data.features import training_bins
from sklboost.engine.compiling import kernel
from sklboost.engine.parallel import ThreadTeam, assemble
from sklboost.tree.predict.prediction import (
    add_to_block,
    allocate_new_trees,
    fetch_block,
    lay_out_rows,
    lay_out_trees,
)
from sklboost.tree.predict.trees import trees_of
from tests.tree.growth import as_trees, make_nodes, params
from tests.tree.test_prediction import TREES

inf, nan = np.inf, np.nan
NO_WEIGHT = np.empty(0)


@kernel
def add_all(team, model, thresholds, n_trees, rows):
    if not assemble(team):
        return
    if team.rank == 0:
        for block in range(len(rows.scratch.columns)):
            fetch_block(rows, block + 1)
            add_to_block(team, model, thresholds, (0, n_trees), rows, block)


def score(trees, n_outputs, cuts, X):
    """Return the raw scores of rows, which start from 0."""
    raw_score = np.zeros((n_outputs, len(X)))
    new = allocate_new_trees(trees, n_outputs, X.shape[1])
    with ThreadTeam(1) as team:
        rows = lay_out_rows(team, X, cuts, raw_score)
        dtype = rows.scratch.columns.dtype
        n_trees = len(trees.n_pruned)
        lay_out_trees(new, cuts, n_trees)
        team.run(add_all, new.model, new.thresholds.astype(dtype), n_trees, rows)
    return raw_score, dtype


def cuts_of(X, max_bin=256):
    with ThreadTeam(1) as team:
        return training_bins(team, X, NO_WEIGHT, max_bin)[1]


def make_rows(n_rows, seed=0):
    """Values within and far beyond those of :func:`make_training`, missing and infinite ones."""
    random = np.random.default_rng(seed)
    X = random.normal(scale=3.0, size=(n_rows, 4))
    X[random.random(X.shape) < 0.1] = nan
    X[random.random(X.shape) < 0.05] = inf
    X[random.random(X.shape) < 0.05] = -inf
    return X


def make_training():
    """One feature has missing values, one is constant, and others have infinite ones."""
    X = np.random.default_rng(1).normal(size=(700, 4))
    X[::5, 0] = nan
    X[::9, 1] = inf
    X[::11, 1] = -inf
    X[:, 3] = 2.0
    return X, np.nan_to_num(X[:, 0]) + np.sign(X[:, 1]) * X[:, 2]


@pytest.mark.interpreted
def test_the_way_of_each_value():
    # two features with cuts at 2, 4, 6: the thresholds 5 and 2 of tree 0 are within a bin and a cut
    cuts = cuts_of(np.repeat([[1.0], [3.0], [5.0], [7.0]], 2, axis=1))
    assert_array_equal(cuts.cuts, [2, 4, 6, 2, 4, 6])
    values = [-inf, 1.9, 2.0, np.nextafter(5.0, 0), 5.0, 5.5, 100.0, inf, nan]
    X = np.array([(first, second) for first in values for second in values])
    found, _ = score(as_trees([make_nodes(*TREES[0])], params()), 1, cuts, X)
    left = X[:, 0] < 5.0
    below = (X[:, 1] < 2.0) | np.isnan(X[:, 1])
    assert_array_equal(found[0], np.where(left, np.where(below, 10.0, 20.0), 30.0))
    for n_rows in (1, 7):  # too few for a word of bits
        few, _ = score(as_trees([make_nodes(*TREES[0])], params()), 1, cuts, X[-n_rows:])
        assert_array_equal(few, found[:, -n_rows:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_of_prediction_for_any_number_of_rows(dtype):
    X, y = make_training()
    model = XGBRegressorLite(n_estimators=6, max_depth=8, base_score=0.0).fit(X, y)
    for n_rows in (1, 7, 8, 63, 64, 65, 256, 257, 600):
        rows = make_rows(n_rows).astype(dtype)
        found, _ = score(trees_of(model.model_), 1, cuts_of(X), rows)
        assert_array_equal(found[0], model.predict(rows))


@pytest.mark.parametrize(
    ("max_depth", "max_bin", "dtype"),
    [
        *((depth, 8, np.uint8) for depth in (1, 4, 7)),
        *((depth, 256, np.uint8) for depth in (2, 5, 8)),
        *((depth, 600, np.uint16) for depth in (3, 6, 9)),
    ],
)
def test_bits_of_prediction_for_any_depth_and_bins(max_depth, max_bin, dtype):
    X, y = make_training()
    X = X[:, [0, 1, 3, 2]] if max_depth % 2 else X
    model = XGBRegressorLite(n_estimators=4, max_depth=max_depth, max_bin=max_bin, base_score=0.0)
    model.fit(X, y)
    rows = make_rows(300)
    found, found_dtype = score(trees_of(model.model_), 1, cuts_of(X, max_bin), rows)
    assert_array_equal(found[0], model.predict(rows))
    if max_bin != 256:
        assert found_dtype == dtype


@pytest.mark.parametrize("max_depth", [4, 8])
def test_bits_of_prediction_where_thresholds_lie_within_bins(max_depth):
    random = np.random.default_rng(2)
    X = random.integers(12, size=(200, 4)).astype(np.float64)
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3]
    model = XGBRegressorLite(n_estimators=8, max_depth=max_depth, base_score=0.0).fit(X, y)
    trees, cuts = trees_of(model.model_), cuts_of(X)
    new = allocate_new_trees(trees, 1, 4)
    lay_out_trees(new, cuts, 8)
    splits = new.model.tops.splits[: new.model.tops.starts[8]]
    is_third_level_or_below = splits.place % 16 != 0
    assert (is_third_level_or_below & (splits.cuts_bin == 1)).sum() >= 5
    rows = random.uniform(-1, 13, size=(600, 4))
    rows[random.random(rows.shape) < 0.05] = nan
    found, _ = score(trees, 1, cuts, rows)
    assert_array_equal(found[0], model.predict(rows))


def test_missing_values_where_bins_are_full():
    # 256 values: the bin of a missing one, of which the training had none, is number 256
    X = np.arange(256.0)[:, np.newaxis]
    model = XGBRegressorLite(n_estimators=5, base_score=0.0).fit(X, np.sin(X[:, 0]))
    for rows, dtype in ((X, np.uint8), (np.vstack([X, [[nan]], [[256.0]]]), np.uint16)):
        found, found_dtype = score(trees_of(model.model_), 1, cuts_of(X), rows)
        assert_array_equal(found[0], model.predict(rows))
        assert found_dtype == dtype
