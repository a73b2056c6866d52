"""Seconds of fits, predictions, grid searches and first fits, beside other libraries.

`python -m benchmarks.speed` is a short set, some three minutes; `python -m benchmarks.speed all`
everything, some two hours on two cores. Sets can be named one by one: `python -m benchmarks.speed
fit grid`; and workloads: `python -m benchmarks.speed fit --workloads binary-50000x10`. It writes
`speed.jsonl` and `.md`; the page has each figure beside its aim.

A fit is a user's `fit(X, y)` on a C-contiguous float32 array: validation, binning, XGBoost's
DMatrix. Before the timing each library fits two trees on the same data, so that imports,
compilation and starting threads are not in it; they are measured apart, in new processes.
"""

import itertools
import os
import statistics
import tempfile
import time
from functools import partial
from typing import NamedTuple

import numpy as np

from . import datasets, peers, runner
from .peers import Settings
from .runner import OURS

BINNED = "sklboost bin_features"  # sklboost on a matrix that was binned beforehand
THREADING = " threading"  # behind a library's name: its grid search runs in threads
ACCURATE = ("xgboost", "lightgbm", "hist_gb")  # whose best held-out loss is the measure of ours
PEERS = (*ACCURATE, "catboost")
QUANTIZED = "lightgbm_quantized"  # less precise gradients: apart from the peers
SYMMETRIC = "catboost_symmetric"  # another model, but the fastest to predict with

# --- what is measured -----------------------------------------------------------------------------


class Workload(NamedTuple):
    """One data set at one setting, measured with each of some numbers of threads."""

    name: str
    dataset: str  # a name of datasets.py
    threads: tuple[int, ...] = (2,)
    settings: Settings = Settings()


BOTH = (2, 1)
FIT = (
    Workload("binary-1000x28", "binary-1000x28", BOTH),
    Workload("binary-10000x28", "binary-10000x28", BOTH),
    Workload("binary-100000x28", "binary-100000x28", BOTH),
    Workload("binary-1000000x28", "binary-1000000x28", BOTH),
    Workload("regression-100000x28", "regression-100000x28"),
    Workload("softmax-100000x28", "softmax-100000x28"),
    Workload(
        "leaves255-1000000x28",
        "binary-1000000x28",
        settings=Settings(grow_policy="lossguide", max_depth=0, max_leaves=255),
    ),
    Workload("wide-20000x1000", "binary-20000x1000"),
    Workload("depth10-200000x28", "binary-200000x28", settings=Settings(max_depth=10)),
)
REAL = tuple(Workload(name, name) for name in ("covertype", "protein_casp", "adult"))
# 100,000 rows for training, and as many to predict.
PREDICT = (
    Workload("binary-100000x28", "binary-100000x28", BOTH),
    Workload("trees1000-100000x28", "binary-100000x28", BOTH, Settings(n_estimators=1000)),
)
GRID = (Workload("binary-20000x28", "binary-20000x28"),)
START = (Workload("binary-1000x28", "binary-1000x28"),)


# --- fits -----------------------------------------------------------------------------------------


def measure_fits(workload, options):
    """Yield a record for each fit of one workload."""
    dataset, settings = datasets.load(workload.dataset).as_float32(), workload.settings
    options = runner.more_for_small(options, len(dataset.X_train))
    for n_threads in workload.threads:
        for library in options.libraries:
            peers.warm_up(library, dataset, settings, n_threads)

        def fit(library, repeat, n_threads=n_threads):
            return peers.fit_and_predict(library, dataset, settings, n_threads, repeat)

        for turn in runner.take_turns(options, fit):
            yield {"kind": "fit", **dataset.facts, "threads": n_threads, **turn}


# --- predictions ----------------------------------------------------------------------------------

MANY_TURNS = 5  # times as many as fits: a prediction takes a tenth of a second
ROW_CALLS = 1_000  # a turn of one-row calls makes so many ...
ROW_SECONDS = 0.5  # ... or, of a slow library, as many as take so long


def measure_predictions(workload, options):
    """Yield records of two kinds: `predict` (all test rows) and `predict_row` (one row)."""
    dataset, settings = datasets.load(workload.dataset).as_float32(), workload.settings
    options = options._replace(repeats=MANY_TURNS * options.repeats)
    for n_threads in workload.threads:
        models = {
            library: peers.fit(library, dataset, settings, n_threads)
            for library in options.libraries
        }
        for kind, time_calls in (("predict", _time_all_rows), ("predict_row", _time_rows)):
            turn_of = partial(_predict, models, dataset, n_threads, time_calls)
            for turn in runner.take_turns(options, turn_of):
                yield {"kind": kind, **dataset.facts, "threads": n_threads, **turn}


def _predict(models, dataset, n_threads, time_calls, library, repeat):
    def call(rows):
        return peers.predict(library, models[library], rows, dataset.task, n_threads)

    with peers.quiet(library, n_threads):
        return time_calls(call, dataset.X_test)


def _time_all_rows(call, X):
    start = time.perf_counter()
    call(X)
    return {"predict_seconds": time.perf_counter() - start}


def _time_rows(call, X):
    """Time many calls with one row each, as a service would; the median of them counts."""
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


# --- grid searches: 12 candidates, 5 folds, two workers with one thread each ----------------------

MAX_DEPTH = (4, 6)
LEARNING_RATE = (0.05, 0.1, 0.2)
MIN_CHILD_WEIGHT = (1.0, 10.0)
N_FOLDS = 5


def measure_searches(workload, options):
    """Yield a record for each grid search: in processes, in threads, on bins made once for all."""
    dataset, settings = datasets.load(workload.dataset).as_float32(), workload.settings
    options = options._replace(libraries=search_variants(options.libraries))
    few_trees = settings._replace(n_estimators=2)
    for n_workers in workload.threads:
        for variant in options.libraries:  # the workers import, compile, load
            time_search(dataset, few_trees, n_workers, variant)
        turn_of = partial(time_search, dataset, settings, n_workers)
        for turn in runner.take_turns(options, turn_of):
            yield {"kind": "grid", **dataset.facts, "threads": n_workers, **turn}


def search_variants(libraries):
    """Return the libraries, and behind them other ways in which some of them can search.

    In threads (one changed line of the user's) are sklboost and the peers whose estimators have a
    parameter for their own threads: the OpenMP pool of the others would have to be limited from
    within each thread.
    """
    can_be_told = [name for name in libraries if peers.LIBRARIES[name].threads is not None]
    threading = [name + THREADING for name in can_be_told if name in (OURS, *PEERS)]
    return [*libraries, *threading, *([BINNED] if OURS in libraries else [])]


def time_search(dataset, settings, n_workers, variant, repeat=0):
    """Run the grid search, refit included; return its seconds and the best mean log loss."""
    from joblib import parallel_config
    from sklearn.model_selection import GridSearchCV

    library = variant.removesuffix(THREADING) if variant != BINNED else OURS
    grids = []  # in the library's own parameters: each of one candidate
    for depth, rate, weight in itertools.product(MAX_DEPTH, LEARNING_RATE, MIN_CHILD_WEIGHT):
        candidate = settings._replace(max_depth=depth, learning_rate=rate, min_child_weight=weight)
        own = peers.LIBRARIES[library].parameters(candidate, dataset.task)
        grids.append({name: [value] for name, value in own.items()})
    search = GridSearchCV(
        peers.make_estimator(library, settings, dataset.task, n_threads=1, seed=repeat),
        grids,
        scoring="neg_log_loss",
        cv=N_FOLDS,
        n_jobs=n_workers,
        error_score="raise",
    )
    workers = parallel_config("threading")
    if not variant.endswith(THREADING):
        # HistGradientBoosting has no parameter for threads: its workers are limited from here
        workers = parallel_config("loky", inner_max_num_threads=1)
    with peers.quiet(library, 1), workers:
        start = time.perf_counter()
        X = dataset.X_train
        if variant == BINNED:
            import sklboost

            X = sklboost.bin_features(X, max_bin=settings.max_bin)
        search.fit(X, dataset.y_train)
        seconds = time.perf_counter() - start
    return {"search_seconds": seconds, "search_loss": -search.best_score_}


# --- first fits in new processes ------------------------------------------------------------------

START_REPEATS = 3  # a cold start takes as long as compilation does


def measure_starts(workload, options):
    """Yield a record for each new process, the seconds of the import apart.

    For sklboost there are two: cold (the folder of compiled code is empty) and cached (a later
    process). Peers have no cold start.
    """
    options = options._replace(repeats=min(START_REPEATS, options.repeats))
    for n_threads in workload.threads:
        for turn in runner.take_turns(options, partial(_starts, workload, n_threads)):
            for start, seconds in turn.pop("starts").items():
                yield {"kind": "start", "threads": n_threads, **turn, "start": start, **seconds}


def _starts(workload, n_threads, library, repeat):
    job = ("benchmarks.speed", library, workload.dataset, workload.settings._asdict(), n_threads)
    if library != OURS:
        return {"starts": {"cached": runner.in_child(*job)}}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        starts = {
            start: runner.in_child(*job, environment=environment) for start in ("cold", "cached")
        }
    return {"starts": starts}


def _start_here(library, dataset, settings, n_threads):
    dataset, settings = datasets.load(dataset).as_float32(), Settings(**settings)
    start = time.perf_counter()
    peers.make_estimator(library, settings, dataset.task, n_threads)  # imports the library
    imported = time.perf_counter()
    first = peers.fit_and_predict(library, dataset, settings, n_threads)
    second = peers.fit_and_predict(library, dataset, settings, n_threads)
    return {
        "import_seconds": imported - start,
        "first_fit_seconds": first["fit_seconds"],
        "first_predict_seconds": first["predict_seconds"],
        "second_fit_seconds": second["fit_seconds"],
    }


# --- the command line -----------------------------------------------------------------------------

LIBRARIES = (OURS, *PEERS, QUANTIZED)
TO_PREDICT = (OURS, *PEERS, SYMMETRIC)  # lightgbm_quantized predicts as lightgbm does
SETS = {  # what measures, the workloads, the libraries
    "fit": (measure_fits, FIT, LIBRARIES),
    "real": (measure_fits, REAL, LIBRARIES),
    "predict": (measure_predictions, PREDICT, TO_PREDICT),
    "grid": (measure_searches, GRID, LIBRARIES),
    "start": (measure_starts, START, LIBRARIES),
}
QUICK = [
    (measure_fits, [FIT[i]._replace(threads=(2,)) for i in (0, 2, 4)], (OURS, *ACCURATE)),
    (measure_predictions, [PREDICT[0]._replace(threads=(2,))], (OURS, *ACCURATE)),
]


def main(arguments=None):
    """Run the sets that the command line asks for, then write the tables."""
    parser = runner.parser("benchmarks.speed", __doc__)
    add = parser.add_argument
    names = ["quick", "all", *SETS]
    add("sets", nargs="*", default=["quick"], help=f"of {', '.join(names)}", metavar="set")
    add("--workloads", nargs="+", help="names of the sets' workloads, or of any data set")
    add("--libraries", nargs="+", help=f"of {', '.join(peers.LIBRARIES)}, or: all")
    add("--threads", type=int, nargs="+", help="instead of each workload's")
    add("--trees", type=int, help="instead of 100, to try something out")
    add("--repeats", type=int, help="turns of each library (default 5; quick: 3)")
    add("--budget", type=float, default=60.0, help="seconds for all turns of one library")
    options = parser.parse_args(arguments)
    for name in options.sets:
        if name not in names:
            parser.error(f"{name}: no such set; known: {', '.join(names)}")
        if name in ("quick", "all") and len(options.sets) > 1:
            parser.error(f"{name}: stands alone, without other sets")
    options.repeats = options.repeats or (3 if options.sets == ["quick"] else 5)
    shown = ("kind", "workload", "threads", "library", "fit_seconds", "predict_seconds")
    runner.write_results("speed", _records(options), shown, write_table, options)


def _records(options):
    chosen = SETS if options.sets == ["all"] else options.sets
    for measure, workloads, libraries in (
        QUICK if options.sets == ["quick"] else [SETS[name] for name in chosen]
    ):
        libraries = peers.choose(options.libraries or libraries)
        turns = runner.Options(libraries, options.repeats, options.budget)
        if options.workloads:
            known = {workload.name: workload for workload in workloads}
            workloads = [known.get(name, Workload(name, name)) for name in options.workloads]
        for workload in workloads:
            settings = workload.settings
            if options.trees:
                settings = settings._replace(n_estimators=options.trees)
            threads = tuple(options.threads or workload.threads)
            workload = workload._replace(settings=settings, threads=threads)
            facts = {"workload": workload.name, "settings": settings._asdict()}
            try:
                for record in measure(workload, turns):
                    yield facts | record
            except datasets.NoDataError as error:
                print(f"{workload.name}: left out: {error}")


# --- aims: a ratio is the median of the fastest of some libraries over ours -----------------------


class Ratio(NamedTuple):
    """A column of a table: the fastest of `against` over `ours`, and its least value."""

    title: str
    against: tuple[str, ...]
    at_least: float
    ours: str = OURS


SEARCHERS = (*PEERS, *(name + THREADING for name in PEERS))  # each in processes and in threads
RATIOS = {
    "fit": (Ratio("fastest / ours", PEERS, 3.0), Ratio("quantised / ours", (QUANTIZED,), 2.5)),
    "predict": (
        Ratio("fastest / ours", (*PEERS, SYMMETRIC), 1.0),
        Ratio("XGBoost / ours", ("xgboost",), 2.0),
    ),
    "predict_row": (Ratio("fastest without CatBoost / ours", ACCURATE, 1.0),),
    "grid": (
        Ratio("fastest / ours", SEARCHERS, 3.0),
        Ratio("fastest / ours, threading", SEARCHERS, 5.0, OURS + THREADING),
        Ratio("fastest / ours, bin_features", SEARCHERS, 5.0, BINNED),
    ),
}
MAX_LOSS_RATIO = 1.003  # ours / the best of ACCURATE
MAX_FIRST_FIT_SECONDS = {"cold": 10.0, "cached": 0.3}


def judge_ratio(medians, ratio):
    """Return a table's cell: a ratio beside its aim, bold where it falls short of it."""
    theirs = [medians[name] for name in ratio.against if name in medians]
    if ratio.ours not in medians or not theirs:
        return ""
    value = min(theirs) / medians[ratio.ours]
    if value < ratio.at_least:
        return f"**{value:.2f} < {ratio.at_least}**"
    return f"{value:.2f} ≥ {ratio.at_least}"


def judge_limit(value, at_most, form=".3g"):
    """Return a table's cell: the value beside its limit, bold where it exceeds it."""
    if value > at_most:
        return f"**{value:{form}} > {at_most:g}**"
    return f"{value:{form}} ≤ {at_most:g}"


# --- tables ---------------------------------------------------------------------------------------

TITLES = {  # the kinds, what is compared, its factor and heading
    "fit": ("fit_seconds", 1, "Fit, seconds"),
    "predict": ("predict_seconds", 1, "Predict, 100,000 rows, seconds"),
    "predict_row": ("row_seconds", 1e6, "Predict, one row, microseconds"),
    "grid": ("search_seconds", 1, "Grid search, 12 candidates x 5 folds, seconds"),
}
NOTES = {
    "grid": [
        "In so many processes of joblib or, where it says `threading`, threads of one process "
        '(`parallel_config("threading")`). Ratios are over the fastest peer in either.\n'
    ]
}


def write_table(records):
    """Return the lines of the page `speed.md`."""
    kinds = {kind: own for (kind,), own in runner.grouped(records, "kind").items()}
    machine = records[-1]["machine"]
    defaults = ", ".join(f"{name} {value}" for name, value in Settings()._asdict().items())
    lines = [
        "# Speed\n",
        f"{machine['cpu']}, {machine['cores']} of {machine['processors']} cores, "
        f"{machine['system']}, Python {machine['python']}. Where a table says nothing else: "
        f"{defaults}.\n",
        "Medians; in brackets half the interquartile range, in per cent of the median. "
        "`fastest / ours` is the median of the fastest peer over that of sklboost, beside what it "
        "should be; bold where it falls short. LightGBM with quantised gradients, which are less "
        "precise, counts apart.\n",
    ]
    for kind, (key, factor, title) in TITLES.items():
        if kind in kinds:
            table = _compare(kinds[kind], key, factor, RATIOS[kind])
            lines += [
                f"## {title}\n",
                *NOTES.get(kind, ()),
                *table,
                "",
                *circumstances(kinds[kind]),
            ]
    if "fit" in kinds:
        lines += [
            "## Test loss\n",
            "Root mean squared error for regression, mean log loss otherwise. `ours / best`: of "
            f"{', '.join(ACCURATE)}. For several classes the same learning rate is not the same "
            "step, see `benchmarks/README.md`.\n",
            *_losses(kinds["fit"]),
            "",
        ]
    if "start" in kinds:
        lines += [
            f"## Start-up in a new process, {kinds['start'][0]['workload']}, seconds\n",
            "`cold`: nothing compiled on this machine yet; `cached`: in an earlier process.\n",
            *_starting(kinds["start"]),
            "",
            *circumstances(kinds["start"]),
        ]
    return [*lines, runner.origin(records, "speed")]


def spread(values):
    """Return "median (spread %)"; the bare value of a single one."""
    lower, median, upper = np.percentile(values, (25, 50, 75))
    if len(values) == 1:
        return f"{median:.3g}"
    return f"{median:.3g} ({50 * (upper - lower) / median:.0f} %)"


def workloads_of(records):
    """Yield the first two cells of a row, workload and threads, and the records it is made of."""
    defaults = Settings()._asdict()
    for (name, n_threads), own in runner.grouped(records, "workload", "threads").items():
        settings = own[0]["settings"].items()
        changed = [f"{key} {value}" for key, value in settings if value != defaults[key]]
        yield [name + (f" ({', '.join(changed)})" if changed else ""), str(n_threads)], own


def _libraries(records):
    names = dict.fromkeys(record["library"] for record in records)
    return sorted(names, key=lambda name: not name.startswith(OURS))  # ours first


def _figures(records, key, factor=1):
    """Return {library: list of figures}."""
    return {
        library: [factor * record[key] for record in own]
        for (library,), own in runner.grouped(records, "library").items()
    }


def _compare(records, key, factor, ratios):
    libraries = _libraries(records)
    rows = [["workload", "threads", *libraries, *(ratio.title for ratio in ratios)]]
    for where, own in workloads_of(records):
        figures = _figures(own, key, factor)
        medians = {name: np.median(each) for name, each in figures.items()}
        each = [spread(figures[name]) if name in figures else "" for name in libraries]
        rows.append([*where, *each, *(judge_ratio(medians, ratio) for ratio in ratios)])
    return runner.markdown(rows)


def _losses(records):
    libraries = _libraries(records)
    rows = [["workload", "threads", *libraries, "ours / best"]]
    for where, own in workloads_of(records):
        medians = {name: np.median(each) for name, each in _figures(own, "test_loss").items()}
        best = min((medians[name] for name in ACCURATE if name in medians), default=None)
        ratio = ""
        if OURS in medians and best is not None:
            ratio = judge_limit(medians[OURS] / best, MAX_LOSS_RATIO, form=".4f")
        each = [f"{medians[name]:.5g}" if name in medians else "" for name in libraries]
        rows.append([*where, *each, ratio])
    return runner.markdown(rows)


def _starting(records):
    rows = [["library", "start", "import", "first fit", "second fit", "limit of the first"]]
    for (library, start), own in runner.grouped(records, "library", "start").items():
        figures = {
            key: [record[key] for record in own if key in record]
            for key in ("import_seconds", "first_fit_seconds", "second_fit_seconds")
        }
        limit = ""
        if library == OURS:
            first = np.median(figures["first_fit_seconds"])
            limit = judge_limit(first, MAX_FIRST_FIT_SECONDS[start])
        shown = (spread(each) if each else "" for each in figures.values())
        rows.append([library, start, *shown, limit])
    return runner.markdown(rows, 2)


def circumstances(records):
    """Return a sentence on how busy the processors were, and how far from one another."""
    others = [record["others_cpu"] for record in records]
    meetings = [record["meeting_ns"] for record in records]
    if None in others or None in meetings:
        return []
    seconds = sum(record["elapsed_seconds"] for record in records)
    share = 100 * sum(others) / seconds / records[0]["machine"]["processors"]
    low, middle, high = np.percentile(meetings, (10, 50, 90))
    return [
        f"Meanwhile other processes used {max(share, 0):.0f} % of the processors. A meeting of two "
        f"threads took {middle:.0f} ns (median), {low:.0f} to {high:.0f} ns in eight of ten "
        "turns.\n"
    ]


if __name__ == "__main__":
    runner.start(main, _start_here)
