"""What a figure depends on besides the code measured: commit, machine, versions, other work."""

import datetime
import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results"
PACKAGES = ("sklboost", "xgboost", "xgboost-cpu", "lightgbm", "catboost", "scikit-learn")
PACKAGES += (
    "mapie",
    "crepes",
    "ngboost",
    "numba",
    "llvmlite",
    "numpy",
    "scikit-survival",
    "lifelines",
)


def sleep_when_idle():
    """Have OpenMP threads sleep while they wait; call it before a peer is imported.

    Spinning, their default, is what a benchmark must measure. Where only the loss is wanted it is a
    burden: on a machine shared with other work, two spinning threads can be a hundred times slower.
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


def describe():
    """Return commit, machine and versions, for every line of results."""
    return {"commit": _commit(), "machine": _machine(), "versions": _versions()}


def now():
    """Return the time in UTC, to the second, ISO 8601."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def n_cores():
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _commit():
    """Return the short commit, "+" appended if tracked files differ from it; None outside git."""
    git = ("git", "-C", str(REPOSITORY))
    head = subprocess.run((*git, "rev-parse", "--short=10", "HEAD"), capture_output=True, text=True)
    if head.returncode != 0:
        return None
    changed = subprocess.run((*git, "diff", "--quiet", "HEAD"), capture_output=True).returncode
    return head.stdout.strip() + ("+" if changed else "")


def _machine():
    return {
        "cpu": _cpu_model(),
        "cores": n_cores(),  # that this process may use
        "processors": os.cpu_count(),  # of the machine
        "system": platform.system(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
    }


def _cpu_model():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _versions():
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
