"""Where the threads of a team run, and how helpers leave the processor of another member."""

import ctypes
import threading

import numpy as np
import pytest

from sklboost.engine import parallel as placement
from sklboost.engine.parallel import (
    Placement,
    ThreadTeam,
    allowed_processors,
    current_processor,
    n_spare_processors,
    n_that_find_one,
)
from tests.test_parallel import meet

ALLOWED = allowed_processors() or {0}


@pytest.fixture
def load(monkeypatch, tmp_path):
    """Return a function that sets what the system says of the threads that could run.

    Of a machine that has no other processors than those that this process may use.
    """
    monkeypatch.setattr(placement.os, "cpu_count", lambda: len(ALLOWED))

    def set_up(n_running, text="0.52 0.58 0.59 {}/1234 56789\n"):
        path = tmp_path / "loadavg"
        path.write_text(text.format(n_running))
        monkeypatch.setattr(placement, "_LOAD", path)

    return set_up


def run_in_a_thread(function):
    """Call it in a thread of its own, whose processors are no concern of other tests."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def seen_while_running_apart(processors):
    """Return the processors of member 1 while its part runs, and after it.

    `processors` is where the members are seen, the last one being where member 1 is.
    """
    found = []

    def run():
        where = Placement(len(processors))
        for rank in range(len(processors)):
            placement.current_processor = lambda rank=rank: processors[rank]
            if rank != 1:
                where.look(rank)
        placement.current_processor = lambda: processors[1]
        where.run_apart(1, lambda rank: found.append((rank, allowed_processors())))
        found.append(allowed_processors())

    before = placement.current_processor
    try:
        run_in_a_thread(run)
    finally:
        placement.current_processor = before
    (rank, during), after = found
    assert rank == 1
    return during, after


# --- how many processors are idle ----------------------------------------------------------------


@pytest.mark.parametrize("n_running", [1, 3, 70])
def test_spare_processors_are_those_that_no_thread_needs(load, monkeypatch, n_running):
    load(n_running)
    monkeypatch.setattr(placement, "allowed_processors", lambda: ALLOWED)
    n_spare = len(ALLOWED) - n_running
    assert n_spare_processors(ALLOWED) == n_spare
    assert [n_that_find_one(limit) for limit in (1, 2, 9)] == [
        max(1, min(limit, 1 + n_spare)) for limit in (1, 2, 9)
    ]


def test_a_load_that_cannot_be_read_is_unknown(load, monkeypatch, tmp_path):
    for text in ("", "0.52 0.58 0.59", "0.1 0.1 0.1 some/all 3", "1 2 3 4"):
        load(1, text)
        assert n_spare_processors(ALLOWED) is None
        assert n_that_find_one(9) == 9
    load(1)  # where threads may not run everywhere
    assert n_spare_processors(set(list(ALLOWED)[1:])) is None
    assert n_spare_processors(ALLOWED | {-7}) is None
    monkeypatch.setattr(placement, "_LOAD", tmp_path / "none")
    assert n_spare_processors(ALLOWED) is None


def test_on_other_systems_nothing_is_known_and_nothing_done(load, monkeypatch):
    load(0)
    monkeypatch.setattr(placement.sys, "platform", "win32")
    monkeypatch.delattr(placement.os, "sched_setaffinity", raising=False)
    assert allowed_processors() == set()
    assert placement._find_getcpu()() == -1
    assert n_that_find_one(5) == 5
    assert seen_while_running_apart([0, 0]) == (set(), set())


def test_without_the_functions_nothing_is_known(monkeypatch):
    monkeypatch.setattr(ctypes, "PyDLL", lambda name: object())
    assert placement._find_getcpu()() == -1

    def fail(*arguments):
        raise PermissionError

    monkeypatch.setattr(placement.os, "sched_getaffinity", fail, raising=False)
    assert allowed_processors() == set()


# --- moves ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_running", [len(ALLOWED), len(ALLOWED) + 1])
def test_a_helper_leaves_a_processor_while_it_runs_if_another_is_idle(load, n_running):
    load(n_running)
    before = allowed_processors()  # none on other systems than Linux
    assert current_processor() in (before or {-1})
    first, *rest = sorted(ALLOWED)
    is_idle = n_running == len(ALLOWED) and rest  # of one processor, none can be left
    expected = before - {first} if is_idle else before
    assert seen_while_running_apart([first, first]) == (expected, before)
    assert seen_while_running_apart([-1, first, first]) == (expected, before)
    # one that is alone, or somewhere unknown, stays
    for processors in ([0, 1], [1, 0, -1], [-1, -1], [-1, 0]):
        assert seen_while_running_apart(processors) == (before, before)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("sched_setaffinity", OSError),
        ("n_spare_processors", MemoryError),
        ("current_processor", OSError),
    ],
)
def test_a_helper_that_cannot_move_runs_where_it_is(load, monkeypatch, name, error):
    def fail(*arguments):
        raise error

    load(0)
    places, wrong = np.zeros(24, dtype=np.int64), np.zeros(1, dtype=np.int64)
    caller = threading.get_ident()
    owner = placement.os if name == "sched_setaffinity" else placement
    monkeypatch.setattr(placement, "current_processor", lambda: min(ALLOWED))
    if name == "current_processor":  # the caller's own would be raised there
        monkeypatch.setattr(
            placement, name, lambda: 0 if threading.get_ident() == caller else fail()
        )
    else:
        monkeypatch.setattr(owner, name, fail, raising=False)
    with ThreadTeam(3) as team:
        for _ in range(3):
            team.run(meet, 20, places, wrong)
    assert wrong[0] == 0


def test_a_team_whose_helpers_move(load, monkeypatch):
    load(0)
    monkeypatch.setattr(placement, "current_processor", lambda: min(ALLOWED))
    before = allowed_processors()
    places, wrong = np.zeros(24, dtype=np.int64), np.zeros(1, dtype=np.int64)
    with ThreadTeam(3) as team:
        for _ in range(5):
            team.run(meet, 20, places, wrong)
    assert wrong[0] == 0
    assert allowed_processors() == before
