"""Turns: everyone in every repeat, another one first, and who stops when the time is spent."""

import pytest

from benchmarks import environment
from benchmarks.turns import Options, goes_on, more_for_small, take_turns

NAMES = ["sklboost", "xgboost", "catboost"]


def test_each_repeat_begins_with_another_library():
    options = Options(NAMES, repeats=3, budget=100.0)
    turns = list(take_turns(options, lambda library, repeat: {"seen": (library, repeat)}))
    assert [turn["library"] for turn in turns] == [
        *("sklboost", "xgboost", "catboost"),
        *("xgboost", "catboost", "sklboost"),
        *("catboost", "sklboost", "xgboost"),
    ]
    assert all(turn["seen"] == (turn["library"], turn["repeat"]) for turn in turns)
    assert all(turn["elapsed_seconds"] >= 0.0 for turn in turns)


@pytest.mark.parametrize("n_cores", [1, 2])
def test_a_turn_tells_how_long_two_threads_take_to_meet(monkeypatch, n_cores):
    monkeypatch.setattr(environment, "n_cores", lambda: n_cores)
    (turn,) = take_turns(Options(NAMES[:1], repeats=1, budget=1.0), lambda library, repeat: {})
    if n_cores == 1:
        assert turn["meeting_ns"] is None
    else:
        assert turn["meeting_ns"] > 1.0


@pytest.mark.parametrize("ours", [0.1, 9.0])
def test_without_time_ours_and_the_fastest_peers_have_three_turns(ours):
    seconds = {
        "sklboost": ours,
        "sklboost threading": ours / 2,
        "xgboost": 1.0,
        "lightgbm": 1.5,
        "catboost": 1.6,
    }
    spent = {name: [] for name in seconds}
    for _ in range(9):
        for name in seconds:
            if goes_on(name, spent, budget=0.0):
                spent[name].append(seconds[name])
    n_turns = {name: len(turns) for name, turns in spent.items()}
    assert n_turns == {
        "sklboost": 3,
        "sklboost threading": 3,
        "xgboost": 3,
        "lightgbm": 3,
        "catboost": 1,
    }


def test_nobody_begins_a_turn_that_would_exceed_the_budget():
    spent = {"sklboost": [1.0], "xgboost": [4.0, 4.0, 4.0]}
    assert goes_on("xgboost", spent, budget=16.0)
    assert not goes_on("xgboost", spent, budget=15.9)


def test_small_fits_are_repeated_more_often():
    options = Options(NAMES, repeats=3, budget=1.0)
    assert more_for_small(options, 10_000).repeats > 3
    assert more_for_small(options, 10_001) == options
