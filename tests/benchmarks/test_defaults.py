"""Libraries at their defaults and variants of the preset: what is fitted, and the tables of it."""

import json

import numpy as np
import pytest

from benchmarks import datasets, defaults, defaults_table, peers
from benchmarks.preset_variants import LIBRARIES, OURS, PRESET, TRIED
from sklboost import XGBRegressorLite

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


def test_stages_of_a_variant():
    def candidates(name, parameter):
        return len(chosen(name).chosen_params_.reasons[parameter].split(" with ")) - 1

    names = ["extra_trees", "max_depth", "min_child_weight", "colsample_bylevel"]
    counts = {name: [candidates(name, own) for own in names] for name in list(TRIED)[:5]}
    assert counts == {
        "rounds": [0, 0, 0, 0],
        "rounds, thresholds": [1, 0, 0, 0],
        "rounds, thresholds, depth": [1, 2, 0, 0],
        "rounds, thresholds, depth, cover": [1, 2, 1, 0],
        PRESET: [1, 2, 1, 1],
    }
    assert candidates("also depths 2 and 10", "max_depth") == 4


@pytest.mark.parametrize(
    ("name", "rate"),
    [
        ("steps as large as those of the trials", 0.1),
        ("steps half as large", 0.05),
        (PRESET, 0.025),  # what others have put in place is gone
        ("steps an eighth as large", 0.0125),
    ],
)
def test_steps_of_a_variant(name, rate):
    assert chosen(name).chosen_params_["learning_rate"] == rate


def test_only_the_fit_has_several_trees_a_round():
    one, four = (
        chosen(name)
        for name in ("steps as large as those of the trials", "four trees a round, large steps")
    )
    assert four.chosen_params_ == one.chosen_params_
    assert four.num_parallel_tree == 4


def test_parameters_of_a_task():
    settings = TRIED["the settings of Holzmüller et al."]
    assert settings.parameters_for("regression")["max_depth"] == 9
    assert settings.parameters_for("multiclass")["max_depth"] == 6
    assert settings.parameters_for("binary")["refit"]


def write(folder, losses, variants):
    """Write records, ``{(data set, seed): losses of the variants}``; return the rows of tables."""
    lines, table = folder / "defaults.jsonl", folder / "defaults.md"
    with lines.open("a", encoding="utf-8") as file:
        for (name, seed), of_variants in losses.items():
            for variant, loss in zip(variants, of_variants, strict=False):
                record = dict(dataset=name, seed=seed, variant=variant, test_loss=loss)
                record |= dict(fit_cpu_seconds=loss / 4, task="binary", n_train=1000, threads=1)
                record |= dict(n_features=14, commit="abc", versions={"numpy": "2"})
                print(json.dumps(record), file=file)
    defaults_table.write_table(lines, table)
    rows = [line.split("|")[1:-1] for line in table.read_text("utf-8").splitlines() if "|" in line]
    return [[cell.strip() for cell in row] for row in rows]


LOSSES = {  # xgboost, lightgbm, hist_gb, catboost, ours, the preset
    ("adult", 0): [4.0, 5.0, 6.0, 2.0, 3.0, 1.0],
    ("adult", 1): [4.0, 5.0, 6.0, 2.0, 3.0, 2.0],
    ("adult", 2): [1.0, 1.0],  # not all have it: it does not count
    ("letter", 0): [4.0, 1.0, 5.0, 2.0, 3.0, 6.0],
}


def test_excess_over_the_best_peer(tmp_path):
    head, _, adult, letter, summary_head, _, *summary = write(tmp_path, LOSSES, LIBRARIES)
    adult, letter = (dict(zip(head, row, strict=True)) for row in (adult, letter))
    assert (adult["splits"], letter["splits"]) == ("2", "1")
    assert (adult["development"], letter["development"]) == ("yes", "no")
    assert [adult[name] for name in ("xgboost", "catboost", OURS)] == ["100.0", "0.0", "50.0"]
    assert (adult[PRESET], letter[PRESET]) == ("-25.0", "500.0")
    assert (adult["s, catboost"], letter[f"s, {PRESET}"]) == ("0.5", "1.5")
    everything, development, left_out = (
        dict(zip(summary_head, row, strict=True)) for row in summary
    )
    assert everything["data sets"] == "all, 2"
    assert everything["better than CatBoost"] == "50 %"
    assert everything["rank of catboost"] == "2.00"
    assert everything[f"rank of {PRESET}"] == "3.00"  # ours at its defaults has no rank
    assert everything["mean excess"] == "-2.5"  # 500 counts as 20
    assert everything["with negatives as 0"] == "10.0"
    assert everything["seconds / CatBoost's"] == "1.88"  # (0.375 + 1.5) / 1
    assert (development["mean excess"], left_out["mean excess"]) == ("-25.0", "20.0")


def test_variants_beside_the_preset(tmp_path):
    write(tmp_path, {("adult", 0): [4.0, 5.0, 6.0, 2.0, 3.0, 1.0]}, LIBRARIES)
    others = [name for name in TRIED if name != PRESET]
    losses = {("adult", 0): [0.5] + [3.0] * (len(others) - 1)}
    *_, head, _, first, _, _, _, fifth, _, _, _, _, _, last = write(tmp_path, losses, others)
    rounds, preset, last = (dict(zip(head, row, strict=True)) for row in (first, fifth, last))
    assert (rounds["variant"], preset["variant"]) == ("rounds", PRESET)
    assert (rounds["mean excess"], rounds["with negatives as 0"]) == ("-75.0", "0.0")
    assert (preset["mean excess"], last["mean excess"]) == ("-50.0", "20.0")
    assert (rounds["better than the preset"], last["better than the preset"]) == ("1", "0")
    assert (last["worst"], last["seconds / CatBoost's"]) == ("50.0", "1.50")


def test_what_is_there_is_not_measured_again(tmp_path, capsys):
    arguments = ["--datasets", "wine", "--seeds", "1", "--threads", "1", "--out", str(tmp_path)]
    write(tmp_path, {("wine", 0): [4.0, 5.0, 6.0, 2.0, 3.0, 1.0]}, LIBRARIES)
    before = (tmp_path / "defaults.jsonl").read_text("utf-8")
    defaults.main([*arguments, "--append"])
    assert (tmp_path / "defaults.jsonl").read_text("utf-8") == before
    assert "# Held-out loss at defaults" in capsys.readouterr().out
