"""Peak memory of one fit above what the process held before it, in a process of its own (Linux).

The data comes from files, so that the process has not yet held anything larger than the data; what
loading, compiling and warming up left free is given back first. Otherwise a fit could use that, and
its peak would look lower than it is.
"""

import ctypes
import gc
import json
import math
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from .environment import REPOSITORY
from .fits import describe, load_float32
from .turns import take_turns

HEAD_ROWS = 2_000
IS_LINUX = sys.platform.startswith("linux")


def measure_memory(workload, options):
    """Yield a record for each new process: peak MiB of the resident set above the data itself."""
    if not IS_LINUX:
        print("peak memory is read from /proc, which only Linux has: left out")
        return
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "memory", "workload": workload.name, "settings": settings._asdict()}
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "X.npy", dataset.X_train)
        np.save(Path(folder) / "y.npy", dataset.y_train)
        for n_threads in workload.threads:
            child = partial(_child, folder, dataset.task, settings._asdict(), n_threads)
            for turn in take_turns(options, child):
                yield {**facts, **describe(dataset), "threads": n_threads, **turn}


def _child(folder, task, settings, n_threads, library, repeat):
    job = json.dumps([folder, task, settings, n_threads, library])
    done = subprocess.run(
        (sys.executable, "-m", "benchmarks.memory", job),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {"peak_mib": json.loads(done.stdout.splitlines()[-1])}


def _measure_here(folder, task, settings, n_threads, library):
    from . import measure, peers
    from .datasets import Dataset

    X, y = (np.load(Path(folder) / f"{name}.npy") for name in ("X", "y"))
    settings = peers.Settings(**settings)
    # Libraries and thread pools are not what the fit needs: a few rows load them first.
    head = Dataset("head", task, X[:HEAD_ROWS], y[:HEAD_ROWS], X[:HEAD_ROWS], y[:HEAD_ROWS])
    measure.warm_up(library, head, settings, n_threads)
    model = peers.make_estimator(library, settings, task, n_threads)
    with measure.quiet(library, n_threads):
        return peak_mebibytes(lambda: model.fit(X, y))


def peak_mebibytes(function):
    """Call `function`; return by how much the resident set rose at most meanwhile, in MiB.

    NaN where it cannot be known: on another system than Linux.
    """
    if not IS_LINUX:
        function()
        return math.nan
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc
        libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _mebibytes("VmRSS")
    function()
    return _mebibytes("VmHWM") - before


def _mebibytes(field):
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024


if __name__ == "__main__":
    print(json.dumps(_measure_here(*json.loads(sys.argv[1]))))
