"""Notes of meetings: the fits keep their trees, and the model of larger teams adds up."""

import time

import numpy as np
import pytest

from benchmarks import peers, threads

TINY = ("binary-2000x5", peers.Settings(n_estimators=2, max_depth=3))
HISTOGRAMS = threads.PHASES.index("histograms")


def shared(n_items):
    """Return the note of a share of so many items."""
    return threads.SHARE + threads.N_NOTES * n_items


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(time, "clock_gettime"), reason="this system has another clock")
def test_fits_that_note_what_they_do_have_the_trees_of_a_plain_one():
    measured, alone, *_, four = (
        *threads.measure(*TINY, {"waits": (2,)}, 1),
        *threads.measure(*TINY, {"cores": (1, 4)}, 1),
    )
    assert set(measured["phases"]) == set(threads.PHASES) - {"other"}
    assert measured["phases"]["beginning of a call"]["meetings"] > 1  # notes of all calls
    assert 0.0 < measured["wait_ratio"] < 1.0
    assert alone["seconds"] == pytest.approx(alone["work"] + alone["python"] + alone["serial"])
    assert alone["uneven"] == pytest.approx(0.0, abs=1e-9)
    assert four["work"] < 0.5 * four["seconds"]  # Python and meetings take the most


def test_other_trees_are_noticed(monkeypatch):
    monkeypatch.setattr(threads, "fit_in_child", lambda *arguments: [{"digest": "another"}])
    with pytest.raises(RuntimeError, match="2 members noted what they did, in other trees"):
        list(threads.measure(*TINY, {"waits": (2,)}, 1))


def test_tasks_go_to_who_is_free():
    pieces = [(threads.LEAVE, 2.0), *[(threads.TASK, 1.0)] * 5, (HISTOGRAMS, 0.0)]
    expected = threads.replay(pieces, 2, 0.0)
    # the other member takes two while the first one is busy
    assert expected["seconds"] == 4.0
    assert (expected["serial"], expected["work"], expected["uneven"]) == (2.0, 2.5, -0.5)


def test_shares_are_of_whole_items_and_parts_are_merged():
    routing = threads.PHASES.index("rows")
    assert threads.replay([(shared(28), 28.0), (routing, 0.0)], 16, 0.0)["seconds"] == 2.0
    merged = threads.replay([(shared(28), 28.0), (HISTOGRAMS, 0.0)], 16, 0.0)
    assert (merged["seconds"], merged["merging"]) == (32.0, 32.0)


def test_meetings_and_tasks_cost_latencies():
    pieces = [(threads.TASK, 0.0), (HISTOGRAMS, 0.0)]
    assert threads.replay(pieces, 3, 1.0)["seconds"] == 4.0 + 1.0 + 4.0  # met twice, the end is one


def test_who_comes_late_and_how_long_the_other_waits():
    first, second = ([[HISTOGRAMS, t], [threads.LEAVE, 5000]] for t in (1000, 4000))
    found = threads.waits([np.array(first), np.array(second)], 8e-6)
    phase = found["phases"]["histograms"]
    assert phase["wait_seconds"] == pytest.approx(2.5e-6)
    assert found["wait_ratio"] == pytest.approx(2.5 / 8)
    assert phase["late_microseconds"] == [3.0, 3.0, 3.0]
    assert phase["release_microseconds"] == 1.0


def test_arrivals_that_follow_one_another():
    found = [threads.n_in_turn(n_members) for n_members in (1, 2, 4, 5, 16, 17, 64)]
    assert found == [0, 2, 4, 4 + 2, 4 + 4, 4 + 4 + 2, 4 + 4 + 4]
