"""Libraries at their defaults and variants of the preset: what is fitted."""

import json

import numpy as np

from benchmarks import datasets, defaults, peers
from benchmarks.preset_variants import LIBRARIES, PRESET, TRIED
from sklboost import XGBRegressorLite
from tests.conftest import ROOT

WINE = datasets.load("wine")


def chosen(name):
    """Return what a variant of the preset chooses on a small regression."""
    variant = TRIED[name]
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
    with variant.in_place():
        return XGBRegressorLite(n_jobs=1, **variant.parameters_for("regression")).fit(X, y)


def test_without_settings_an_estimator_is_at_its_defaults():
    model = peers.make_estimator("sklboost", None, "regression", 1, seed=3)
    assert model.get_params() == XGBRegressorLite(n_jobs=1, random_state=3).get_params()


def test_the_splits_of_a_data_set_differ_and_are_cut():
    assert WINE.task == "multiclass"
    assert not np.array_equal(WINE.X_test, datasets.load("wine", 1).X_test)
    small = defaults.cut(WINE, 30, 5)
    assert (len(small.X_train), len(small.y_train)) == (30, 30)
    assert (len(small.X_test), len(small.y_test)) == (5, 5)


def test_steps_of_a_variant():
    rates = {"steps as large as those of the trials": 0.1, "steps half as large": 0.05}
    rates |= {PRESET: 0.025, "steps an eighth as large": 0.0125}  # nothing stays in place
    for name, rate in rates.items():
        assert chosen(name).chosen_params_["learning_rate"] == rate


def test_parameters_of_a_task():
    settings = TRIED["the settings of Holzmüller et al."]
    assert settings.parameters_for("regression")["max_depth"] == 9
    assert settings.parameters_for("multiclass")["max_depth"] == 6
    assert settings.parameters_for("binary")["refit"]


def test_what_is_there_is_not_measured_again(tmp_path, capsys, monkeypatch):
    kept = (ROOT / "benchmarks" / "results" / "defaults.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in kept]
    lines = [
        line
        for line, record in zip(kept, records, strict=True)
        if (record["dataset"], record["seed"]) == ("wine", 0) and record["variant"] in LIBRARIES
    ]
    before = "\n".join([*lines, ""])
    (tmp_path / "defaults.jsonl").write_text(before, "utf-8")
    monkeypatch.setattr(defaults, "_warm_up", lambda variants, n_threads: None)  # compiles
    arguments = ["--datasets", "wine", "--seeds", "1", "--threads", "1", "--out", str(tmp_path)]
    defaults.main([*arguments, "--append"])
    assert (tmp_path / "defaults.jsonl").read_text("utf-8") == before
    assert "# Held-out loss at defaults" in capsys.readouterr().out
