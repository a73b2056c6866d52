"""What is measured, on tiny data: turns, phases, kernels, searches, model files, steps."""

import importlib
import pkgutil
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import benchmarks
from benchmarks import accuracy, datasets, kernels, memory, model_files, peers, runner, speed

NAMES = ["sklboost", "xgboost", "catboost"]
TINY = "binary-2000x5"
ONCE = runner.Options(["sklboost"], repeats=1, budget=60.0)


def test_every_module_can_be_imported_and_tells_what_it_does():
    for module in pkgutil.iter_modules(benchmarks.__path__):
        assert importlib.import_module(f"benchmarks.{module.name}").__doc__, module.name


# --- whose turn it is


def test_each_repeat_begins_with_another_library_and_tells_how_long_two_threads_take_to_meet(
    monkeypatch,
):
    monkeypatch.setattr(runner, "n_cores", lambda: 2)
    options = runner.Options(NAMES, repeats=3, budget=100.0)
    turns = list(runner.take_turns(options, lambda library, repeat: {"seen": (library, repeat)}))
    assert [turn["library"] for turn in turns] == [
        *("sklboost", "xgboost", "catboost"),
        *("xgboost", "catboost", "sklboost"),
        *("catboost", "sklboost", "xgboost"),
    ]
    for turn in turns:
        assert turn["seen"] == (turn["library"], turn["repeat"])
        assert turn["elapsed_seconds"] >= 0.0
        assert turn["meeting_ns"] > 1.0


@pytest.mark.parametrize("ours", [0.1, 9.0])
def test_without_time_ours_and_the_fastest_peers_have_three_turns(ours):
    seconds = {"sklboost": ours, "sklboost threading": ours / 2, "xgboost": 1.0}
    seconds |= {"lightgbm": 1.5, "catboost": 1.6}
    spent = {name: [] for name in seconds}
    for _ in range(9):
        for name in seconds:
            if runner.goes_on(name, spent, budget=0.0):
                spent[name].append(seconds[name])
    n_turns = {name: len(turns) for name, turns in spent.items()}
    assert n_turns == dict.fromkeys(seconds, 3) | {"catboost": 1}


def test_nobody_begins_a_turn_that_would_exceed_the_budget():
    spent = {"sklboost": [1.0], "xgboost": [4.0, 4.0, 4.0]}
    assert runner.goes_on("xgboost", spent, budget=16.0)
    assert not runner.goes_on("xgboost", spent, budget=15.9)
    options = runner.Options(NAMES, repeats=3, budget=1.0)
    assert runner.more_for_small(options, 10_000).repeats > 3  # small fits are repeated more often
    assert runner.more_for_small(options, 10_001) == options


# --- what takes its time


def test_phases_grow_the_trees_of_a_plain_fit_or_are_out_of_date(monkeypatch):
    dataset = datasets.load("binary-2000x5")
    for n_threads, growth in ((1, "lossguide"), (2, "depthwise")):
        settings = peers.Settings(n_estimators=2, max_depth=3, grow_policy=growth)
        seconds = kernels.compare_with_fit(dataset, settings, n_threads, "sklboost")
        assert seconds["fit_seconds"] > 0.0
        assert {"cut points", "root histogram", "leaf values"} < set(seconds["phase_seconds"])
    monkeypatch.setattr(kernels, "finish_by_phase", lambda *arguments: None)
    with pytest.raises(RuntimeError, match=r"bring benchmarks/kernels\.py up to date"):
        kernels.compare_with_fit(dataset, settings, 1, "sklboost")


@pytest.mark.slow
def test_kernels_are_measured_one_by_one_and_against_the_least_that_a_fit_needs():
    dataset, settings = datasets.load(TINY), peers.Settings(n_estimators=2, max_depth=3)
    records = list(kernels.measure_kernels(dataset, settings, 1, ONCE))
    names = {record["kernel"] for record in records}
    assert {"binning", "routing, all rows", "leaf values", "prediction"} < names
    assert all(record["nanoseconds"] > 0.0 for record in records)
    (record,) = kernels.measure_floor(dataset, settings, 1, ONCE)
    updates = len(dataset.X_train) * 5 * (1 + 3 / 2) * 2
    assert record["floor_seconds"] * 1e9 == pytest.approx(updates * record["update_nanoseconds"])


def test_a_search_in_threads_finds_what_one_in_processes_does():
    libraries = ["sklboost", "xgboost", "hist_gb", "lightgbm_quantized"]
    assert speed.search_variants(libraries) == [
        *libraries,
        *("sklboost threading", "xgboost threading", "sklboost bin_features"),
    ]
    dataset, settings = datasets.load("binary-300x3").as_float32(), peers.Settings(n_estimators=3)
    turns = [
        speed.time_search(dataset, settings, n_workers, variant)
        for n_workers, variant in [(1, "sklboost"), (2, "sklboost threading")]
    ]
    assert turns[0]["search_loss"] == turns[1]["search_loss"]
    assert all(turn["search_seconds"] > 0.0 for turn in turns)


def test_every_form_of_a_model_file_gives_back_the_model(tmp_path):
    X, y = load_iris(return_X_y=True)
    models = {}
    for name, form in model_files.FORMS.items():
        if form.library not in models:
            estimator = peers.make_estimator(
                form.library, peers.Settings(n_estimators=3), "binary", 1
            )
            models[form.library] = estimator.fit(X, y == 1)
        path = str(tmp_path / f"model.{form.suffix}")
        form.save(models[form.library], path)
        loaded = form.load(path)
        expected = models[form.library].predict_proba(X)[:, 1]
        is_booster = form.library == "lightgbm"
        found = loaded.predict(X) if is_booster else loaded.predict_proba(X)[:, 1]
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is one of Linux")
def test_steps_within_a_limit_of_memory_have_the_model_of_a_fit_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_ROWS", 64)
    settings = dict(rows=200, features=5, trees=2, depth=2)
    memory.make(tmp_path, settings)
    assert np.load(tmp_path / "X.npy").shape == (200, 5)
    with memory.Watch() as watch:
        memory.bin_(tmp_path, settings)
        memory.forget(tmp_path)
        on_disk = memory.fit(tmp_path, settings)
        in_memory = memory.fit(tmp_path, settings, in_memory=True)
    assert on_disk["digest"] == in_memory["digest"]
    assert watch.record()["peak_mib"] > 10


def test_what_is_there_is_not_measured_again(tmp_path, capsys):
    kept = (runner.RESULTS / "defaults.jsonl").read_text("utf-8").splitlines(keepends=True)
    lines = [line for line in kept if '"dataset": "wine"' in line and '"seed": 0' in line]
    (tmp_path / "defaults.jsonl").write_text("".join(lines), "utf-8")
    arguments = ["--datasets", "wine", "--seeds", "1", "--threads", "1", "--out", str(tmp_path)]
    accuracy.main(["defaults", *arguments, "--append"])
    assert (tmp_path / "defaults.jsonl").read_text("utf-8") == "".join(lines)
    assert "# Held-out loss at defaults" in capsys.readouterr().out
