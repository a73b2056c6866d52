"""The fit by phase: it grows the trees of a plain fit, or says that it is out of date."""

import pytest

from benchmarks import datasets, peers, phases

DATASET = datasets.load("binary-5000x8")
SETTINGS = peers.Settings(n_estimators=3, max_depth=4)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("settings", [SETTINGS, SETTINGS._replace(grow_policy="lossguide")])
def test_same_trees_as_a_plain_fit(settings, n_threads):
    seconds = phases.compare_with_fit(DATASET, settings, n_threads, "sklboost")
    assert seconds["fit_seconds"] > 0.0
    assert {"cut points", "root histogram", "leaf values"} < set(seconds["phase_seconds"])


def test_a_phase_that_is_missing_is_noticed(monkeypatch):
    monkeypatch.setattr(phases, "finish_by_phase", lambda *arguments: None)
    with pytest.raises(RuntimeError, match=r"bring benchmarks/phases\.py up to date"):
        phases.compare_with_fit(DATASET, SETTINGS, 1, "sklboost")
