"""The page on adding a loss: its class is a loss, its line fits into the registry."""

import importlib.util
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost import XGBRegressorLite, check_loss
from sklboost.engine.backend import BACKEND, Backend
from sklboost.objectives import registry
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "how_to" / "add_a_loss.md").read_text("utf-8")
CLASS, LINE = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.M | re.S)


@pytest.fixture(scope="module")
def quartic(tmp_path_factory):
    """Import the file of the first step, whose kernels no wheel has."""
    if BACKEND is Backend.LIBRARY:
        pytest.importorskip("numba")
    path = tmp_path_factory.mktemp("losses") / "quartic.py"
    path.write_text(CLASS, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("quartic", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.QuarticError


def test_derivatives(quartic):
    y, raw_score = np.array([0.0, 1.0, -2.0]), np.array([0.5, 1.0, 1.0])
    check_loss(quartic(1), y, raw_score)
    assert_allclose(quartic.row_value(1.0, 3.0, 0.0), 4.0)


def test_the_line_makes_an_objective(quartic):
    (objective,) = eval(LINE, {"_of_rows": registry._of_rows, "QuarticError": quartic})
    assert isinstance(objective, registry.ObjectiveEntry)
    assert (objective.name, objective.aliases) == ("reg:quartic", ("quartic",))


def test_the_row_of_the_table_has_its_names():
    row = re.search(r"^```markdown\n\| `([\w:]+)` \|.*\| `(\w+)` \|$", PAGE, flags=re.M)
    assert row.groups() == ("reg:quartic", "quartic")


def test_it_trains(quartic):
    X = np.arange(40.0)[:, np.newaxis]
    y = np.sin(X[:, 0])
    model = XGBRegressorLite(objective=quartic(1), n_estimators=30).fit(X, y)
    assert np.mean((model.predict(X) - y) ** 4) < 0.1 * np.mean((y - y.mean()) ** 4)


def test_the_files_that_the_page_names_for_a_parameter_have_it():
    page = (ROOT / "docs" / "how_to" / "add_a_parameter.md").read_text("utf-8")
    rows = re.findall(r"^\| \d \| \[[^]]+\]\(\.\./\.\./([^)]+)\) \| (\w+)", page, flags=re.M)
    assert len(rows) == 6
    for file, first_word in rows:
        # settings are cast by the types of their fields
        has_it = "path_smooth" in (ROOT / file).read_text("utf-8")
        assert has_it is (first_word != "nothing"), file
