"""Data sets with categories and sparse ones, and what libraries and other processes get of them."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from benchmarks import categories, peers, runner
from benchmarks import sparse as sparse_benchmark
from benchmarks.datasets import Dataset


@pytest.fixture(scope="module")
def drawn():
    return categories.load("zipf-300", 0)


def test_frames_and_codes_are_the_same_rows_and_the_seed_decides(drawn):
    frames, codes = drawn
    assert categories.category_names(frames.X_train) == ["level"]
    for frame, numbers in ((frames.X_train, codes.X_train), (frames.X_test, codes.X_test)):
        # codes of the frame are ranks of the sorted levels as well
        np.testing.assert_array_equal(frame["level"].cat.codes, numbers[:, -1])
        np.testing.assert_array_equal(frame["number_0"].to_numpy(np.float64), numbers[:, 0])
    assert len(frames.y_train) == len(frames.X_train) == categories.N_TRAIN
    assert len(frames.y_test) == len(frames.X_test) == categories.N_TEST
    assert (categories.load("zipf-300", 1)[1].y_train != codes.y_train).all()


def test_libraries_get_what_they_take(drawn):
    frames, _ = drawn
    assert categories.takes("sklboost", frames)
    assert not categories.takes("hist_gb", frames)  # 300 levels, and 255 is its limit
    X = frames.X_train.head(3)
    X = X.assign(level=X["level"].where([True, True, False]))
    text = categories.prepare("catboost", frames._replace(X_train=X)).X_train["level"]
    assert text.tolist()[2] == "missing"
    assert categories.parameters("catboost", frames) == {"cat_features": ["level"]}


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="'zipf': it must be 'access', like 'zipf-5000'"):
        categories.load("zipf", 0)
    with pytest.raises(ValueError, match="'narrow': it must be one of wide"):
        sparse_benchmark.load("narrow", 0)


@pytest.mark.slow
def test_a_process_measures_a_fit_of_sparse_data_that_were_saved_or_fails(tmp_path):
    X = sparse.random(500, 20, 0.1, "csr", np.float32, random_state=0)
    y = X @ np.arange(20.0)
    tiny = Dataset("tiny", "regression", X[100:], y[100:], X[:100], y[:100])
    sparse_benchmark.save(tiny, tmp_path / "saved")
    settings = peers.Settings(n_estimators=20, learning_rate=0.3, max_depth=3)
    job = ["sklboost", str(tmp_path / "saved"), "regression", settings._asdict(), 1]
    figures = runner.in_child("benchmarks.sparse", *job)
    here = peers.fit_and_predict("sklboost", tiny, settings, 1)
    assert figures["test_loss"] == here["test_loss"] < 0.5 * np.mean(tiny.y_test**2)
    assert 0.0 < figures["fit_cpu_seconds"] < 100.0
    assert 0.0 < figures["fit_seconds"] < 100.0
    assert np.isnan(figures["peak_mib"]) != sys.platform.startswith("linux")
    job[1] = str(tmp_path / "none")
    with pytest.raises(subprocess.CalledProcessError):
        runner.in_child("benchmarks.sparse", *job)
