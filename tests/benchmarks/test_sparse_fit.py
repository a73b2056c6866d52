"""A fit in a process of its own: what it measures is of the data set that was saved."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from benchmarks import measure, peers, sparse_fit
from benchmarks.datasets import Dataset


def test_figures_of_a_process(tmp_path):
    X = sparse.random(500, 20, 0.1, "csr", np.float32, random_state=0)
    y = X @ np.arange(20.0)
    dataset = Dataset("tiny", "regression", X[100:], y[100:], X[:100], y[:100])
    sparse_fit.save(dataset, tmp_path)
    settings = peers.Settings(n_estimators=20, learning_rate=0.3, max_depth=3)
    figures = sparse_fit.measure_fit("sklboost", tmp_path, "regression", settings, 1)
    here = measure.fit_and_predict("sklboost", dataset, settings, 1)
    assert figures["test_loss"] == here.test_loss < 0.5 * np.mean(y[:100] ** 2)
    assert 0.0 < figures["fit_cpu_seconds"] < 100.0
    assert 0.0 < figures["fit_seconds"] < 100.0
    assert np.isnan(figures["peak_mib"]) != sys.platform.startswith("linux")


def test_a_process_that_fails_is_no_figure(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        sparse_fit.measure_fit("sklboost", tmp_path, "regression", peers.Settings(), 1)
