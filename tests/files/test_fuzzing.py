"""A few thousand damaged files: each is refused or works, and no process crashes or hangs."""

import pytest

from tests.files.fuzzing import Corpus, run_cases, watch_cases

N_CASES = 1_500


@pytest.fixture(scope="module")
def corpus():
    return Corpus()


def test_damaged_files_are_refused_or_work(corpus):
    counts = run_cases(corpus, 0, range(N_CASES), is_thorough=False)
    assert sum(counts.values()) == N_CASES
    # the damage is neither all found at once nor none
    assert min(counts["refused"], counts["loaded"]) > N_CASES // 10


def test_all_methods_of_models_of_damaged_files(corpus):
    counts = run_cases(corpus, 1, range(200), is_thorough=True)
    assert counts["loaded"] > 20


@pytest.mark.parametrize("interpreted", [False, True])
def test_in_processes_that_are_watched(interpreted):
    outcomes = dict(watch_cases(2, range(100), is_thorough=False, interpreted=interpreted))
    assert set(outcomes) == set(range(100))
    assert set(outcomes.values()) == {"refused", "loaded"}
