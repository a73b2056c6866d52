"""Damaged files: each is refused or works, and no process crashes or hangs."""

import pytest

from tests.files.fuzzing import Corpus, run_cases, watch_cases


@pytest.mark.parametrize(
    ("pattern", "n_cases"),
    [("*", 200), ("lightgbm_*", 60)]
    + [pytest.param(*more, marks=pytest.mark.slow) for more in (("*", 1_500), ("lightgbm_*", 900))],
)
def test_damaged_files_are_refused_or_work(pattern, n_cases):
    counts = run_cases(Corpus(pattern), 0, range(n_cases), is_thorough=False)
    assert sum(counts.values()) == n_cases
    # the damage is neither all found at once nor none
    assert min(counts["refused"], counts["loaded"]) > n_cases // 10


@pytest.mark.parametrize("n_cases", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_all_methods_of_models_of_damaged_files(n_cases):
    counts = run_cases(Corpus(), 1, range(n_cases), is_thorough=True)
    assert counts["loaded"] > n_cases // 10


@pytest.mark.slow
@pytest.mark.parametrize("interpreted", [False, True])
def test_in_processes_that_are_watched(interpreted):
    outcomes = dict(watch_cases(2, range(100), is_thorough=False, interpreted=interpreted))
    assert set(outcomes) == set(range(100))
    assert set(outcomes.values()) == {"refused", "loaded"}
