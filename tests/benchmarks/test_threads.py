"""Threads: the fits that note what they do keep their trees, and the tables tell who is faster."""

import time

import numpy as np
import pytest

from benchmarks import peers, threads

TINY = ("binary-2000x5", peers.Settings(n_estimators=2, max_depth=3))
HISTOGRAMS = threads.PHASES.index("histograms")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(time, "clock_gettime"), reason="this system has another clock")
def test_fits_that_note_what_they_do_have_the_trees_of_a_plain_one():
    (measured,) = threads.measure_waits(*TINY, [2], 1)
    assert set(measured["phases"]) == set(threads.PHASES) - {"other"}
    assert measured["phases"]["beginning of a call"]["meetings"] > 1  # notes of all calls
    assert 0.0 < measured["wait_ratio"] < 1.0


def test_other_trees_are_noticed(monkeypatch):
    monkeypatch.setattr(threads, "fit_in_child", lambda *arguments: [{"digest": "another"}])
    with pytest.raises(RuntimeError, match="2 members noted what they did, in other trees"):
        list(threads.measure_waits(*TINY, [2], 1))


def test_who_comes_late_and_how_long_the_other_waits():
    first, second = ([[HISTOGRAMS, t], [threads.LEAVE, 5000]] for t in (1000, 4000))
    found = threads.waits([np.array(first), np.array(second)], 8e-6)
    phase = found["phases"]["histograms"]
    assert found["wait_ratio"] == pytest.approx(2.5 / 8)
    assert phase["late_microseconds"] == [3.0, 3.0]
    assert phase["release_microseconds"] == 1.0


def test_the_table_has_medians_and_the_ratio_to_the_fastest_peer():
    records = [
        {
            "kind": "fit",
            "workload": "w",
            "library": library,
            "threads": n,
            "fit_seconds": seconds / n,
        }
        for library, times in {"sklboost": (1.0, 9.0, 2.0), "a": (8.0,), "b": (6.0,)}.items()
        for seconds in times
        for n in (1, 4)
    ]
    lines = threads._table_of(records, "fit_seconds")
    assert lines[2] == "| w | sklboost | 2 | 0.5 | 4.0 |"
    assert lines[-1] == "| w | fastest peer / sklboost | 3.00 | 3.00 |  |"
