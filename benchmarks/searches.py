"""A user's grid search: 12 candidates, 5 folds, two processes with one thread each."""

import itertools
import time
from functools import partial

from joblib import parallel_config

from . import measure, peers
from .aims import BINNED, OURS
from .fits import describe, load_float32
from .turns import take_turns

MAX_DEPTH = (4, 6)
LEARNING_RATE = (0.05, 0.1, 0.2)
MIN_CHILD_WEIGHT = (1.0, 10.0)
N_FOLDS = 5


def measure_searches(workload, options):
    """Yield a record for each grid search; sklboost also with features binned once for all."""
    dataset, settings = load_float32(workload.dataset), workload.settings
    facts = {"kind": "grid", "workload": workload.name, "settings": settings._asdict()}
    options = options._replace(libraries=_with_binned(options.libraries))
    few_trees = settings._replace(n_estimators=2)
    for n_processes in workload.threads:
        for library in options.libraries:  # the workers import, compile, load
            time_search(dataset, few_trees, n_processes, library)
        for turn in take_turns(options, partial(time_search, dataset, settings, n_processes)):
            yield {**facts, **describe(dataset), "threads": n_processes, **turn}


def _with_binned(libraries):
    import sklboost

    if OURS not in libraries:
        return libraries
    if hasattr(sklboost, "bin_features"):
        return [*libraries, BINNED]
    print("sklboost.bin_features does not exist in this version: left out")
    return libraries


def time_search(dataset, settings, n_processes, variant, repeat=0):
    """Run the grid search, refit included; return its seconds and the best mean log loss."""
    from sklearn.model_selection import GridSearchCV

    library = OURS if variant == BINNED else variant
    search = GridSearchCV(
        peers.make_estimator(library, settings, dataset.task, n_threads=1, seed=repeat),
        candidates(library, settings, dataset.task),
        scoring="neg_log_loss",
        cv=N_FOLDS,
        n_jobs=n_processes,
        error_score="raise",
    )
    # HistGradientBoosting has no parameter for threads: its workers are limited from here
    with measure.quiet(library, 1), parallel_config("loky", inner_max_num_threads=1):
        start = time.perf_counter()
        search.fit(_features(variant, dataset.X_train, settings), dataset.y_train)
        seconds = time.perf_counter() - start
    return {"search_seconds": seconds, "search_loss": -search.best_score_}


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
