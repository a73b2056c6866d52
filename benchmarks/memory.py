"""Peak memory of a fit above its data, and training on more rows than fit into memory (Linux).

Run `python -m benchmarks.memory`, which writes `memory.jsonl` and `.md`: each fit is in a process
of its own. The data comes from files, so that the process has not yet held
anything larger than the data; what loading, compiling and warming up left free is given back first.
Otherwise a fit could use that, and its peak would look lower than it is.

Run `python -m benchmarks.memory beyond` as a user who may make control groups, which writes
`more_than_memory.jsonl` and `.md`. Each step is a process of its own, in a control group whose
memory, pages of files included, is limited: values are written to a file in blocks, binned to a
folder, and trained on. Then, without a limit, the same bins are trained on in memory: the model
must have the same bits. What a step reads is not in the system's cache when it begins. The limit of
896 MiB leaves room for the pages of libraries that other processes were charged with: resident
memory stays below 1 GiB. With 50 million rows it takes about 15 GB of disk in `--folder`, and half
an hour.
"""

import ctypes
import gc
import hashlib
import math
import os
import re
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np

from . import datasets, peers, runner
from .datasets import Dataset

HEAD_ROWS = 2_000
IS_LINUX = sys.platform.startswith("linux")
LIBRARIES = ("sklboost", "xgboost", "lightgbm", "hist_gb", "catboost", "lightgbm_quantized")


def main(arguments=None):
    """Measure what the command line asks for, then write its table."""
    parser = runner.parser("benchmarks.memory", __doc__)
    add = parser.add_argument
    add("what", nargs="?", choices=("peak", "beyond"), default="peak")
    add("--datasets", nargs="+", default=["binary-1000000x28", "binary-2000000x28"])
    add("--libraries", nargs="+", default=list(LIBRARIES))
    add("--trees", type=int, default=10)
    add("--threads", type=int, nargs="+", default=[2, 1])
    add("--repeats", type=int, default=3)
    add("--rows", type=int, default=50_000_000, help="beyond: and so on")
    add("--features", type=int, default=28)
    add("--depth", type=int, default=6)
    add("--limit", type=int, default=896, help="beyond: MiB that a step may use")
    add("--folder", help="beyond: where the data lies meanwhile")
    options = parser.parse_args(arguments)
    if options.what == "beyond":
        shown = ("step", "seconds", "peak_mib", "peak_anonymous_mib", "peak_group_mib")
        runner.write_results("more_than_memory", _steps(options), shown, write_steps, options)
        return
    shown = ("workload", "threads", "library", "peak_mib")
    runner.write_results("memory", _peaks(options), shown, write_table, options)


# --- the peak of a fit ----------------------------------------------------------------------------


def _peaks(options):
    """Yield a record for each new process: peak MiB of the resident set above the data itself."""
    settings = peers.Settings(n_estimators=options.trees)
    turns = runner.Options(peers.choose(options.libraries), options.repeats, 60.0)
    for name in options.datasets:
        dataset = datasets.load(name).as_float32()
        facts = {"workload": name, "settings": settings._asdict(), **dataset.facts}
        with tempfile.TemporaryDirectory() as folder:
            np.save(Path(folder) / "X.npy", dataset.X_train)
            np.save(Path(folder) / "y.npy", dataset.y_train)
            for n_threads in options.threads:
                job = (folder, dataset.task, settings._asdict(), n_threads)

                def fit(library, repeat, job=job):
                    return {"peak_mib": runner.in_child("benchmarks.memory", "peak", *job, library)}

                for turn in runner.take_turns(turns, fit):
                    yield {**facts, "threads": n_threads, **turn}


def _fit_here(folder, task, settings, n_threads, library):
    X, y = (np.load(Path(folder) / f"{name}.npy") for name in ("X", "y"))
    settings = peers.Settings(**settings)
    load_first(library, X, y, task, settings, n_threads)
    model = peers.make_estimator(library, settings, task, n_threads)
    with peers.quiet(library, n_threads):
        return peak_mebibytes(lambda: model.fit(X, y))


def load_first(library, X, y, task, settings, n_threads):
    """Fit a few rows: libraries and thread pools are not what a fit needs."""
    head = Dataset("head", task, X[:HEAD_ROWS], y[:HEAD_ROWS], X[:HEAD_ROWS], y[:HEAD_ROWS])
    peers.warm_up(library, head, settings, n_threads)


def peak_mebibytes(function):
    """Call `function`; return by how much the resident set rose at most meanwhile, in MiB.

    NaN where it cannot be known: on another system than Linux.
    """
    if not IS_LINUX:
        function()
        return math.nan
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):  # glibc
        libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _kibibytes("VmRSS")
    function()
    return (_kibibytes("VmHWM") - before) / 1024


def _kibibytes(field):
    return int(re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())[1])


def write_table(records):
    """Return the lines of the page `memory.md`."""
    rows = [["data", "trees", "threads", *LIBRARIES, "xgboost / ours"]]
    for record in records:
        record["trees"] = record["settings"]["n_estimators"]
    for key, own in runner.grouped(records, "workload", "trees", "threads").items():
        medians = {
            library: float(np.median([record["peak_mib"] for record in turns]))
            for (library,), turns in runner.grouped(own, "library").items()
        }
        peaks = [f"{medians[name]:.0f}" if name in medians else "" for name in LIBRARIES]
        ratio = f"{medians['xgboost'] / medians['sklboost']:.2f}"
        rows.append([*map(str, key), *peaks, ratio])
    return [
        "# Memory\n",
        "MiB by which the resident set of a process rises at most during a fit, beyond the data "
        "and a fit of a few rows; medians of processes. Depth 6, 256 bins.\n",
        *runner.markdown(rows),
        f"\n{runner.origin(records, 'memory')}",
    ]


# --- more than memory -----------------------------------------------------------------------------

MIB = 2**20
BLOCK_ROWS = 2**17
STEPS = ("make", "bin", "fit", "fit in memory")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


def _steps(options):
    settings = {name: getattr(options, name) for name in ("rows", "features", "trees", "depth")}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for step in STEPS:
            limit = None if step == "fit in memory" else options.limit
            yield {
                **settings,
                "step": step,
                "limit_mib": limit,
                **_in_group(step, folder, settings, limit),
            }


def _in_group(step, folder, settings, limit):
    """Do a step in a process in a control group of its own; limit None: as much as there is."""
    parent = CONTROL_GROUPS / "memory"  # the first version of control groups, else the second
    name = "memory.limit_in_bytes"
    if not parent.is_dir():
        parent, name = CONTROL_GROUPS, "memory.max"
    group = parent / f"sklboost-{os.getpid()}"
    group.mkdir()
    try:
        if limit is not None:
            (group / name).write_text(str(limit * MIB))
        job = (step, folder, settings, str(group / "cgroup.procs"))
        done = runner.in_child("benchmarks.memory", "step", *job)
        names = ("memory.max_usage_in_bytes", "memory.peak")
        peak = next(int((group / name).read_text()) for name in names if (group / name).exists())
    finally:
        group.rmdir()
    return done | {"peak_group_mib": round(peak / MIB, 1)}


def _step_here(step, folder, settings, group):
    Path(group).write_text(str(os.getpid()))
    folder = Path(folder)
    forget(folder)
    does = {"make": make, "bin": bin_, "fit": fit, "fit in memory": partial(fit, in_memory=True)}
    with Watch() as watch:
        found = does[step](folder, settings)
    return watch.record() | (found or {})


class Watch:
    """The highest resident memory of this process, as Linux tells it ten times a second."""

    def __enter__(self):
        self.peaks = {"VmRSS": 0, "RssAnon": 0}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._before, self._begin = _traffic(), time.perf_counter()
        self._thread.start()
        return self

    def _look(self):
        while not self._ends.wait(0.1):
            for name in self.peaks:
                self.peaks[name] = max(self.peaks[name], _kibibytes(name))

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self._begin
        self._ends.set()
        self._thread.join()

    def record(self):
        """Return what was seen."""
        after = _traffic()
        return {
            "seconds": round(self.seconds, 2),
            "peak_mib": round(_kibibytes("VmHWM") / 1024, 1),
            "peak_anonymous_mib": round(self.peaks["RssAnon"] / 1024, 1),
            "read_mib": round((after["read_bytes"] - self._before["read_bytes"]) / MIB, 1),
            "written_mib": round((after["write_bytes"] - self._before["write_bytes"]) / MIB, 1),
        }


def _traffic():
    found = re.findall(r"(\w+): (\d+)", Path("/proc/self/io").read_text())
    return {name: int(number) for name, number in found}


def make(folder, settings):
    """Write values and targets to files, a block of rows at a time."""
    n_rows, n_features = settings["rows"], settings["features"]
    shapes = {"X": (n_rows, n_features), "y": (n_rows,)}
    files = {name: (folder / f"{name}.npy").open("wb") for name in shapes}
    for name, shape in shapes.items():
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(files[name], header)
    for start in range(0, n_rows, BLOCK_ROWS):
        random = np.random.default_rng(start)
        n = min(BLOCK_ROWS, n_rows - start)
        X = random.normal(size=(n, n_features)).astype(np.float32)
        noise = random.normal(size=n).astype(np.float32)
        y = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + np.abs(X[:, 3]) + noise
        files["X"].write(X.tobytes())
        files["y"].write(y.astype(np.float32).tobytes())
    for file in files.values():
        file.close()


def bin_(folder, settings):
    """Bin the values to a folder."""
    from sklboost import bin_features

    bin_features(np.load(folder / "X.npy", mmap_mode="r"), path=folder / "bins", verbose=0)
    (folder / "X.npy").unlink()


def fit(folder, settings, *, in_memory=False):
    """Train on the bins; return a digest of the model."""
    from sklboost import BinnedMatrix, XGBRegressorLite, open_bins

    B, y = open_bins(folder / "bins"), np.load(folder / "y.npy", mmap_mode="r")
    if in_memory:
        B, y = BinnedMatrix(np.array(B.bins), B.binning), np.array(y)
    model = XGBRegressorLite(n_estimators=settings["trees"], max_depth=settings["depth"])
    model.fit(B, y)
    return {
        "digest": hashlib.sha256(model.model_.nodes.tobytes()).hexdigest(),
        "threads": model.fit_report_.n_threads,
        "phases": {phase: round(s, 2) for phase, s in model.fit_report_.seconds.items()},
    }


def forget(folder):
    """Have the system write what is in these files, and drop it from its cache.

    What another process has read would not count as memory of this one.
    """
    for path in folder.rglob("*.npy"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def write_steps(records):
    """Return the lines of the page `more_than_memory.md`."""
    rows = [["step", "limit", "minutes", "resident", "of it private", "group", "read", "written"]]
    for record in records:
        limit = record["limit_mib"]
        sizes = ("peak_mib", "peak_anonymous_mib", "peak_group_mib", "read_mib", "written_mib")
        rows.append(
            [
                record["step"],
                "none" if limit is None else f"{limit:,}",
                f"{record['seconds'] / 60:.1f}",
                *(f"{record[size]:,.0f}" for size in sizes),
            ]
        )
    last = records[-1]
    digests = {record["digest"] for record in records if "digest" in record}
    same = "Both models have the same bits." if len(digests) == 1 else "The models differ."
    return [
        "# More than memory\n",
        f"{last['rows']:,} rows, {last['features']} features of float32 in a file, {last['trees']} "
        f"trees of depth {last['depth']}, {last['threads']} threads. Each step is a process in a "
        "control group of so many MiB, in which the cache of its files counts, too. Highest "
        "figures, in MiB: resident memory, its private (anonymous) part, and all that the group "
        "was charged with; what was read from and written to the disk. Pages of libraries that "
        f"other processes use, too, are resident, but may not be charged to the group. {same} "
        "Other work used the machine meanwhile.\n",
        *runner.markdown(rows),
        f"\n{runner.origin(records, 'memory beyond')}",
    ]


def _measure_here(what, *job):
    return (_fit_here if what == "peak" else _step_here)(*job)


if __name__ == "__main__":
    runner.start(main, _measure_here)
