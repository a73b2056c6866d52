"""Memory of fits: for blocks of rows of bins on disk, for the entries of sparse matrices."""

import sys
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from sklboost import XGBRegressorLite, bin_features
from tests.conftest import run_python


def peak(function, *arguments):
    """Return the bytes that Python and NumPy have at most allocated at a time in a call."""
    function(*arguments)  # what is compiled and imported is not counted
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_bins_on_disk_are_not_read_into_memory(tmp_path):
    X = np.random.default_rng(0).integers(0, 99, (400_000, 50)).astype(np.float32)
    on_disk = bin_features(X, path=tmp_path / "bins")
    model = XGBRegressorLite(n_estimators=2, n_jobs=1)
    # 28 bytes a row and one block; all bins would be one byte each on top
    assert peak(model.fit, on_disk, X[:, 0]) < 1.25 * X.size


def test_sparse_matrices_take_memory_for_their_entries():
    random = np.random.default_rng(0)
    n_rows, n_features, n_entries = 20_000, 3_000, 60_000
    places = (random.integers(0, n_rows, n_entries), random.integers(0, n_features, n_entries))
    X = sparse.coo_array((random.normal(size=n_entries), places), shape=(n_rows, n_features))
    X, model = X.tocsr(), XGBRegressorLite(n_estimators=2, n_jobs=1)
    one_byte_each = n_rows * n_features
    assert peak(model.fit, X, X[:, :50].sum(axis=1)) < 0.9 * one_byte_each
    assert peak(model.predict, X) < 0.3 * one_byte_each


# --- measured in processes of their own


ON_DISK = """
import ctypes, gc, re, resource
from pathlib import Path
import numpy as np
from sklboost import BinnedMatrix, XGBClassifierLite, XGBRegressorLite, bin_features

LIBC = ctypes.CDLL(None)
# every block of 64 kB goes back to the system when it is freed, however the heap lies
LIBC.mallopt(-3, 2**16)  # M_MMAP_THRESHOLD

def make(n_rows):
    random = np.random.default_rng(0)
    X = random.normal(size=(n_rows, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] ** 2 + random.normal(size=n_rows).astype(np.float32)
    X[:, 3] = X[:, 3] > 1  # few values are looked at in all rows
    arrays = {"X": X, "y": y, "labels": y > 1, "weight": np.abs(y) + 1}
    for name, values in arrays.items():
        np.save(f"{name}_{n_rows}.npy", values)
    return [np.load(f"{name}_{n_rows}.npy", mmap_mode="r") for name in arrays]

def bin_and_fit(X, *arrays):
    B = bin_features(X, path=f"bins_{len(X)}", n_jobs=2)
    return B, fit(B, *arrays)

def fit(B, y, labels, weight):
    models = [
        XGBRegressorLite(n_estimators=2, n_jobs=2).fit(B, y),
        XGBRegressorLite(n_estimators=2, n_jobs=2, subsample=0.5, random_state=0).fit(B, y),
        XGBClassifierLite(n_estimators=2, n_jobs=2).fit(B, labels, sample_weight=weight),
    ]
    return [model.model_.nodes.tobytes() for model in models]

few, many = make(230_000), make(2_500_000)
bin_and_fit(*few)
gc.collect()
LIBC.malloc_trim(0)
# private memory that can be written, as limits count it: what files are mapped to is not
used = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
free = 48 * 2**20  # besides bins, a fit in memory has 28 bytes a row (70 MB), this one 8 (weights)
resource.setrlimit(resource.RLIMIT_DATA, (used + free, resource.RLIM_INFINITY))
B, models = bin_and_fit(*many)
in_memory = BinnedMatrix(B.bins, B.binning)  # all else that a fit has of a row is in memory
try:
    fit(in_memory, *many[1:])
except MemoryError:
    resource.setrlimit(resource.RLIMIT_DATA, [resource.RLIM_INFINITY] * 2)
    assert models == fit(in_memory, *many[1:])
    print("done")
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_fit_on_disk_needs_memory_for_blocks_of_rows(tmp_path):
    assert run_python(ON_DISK, tmp_path) == "done"
