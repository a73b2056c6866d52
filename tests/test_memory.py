"""How much memory fits, predictions and `bin_features` take beside their input.

What Python and NumPy allocate is counted, on every system alike; `benchmarks/memory.py` measures
the resident set of a process.
"""

import tracemalloc

import numpy as np
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.data.binning import apply_cuts
from sklboost.engine.parallel import ThreadTeam

# Beyond the 200,000 of which cuts are chosen; so that histograms, 5 MB, are little beside it.
N_ROWS, N_FEATURES = 400_000, 28
BYTES = N_ROWS * N_FEATURES  # of the bins
OTHERS = 6e6  # histograms and a block of values


@pytest.fixture(scope="module")
def table():
    X = np.random.default_rng(0).random((N_ROWS, N_FEATURES), dtype=np.float32)
    return X, X[:, 0] + np.sin(9.0 * X[:, 1], dtype=np.float64)


@pytest.fixture(scope="module", params=["C", "F"])
def mapped(request, table, tmp_path_factory):
    """The same as a file, mapped into memory, read-only."""
    path = tmp_path_factory.mktemp("mapped") / "X.npy"
    np.save(path, np.asarray(table[0], order=request.param))
    return np.load(path, mmap_mode="r")


def peak(function):
    """Return the bytes that a call has at most allocated at a time."""
    function()  # what is compiled and imported is not counted
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("estimator", "dtype", "n_jobs"),
    [
        (XGBRegressorLite, np.float64, 1),
        (XGBRegressorLite, np.float32, 2),
        (XGBClassifierLite, np.int64, 1),
    ],
)
def test_a_fit_takes_less_than_its_input(estimator, dtype, n_jobs, table):
    X, y = table
    y = (y > np.median(y) if estimator is XGBClassifierLite else y).astype(dtype)
    model = estimator(n_estimators=2, n_jobs=n_jobs)
    # the bins twice, and 24 or 25 bytes a row: raw scores, gradients, lists of rows, classes
    assert peak(lambda: model.fit(X, y)) < 2 * BYTES + 25 * N_ROWS + OTHERS


def test_a_memory_map_is_not_copied(mapped, table):
    X, y = table
    model = XGBRegressorLite(n_estimators=2)
    assert peak(lambda: model.fit(mapped, y)) < 2 * BYTES + 25 * N_ROWS + OTHERS
    raw_scores_and_predictions = 16 * N_ROWS
    assert peak(lambda: model.predict(mapped)) < raw_scores_and_predictions + OTHERS
    np.testing.assert_array_equal(model.predict(mapped), model.fit(X, y).predict(X))


def test_bins_of_a_memory_map_are_all_that_is_kept(mapped):
    n_jobs = 2 if mapped.flags.c_contiguous else 1
    of_the_cuts = 4 * N_FEATURES * 205_000 + 16 * N_ROWS  # the sample, and which rows it is of
    assert peak(lambda: bin_features(mapped, n_jobs=n_jobs)) < of_the_cuts + OTHERS
    bins = bin_features(mapped)
    with ThreadTeam(n_jobs) as team:
        to_bin = (team, mapped, bins.binning.cuts, bins.binning.has_missing)
        assert peak(lambda: apply_cuts(*to_bin, by_columns=False)) < BYTES + OTHERS
