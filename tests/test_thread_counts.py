import multiprocessing

import joblib
import pytest

from sklboost.engine import parallel as placement
from sklboost.engine import parallel as thread_counts
from sklboost.engine.parallel import default_n_threads, n_threads_for


@pytest.fixture
def machine(monkeypatch):
    """Return a function that sets what joblib, the environment and the system say."""

    def set_up(n_cpus=8, nesting=8, inner=None, n_spare=None):
        monkeypatch.setattr(placement, "n_spare_processors", lambda allowed: n_spare)
        monkeypatch.setattr(thread_counts.joblib, "cpu_count", lambda: n_cpus)
        monkeypatch.setattr(thread_counts.joblib, "effective_n_jobs", lambda n_jobs: nesting)
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if inner is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", inner)

    return set_up


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 8),
        (dict(inner="3"), 3),
        (dict(inner="1"), 1),
        (dict(inner="100"), 8),
        (dict(inner=""), 8),
        (dict(inner="0"), 8),
        (dict(inner="many"), 8),
        (dict(nesting=1), 1),
        (dict(n_cpus=4), 4),
        (dict(n_cpus=4, nesting=3, inner="2"), 2),
    ],
)
def test_default_number_of_threads(machine, limits, expected):
    machine(**limits)
    assert default_n_threads() == expected
    assert n_threads_for(None, 10**9, 1000) == expected


def test_one_thread_in_each_worker_thread_of_joblib(machine):
    machine()
    workers = joblib.Parallel(n_jobs=2, backend="threading")
    assert workers(joblib.delayed(default_n_threads)() for _ in range(3)) == [1, 1, 1]
    assert default_n_threads() == 8


def test_one_thread_in_each_process_of_a_pool(machine, monkeypatch):
    machine()
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert default_n_threads() == 1  # joblib is not asked, which would warn of it


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(1, 1), (5, 5), (20, 20), (-1, 8), (-2, 7), (-8, 1), (-100, 1)]
)
def test_number_of_threads_that_the_user_allows(machine, n_jobs, expected):
    machine(inner="2")  # what the user says counts for more
    assert n_threads_for(n_jobs, 10**9, 1000) == expected


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("work", "expected"),
    [(0, 1), (1000, 1), (3999, 1), (4000, 2), (9000, 3), (10**6, 8)],
)
def test_small_work_takes_fewer_threads(machine, work, expected):
    machine()
    assert n_threads_for(None, work, 1000) == n_threads_for(-1, work, 1000) == expected
    assert n_threads_for(2, work, 1000) == min(expected, 2)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_spare", [None, 7, 1, 0, -3])
def test_small_work_takes_no_more_threads_than_find_a_processor(machine, n_spare):
    machine(n_spare=n_spare)
    most = thread_counts._FEW_THREADS
    small, large = 1000 * most**2, 1000 * (most + 1) ** 2
    expected = {1: 2, 0: 1, -3: 1}.get(n_spare, most)
    assert n_threads_for(None, small, 1000) == n_threads_for(-1, small, 1000) == expected
    assert n_threads_for(None, small, 1000, thread_counts._FEW_TIMES) == expected
    assert n_threads_for(None, small, 1000, thread_counts._FEW_TIMES + 1) == most
    assert n_threads_for(None, large, 1000) == most + 1
