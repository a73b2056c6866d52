"""Start-up: seconds from `import` to a first small model, in a fresh interpreter.

Three separate figures for a library compiled at run time: cold (numba's cache is empty), cached
(the next process), and the warm fit that `benchmarks.run` measures. Peers have no cold start.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

from .environment import REPOSITORY

WORKLOAD = "binary-1000x28"


def measure_starts(library, n_threads):
    """Return a list of {"start": "cold" | "cached", ..._seconds}, one for each new process."""
    if library != "sklboost":
        return [{"start": "cached", **_child(library, n_threads, os.environ)}]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        return [
            {"start": start, **_child(library, n_threads, environment)}
            for start in ("cold", "cached")
        ]


def _child(library, n_threads, environment):
    command = (sys.executable, "-m", "benchmarks.start", library, str(n_threads))
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _measure_here(library, n_threads):
    from . import datasets, measure, peers

    dataset = datasets.load(WORKLOAD)
    settings = peers.Settings()
    start = time.perf_counter()
    peers.make_estimator(library, settings, dataset.task, n_threads)  # imports the library
    imported = time.perf_counter()
    first = measure.fit_and_predict(library, dataset, settings, n_threads)
    second = measure.fit_and_predict(library, dataset, settings, n_threads)
    return {
        "workload": WORKLOAD,
        "import_seconds": imported - start,
        "first_fit_seconds": first.fit_seconds,
        "second_fit_seconds": second.fit_seconds,
    }


if __name__ == "__main__":
    print(json.dumps(_measure_here(sys.argv[1], int(sys.argv[2]))))
