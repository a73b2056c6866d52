"""The scripts of the gallery run without a warning, and draw."""

import runpy

import matplotlib.pyplot as plt
import pytest

from tests.conftest import ROOT, skip_without_imports

FOLDER = ROOT / "docs" / "examples"
SCRIPTS = sorted(path for path in FOLDER.rglob("*.py") if path.name != "quickstart.py")
TOPICS = sorted({path.parent.name for path in SCRIPTS} - {FOLDER.name})


# One of each topic, and the first one; the others are for the slow tier.
QUICK = {"first_model", "method_in_150_lines"}
QUICK |= {"constraints", "quantile_bands", "early_stopping", "shap_values"}


def test_there_are_examples():
    assert len(SCRIPTS) >= 10
    assert len(TOPICS) >= 4
    assert {path.parent.name for path in SCRIPTS if path.stem in QUICK} >= set(TOPICS)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem not in QUICK))
        for path in SCRIPTS
    ],
)
def test_an_example_runs_and_draws(script, monkeypatch, capsys):
    skip_without_imports(script.read_text("utf-8"))
    drawn = []
    monkeypatch.chdir(script.parent)  # where the build of the site runs it
    monkeypatch.setattr(plt, "show", lambda: drawn.extend(plt.get_fignums()))
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        plt.close("all")
    assert drawn
    assert capsys.readouterr().out


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_has_a_heading_and_a_place_on_the_site(topic):
    lines = (FOLDER / topic / "README.txt").read_text("utf-8").splitlines()
    assert set(lines[1]) == {"-"}
    assert f'"{topic}"' in (ROOT / "docs" / "conf.py").read_text("utf-8")


def test_every_example_leads_on_to_the_page_of_its_subject():
    assert [path.name for path in SCRIPTS if ":doc:" not in path.read_text("utf-8")] == []


def test_every_data_set_names_its_source():
    source = (FOLDER / "data" / "SOURCE.txt").read_text("utf-8")
    for path in (FOLDER / "data").glob("*.csv.gz"):
        assert path.name in source
        assert path.stat().st_size < 300_000
