"""Models that processes share: files of joblib in memory maps, buffers out of band, workers."""

import copy
import io
import os
import pickle
import sys

import cloudpickle
import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.engine.backend import BACKEND, Backend
from tests.conftest import run_python
from tests.kinds_of_models import KINDS, data

# The arrays of their models differ; the other kinds differ in what makes the arrays.
NAMES = ["bins", "categories, vector trees", "linear leaves, categories", "pruned"]
MORE = ["single", "sparse", "more than 256 bins", "dart", "quantiles", "early stopping"]


@pytest.fixture(
    scope="module", params=[*NAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
)
def fitted(request):
    """A kind of fit and its model, which has been asked for all that its digest asks for."""
    kind = KINDS[request.param]
    model = kind.fit()
    return kind, model, kind.digest(model)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A model, its rows, and the file with its arrays."""
    X, y = data("many")
    model = XGBClassifierLite(n_estimators=60, random_state=0).fit(X, y["labels"])
    path = tmp_path_factory.mktemp("large") / "model.joblib"
    joblib.dump(model, path)
    return model, X, path


def versions():
    """Return which versions of which kernels there are; the code of a wheel has what it has."""
    if BACKEND is not Backend.COMPILER:
        return None
    from tests.compiler import versions  # imports numba

    return versions.versions()


def arrays(group):
    """Yield all arrays of a group."""
    for field in group:
        if isinstance(field, np.ndarray):
            yield field
        elif isinstance(field, tuple):
            yield from arrays(field)


def is_mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None


# --- memory maps ---------------------------------------------------------------------------------


def test_a_mapped_model_runs_the_kernels_that_all_run(fitted, tmp_path):
    kind, model, digest = fitted
    joblib.dump(model, tmp_path / "model")
    before = versions()
    for mode in ("r", "c", "r+"):
        mapped = joblib.load(tmp_path / "model", mmap_mode=mode)
        for array in arrays(mapped.model_):
            assert is_mapped(array)
            assert type(array) in (np.ndarray, np.recarray)  # which kernels take without a detour
            assert array.flags.writeable == (mode != "r")
        if mode != "r+":  # which kernels cannot tell from "c"
            assert kind.digest(mapped) == digest
    assert versions() == before


@pytest.mark.parametrize("compress", [0, 3, ("bz2", 1), ("xz", 1)])
def test_arrays_are_in_the_file_if_it_can_be_mapped(compress, large, tmp_path):
    model, X, _ = large
    packed = len(pickle.dumps(model))
    n_bytes = sum(array.nbytes for array in arrays(model.model_))
    joblib.dump(model, tmp_path / "model", compress=compress)
    size = os.path.getsize(tmp_path / "model")
    assert n_bytes < size < n_bytes + 20_000 if compress == 0 else size < packed
    assert_array_equal(joblib.load(tmp_path / "model").predict(X[:50]), model.predict(X[:50]))


def test_what_is_no_file_on_disk_is_packed(large):
    model, X, _ = large
    with open(os.devnull, "wb") as file:
        joblib.dump(model, file)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    assert len(buffer.getvalue()) < len(pickle.dumps(model)) + 2000
    buffer.seek(0)
    assert_array_equal(joblib.load(buffer).predict(X[:50]), model.predict(X[:50]))


SHARED = """
import ctypes, re, subprocess, sys
import joblib
import numpy as np

def pages():
    # kB of the file's pages that this process has in memory
    kinds, is_of_file = {}, False
    for line in open("/proc/self/smaps"):
        if re.match("[0-9a-f]+-", line):
            is_of_file = line.rstrip().endswith(PATH)
        elif is_of_file and line.endswith(" kB\\n"):
            kind, number, _ = line.split()
            kinds[kind] = kinds.get(kind, 0) + int(number)
    return kinds

model = joblib.load(PATH, mmap_mode="r")
model.predict_proba(np.load(ROWS))
used = pages()["Rss:"]
# The kernel maps pages around one that is read, except those that it is reading ahead or writing
# to the disk at that moment: a page that nobody has read can be in one process and not in the other
for line in open("/proc/self/maps"):
    if line.rstrip().endswith(PATH):
        start, stop = (int(place, 16) for place in line.split()[0].split("-"))
        ctypes.string_at(start, stop - start)
if sys.argv[1:]:  # the second process, while the first one has the model
    found = pages()
    shared = found["Shared_Clean:"] + found["Shared_Dirty:"]  # dirty: not yet on the disk
    print(used, found["Size:"], found["Rss:"], shared, found["Anonymous:"])
else:
    print(subprocess.check_output([sys.executable, __file__, "second"], text=True))
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_processes_share_the_pages(large, tmp_path):
    _, X, path = large
    np.save(tmp_path / "X.npy", X)
    text = SHARED.replace("PATH", repr(str(path))).replace("ROWS", repr(f"{tmp_path}/X.npy"))
    used, size, *found = map(int, run_python(text, tmp_path).split())
    assert used > 100  # kB
    assert found == [size, size, 0]  # in memory, shared and copied


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_a_mapped_model_is_a_model(mode, tmp_path):
    X, y = data("numbers")
    y = y["signal"]
    model = XGBRegressorLite(n_estimators=4, random_state=0).fit(X, y)
    path = tmp_path / "model"
    joblib.dump(model, path)
    content = path.read_bytes()
    mapped = joblib.load(path, mmap_mode=mode)

    goes_on = clone(model).fit(X, y, init_model=mapped)
    assert_array_equal(
        goes_on.predict(X), clone(model).set_params(n_estimators=8).fit(X, y).predict(X)
    )
    for other in (copy.copy(mapped), copy.deepcopy(mapped), pickle.loads(pickle.dumps(mapped))):
        assert_array_equal(other.predict(X), model.predict(X))
    assert not any(map(is_mapped, arrays(copy.deepcopy(mapped).model_)))
    assert len(pickle.dumps(mapped)) < len(pickle.dumps(model)) + 500
    joblib.dump(mapped, tmp_path / "again")
    again = joblib.load(tmp_path / "again", mmap_mode=mode)
    assert_array_equal(again.predict(X), model.predict(X))

    mapped.set_params(n_estimators=8, warm_start=True).fit(X, y)
    assert_array_equal(mapped.predict(X), goes_on.predict(X))
    mapped.set_params(n_estimators=4, warm_start=False).fit(X, y)
    assert_array_equal(mapped.predict(X), model.predict(X))
    assert path.read_bytes() == content  # nothing has written to it


# --- other ways ----------------------------------------------------------------------------------


def test_buffers_out_of_band(fitted):
    kind, model, digest = fitted
    buffers = []
    pickled = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    in_band = pickle.dumps(model, protocol=5)
    n_bytes = sum(len(buffer.raw()) for buffer in buffers)
    # encodings of other columns, reports and the like stay
    assert len(pickled) + n_bytes < len(in_band) + 100 * len(buffers)
    assert not any(array.tobytes() in pickled for array in arrays(model.model_) if array.size > 100)
    before = versions()
    received = [bytes(buffer.raw()) for buffer in buffers]  # of these views are read-only
    other = pickle.loads(pickled, buffers=received)
    assert kind.digest(other) == digest
    assert versions() == before


@pytest.mark.parametrize("mode", [pytest.param(None, marks=pytest.mark.slow), "r"])
def test_in_workers_of_joblib(mode, large):
    """Arrays beyond `max_nbytes` reach them as memory maps, those of the model included."""
    model, X, path = large
    assert_array_equal(cloudpickle.loads(cloudpickle.dumps(model)).predict(X), model.predict(X))
    sent = joblib.load(path, mmap_mode=mode)
    call = joblib.delayed(type(sent).predict_proba)
    parts = np.array_split(X, 2)
    found = joblib.Parallel(n_jobs=2, max_nbytes=1000)(call(sent, part) for part in parts)
    assert_array_equal(np.concatenate(found), model.predict_proba(X))
