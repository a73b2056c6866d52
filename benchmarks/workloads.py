"""The table of what is measured: data set, settings, threads.

What each kind of figure should be is in `aims.py`.
"""

from typing import NamedTuple

from . import aims
from .peers import Settings

DEEP = Settings(max_depth=10)
LEAFWISE = Settings(grow_policy="lossguide", max_depth=0, max_leaves=255)
MANY_TREES = Settings(n_estimators=1000)
BOTH = (2, 1)


class Workload(NamedTuple):
    """One data set at one setting, measured with each of some numbers of threads."""

    name: str
    dataset: str  # a name of benchmarks/datasets.py
    threads: tuple[int, ...] = (2,)
    settings: Settings = Settings()


FIT = (
    Workload("binary-1000x28", "binary-1000x28", BOTH),
    Workload("binary-10000x28", "binary-10000x28", BOTH),
    Workload("binary-100000x28", "binary-100000x28", BOTH),
    Workload("binary-1000000x28", "binary-1000000x28", BOTH),
    Workload("regression-100000x28", "regression-100000x28"),
    Workload("softmax-100000x28", "softmax-100000x28"),
    Workload("leaves255-1000000x28", "binary-1000000x28", settings=LEAFWISE),
    Workload("wide-20000x1000", "binary-20000x1000"),
    Workload("depth10-200000x28", "binary-200000x28", settings=DEEP),
)
REAL = (
    Workload("covertype", "covertype"),
    Workload("protein_casp", "protein_casp"),
    Workload("adult", "adult"),
)
# 100,000 rows for training, and as many to predict.
PREDICT = (
    Workload("binary-100000x28", "binary-100000x28", BOTH),
    Workload("trees1000-100000x28", "binary-100000x28", BOTH, MANY_TREES),
)
GRID = (Workload("binary-20000x28", "binary-20000x28"),)
# A fit with and without validation rows.
VALIDATION = tuple(
    Workload(f"binary-{n_rows}x28", f"binary-{n_rows}x28", BOTH) for n_rows in (10_000, 100_000)
) + (Workload("protein_casp", "protein_casp"),)
START = (Workload("binary-1000x28", "binary-1000x28"),)
MEMORY = tuple(
    Workload(name, name, BOTH)
    for name in ("binary-1000000x28", "binary-2000000x28", "regression-2000000x28")
)
# Larger teams than the machine has processors, for what they wait and what tasks they have.
WAITS = tuple(
    Workload(f"binary-{n_rows}x28", f"binary-{n_rows}x28", (1, 2, 4, 8, 16))
    for n_rows in (1_000, 10_000, 100_000, 1_000_000)
)
# The floor, the kernels and the phases of a fit.
ENGINE = (Workload("binary-1000000x28", "binary-1000000x28", BOTH),)
GROWTH = tuple(
    Workload(f"binary-{n_rows}x28", f"binary-{n_rows}x28")
    for n_rows in (100_000, 500_000, 1_000_000, 2_000_000, 5_000_000)
)
# The short set: what can be said in two or three minutes.
QUICK_FIT = (FIT[0]._replace(threads=(2,)), FIT[2]._replace(threads=(2,)), FIT[4])
QUICK_PREDICT = (PREDICT[0]._replace(threads=(2,)),)


def fit_aim(name):
    """Return the aim of the fit of that name, None for one that is not in the table."""
    return aims.FIT if any(workload.name == name for workload in FIT + REAL) else None
