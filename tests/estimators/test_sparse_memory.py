"""Training on a wide sparse matrix takes memory for what is stored, not for rows times features."""

from tests.conftest import run_python

SCRIPT = """
import resource, sys
import numpy as np
from scipy import sparse
from sklboost import XGBRegressorLite

def make(n, n_entries):
    random = np.random.default_rng(0)
    places = random.integers(0, n, (2, n_entries))
    X = sparse.coo_array((random.normal(size=n_entries), tuple(places)), shape=(n, n)).tocsr()
    return X, X[:, :50].sum(axis=1) + random.normal(size=n)

def peak():  # MB; macOS counts bytes, Linux thousands of them
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

small, y = make(2000, 4000)
XGBRegressorLite(n_estimators=2, n_jobs=1).fit(small, y).predict(small)
X, y = make(20_000, 400_000)
before = peak()
model = XGBRegressorLite(n_estimators=10, n_jobs=1).fit(X, y)
model.predict(X)
print(peak() - before, model.fit_report_.n_bins)
"""


def test_memory_grows_with_the_entries(tmp_path):
    grown, n_bins = map(float, run_python(SCRIPT, tmp_path).split())
    assert n_bins > 400_000
    # 5 MB of entries; one byte for each of 20,000 x 20,000 values would be 380 MB
    assert grown < 150
