"""A whole fit against its floor: the histogram updates alone, at the speed measured beside it."""

import time
from functools import partial

import numpy as np

from sklboost.engine.parallel import ThreadTeam

from . import measure
from .aims import OURS, floor_seconds
from .fits import describe, load_float32
from .kernels import histogram_kernel, set_stage
from .turns import take_turns

UPDATE_RUNS = 5  # of the histogram kernel before each fit; their median counts


def measure_floor(workload, options):
    """Yield a record for each fit: its seconds, those of one update, the floor made of them."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "floor", "workload": workload.name, "settings": settings._asdict()}
    facts |= describe(dataset)
    with ThreadTeam(1) as team:
        all_rows = np.arange(len(dataset.X_train), dtype=np.uint32)
        kernel = histogram_kernel(set_stage(team, dataset, settings), "updates", [all_rows])
    kernel.run()  # compiles
    options = options._replace(libraries=[OURS])
    for n_threads in workload.threads:
        measure.warm_up(OURS, dataset, settings, n_threads)
        for turn in take_turns(options, partial(_turn, kernel, dataset, settings, n_threads)):
            yield {**facts, "threads": n_threads, **turn}


def _turn(kernel, dataset, settings, n_threads, library, repeat):
    seconds = []
    for _ in range(UPDATE_RUNS):
        start = time.perf_counter()
        kernel.run()
        seconds.append(time.perf_counter() - start)
    update_seconds = float(np.median(seconds)) / kernel.n_items
    fitted = measure.fit_and_predict(library, dataset, settings, n_threads, repeat)
    n_rows, n_features = dataset.X_train.shape
    floor = floor_seconds(
        n_rows,
        n_features,
        settings.max_depth,
        settings.n_estimators,
        update_seconds,
        n_threads,
    )
    return {
        "update_nanoseconds": 1e9 * update_seconds,
        "fit_seconds": fitted.fit_seconds,
        "floor_seconds": floor,
        "floor_ratio": fitted.fit_seconds / floor,
    }
