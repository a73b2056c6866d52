"""The page on metrics has the registry's metrics."""

import re

import pytest

from sklboost.metrics.registry import METRICS, TASK_WORDS, default_metric
from tests.conftest import ROOT

pytestmark = pytest.mark.interpreted


def test_the_table_is_the_registry():
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\w ]+) \| `(\w+)`( \(default\))? \|.*\| (\w+) \| `", page, re.M)
    expected = [
        (
            TASK_WORDS[task],
            metric.name,
            " (default)" if metric is default_metric(task) else "",
            "greater" if metric.greater_is_better else "smaller",
        )
        for task, metrics in METRICS.items()
        for metric in metrics
    ]
    assert rows == expected
