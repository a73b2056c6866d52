"""Predict: many rows at once, and one row at a time as a service would."""

import itertools
import statistics
import time
from functools import partial

from . import measure, peers
from .fits import describe, load_float32
from .turns import take_turns

MANY_TURNS = 5  # times as many as fits: a prediction takes a tenth of a second
ROW_CALLS = 1_000  # a turn of one-row calls makes so many ...
ROW_SECONDS = 0.5  # ... or, of a slow library, those of so long


def measure_predictions(workload, options):
    """Yield records of two kinds: `predict` (all test rows) and `predict_row` (one row)."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"workload": workload.name, "settings": settings._asdict(), **describe(dataset)}
    options = options._replace(repeats=MANY_TURNS * options.repeats)
    for n_threads in workload.threads:
        models = {
            library: measure.fit(library, dataset, settings, n_threads)
            for library in options.libraries
        }
        for kind, time_calls in (("predict", time_all_rows), ("predict_row", time_rows)):
            turn_of = partial(_predict, models, dataset, n_threads, time_calls)
            for turn in take_turns(options, turn_of):
                yield {"kind": kind, **facts, "threads": n_threads, **turn}


def _predict(models, dataset, n_threads, time_calls, library, repeat):
    def call(rows):
        return peers.predict(library, models[library], rows, dataset.task, n_threads)

    with measure.quiet(library, n_threads):
        return time_calls(call, dataset.X_test)


def time_all_rows(call, X):
    """Time one call with all rows."""
    start = time.perf_counter()
    call(X)
    return {"predict_seconds": time.perf_counter() - start}


def time_rows(call, X):
    """Time many calls with one row each, shape (1, n_features); the median of them counts."""
    seconds = []
    end = time.perf_counter() + ROW_SECONDS
    for row in itertools.islice(itertools.cycle(range(len(X))), ROW_CALLS):
        start = time.perf_counter()
        call(X[row : row + 1])
        stop = time.perf_counter()
        seconds.append(stop - start)
        if stop > end:
            break
    return {"row_seconds": statistics.median(seconds), "n_calls": len(seconds)}
