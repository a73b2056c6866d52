"""How much memory a fit takes beside its input: the bins twice, and 24 to 32 bytes a row.

What Python and NumPy allocate is counted, on every system alike; `benchmarks/memory.py` measures
the resident set of a process.
"""

import tracemalloc

import numpy as np
import pytest

from tests.small_models import ESTIMATORS

# Beyond the 200,000 of which cuts are chosen; so that histograms, 5 MB, are little beside it.
N_ROWS, N_FEATURES = 400_000, 28


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(0)
    X = random.random((N_ROWS, N_FEATURES), dtype=np.float32)
    return X, X[:, 0] * X[:, 1] + random.random(N_ROWS)


def peak(function):
    """Give the bytes that a call has at most allocated at a time."""
    function()  # what is compiled and imported is not counted
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_fit_takes_less_than_its_input(estimator, n_jobs, table):
    X, y = table
    if estimator is not ESTIMATORS[0]:
        y = (y > np.median(y)).astype(np.int64)
    model = estimator(n_estimators=2, n_jobs=n_jobs)
    # of 112 bytes a row 82 are bins and what rounds keep of a row
    assert peak(lambda: model.fit(X, y)) < 0.8 * X.nbytes + 5e6
