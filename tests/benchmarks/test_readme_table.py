"""The figures in README.md are those of benchmarks/results."""

import json
import re
from statistics import median

import pytest

from tests.conftest import ROOT

LIBRARIES = ("sklboost", "xgboost", "lightgbm", "hist_gb")
ROWS = re.findall(
    r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
    (ROOT / "README.md").read_text("utf-8"),
    flags=re.MULTILINE,
)


@pytest.fixture(scope="module")
def seconds():
    """The median seconds of a fit on two threads, by workload and library."""
    lines = (ROOT / "benchmarks" / "results" / "speed-zen4.jsonl").read_text("utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["kind"] == "fit"]
    found = {}
    for record in records:
        if record["threads"] == 2:
            key = record["workload"], record["library"]
            found.setdefault(key, []).append(record["fit_seconds"])
    return {key: median(own) for key, own in found.items()}


def test_there_are_four_rows():
    assert [row[0] for row in ROWS] == ["1,000", "10,000", "100,000", "1,000,000"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_seconds_and_ratio(row, seconds):
    workload = f"binary-{row[0].replace(',', '')}x28"
    medians = [seconds[workload, library] for library in LIBRARIES]
    for shown, measured in zip(row[1:5], medians, strict=True):
        digits = len(shown.split(".")[1])
        assert shown == f"{measured:.{digits}f}"
    assert row[5] == f"{min(medians[1:]) / medians[0]:.1f}"
