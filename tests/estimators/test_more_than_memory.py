"""With bins on disk a fit needs memory for no more than blocks of rows (Linux)."""

import sys

from tests.conftest import run_python

SCRIPT = """
import ctypes, gc, re, resource
from pathlib import Path
import numpy as np
from sklboost import BinnedMatrix, XGBClassifierLite, XGBRegressorLite, bin_features

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
ctypes.CDLL(None).malloc_trim(0)
# private memory that can be written, as limits count it: what files are mapped to is not
used = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
free = 32 * 2**20  # a row has 28 bytes in memory, besides its bins: 70 MB
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


def test_a_fit_on_disk_needs_little_memory(tmp_path):
    if sys.platform.startswith("linux"):
        assert run_python(SCRIPT, tmp_path) == "done"
