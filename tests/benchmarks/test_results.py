"""Tables are made from the kept JSON lines, and README.md and the pages show their figures."""

import importlib
import itertools
import json
import re
from statistics import median

import pandas as pd
import pytest

from benchmarks import more_than_memory, report, tables
from benchmarks.ratios import as_text, paired_ratio
from tests.conftest import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "how_to" / "predict_intervals.md"
# where it is not the name of the module
NAMES = {
    "accuracy_table": "accuracy",
    "category_table": "categories",
    "defaults_table": "defaults",
    "interval_table": "intervals",
    "loss_table": "losses",
    "ranking_table": "ranking",
    "shap_values": "shap",
    "sparse_table": "sparse",
}
MODULES = [*NAMES, "cluster", "distributions", "model_files", "more_than_memory"]
MODULES += ["scale", "survival"]


@pytest.mark.parametrize("module", MODULES)
def test_a_kept_table_is_what_its_lines_give(module, tmp_path):
    """Where a table is to look different, its module writes it again from the kept lines."""
    name = NAMES.get(module, module)
    write_table = importlib.import_module(f"benchmarks.{module}").write_table
    write_table(RESULTS / f"{name}.jsonl", tmp_path / "table")
    assert (tmp_path / "table").read_text("utf-8") == (RESULTS / f"{name}.md").read_text("utf-8")


REPORTS = ["memory", "validation", "waits", "speed"]


@pytest.mark.parametrize("name", [*REPORTS, pytest.param("speed-zen4", marks=pytest.mark.slow)])
def test_a_kept_report_is_what_its_lines_give(name, tmp_path):
    """Reports of speed have two pictures."""
    written = tmp_path / f"{name}.md"
    report.main([str(RESULTS / f"{name}.jsonl"), "--out", str(written)])
    text = written.read_text("utf-8")
    assert text == (RESULTS / written.name).read_text("utf-8")
    pictures = re.findall(r"^!\[.*\]\((.*)\)$", text, re.MULTILINE)
    assert len(pictures) == 2 * name.startswith("speed")
    assert all((tmp_path / picture).stat().st_size > 10_000 for picture in pictures)


def test_models_that_differ_are_told_in_the_table(tmp_path):
    lines = (RESULTS / "more_than_memory.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    digests = [record for record in records if "digest" in record]
    digests[-1]["digest"] = "another"
    (tmp_path / "lines").write_text("\n".join(map(json.dumps, records)))
    more_than_memory.write_table(tmp_path / "lines", tmp_path / "table")
    assert "The models differ" in (tmp_path / "table").read_text()


def test_meetings_are_told_if_all_were_measured():
    told = tables.meetings(pd.DataFrame({"meeting_ns": [100.0, 200.0, 300.0]}))
    assert told.startswith("A meeting of two threads took 200 ns (median), 120 to")
    assert tables.meetings(pd.DataFrame({"meeting_ns": [100.0, None]})) == ""
    assert tables.meetings(pd.DataFrame({"seconds": [1.0]})) == ""


def test_only_shared_splits_count_in_a_ratio_of_losses():
    ratio, error = paired_ratio({0: 1.0, 1: 3.0, 2: 50.0}, {0: 1.0, 1: 2.0, 5: 70.0})
    assert ratio == pytest.approx(4.0 / 3.0)
    assert error == pytest.approx(0.25)  # ratios 1 and 1.5: deviation 0.5 / sqrt(2), over sqrt(2)
    assert as_text(*paired_ratio({0: 1.0}, {0: 2.0})) == ["0.5000", ""]
    assert as_text(*paired_ratio({0: 1.0}, {1: 2.0})) == ["", ""]


def test_the_table_of_the_readme_has_the_seconds_and_the_ratio_that_were_measured():
    seconds = {}
    for line in (RESULTS / "speed-zen4.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["kind"] == "fit" and record["threads"] == 2:
            key = record["workload"], record["library"]
            seconds.setdefault(key, []).append(record["fit_seconds"])
    rows = re.findall(
        r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$",
        (ROOT / "README.md").read_text("utf-8"),
        flags=re.MULTILINE,
    )
    assert [row[0] for row in rows] == ["1,000", "10,000", "100,000", "1,000,000"]
    for row in rows:
        workload = f"binary-{row[0].replace(',', '')}x28"
        libraries = ("sklboost", "xgboost", "lightgbm", "hist_gb")
        medians = [median(seconds[workload, library]) for library in libraries]
        for shown, measured in zip(row[1:5], medians, strict=True):
            digits = len(shown.split(".")[1])
            assert shown == f"{measured:.{digits}f}"
        assert row[5] == f"{min(medians[1:]) / medians[0]:.1f}"


def table_of(path):
    """Return the rows of the first table that has a column `coverage`, each as a dict."""
    lines = [line for line in path.read_text("utf-8").splitlines() if line[:1] == "|"]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    start = next(i for i, row in enumerate(rows) if "coverage" in row)
    head = rows[start]
    own = itertools.takewhile(lambda row: len(row) == len(head), rows[start + 2 :])
    return [dict(zip(head, row, strict=True)) for row in own]


def test_the_page_of_intervals_shows_what_was_measured():
    measured = {(row["data set"], row["method"]): row for row in table_of(RESULTS / "intervals.md")}
    shown = table_of(PAGE)
    assert len(shown) > 10
    for row in shown:
        assert row.items() <= measured[row["data set"], row["method"]].items()
