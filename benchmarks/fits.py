"""Fit: seconds of a user's `fit(X, y)` and the held-out loss beside them, library by library."""

from functools import partial

import numpy as np

from . import datasets, measure
from .aims import OURS
from .turns import more_for_small, take_turns


def measure_fits(workload, options, kind="fit"):
    """Yield a record for each fit of one workload."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": kind, "workload": workload.name, "settings": settings._asdict()}
    facts |= describe(dataset)
    options = more_for_small(options, len(dataset.X_train))
    for n_threads in workload.threads:
        for library in options.libraries:
            measure.warm_up(library, dataset, settings, n_threads)
        for turn in take_turns(options, partial(_fit, dataset, settings, n_threads)):
            yield {**facts, "threads": n_threads, **turn}


def measure_growth(workload, options):
    """Yield a record for each fit of one workload by sklboost alone."""
    return measure_fits(workload, options._replace(libraries=[OURS]), kind="growth")


def _fit(dataset, settings, n_threads, library, repeat):
    return measure.fit_and_predict(library, dataset, settings, n_threads, repeat)._asdict()


def load_float32(name):
    """Load a data set; every library is given float32, whatever the file holds."""
    dataset = datasets.load(name)
    return dataset._replace(
        X_train=np.ascontiguousarray(dataset.X_train, dtype=np.float32),
        X_test=np.ascontiguousarray(dataset.X_test, dtype=np.float32),
    )


def describe(dataset):
    """Return the shape of a data set, for its records."""
    n_train, n_features = dataset.X_train.shape
    n_test = len(dataset.X_test)
    return {
        "task": dataset.task,
        "n_train": n_train,
        "n_test": n_test,
        "n_features": n_features,
    }
