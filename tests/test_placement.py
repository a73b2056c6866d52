"""Where threads run, and how they leave a processor."""

import os
import sys
import threading

import pytest

from sklboost.engine import placement
from sklboost.engine.placement import (
    allowed_processors,
    current_processor,
    leave_processors,
    n_idle_processors,
)

EVERY = set(range(os.cpu_count()))


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Return a function that sets what the system says of its load."""

    def set_up(text):
        path = tmp_path / "loadavg"
        path.write_text(text)
        monkeypatch.setattr(placement, "_LOAD", path)

    return set_up


def in_a_thread(function, *arguments):
    """Call it in a thread of its own, whose processors are no concern of other tests."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function(*arguments)))
    thread.start()
    thread.join()
    return found[0]


def processors_after_leaving(taken, allowed):
    leave_processors(taken, allowed)
    return allowed_processors()


def test_a_thread_runs_on_a_processor_that_it_is_allowed():
    assert current_processor() in (allowed_processors() or {-1})


@pytest.mark.parametrize("n_running", [1, 3, 70])
def test_idle_processors_are_those_that_threads_could_have(load, n_running):
    load(f"0.52 0.58 0.59 {n_running}/1234 56789\n")
    assert n_idle_processors(EVERY) == len(EVERY) - n_running


@pytest.mark.parametrize("text", ["", "0.52 0.58 0.59", "0.1 0.1 0.1 some/all 3"])
def test_a_load_that_cannot_be_read_is_not_known(load, text):
    load(text)
    assert n_idle_processors(EVERY) is None


def test_no_file_and_a_thread_that_is_not_allowed_all_processors(load, monkeypatch, tmp_path):
    load("0.1 0.1 0.1 1/9 9")
    assert n_idle_processors(set(list(EVERY)[1:])) is None
    assert n_idle_processors(set()) is None
    monkeypatch.setattr(placement, "_LOAD", tmp_path / "none")
    assert n_idle_processors(EVERY) is None


def test_systems_that_do_not_tell_where_threads_may_run(monkeypatch):
    monkeypatch.setattr(placement.sys, "platform", "win32")
    assert allowed_processors() == set()
    assert n_idle_processors(allowed_processors()) is None


@pytest.mark.skipif(sys.platform != "linux", reason="nothing can be left")
@pytest.mark.parametrize(("n_running", "leaves"), [(len(EVERY), True), (len(EVERY) + 1, False)])
def test_a_thread_leaves_a_processor_if_another_is_idle(load, n_running, leaves):
    load(f"0.1 0.1 0.1 {n_running}/99 9")
    before = allowed_processors()
    others = EVERY - {0} or EVERY  # of one processor, none can be left
    expected = others if leaves else before
    assert in_a_thread(processors_after_leaving, {0}, EVERY) == expected
    assert in_a_thread(processors_after_leaving, EVERY, EVERY) == before
    assert allowed_processors() == before  # of this thread
