"""How a benchmark runs: turns, processes of their own, records of what was measured, tables.

A record is a line of JSON with the figures of one fit or prediction and all that they depend on:
the time, commit, machine and versions. A table is made from the records again whenever it is to
look different (``--table-only``).
"""

import argparse
import datetime
import functools
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results"  # what is kept
OUT = REPOSITORY / "build" / "benchmarks"
PACKAGES = ("sklboost", "xgboost", "xgboost-cpu", "lightgbm", "catboost", "scikit-learn", "mapie")
PACKAGES += ("crepes", "ngboost", "numba", "llvmlite", "numpy", "scikit-survival", "lifelines")
PACKAGES += ("optuna", "distributed")
OURS = "sklboost"

# --- turns ----------------------------------------------------------------------------------------

SMALL = 10_000  # rows; fits of so few take milliseconds and are repeated more often
SMALL_REPEATS = 5
LEAST_REPEATS = 3  # whatever they cost, of the libraries that decide a ratio
DECIDES = 1.5  # times the fastest peer: slower ones do not decide
# Threads of OpenMP stay awake for some milliseconds after a fit. They are given time to sleep,
# so that the next library has the processors to itself.
REST_SECONDS = 0.05


class Options(NamedTuple):
    """Who takes turns, how often, and how many seconds each of them may take in all."""

    libraries: list[str]
    repeats: int
    budget: float


def more_for_small(options, n_rows):
    """Return the options for a fit of so many rows: small ones are repeated more often."""
    factor = SMALL_REPEATS if n_rows <= SMALL else 1
    return options._replace(repeats=options.repeats * factor)


def take_turns(options, measure):
    """Measure every library so many times, each repeat beginning with another of them.

    So a slow minute of the machine falls on all. A library whose seconds are spent stops, except
    sklboost and the fastest peers, which decide the ratio: they have at least three turns.

    Parameters
    ----------
    options : Options
    measure : callable
        ``measure(library, repeat)`` returns a dict of figures.

    Yields
    ------
    dict
        The figures, the library, the number of the repeat, the seconds that the turn took, the
        processor seconds that other processes used meanwhile (None where that is not known) and
        the nanoseconds that a meeting of two threads took before it.
    """
    libraries = options.libraries
    spent = {library: [] for library in libraries}
    for repeat in range(options.repeats):
        first = repeat % len(libraries)
        for library in libraries[first:] + libraries[:first]:
            if not goes_on(library, spent, options.budget):
                continue
            time.sleep(REST_SECONDS)
            meeting = meeting_nanoseconds()
            others, start = others_seconds(), time.perf_counter()
            figures = measure(library, repeat)
            elapsed = time.perf_counter() - start
            if others is not None:
                others = others_seconds() - others
            spent[library].append(elapsed)
            turn = {"library": library, "repeat": repeat, **figures}
            yield turn | {"elapsed_seconds": elapsed, "others_cpu": others, "meeting_ns": meeting}


def goes_on(library, spent, budget):
    """Whether a library has another turn; `spent` are the seconds of all turns so far."""
    own = spent[library]
    if not own or sum(own) + statistics.mean(own) <= budget:
        return True
    if len(own) >= LEAST_REPEATS:
        return False
    # ours may have several variants, all of whose names begin with it
    peers = [min(turns) for name, turns in spent.items() if turns and not name.startswith(OURS)]
    return library.startswith(OURS) or min(own) <= DECIDES * min(peers)


def meeting_nanoseconds():
    """Return the nanoseconds of a meeting of two threads; None where there is one processor.

    It tells how far apart two processors are at the moment: the host of a virtual machine moves
    them, so that they share a cache in one minute and not in the next. The least of several tries,
    since threads of a library that was measured before may still be spinning.
    """
    if n_cores() < 2:
        return None
    from sklboost.engine.parallel import ThreadTeam

    meet, n_times, seconds = _meeting_kernel(), 500, []
    with ThreadTeam(2) as team:
        team.run(meet, 1)  # compiles, and wakes the helper
        for _ in range(10):
            start = time.perf_counter()
            team.run(meet, n_times)
            seconds.append(time.perf_counter() - start)
    return min(seconds) / n_times * 1e9


@functools.cache
def _meeting_kernel():
    """Return the kernel; the package is imported here, so that its import can be measured."""
    from sklboost.engine.compiling import kernel
    from sklboost.engine.parallel import assemble, barrier

    @kernel
    def meet(team, n_times):
        if assemble(team):
            for _ in range(n_times):
                barrier(team)

    return meet


# --- processes of their own -----------------------------------------------------------------------


def in_child(module, *job, environment=None):
    """Run ``module`` in a new process with the job, and return what it tells: see `start`."""
    done = subprocess.run(
        (sys.executable, "-m", module, "--child", json.dumps(job)),
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def start(main, measure_here=None):
    """Run a module's `main`; in a process of `in_child`, measure and print the result instead."""
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure_here(*json.loads(sys.argv[2]))))
    else:
        sys.exit(main())


# --- records --------------------------------------------------------------------------------------


def parser(module, text):
    """Return a parser of the command line with the options that all benchmarks have."""
    made = argparse.ArgumentParser(
        prog=f"python -m {module}", description=text.split("\n", maxsplit=1)[0]
    )
    add = made.add_argument
    add("--out", type=Path, default=OUT, help="folder of the results; default: build/benchmarks")
    add("--append", action="store_true", help="add to the lines there; the latest of a kind counts")
    add("--table-only", action="store_true", help="write the table again from the lines there")
    return made


def write_results(name, records, shown, write_table, options):
    """Write records as they come, then their table; print both.

    Parameters
    ----------
    name : str
        Of the two files, without ending, and of the kind of the records.
    records : iterator of dict
        Not begun if only the table is wanted.
    shown : tuple of str
        What is printed of each record.
    write_table : callable
        Given the records, returns the lines of the table's page.
    options : argparse.Namespace
        With the options of `parser`.
    """
    lines = options.out / f"{name}.jsonl"
    if not options.table_only:
        options.out.mkdir(parents=True, exist_ok=True)
        constant = describe()
        with lines.open("a" if options.append else "w", encoding="utf-8") as file:
            for record in records:
                record = {"kind": name, "time": now(), **constant, **record}
                print(json.dumps(record), file=file, flush=True)
                print(*(record.get(key) for key in shown), flush=True)
    text = "\n".join(write_table(read(lines))) + "\n"
    lines.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


def read(path):
    """Return the records of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def describe():
    """Return commit, machine and versions, for every line of results."""
    return {"commit": _commit(), "machine": _machine(), "versions": _versions()}


def now():
    """Return the time in UTC, to the second, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def n_cores():
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def sleep_when_idle():
    """Have OpenMP threads sleep while they wait; call it before a peer is imported.

    Spinning, their default, is what a benchmark of speed must measure. Where only the loss is
    wanted it is a burden: on a machine shared with other work, two spinning threads can be a
    hundred times slower.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def others_seconds():
    """Return the processor seconds used by other processes than ours since start; None: not Linux.

    Ours are this process and its descendants, among them the workers of a grid search.
    """
    try:
        first = Path("/proc/stat").read_text().split("\n", 1)[0]
    except OSError:
        return None
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, first.split()[1:9])
    busy = user + nice + system + irq + softirq + steal
    parents, used = _processes()
    ours = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= found
    return (busy - sum(used[pid] for pid in ours)) / os.sysconf("SC_CLK_TCK")


def _processes():
    """Return the parent and the processor ticks of every process, its ended children's included."""
    parents, used = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name, in brackets, may contain anything
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        pid = int(stat.parent.name)
        parents[pid] = int(fields[1])
        used[pid] = sum(map(int, fields[11:15]))
    return parents, used


def _commit():
    """Return the short commit, "+" appended if tracked files differ from it; None outside git."""
    git = ("git", "-C", str(REPOSITORY))
    head = subprocess.run((*git, "rev-parse", "--short=10", "HEAD"), capture_output=True, text=True)
    if head.returncode != 0:
        return None
    changed = subprocess.run((*git, "diff", "--quiet", "HEAD"), capture_output=True).returncode
    return head.stdout.strip() + ("+" if changed else "")


def _machine():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": names[0] if names else platform.processor(),
        "cores": n_cores(),  # that this process may use
        "processors": os.cpu_count(),  # of the machine
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


def _versions():
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


# --- tables ---------------------------------------------------------------------------------------


def origin(records, command):
    """Return the sentence that says where the figures of a table come from."""
    commits = ", ".join(dict.fromkeys(str(record["commit"]) for record in records))
    versions = ", ".join(f"{name} {version}" for name, version in records[-1]["versions"].items())
    return f"Commit {commits}; {versions}. Written by `python -m benchmarks.{command}`."


def grouped(records, *keys):
    """Return {values of the keys: list of records}, in the order in which they come first."""
    groups = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in keys), []).append(record)
    return groups


def by_seed(records, figure, seed="seed"):
    """Return {seed of the split: figure}; the latest record of a seed counts."""
    return {record[seed]: record[figure] for record in records}


def mean_and_error(values):
    """Return the mean of values, and its standard error (NaN of a single one)."""
    values = np.array(list(values), dtype=np.float64)
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(values.mean()), float(error)


def paired_ratio(ours, theirs):
    """Return the mean of our losses over the mean of theirs, and its standard error.

    The error is over the splits, of the paired ratios: what two libraries share, they share in
    each split. Both are NaN if no split is shared, the error if only one is.

    Parameters
    ----------
    ours, theirs : dict
        ``{seed of the split: loss}``.

    Returns
    -------
    ratio, error : float
    """
    shared = sorted(set(ours) & set(theirs))
    if not shared:
        return np.nan, np.nan
    mine, other = (np.array([losses[seed] for seed in shared]) for losses in (ours, theirs))
    return float(mine.mean() / other.mean()), mean_and_error(mine / other)[1]


def cells(*numbers, form=".4f"):
    """Return numbers as text, and nothing for those that are NaN."""
    return ["" if np.isnan(number) else f"{number:{form}}" for number in numbers]


def markdown(rows, n_text=1):
    """Return the lines of a table of rows, lists of cells, the first of them the head.

    The first `n_text` columns are aligned to the left, the others, numbers, to the right.
    """
    rule = ["---"] * n_text + ["--:"] * (len(rows[0]) - n_text)
    return [f"| {' | '.join(row)} |" for row in [rows[0], rule, *rows[1:]]]
