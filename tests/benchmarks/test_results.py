"""Tables are made from the kept JSON lines, and README.md and the pages show their figures."""

import importlib
import itertools
import re
from statistics import median

import pytest

from benchmarks import cluster, memory, runner, speed
from tests.conftest import ROOT

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "how_to" / "predict_intervals.md"
# where the table is not written by `write_table` of the module of its name
WRITERS = {
    "accuracy": "accuracy.write_accuracy",
    "defaults": "accuracy.write_defaults",
    "linear_leaves": "accuracy.write_linear_leaves",
    "access": "categories.write_access",
    "scale": "cluster.write_scale",
    "intervals": "distributions.write_intervals",
    "more_than_memory": "memory.write_steps",
    "shap": "shap_values.write_table",
}
KEPT = sorted(path.stem for path in RESULTS.glob("*.jsonl"))


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_table_is_what_its_lines_give(name):
    """Where a table is to look different, its module writes it again from the kept lines."""
    module, function = WRITERS.get(name, f"{name}.write_table").split(".")
    write_table = getattr(importlib.import_module(f"benchmarks.{module}"), function)
    text = "\n".join(write_table(runner.read(RESULTS / f"{name}.jsonl"))) + "\n"
    assert text == (RESULTS / f"{name}.md").read_text("utf-8")


def test_each_kept_result_is_linked_from_a_page():
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
    pages += sorted((ROOT / "docs").rglob("*.md"))
    text = "".join(page.read_text("utf-8") for page in pages)
    assert [name for name in KEPT if f"benchmarks/results/{name}." not in text] == []


def test_models_that_differ_are_told_in_the_table():
    records = runner.read(RESULTS / "more_than_memory.jsonl")
    [record for record in records if "digest" in record][-1]["digest"] = "another"
    assert "The models differ" in "\n".join(memory.write_steps(records))


def test_a_ratio_meets_its_aim_from_above_and_a_limit_from_below():
    ratio = speed.Ratio("fastest / ours", ("xgboost", "lightgbm"), 3.0)
    assert speed.judge_ratio({"sklboost": 1.0, "xgboost": 3.0, "lightgbm": 4.0}, ratio) == (
        "3.00 ≥ 3.0"
    )
    assert speed.judge_ratio({"sklboost": 1.0, "xgboost": 2.99}, ratio) == "**2.99 < 3.0**"
    assert speed.judge_ratio({"sklboost": 1.0}, ratio) == ""
    assert speed.judge_limit(0.3, 0.3) == "0.3 ≤ 0.3"
    assert speed.judge_limit(0.31, 0.3) == "**0.31 > 0.3**"


def test_only_shared_splits_count_in_a_ratio_of_losses():
    ratio, error = runner.paired_ratio({0: 1.0, 1: 3.0, 2: 50.0}, {0: 1.0, 1: 2.0, 5: 70.0})
    assert ratio == pytest.approx(4.0 / 3.0)
    assert error == pytest.approx(0.25)  # ratios 1 and 1.5: deviation 0.5 / sqrt(2), over sqrt(2)
    assert runner.cells(*runner.paired_ratio({0: 1.0}, {0: 2.0})) == ["0.5000", ""]
    assert runner.cells(*runner.paired_ratio({0: 1.0}, {1: 2.0})) == ["", ""]


def test_the_table_of_the_readme_has_the_seconds_and_the_ratio_that_were_measured():
    seconds = {}
    for record in runner.read(RESULTS / "speed.jsonl"):
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


def test_the_page_of_clusters_shows_how_long_workers_took():
    seconds = {}
    for record in runner.read(RESULTS / "cluster.jsonl"):
        if record["task"] == "binary":
            seconds.setdefault(record["way"], []).append(record["seconds"])
    one, workers, peer = (median(seconds[w]) for w in (cluster.ONE, cluster.CLUSTER, cluster.PEER))
    text = (ROOT / "docs" / "how_to" / "train_on_a_cluster.md").read_text("utf-8")
    shown = re.findall(r"([\d.]+) times as long", text)
    assert shown == [f"{workers / one:.2f}", f"{peer / workers:.2f}"]


def test_the_page_of_intervals_shows_what_was_measured():
    measured = {(row["data set"], row["method"]): row for row in table_of(RESULTS / "intervals.md")}
    shown = table_of(PAGE)
    assert len(shown) > 10
    for row in shown:
        assert row.items() <= measured[row["data set"], row["method"]].items()


def test_the_page_of_the_preset_shows_how_it_stood_beside_tuned_models():
    text = (ROOT / "docs" / "how_to" / "choose_parameters.md").read_text("utf-8")
    section = text.split("## Beside tuned models\n")[1].split("\n## ")[0]
    shown = [line for line in section.splitlines() if line.startswith("|")]
    measured = (RESULTS / "tuned.md").read_text("utf-8").splitlines()
    start = measured.index(shown[0])
    assert measured[start : start + len(shown)] == shown  # the whole table
    assert measured[start + len(shown)] == ""
