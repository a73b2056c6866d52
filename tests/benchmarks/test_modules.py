"""Benchmarks that are seldom run: each can be imported, and those of the engine run on few rows."""

import importlib
import pkgutil

import pytest

import benchmarks
from benchmarks import datasets, floor, kernels, peers, workloads
from benchmarks.turns import Options

MODULES = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
TINY = workloads.Workload(
    "tiny", "binary-2000x5", threads=(1,), settings=peers.Settings(n_estimators=2, max_depth=3)
)
ONCE = Options(["sklboost"], repeats=1, budget=60.0)


@pytest.mark.parametrize("name", MODULES)
def test_can_be_imported(name):
    assert importlib.import_module(f"benchmarks.{name}").__doc__


def test_kernels_run():
    records = list(kernels.measure_kernels(TINY, ONCE))
    names = {record["kernel"] for record in records}
    assert {"binning", "routing, all rows", "leaf values", "prediction"} < names
    assert all(record["nanoseconds"] > 0.0 for record in records)


def test_floor_runs():
    (record,) = floor.measure_floor(TINY, ONCE)
    n_rows = len(datasets.load(TINY.dataset).X_train)
    updates = n_rows * 5 * (1 + 3 / 2) * 2
    assert record["floor_seconds"] * 1e9 == pytest.approx(updates * record["update_nanoseconds"])
