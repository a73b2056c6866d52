"""Start-up: seconds of a first fit in a fresh interpreter, apart from those of the import.

For a library compiled at run time there are two: cold (the folder of compiled code is empty) and
cached (a later process). Peers have no cold start. A warm fit is what the set `fit` measures.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial

from .aims import OURS
from .environment import REPOSITORY
from .turns import take_turns

REPEATS = 3  # a cold start takes as long as compilation does


def measure_starts(workload, options):
    """Yield a record for each new process."""
    options = options._replace(repeats=min(REPEATS, options.repeats))
    facts = {"kind": "start", "workload": workload.name, "settings": workload.settings._asdict()}
    for n_threads in workload.threads:
        for turn in take_turns(options, partial(_starts, workload, n_threads)):
            for start, seconds in turn.pop("starts").items():
                yield {**facts, "threads": n_threads, **turn, "start": start, **seconds}


def _starts(workload, n_threads, library, repeat):
    if library != OURS:
        return {"starts": {"cached": _child(library, workload, n_threads, os.environ)}}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        starts = {
            start: _child(library, workload, n_threads, environment) for start in ("cold", "cached")
        }
    return {"starts": starts}


def _child(library, workload, n_threads, environment):
    task = json.dumps([library, workload.dataset, workload.settings._asdict(), n_threads])
    command = (sys.executable, "-m", "benchmarks.start", task)
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _measure_here(library, dataset, settings, n_threads):
    from . import measure, peers
    from .fits import load_float32

    dataset, settings = load_float32(dataset), peers.Settings(**settings)
    start = time.perf_counter()
    peers.make_estimator(library, settings, dataset.task, n_threads)  # imports the library
    imported = time.perf_counter()
    first = measure.fit_and_predict(library, dataset, settings, n_threads)
    second = measure.fit_and_predict(library, dataset, settings, n_threads)
    return {
        "import_seconds": imported - start,
        "first_fit_seconds": first.fit_seconds,
        "first_predict_seconds": first.predict_seconds,
        "second_fit_seconds": second.fit_seconds,
    }


if __name__ == "__main__":
    print(json.dumps(_measure_here(*json.loads(sys.argv[1]))))
