"""The page that tells users which losses there are, against the registry."""

from dataclasses import fields

import pytest

from sklboost.estimators.parameters.boosting import LossParameters
from sklboost.objectives.registry import OBJECTIVES
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
def test_the_table_has_all_losses_with_all_names(task):
    rows = {cells[0].strip("`"): words(cells[4]) for cells in rows_of(HEADINGS[task])}
    assert rows == {own.name: list(own.aliases) for own in OBJECTIVES[task]}


@pytest.mark.parametrize("task", HEADINGS)
def test_the_table_has_the_parameters_and_their_defaults(task):
    defaults = {own.name: own.default for own in fields(LossParameters)}
    shown = {cells[0].strip("`"): cells[3] for cells in rows_of(HEADINGS[task])}
    for objective in OBJECTIVES[task]:
        parameter = getattr(objective.make(3, defaults), "parameter", "")
        expected = f"`{parameter}` ({defaults[parameter]:g})" if parameter else ""
        assert shown[objective.name].startswith(expected), objective.name
        assert bool(shown[objective.name]) == bool(parameter)
