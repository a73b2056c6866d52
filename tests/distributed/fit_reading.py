"""Reads features as a fit does, in Dask collections and in one place, and compares all it finds."""

import numpy as np
from distributed import Future
from numpy.testing import assert_array_equal

from sklboost.data.features import training_bins
from sklboost.distributed.features import assemble
from sklboost.engine.parallel import ThreadTeam
from sklboost.estimators.input.feature_names import FittedFeatures
from sklboost.estimators.input.features import feature_settings
from sklboost.estimators.input.rows import FitArguments, training_rows
from sklboost.estimators.input.targets import RegressionTargets
from sklboost.estimators.parameters.boosters import Parameters


def read(X, y=None, encodings=None, **given):
    """Return the rows of a fit, and what it remembers of the features."""
    parameters = {name: given.pop(name) for name in list(given) if name not in FitArguments._fields}
    settings = feature_settings("XGBRegressorLite", Parameters(**parameters))
    y = np.arange(float(len(X))) if y is None else y
    before = None
    if encodings is not None:
        before = FittedFeatures("XGBRegressorLite", len(encodings), None, encodings, None)
    return training_rows(X, y, FitArguments(**given), settings, RegressionTargets, before)


def local_bins(rows, max_bin=256):
    with ThreadTeam(1) as team:
        return training_bins(team, rows.X, rows.weight, max_bin)


def in_place(arrays):
    """Return the arrays of a piece: the result of one task, or of one each, if it is any."""
    if type(arrays) is tuple:
        return [*map(in_place, arrays)]
    return arrays.result() if isinstance(arrays, Future) else arrays


def cluster_bins(placed):
    """Return all bins in the order of the rows, put together as machines do it."""
    parts = {}
    for blocks, *pieces in placed.values():
        done = [(in_place(arrays), in_place(local), rows) for arrays, local, rows in pieces]
        (bins,) = assemble(*done)
        assert bins.flags.c_contiguous
        starts = np.arange(len(blocks)) * 4096
        for block, start in zip(blocks, starts, strict=True):
            parts[block] = bins[start : start + 4096]
    assert sorted(parts) == list(range(len(parts)))
    return np.concatenate([parts[block] for block in sorted(parts)])


def assert_same(cluster, rows, local_rows, max_bin=256):
    matrix, cuts = local_bins(local_rows, max_bin)
    X = rows.X.with_cuts(rows.weight, max_bin)
    found, has_missing, _ = X.found
    for ours, theirs in zip(found, cuts, strict=True):
        assert_array_equal(ours.view(np.int64), theirs.view(np.int64))
    assert_array_equal(has_missing, matrix.has_missing)
    placed = X.place_bins(list(cluster.scheduler_info()["workers"]))
    bins = cluster_bins(placed)
    assert bins.dtype == matrix.rows.dtype
    assert len(X) == len(bins)
    assert_array_equal(bins, matrix.rows)
    return X, placed
