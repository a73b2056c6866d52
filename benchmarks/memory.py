"""Peak memory of one fit above what the process held before it, in a process of its own (Linux)."""

import json
import re
import subprocess
import sys
from pathlib import Path

from .environment import REPOSITORY


def measure_memory(library, workload, settings, n_threads):
    """Return the peak MiB that `library` needs to fit `workload`, beyond the data itself."""
    command = (sys.executable, "-m", "benchmarks.memory", library, workload, str(n_threads))
    done = subprocess.run(
        (*command, json.dumps(settings._asdict())),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _measure_here(library, workload, n_threads, settings):
    from . import datasets, measure, peers

    settings = peers.Settings(**settings)
    dataset = datasets.load(workload)
    # Libraries and thread pools are not what the fit needs: a few rows load them first.
    measure.warm_up(library, dataset._replace(**_head(dataset)), settings, n_threads)
    model = peers.make_estimator(library, settings, dataset.task, n_threads)
    with peers.thread_limit(library, n_threads):
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        before = _mebibytes("VmRSS")
        model.fit(dataset.X_train, dataset.y_train)
        return _mebibytes("VmHWM") - before


def _head(dataset, n_rows=2_000):
    return {
        "X_train": dataset.X_train[:n_rows],
        "y_train": dataset.y_train[:n_rows],
        "X_test": dataset.X_test[:n_rows],
        "y_test": dataset.y_test[:n_rows],
    }


def _mebibytes(field):
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) / 1024


if __name__ == "__main__":
    library, workload, n_threads, settings = sys.argv[1:]
    print(json.dumps(_measure_here(library, workload, int(n_threads), json.loads(settings))))
