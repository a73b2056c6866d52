"""The page on metrics has the registry's metrics."""

import re

import pytest

from sklboost.objectives.naming import TASK_WORDS
from sklboost.objectives.registry import METRICS
from tests.conftest import ROOT

pytestmark = pytest.mark.interpreted


def test_the_table_is_the_registry():
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\| ([\w ,]+) \| `([\w@-]+)`( \(default\))? \|.*\| (smaller|greater) \|", page, re.M
    )
    rows = [(task, *rest) for tasks, *rest in lines for task in tasks.split(", ")]
    expected = [
        (
            TASK_WORDS[task],
            entry.title,
            " (default)" if entry is entries[0] else "",
            "greater" if entry.greater_is_better else "smaller",
        )
        for task, entries in METRICS.items()
        for entry in entries
    ]
    assert sorted(rows) == sorted(expected)
