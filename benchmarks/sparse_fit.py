"""One fit of a sparse matrix in a process of its own: seconds, peak memory and held-out loss."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from . import measure, peers
from .datasets import Dataset
from .environment import REPOSITORY
from .memory import HEAD_ROWS, peak_mebibytes


def save(dataset, folder):
    """Write a data set to files of a folder, so that processes can load no more than it."""
    for part in ("train", "test"):
        sparse.save_npz(folder / f"X_{part}.npz", getattr(dataset, f"X_{part}"), compressed=False)
        np.save(folder / f"y_{part}.npy", getattr(dataset, f"y_{part}"))


def measure_fit(library, folder, task, settings, n_threads):
    """Start a process that fits the data set saved in `folder`.

    Returns
    -------
    dict
        ``fit_seconds`` and ``fit_cpu_seconds``, as `measure.Measurement`; ``peak_mib``, by which
        the resident set rose at most while fitting; ``test_loss``.
    """
    job = json.dumps([library, str(folder), task, settings._asdict(), n_threads])
    done = subprocess.run(
        (sys.executable, "-m", "benchmarks.sparse_fit", job),
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _measure_here(library, folder, task, settings, n_threads):
    (X, y), settings = load(folder, "train"), peers.Settings(**settings)
    # Libraries and thread pools are not what the fit needs: a few rows load them first.
    head = Dataset("head", task, X[:HEAD_ROWS], y[:HEAD_ROWS], X[:HEAD_ROWS], y[:HEAD_ROWS])
    measure.warm_up(library, head, settings, n_threads)
    model, seconds = peers.make_estimator(library, settings, task, n_threads), []

    def fit():
        start, cpu_start = time.perf_counter(), time.process_time()
        model.fit(X, y)
        seconds.extend([time.perf_counter() - start, time.process_time() - cpu_start])

    with measure.quiet(library, n_threads):
        peak = peak_mebibytes(fit)
        X_test, y_test = load(folder, "test")
        prediction = peers.predict(library, model, X_test, task, n_threads)
    loss = measure.test_loss(task, y_test, prediction)
    figures = {"fit_seconds": seconds[0], "fit_cpu_seconds": seconds[1]}
    return figures | {"peak_mib": peak, "test_loss": loss}


def load(folder, part):
    """Load X and y of a part, "train" or "test", of a data set that `save` has written."""
    X = sparse.load_npz(Path(folder) / f"X_{part}.npz")
    return X, np.load(Path(folder) / f"y_{part}.npy")


if __name__ == "__main__":
    print(json.dumps(_measure_here(*json.loads(sys.argv[1]))))
