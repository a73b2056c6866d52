"""What it costs to score validation rows after every round: a fit with them and one without."""

import gc
import time
from functools import partial

from . import measure, peers
from .fits import describe, load_float32
from .turns import more_for_small, take_turns

# Validation rows for each training row: a fifth of all, if there are so many test rows.
SHARE = 0.25


def measure_validations(workload, options):
    """Yield a record for each pair of fits of one workload."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "validation", "workload": workload.name, "settings": settings._asdict()}
    facts |= describe(dataset) | {"n_validation": n_validation(dataset)}
    options = more_for_small(options, len(dataset.X_train))
    for n_threads in workload.threads:
        few_trees = settings._replace(n_estimators=2)
        for library in options.libraries:
            time_pair(dataset, few_trees, n_threads, library)
        for turn in take_turns(options, partial(time_pair, dataset, settings, n_threads)):
            yield {**facts, "threads": n_threads, **turn}


def n_validation(dataset):
    """Return how many of the test rows are scored."""
    return min(int(SHARE * len(dataset.X_train)), len(dataset.X_test))


def time_pair(dataset, settings, n_threads, library, repeat=0):
    """Fit without and with validation rows; return both times and what the latter adds."""
    n_rows = n_validation(dataset)
    watched = {"eval_set": [(dataset.X_test[:n_rows], dataset.y_test[:n_rows])]}
    if library == "xgboost":
        watched["verbose"] = False
    seconds = []
    for extra in ({}, watched):
        model = peers.make_estimator(library, settings, dataset.task, n_threads, repeat)
        gc.collect()
        with measure.quiet(library, n_threads):
            start = time.perf_counter()
            model.fit(dataset.X_train, dataset.y_train, **extra)
            seconds.append(time.perf_counter() - start)
    plain, both = seconds
    return {"plain_seconds": plain, "watched_seconds": both, "added_ratio": both / plain - 1.0}
