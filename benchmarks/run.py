"""Time fit and predict of sklboost and its peers, interleaved; write JSON lines.

Run `python -m benchmarks.run --quick`, then `python -m benchmarks.report <file>`.

The libraries take turns within each repeat, each repeat beginning with another of them, so that a
slow minute of the machine falls on all. One line is one fit; start-up (`"kind": "start"`) and
memory (`"kind": "memory"`) have lines of their own.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from . import datasets, environment, measure, memory, peers, report, start

WORKLOADS = (
    "binary-1000x28",
    "binary-100000x28",
    "binary-1000000x28",
    "regression-100000x28",
    "regression-1000000x28",
    "softmax-100000x28",
)
QUICK_WORKLOADS = ("binary-1000x28", "binary-100000x28", "regression-100000x28")
SMALL = 10_000  # rows; fits below take milliseconds and are repeated more often
SMALL_REPEATS = 5


def main(arguments=None):
    """Run the benchmark that the command line asks for."""
    environment.use_numba_cache()
    options = _parse(arguments)
    settings = peers.Settings(
        n_estimators=options.trees,
        learning_rate=options.learning_rate,
        max_depth=options.depth,
        max_bin=options.bins,
    )
    options.out.parent.mkdir(parents=True, exist_ok=True)
    constant = environment.describe() | {"settings": settings._asdict()}
    with options.out.open("a", encoding="utf-8") as file:

        def write(kind, **fields):
            record = {"kind": kind, "time": environment.now(), **constant, **fields}
            print(json.dumps(record), file=file, flush=True)
            _show(record)

        if not options.no_start:
            _starts(options, write)
        for workload in options.workloads:
            _workload(workload, options, settings, write)
            if options.memory:
                _memory(workload, options, settings, write)
    print(f"\n{report.text(report.read([options.out]))}\n\nwritten to {options.out}")


def _workload(name, options, settings, write):
    """Fit every library `repeats` times on one data set, taking turns."""
    dataset = datasets.load(name, options.seed)
    n_train, n_features = dataset.X_train.shape
    repeats = options.repeats * (SMALL_REPEATS if n_train <= SMALL else 1)
    for n_threads in options.threads:
        for library in options.libraries:
            measure.warm_up(library, dataset, settings, n_threads)
        for repeat in range(repeats):
            first = repeat % len(options.libraries)
            for library in options.libraries[first:] + options.libraries[:first]:
                busy, own = environment.busy_seconds(), time.process_time()
                measured = measure.fit_and_predict(library, dataset, settings, n_threads, repeat)
                own = time.process_time() - own
                others = None if busy is None else environment.busy_seconds() - busy - own
                write(
                    "fit",
                    workload=name,
                    task=dataset.task,
                    n_train=n_train,
                    n_test=len(dataset.X_test),
                    n_features=n_features,
                    library=library,
                    threads=n_threads,
                    repeat=repeat,
                    others_cpu=others,  # processor seconds of other processes meanwhile
                    **measured._asdict(),
                )


def _starts(options, write):
    n_threads = options.threads[-1]
    for library in options.libraries:
        for started in start.measure_starts(library, n_threads):
            write("start", library=library, threads=n_threads, **started)


def _memory(workload, options, settings, write):
    n_threads = options.threads[-1]
    for library in options.libraries:
        peak = memory.measure_memory(library, workload, settings, n_threads)
        write("memory", workload=workload, library=library, threads=n_threads, peak_mib=peak)


def _show(record):
    """Print a record as one short line."""
    name = record.get("start") or record.get("workload")
    figures = [
        f"{key} {record[key]:.4g}"
        for key in record
        if key.endswith(("_seconds", "_loss", "_mib")) and record[key] is not None
    ]
    where = f"{record['kind']:6} {name:22} {record['library']:20} {record['threads']} threads"
    print(where, *figures, sep="  ", flush=True)


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="a short set of workloads, three repeats")
    add("--workloads", nargs="+", help="names of benchmarks/datasets.py")
    add("--repeats", type=int, help="fits of each library (default 5)")
    add("--threads", type=int, nargs="+", default=[environment.n_cores()])
    add("--libraries", nargs="+", default=list(peers.DEFAULT_LIBRARIES), help="or: all")
    add("--trees", type=int, default=100)
    add("--learning-rate", type=float, default=0.1)
    add("--depth", type=int, default=6)
    add("--bins", type=int, default=256)
    add("--seed", type=int, default=0, help="of the data")
    add("--no-start", action="store_true", help="leave out the start-up figures")
    add("--memory", action="store_true", help="peak memory too, in processes of their own (Linux)")
    add("--out", type=Path, help="file of JSON lines, appended to")
    options = parser.parse_args(arguments)
    options.workloads = options.workloads or (QUICK_WORKLOADS if options.quick else WORKLOADS)
    options.repeats = options.repeats or (3 if options.quick else 5)
    options.libraries = peers.choose(options.libraries)
    if options.out is None:
        options.out = environment.RESULTS / f"speed-{environment.now()[:10]}.jsonl"
    if options.memory and not sys.platform.startswith("linux"):
        parser.error("--memory reads /proc: it works on Linux")
    return options


if __name__ == "__main__":
    main()
