"""Measure sklboost and its peers; write JSON lines, then a report of them.

`python -m benchmarks.run` is the short set, `python -m benchmarks.run all` everything; the sets can
be named one by one: `python -m benchmarks.run fit grid`. `python -m benchmarks.run compile` tells
what compilation costs, and has options of its own.
"""

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import NamedTuple

from . import compilation, datasets, environment, peers, report, workloads
from .aims import ACCURATE, OURS, PEERS, QUANTIZED, SYMMETRIC
from .turns import Options

LIBRARIES = (OURS, *PEERS, QUANTIZED)
# Symmetric trees are another model, but the one whose predictions are known to be fast;
# lightgbm_quantized predicts as lightgbm does.
TO_PREDICT = (OURS, *PEERS, SYMMETRIC)


class Set(NamedTuple):
    """Some workloads, and the function that yields the records of each."""

    measure: str  # module.function, imported when its turn comes
    workloads: tuple[workloads.Workload, ...]
    libraries: tuple[str, ...] = LIBRARIES


SETS = {
    "fit": Set("fits.measure_fits", workloads.FIT),
    "real": Set("fits.measure_fits", workloads.REAL),
    "predict": Set("predictions.measure_predictions", workloads.PREDICT, TO_PREDICT),
    "grid": Set("searches.measure_searches", workloads.GRID),
    "memory": Set("memory.measure_memory", workloads.MEMORY),
    "validation": Set(
        "validations.measure_validations", workloads.VALIDATION, (OURS, "xgboost", "lightgbm")
    ),
    "start": Set("start.measure_starts", workloads.START),
    "growth": Set("fits.measure_growth", workloads.GROWTH, (OURS,)),
    "floor": Set("floor.measure_floor", workloads.ENGINE, (OURS,)),
    "kernels": Set("kernels.measure_kernels", workloads.ENGINE, (OURS,)),
    "phases": Set("phases.measure_phases", workloads.ENGINE, (OURS,)),
    "waits": Set("waits.measure_waits", workloads.WAITS, (OURS,)),
}
QUICK = [
    Set("fits.measure_fits", workloads.QUICK_FIT, (OURS, *ACCURATE)),
    Set("predictions.measure_predictions", workloads.QUICK_PREDICT, (OURS, *ACCURATE)),
]


def main(arguments=None):
    """Run the sets that the command line asks for."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["compile"]:
        return compilation.main(arguments[1:])
    options = _parse(arguments)
    sets = _chosen_sets(options.sets)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    constant = environment.describe()
    with options.out.open("a", encoding="utf-8") as file:
        for set_ in sets:
            for record in _records(set_, options):
                record = {"kind": record["kind"], "time": environment.now(), **constant, **record}
                print(json.dumps(record), file=file, flush=True)
                print(_line(record), flush=True)
    return report.main([str(options.out), "--out", str(options.out.with_suffix(".md"))])


def _chosen_sets(names):
    if names == ["quick"]:
        return QUICK
    return list(SETS.values()) if names == ["all"] else [SETS[name] for name in names]


def _records(set_, options):
    """Yield the records of one set, with what the command line changes in it."""
    module, function = set_.measure.split(".")
    measure = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    libraries = peers.choose(options.libraries or set_.libraries)
    turns = Options(libraries, options.repeats, options.budget)
    for workload in _chosen_workloads(set_.workloads, options):
        try:
            yield from measure(workload, turns)
        except datasets.NoDataError as error:
            print(f"{workload.name}: left out: {error}")


def _chosen_workloads(known, options):
    chosen = known
    if options.workloads:
        by_name = {workload.name: workload for workload in known}
        chosen = [by_name.get(name, workloads.Workload(name, name)) for name in options.workloads]
    for workload in chosen:
        settings = workload.settings
        if options.trees:
            settings = settings._replace(n_estimators=options.trees)
        threads = tuple(options.threads or workload.threads)
        yield workload._replace(settings=settings, threads=threads)


def _line(record):
    """Return a record as one short line."""
    figures = [
        f"{key} {record[key]:.4g}"
        for key in record
        if key.endswith(("_seconds", "_loss", "_mib", "_ratio", "nanoseconds"))
        and isinstance(record[key], float)
    ]
    name = record.get("kernel") or f"{record['workload']} {record.get('start', '')}"
    where = f"{record['kind']:11} {name:24} {record['library']:20} {record['threads']} threads"
    return "  ".join([where, *figures])


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    add = parser.add_argument
    names = ["quick", "all", *SETS]
    add("sets", nargs="*", default=["quick"], help=f"of {', '.join(names)}", metavar="set")
    add("--workloads", nargs="+", help="names of the sets' workloads, or of any data set")
    add("--libraries", nargs="+", help=f"of {', '.join(peers.LIBRARIES)}, or: all")
    add("--threads", type=int, nargs="+", help="instead of those of each workload")
    add("--trees", type=int, help="instead of 100, to try something out")
    add("--repeats", type=int, help="turns of each library (default 5; quick: 3)")
    add("--budget", type=float, default=60.0, help="seconds for all turns of one library")
    add("--out", type=Path, help="file of JSON lines, appended to")
    options = parser.parse_args(arguments)
    for name in options.sets:
        if name not in names:
            parser.error(f"{name}: no such set; known: {', '.join(names)}")
        if name in ("quick", "all") and len(options.sets) > 1:
            parser.error(f"{name}: stands alone, without other sets")
    options.repeats = options.repeats or (3 if options.sets == ["quick"] else 5)
    options.out = options.out or environment.RESULTS / f"speed-{environment.now()[:10]}.jsonl"
    return options


if __name__ == "__main__":
    sys.exit(main())
