"""The table of intervals: means, standard errors, and which way round the ratio of times is."""

import itertools
import json

from benchmarks.interval_table import write_table
from tests.conftest import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "intervals.jsonl"
PAGE = ROOT / "docs" / "how_to" / "predict_intervals.md"


def records():
    for method in ("split", "cross", "cross_on_bins", "quantiles_cross", "quantiles_cross_on_bins"):
        for seed, coverage in enumerate((0.88, 0.92)):
            yield dict(
                dataset="houses",
                method=method,
                seed=seed,
                coverage=coverage,
                coverage_of_groups=[0.9, coverage - 0.1, 1.0],
                width=1.0 + seed,
                interval_score=2.0,
                cpu_seconds=0.5 if method == "cross_on_bins" else 1.0,
                **dict(confidence=0.9, n_train=300, n_fit=200, n_test=100, commit="abc"),
                settings=dict(n_estimators=9, learning_rate=1, max_depth=2, min_child_weight=3),
                versions={"numpy": "2"},
            )


def cells_of(line):
    return [cell.strip() for cell in line.split("|")[1:-1]]


def test_means_errors_and_ratios(tmp_path):
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records()))
    write_table(lines, table)
    rows = [cells_of(line) for line in table.read_text().splitlines() if "| houses" in line]
    # 0.88 and 0.92: s.e. 0.04 / sqrt(2) / sqrt(2); the second group is the worst, 0.8 on average
    figures = ["0.9000", "0.0200", "0.800", "1.500", "0.500", "2.000", "1.00"]
    assert rows[0] == ["houses", "split", *figures]
    assert rows[-2:] == [
        ["houses", "cross (CV+)", "0.500", "0.000"],
        ["houses", "quantiles, cross", "1.000", "0.000"],
    ]


def table_of(path):
    """Return the rows of the first table that has a column `coverage`, each as a dict."""
    rows = [cells_of(line) for line in path.read_text("utf-8").splitlines() if line[:1] == "|"]
    start = next(i for i, row in enumerate(rows) if "coverage" in row)
    head = rows[start]
    own = itertools.takewhile(lambda row: len(row) == len(head), rows[start + 2 :])
    return [dict(zip(head, row, strict=True)) for row in own]


def test_the_page_shows_what_was_measured(tmp_path):
    table = tmp_path / "intervals.md"
    write_table(RESULTS, table)
    measured = {(row["data set"], row["method"]): row for row in table_of(table)}
    shown = table_of(PAGE)
    assert len(shown) > 10
    for row in shown:
        assert row.items() <= measured[row["data set"], row["method"]].items()
