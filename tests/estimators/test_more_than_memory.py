"""With bins on disk a fit needs memory for no more than blocks of rows (Linux)."""

import sys

from tests.conftest import run_python

SCRIPT = """
import ctypes, gc, re, resource
from pathlib import Path
import numpy as np
from sklboost import BinnedMatrix, XGBClassifierLite, XGBRegressorLite, bin_features

def make(n_rows):
    random, folder = np.random.default_rng(0), Path(f"data_of_{n_rows}")
    X = random.normal(size=(n_rows, 4)).astype(np.float32)
    y = X[:, 0] + X[:, 1] ** 2 + random.normal(size=n_rows).astype(np.float32)
    B = bin_features(X, path=folder)
    columns = {"y": y, "labels": y > 1, "weight": np.abs(y) + 1}
    for name, values in columns.items():
        np.save(folder / f"{name}.npy", values)
    return [B] + [np.load(folder / f"{name}.npy", mmap_mode="r") for name in columns]

def fit(B, y, labels, weight):
    models = [
        XGBRegressorLite(n_estimators=2, n_jobs=2).fit(B, y),
        XGBRegressorLite(n_estimators=2, n_jobs=2, subsample=0.5, random_state=0).fit(B, y),
        XGBClassifierLite(n_estimators=2, n_jobs=2).fit(B, labels, sample_weight=weight),
    ]
    return [model.model_.nodes.tobytes() for model in models]

few, many = make(30_000), make(2_500_000)
in_memory = BinnedMatrix(many[0].bins, many[0].binning)  # all else that a fit has of a row is
fit(*few)
gc.collect()
ctypes.CDLL(None).malloc_trim(0)
# private memory that can be written, as limits count it: what files are mapped to is not
used = int(re.search(r"VmData:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024
free = 32 * 2**20  # a row has 28 bytes in memory, besides its bins: 70 MB
resource.setrlimit(resource.RLIMIT_DATA, (used + free, resource.RLIM_INFINITY))
models = fit(*many)
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
