"""The benchmark of model files: every form gives back the model, and the table has the medians."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_iris

from benchmarks import peers
from benchmarks.model_files import write_table
from benchmarks.model_forms import FORMS


@pytest.fixture(scope="module")
def models():
    X, y = load_iris(return_X_y=True)
    settings = peers.Settings(n_estimators=3)
    libraries = dict.fromkeys(form.library for form in FORMS.values())
    return {
        library: peers.make_estimator(library, settings, "binary", 1).fit(X, y == 1)
        for library in libraries
    }


@pytest.mark.parametrize("name", FORMS)
def test_a_form_gives_back_the_model(name, models, tmp_path):
    X, _ = load_iris(return_X_y=True)
    form = FORMS[name]
    path = str(tmp_path / f"model.{form.suffix}")
    form.save(models[form.library], path)
    loaded = form.load(path)
    expected = models[form.library].predict_proba(X)[:, 1]
    is_booster = form.library == "lightgbm"
    found = loaded.predict(X) if is_booster else loaded.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(found, expected)


def records():
    for library, seconds in {"sklboost JSON": (0.1, 0.3, 0.2), "XGBoost JSON": (0.4,) * 3}.items():
        for repeat, load in enumerate(seconds):
            times = dict.fromkeys(("save_cpu", "load", "load_cpu"), load)
            # the last turn started no process
            first = dict.fromkeys(("first", "first_cpu", "import_cpu"), 2 * load)
            measured = times | (first if repeat < 2 else {})
            yield dict(
                trees=1_000,
                library=library,
                bytes=2_500_000,
                commit="abc",
                dataset="some",
                versions={"numpy": "2"},
                **{f"{key}_seconds": value for key, value in measured.items()},
            )


def test_medians_and_ratios(tmp_path):
    lines, table = tmp_path / "lines", tmp_path / "table"
    lines.write_text("".join(json.dumps(record) + "\n" for record in records()))
    write_table(lines, table)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table.read_text().splitlines()
        if line.startswith("| 1,000")
    ]
    assert rows[0] == ["1,000", "sklboost JSON", "2.50", "200", "200", "400", "800"]
    assert rows[-1] == ["1,000", "sklboost JSON", "2.00", "2.00", "2.00", "2.00", "2.00"]
