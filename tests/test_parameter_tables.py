"""The tables that tell what parameters are called in other libraries, against the code of all."""

import inspect
import json
import re
from dataclasses import fields

import lightgbm
import numpy as np
import pytest
import xgboost
from lightgbm.basic import _ConfigAliases
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from sklboost.estimators.parameters.boosters import ClassifierParameters
from sklboost.estimators.parameters.kinds import (
    DistributionParameters,
    RankerParameters,
    SurvivalParameters,
)
from tests.conftest import ROOT

TABLE = ROOT / "docs" / "reference" / "parameters.md"
MOVING = ROOT / "docs" / "moving"
OURS = {}
for group in (ClassifierParameters, DistributionParameters, RankerParameters, SurvivalParameters):
    for own in fields(group):
        OURS.setdefault(own.name, own.default)  # a later group has some defaults of its own
COLUMNS = ("XGBoost", "LightGBM", "CatBoost", "HistGradientBoosting")
PAGES = {
    "XGBoost": "from_xgboost.md",
    "LightGBM": "from_lightgbm.md",
    "HistGradientBoosting": "from_hist_gradient_boosting.md",
}


def rows_of(page):
    """Return the cells of the rows of a page's tables that begin with a name."""
    return rows_in(page.read_text("utf-8"))


def rows_in(text):
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


def described():
    """Return the rows of the tables that say what each parameter is."""
    return [cells for cells in rows_of(TABLE) if len(cells) == 3]


def named():
    """Return the rows of the table of names in other libraries."""
    return [cells for cells in rows_of(TABLE) if len(cells) == 1 + len(COLUMNS)]


def parameters_on(page):
    """Return the rows of the table of parameters of a page for those who move here."""
    text = (MOVING / page).read_text("utf-8").split("## Parameters\n")[1].split("\n## ")[0]
    return rows_in(text)


def names_in(cell):
    """Return the names in a cell: what stands between backticks, up to an equals sign."""
    return re.findall(r"`(\w+)[^`]*`", cell)


def signature_of(*things):
    return {
        name: own for thing in things for name, own in inspect.signature(thing).parameters.items()
    }


def keys_of(config):
    """Return all keys of nested dicts and lists."""
    if isinstance(config, dict):
        return set(config).union(*map(keys_of, config.values()))
    return set().union(*map(keys_of, config)) if isinstance(config, list) else set()


def xgboost_names():
    """Return the parameters of the estimator, and of training for some losses and boosters."""
    names = set(signature_of(xgboost.XGBModel))
    data = xgboost.DMatrix(np.arange(6.0).reshape(3, 2), label=[1.0, 2.0, 3.0])
    for settings in (
        {"booster": "dart"},
        {"objective": "reg:quantileerror", "quantile_alpha": 0.5},
        {"objective": "reg:pseudohubererror"},
        {"objective": "reg:tweedie"},
    ):
        booster = xgboost.train(settings, data, num_boost_round=1)
        names |= keys_of(json.loads(booster.save_config()))
    return names


def lightgbm_names():
    aliases = _ConfigAliases._get_all_param_aliases()
    return set(signature_of(lightgbm.LGBMModel)) | set(aliases).union(*aliases.values())


def scikit_learn_names():
    return set(signature_of(HistGradientBoostingRegressor, HistGradientBoostingClassifier))


NAMES = {
    "XGBoost": xgboost_names,
    "LightGBM": lightgbm_names,
    "HistGradientBoosting": scikit_learn_names,
}


def test_the_table_has_all_parameters_with_their_defaults_in_order():
    shown = [(names_in(cells[0])[0], cells[1].strip("`")) for cells in described()]
    assert shown == [(name, repr(own).replace("'", '"')) for name, own in OURS.items()]


def test_the_table_says_in_a_line_what_each_parameter_is():
    lines = [cells[2] for cells in described()]
    assert all(10 <= len(line) <= 64 and not line.endswith(".") for line in lines)
    assert len(set(lines)) == len(lines)


def test_the_table_of_names_has_parameters_once_in_order():
    shown = [names_in(cells[0])[0] for cells in named()]
    assert shown == [name for name in OURS if name in shown]
    assert len(shown) >= 50
    assert len(described()) + len(named()) == len(rows_of(TABLE))


@pytest.mark.parametrize("library", NAMES)
def test_the_table_has_names_that_the_library_knows(library):
    column = 1 + COLUMNS.index(library)
    shown = {name for cells in named() for name in names_in(cells[column])}
    assert len(shown) >= 15
    assert shown <= NAMES[library]()


@pytest.mark.parametrize("library", PAGES)
def test_the_page_of_a_library_agrees_with_the_table_and_has_all_its_parameters(library):
    column = 1 + COLUMNS.index(library)
    ours = {}
    for cells in parameters_on(PAGES[library]):
        for name in names_in(cells[0]):
            ours[name] = [name] if cells[1] == "the same" else names_in(cells[1])
            assert set(ours[name]) <= set(OURS), cells
    for cells in named():
        for name in names_in(cells[column]):
            assert names_in(cells[0])[0] in ours.get(name, []), name
    things = {
        "XGBoost": [xgboost.XGBModel],
        "LightGBM": [lightgbm.LGBMModel],
        "HistGradientBoosting": [HistGradientBoostingRegressor, HistGradientBoostingClassifier],
    }
    missing = set(signature_of(*things[library])) - {"kwargs"} - set(ours)
    assert missing == set(), "say in the table what they are here"
    assert set(ours) <= NAMES[library](), "the library has no such parameters"
