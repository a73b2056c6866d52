"""Fits and predictions on 1, 2, 4, ... threads beside other libraries, and where members wait.

A record of the kind "fit" is one fit, and one prediction of at most a million rows, by a library
with so many threads; each library and number of threads has a process of its own, in turn. A record
of the kind "waits" is one fit whose functions note when members of the team come and go, see
`threads_child.py`; it has the trees of a plain fit, or there is an error.

Run `python -m benchmarks.threads`; it writes `threads.jsonl` and `.md`.
"""

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

from . import datasets, peers, runner
from .runner import OURS

PREDICTED_ROWS = 1_000_000
# Where members meet.
PHASES = ("gradients", "serial steps", "histograms", "rows", "split search", "other")
PHASES += ("beginning of a call",)
ENTERING, LEAVE = len(PHASES) - 1, len(PHASES)


def waits(notes, seconds):
    """Return how long members work between meetings and wait at them, by phase.

    Parameters
    ----------
    notes : list of ndarray of int64, shape (n_notes, 2)
        Of each member: what, and when in nanoseconds.
    seconds : float
        Of the fit.
    """
    is_arrival = [of_member[:, 0] <= ENTERING for of_member in notes]
    where = notes[0][is_arrival[0], 0]
    came = np.array([each[at, 1] for each, at in zip(notes, is_arrival, strict=True)])
    left = np.array([each[each[:, 0] == LEAVE, 1] for each in notes])
    begun = np.hstack([came[:, :1], left[:, :-1]])
    elapsed = (came.max(axis=0) - begun.min(axis=0)) / 1e9  # until the last one came
    busy, late = (came - begun).mean(axis=0) / 1e9, came.max(axis=0) - came.min(axis=0)
    waiting = (left - came).mean(axis=0) / 1e9
    found = {"fit_seconds": seconds, "phases": {}}
    for what in np.unique(where):
        at = where == what
        found["phases"][PHASES[what]] = {
            "meetings": int(at.sum()),
            "seconds": elapsed[at].sum(),
            "busy_seconds": busy[at].sum(),
            "late_microseconds": [float(v) / 1e3 for v in np.percentile(late[at], (50, 99))],
            "release_microseconds": float(np.median((left.max(0) - came.max(0))[at])) / 1e3,
        }
    found["wait_ratio"] = waiting.sum() / seconds
    return found


# --- measuring ------------------------------------------------------------------------------------


def main(arguments=None):
    """Measure each library with each number of threads, then write the tables."""
    parser = runner.parser("benchmarks.threads", __doc__)
    add = parser.add_argument
    add("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    add("--trees", type=int, default=100)
    add("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    add("--libraries", nargs="+", default=[OURS, "xgboost", "lightgbm"])
    add("--repeats", type=int, default=7, help="of small fits; of large ones fewer")
    add("--kinds", nargs="+", default=["fit", "waits"])
    options = parser.parse_args(arguments)
    shown = ("kind", "workload", "threads", "library", "fit_seconds", "predict_seconds")
    runner.write_results("threads", _records(options), shown, write_table, options)


def _records(options):
    settings = peers.Settings(n_estimators=options.trees)
    names = [f"binary-{n_rows}x28" for n_rows in options.rows]
    if "fit" in options.kinds:
        for n_threads in options.threads:
            for library in options.libraries:
                child = (library, n_threads, settings._asdict(), names, options.repeats)
                threads = {**os.environ, "OMP_NUM_THREADS": str(n_threads)}
                yield from runner.in_child("benchmarks.threads", *child, environment=threads)
    if "waits" in options.kinds:
        for name in names:
            yield from measure_waits(name, settings, options.threads, options.repeats)


def measure_here(library, n_threads, settings, names, n_repeats):
    """Return the records of a library with so many threads: the job of a process of its own."""
    records, settings = [], peers.Settings(**settings)
    peers.warm_up(library, datasets.load(names[0]).as_float32(), settings, n_threads)
    for name in names:
        dataset = datasets.load(name).as_float32()
        X, of_few = dataset.X_train, dataset.X_train[:PREDICTED_ROWS]
        few = max(1, n_repeats // (1 if len(X) <= 10_000 else 2 if len(X) <= 100_000 else 7))
        for repeat in range(few):
            start = time.perf_counter()
            model = peers.fit(library, dataset, settings, n_threads)
            fitted = time.perf_counter()
            predicted = peers.predict(library, model, of_few, dataset.task, n_threads)
            record = {
                "kind": "fit",
                "workload": name,
                "settings": settings._asdict(),
                **dataset.facts,
                "library": library,
                "threads": n_threads,
                "repeat": repeat,
                "fit_seconds": fitted - start,
                "predict_seconds": time.perf_counter() - fitted,
                "digest": hashlib.sha256(np.ascontiguousarray(predicted)).hexdigest()[:12],
            }
            records.append(record)
    return records


def measure_waits(name, settings, sizes, n_repeats):
    """Yield a record for each fit of each size of team whose meetings were noted.

    Parameters
    ----------
    name : str
        Of a data set.
    settings : Settings
    sizes : list of int
        Numbers of members.
    n_repeats : int
        Fits of each team.
    """
    dataset = datasets.load(name).as_float32()
    facts = {"workload": name, "settings": settings._asdict(), **dataset.facts, "library": OURS}
    model = peers.fit(OURS, dataset, settings, 1)
    digest = hashlib.sha256(model.model_.nodes.tobytes()).hexdigest()
    for n_members in sizes:
        for record in fit_in_child(name, settings, n_members, n_repeats):
            if record.pop("digest") != digest:
                raise RuntimeError(f"{n_members} members noted what they did, in other trees")
            yield {"kind": "waits", **facts, "threads": n_members, **record}


def fit_in_child(name, settings, n_members, n_repeats):
    """Return what a process that fits so many times tells: a dict a line."""
    how = [json.dumps(settings._asdict()), n_members, n_repeats]
    child = [sys.executable, "-m", "benchmarks.threads_child", name, *map(str, how)]
    environment = {**os.environ, "SKLBOOST_BACKEND": "compiler"}
    done = subprocess.run(child, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- tables ---------------------------------------------------------------------------------------


def write_table(records):
    """Return the lines of the page `threads.md`."""
    kinds = {kind: own for (kind,), own in runner.grouped(records, "kind").items()}
    last = records[-1]
    lines = [
        "# Speed by threads\n",
        f"{last['settings']['n_estimators']} trees of depth 6 on 28 float32 features; medians, on "
        f"{last['machine']['processors']} processors ({last['machine']['cpu']}). What it means is "
        "told in [threads](../../docs/explanation/threads.md).\n",
    ]
    for figure, of_what in (("fit_seconds", "Fits"), ("predict_seconds", "Predictions")):
        if "fit" in kinds:
            lines += [f"## {of_what}\n", "Seconds.\n", *_table_of(kinds["fit"], figure), ""]
    if "waits" in kinds:
        lines += [
            "## Where members wait\n",
            "Of the median fit of each team, with noting functions: milliseconds between meetings, "
            "until the last member came, and how long a member works in them on average; how much "
            "later than the first the last one came (microseconds).\n",
            *_table_of_waits(kinds["waits"]),
            "",
        ]
    return [*lines, runner.origin(records, "threads")]


def _table_of(records, figure):
    """Return the table of medians of a figure; nothing where a library was not measured."""
    sizes = sorted({record["threads"] for record in records})
    rows = [["data", "library", *map(str, sizes), f"{sizes[-1]} against {sizes[0]}"]]
    for (name,), own in runner.grouped(records, "workload").items():
        by_library = {}
        for (library,), of_library in runner.grouped(own, "library").items():
            by_size = runner.grouped(of_library, "threads").items()
            found = {n: statistics.median(r[figure] for r in some) for (n,), some in by_size}
            by_library[library] = medians = np.array([found.get(n, np.nan) for n in sizes])
            cells = runner.cells(*medians, form=".3g")
            rows.append(
                [name, library, *cells, *runner.cells(medians[0] / medians[-1], form=".1f")]
            )
        if OURS in by_library and len(by_library) > 1:
            ours = by_library.pop(OURS)
            ratios = np.min(list(by_library.values()), axis=0) / ours  # NaN if one is not known
            ratio = "fastest peer / sklboost"
            rows.append([name, ratio, *runner.cells(*ratios, form=".2f"), ""])
    return runner.markdown(rows, n_text=2)


def _table_of_waits(records):
    rows = [["data", "members", "fit", "a member waits", "members meet for", "meetings"]]
    rows[0] += ["until the last", "busy", "late: median", "of 99 %"]
    for (name, n_members), fits in runner.grouped(records, "workload", "threads").items():
        median = sorted(fits, key=lambda record: record["fit_seconds"])[(len(fits) - 1) // 2]
        waited = f"{100 * median['wait_ratio']:.0f} %"
        fit = [name, str(n_members), f"{1e3 * median['fit_seconds']:.3g}", waited]
        for phase, each in median["phases"].items():
            spent = [f"{1e3 * each[key]:.1f}" for key in ("seconds", "busy_seconds")]
            late = [f"{microseconds:,.0f}" for microseconds in each["late_microseconds"]]
            rows.append([*fit, phase, f"{each['meetings']:,}", *spent, *late])
            fit = [""] * 4
    return runner.markdown(rows)


if __name__ == "__main__":
    runner.start(main, measure_here)
