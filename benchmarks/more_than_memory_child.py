"""One step of `more_than_memory.py`, in a process of its own."""

import hashlib
import json
import os
import re
import sys
import threading
import time
from pathlib import Path

MIB = 2**20
BLOCK_ROWS = 2**17


class Watch:
    """The highest resident memory of this process, as Linux tells it ten times a second."""

    def __enter__(self):
        self.peaks = {"VmRSS": 0, "RssAnon": 0}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._before, self._begin = _traffic(), time.perf_counter()
        self._thread.start()
        return self

    def _look(self):
        while not self._ends.wait(0.1):
            for name in self.peaks:
                self.peaks[name] = max(self.peaks[name], _kibibytes(name))

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._begin
        self._ends.set()
        self._thread.join()

    def record(self):
        """Return what was seen."""
        after = _traffic()
        return {
            "seconds": round(self.seconds, 2),
            "peak_mib": round(_kibibytes("VmHWM") / 1024, 1),
            "peak_anonymous_mib": round(self.peaks["RssAnon"] / 1024, 1),
            "read_mib": round((after["read_bytes"] - self._before["read_bytes"]) / MIB, 1),
            "written_mib": round((after["write_bytes"] - self._before["write_bytes"]) / MIB, 1),
        }


def _kibibytes(field):
    return int(re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def _traffic():
    found = re.findall(r"(\w+): (\d+)", Path("/proc/self/io").read_text())
    return {name: int(number) for name, number in found}


def make(folder, settings):
    """Write values and targets to files, a block of rows at a time."""
    import numpy as np

    n_rows, n_features = settings["rows"], settings["features"]
    shapes = {"X": (n_rows, n_features), "y": (n_rows,)}
    files = {name: (folder / f"{name}.npy").open("wb") for name in shapes}
    for name, shape in shapes.items():
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(files[name], header)
    for start in range(0, n_rows, BLOCK_ROWS):
        random = np.random.default_rng(start)
        n = min(BLOCK_ROWS, n_rows - start)
        X = random.normal(size=(n, n_features)).astype(np.float32)
        noise = random.normal(size=n).astype(np.float32)
        y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + np.abs(X[:, 3]) + noise
        files["X"].write(X.tobytes())
        files["y"].write(y.astype(np.float32).tobytes())
    for file in files.values():
        file.close()


def bin_(folder, settings):
    """Bin the values to a folder."""
    import numpy as np

    from sklboost import bin_features

    bin_features(np.load(folder / "X.npy", mmap_mode="r"), path=folder / "bins", verbose=0)
    (folder / "X.npy").unlink()


def fit(folder, settings, *, in_memory=False):
    """Train on the bins; return a digest of the model."""
    import numpy as np

    from sklboost import BinnedMatrix, XGBRegressorLite, open_bins

    B, y = open_bins(folder / "bins"), np.load(folder / "y.npy", mmap_mode="r")
    if in_memory:
        B, y = BinnedMatrix(np.array(B.bins), B.binning), np.array(y)
    model = XGBRegressorLite(n_estimators=settings["trees"], max_depth=settings["depth"])
    model.fit(B, y)
    return {
        "digest": hashlib.sha256(model.model_.nodes.tobytes()).hexdigest(),
        "threads": model.fit_report_.n_threads,
        "phases": {phase: round(s, 2) for phase, s in model.fit_report_.seconds.items()},
    }


def forget(folder):
    """Have the system write what is in these files, and drop it from its cache.

    What another process has read would not count as memory of this one.
    """
    for path in folder.rglob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main(job):
    """Do a step in the control group of the job."""
    step, folder, settings, group = json.loads(job)
    Path(group).write_text(str(os.getpid()))
    folder = Path(folder)
    forget(folder)
    with Watch() as watch:
        if step == "make":
            found = make(folder, settings)
        elif step == "bin":
            found = bin_(folder, settings)
        else:
            found = fit(folder, settings, in_memory=step == "fit in memory")
    print(json.dumps(watch.record() | (found or {})))


if __name__ == "__main__":
    main(sys.argv[1])
