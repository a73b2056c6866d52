"""A user's grid search: 12 candidates, 5 folds, two workers with one thread each.

The workers are processes, and for a variant called "threading" threads: one changed line of the
user's.
"""

import itertools
import time
from functools import partial

from joblib import parallel_config

from . import measure, peers
from .aims import BINNED, OURS, PEERS, THREADING
from .fits import describe, load_float32
from .turns import take_turns

MAX_DEPTH = (4, 6)
LEARNING_RATE = (0.05, 0.1, 0.2)
MIN_CHILD_WEIGHT = (1.0, 10.0)
N_FOLDS = 5


def measure_searches(workload, options):
    """Yield a record for each grid search: in processes, in threads, on bins made once for all."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "grid", "workload": workload.name, "settings": settings._asdict()}
    options = options._replace(libraries=variants(options.libraries))
    few_trees = settings._replace(n_estimators=2)
    for n_workers in workload.threads:
        for variant in options.libraries:  # the workers import, compile, load
            time_search(dataset, few_trees, n_workers, variant)
        for turn in take_turns(options, partial(time_search, dataset, settings, n_workers)):
            yield {**facts, **describe(dataset), "threads": n_workers, **turn}


def variants(libraries):
    """Return the libraries, and behind them those of which there is more than one variant.

    In threads are sklboost and the peers whose estimators have a parameter for their own threads:
    the OpenMP pool of the others would have to be limited from within each thread.
    """
    can_be_told = [name for name in libraries if peers.LIBRARIES[name].threads is not None]
    threading = [name + THREADING for name in can_be_told if name in (OURS, *PEERS)]
    return [*libraries, *threading, *([BINNED] if OURS in libraries else [])]


def time_search(dataset, settings, n_workers, variant, repeat=0):
    """Run the grid search, refit included; return its seconds and the best mean log loss."""
    from sklearn.model_selection import GridSearchCV

    library = variant.removesuffix(THREADING) if variant != BINNED else OURS
    search = GridSearchCV(
        peers.make_estimator(library, settings, dataset.task, n_threads=1, seed=repeat),
        candidates(library, settings, dataset.task),
        scoring="neg_log_loss",
        cv=N_FOLDS,
        n_jobs=n_workers,
        error_score="raise",
    )
    with measure.quiet(library, 1), _workers(variant):
        start = time.perf_counter()
        search.fit(_features(variant, dataset.X_train, settings), dataset.y_train)
        seconds = time.perf_counter() - start
    return {"search_seconds": seconds, "search_loss": -search.best_score_}


def _workers(variant):
    if variant.endswith(THREADING):
        return parallel_config("threading")
    # HistGradientBoosting has no parameter for threads: its workers are limited from here
    return parallel_config("loky", inner_max_num_threads=1)


def _features(variant, X, settings):
    if variant != BINNED:
        return X
    import sklboost

    return sklboost.bin_features(X, max_bin=settings.max_bin)


def candidates(library, settings, task):
    """Return the grid in the library's own parameters: a list of grids of one candidate each."""
    points = itertools.product(MAX_DEPTH, LEARNING_RATE, MIN_CHILD_WEIGHT)
    spell = peers.LIBRARIES[library].parameters
    grids = []
    for max_depth, learning_rate, min_child_weight in points:
        candidate = settings._replace(
            max_depth=max_depth, learning_rate=learning_rate, min_child_weight=min_child_weight
        )
        grids.append({name: [value] for name, value in spell(candidate, task).items()})
    return grids
