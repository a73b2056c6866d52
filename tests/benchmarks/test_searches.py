"""Grid searches: who is measured in threads too, and that a variant changes no result of ours."""

from benchmarks import peers, searches
from benchmarks.fits import load_float32


def test_variants():
    libraries = ["sklboost", "xgboost", "hist_gb", "lightgbm_quantized"]
    assert searches.variants(libraries) == [
        *libraries,
        *("sklboost threading", "xgboost threading", "sklboost bin_features"),
    ]
    assert searches.variants(["xgboost"]) == ["xgboost", "xgboost threading"]


def test_a_search_in_threads_finds_what_one_in_processes_does():
    dataset = load_float32("binary-300x3")
    settings = peers.Settings(n_estimators=3)
    turns = [
        searches.time_search(dataset, settings, n_workers, variant)
        for n_workers, variant in [(1, "sklboost"), (2, "sklboost threading")]
    ]
    assert turns[0]["search_loss"] == turns[1]["search_loss"]
    assert all(turn["search_seconds"] > 0.0 for turn in turns)
