"""The pages that tell users which losses and metrics there are, against the registry."""

import re

import pytest

from sklboost.estimators.parameters.boosters import LOSS_DEFAULTS
from sklboost.objectives.registry import METRICS, OBJECTIVES, TASK_WORDS
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "how_to" / "choose_a_loss.md"
HEADINGS = {
    "regression": "Numbers",
    "binary": "Two classes",
    "multiclass": "More than two classes",
    "survival": "Survival times",
}


def rows_of(heading):
    """Return the cells of each row of the table below a heading."""
    section = PAGE.read_text("utf-8").split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    # a bar that is part of a formula has a backslash
    return [[cell.strip() for cell in line.replace("\\|", "¦").split("|")[1:-1]] for line in lines]


def words(cell):
    return [word.strip("` ") for word in cell.split(",") if word.strip("` ")]


@pytest.mark.parametrize("task", HEADINGS)
def test_the_table_has_all_losses_with_all_names_and_the_defaults_of_parameters(task):
    rows = rows_of(HEADINGS[task])
    assert {cells[0].strip("`"): words(cells[4]) for cells in rows} == {
        own.name: list(own.aliases) for own in OBJECTIVES[task]
    }
    defaults = LOSS_DEFAULTS
    shown = {cells[0].strip("`"): cells[3] for cells in rows}
    for objective in OBJECTIVES[task]:
        parameter = getattr(objective.make(3, defaults), "parameter", "")
        expected = f"`{parameter}` ({defaults[parameter]:g})" if parameter else ""
        assert shown[objective.name].startswith(expected), objective.name
        assert bool(shown[objective.name]) == bool(parameter)


@pytest.mark.interpreted
def test_the_table_of_metrics_is_the_registry():
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
