"""Searches whose candidates are fitted in threads of one process, and what may go wrong there."""

import threading

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV

from sklboost import XGBClassifierLite
from sklboost.data import features as shared_bins
from tests.conftest import run_python
from tests.small_models import small

GRID = {"max_depth": [1, 2, 3], "learning_rate": [0.1, 0.5], "min_child_weight": [0.5, 2.0]}
N_CANDIDATES, N_FOLDS = 12, 3


def search(data, grid=GRID, n_workers=2, **parameters):
    X, y = data
    model = small(XGBClassifierLite, **parameters)
    with parallel_config("threading", n_jobs=n_workers):
        return GridSearchCV(model, grid, scoring="neg_log_loss", cv=N_FOLDS).fit(X, y)


def scores(fitted):
    return np.array([fitted.cv_results_[f"split{i}_test_score"] for i in range(N_FOLDS)])


@pytest.fixture
def count(monkeypatch):
    """A list that grows by one whenever bins are made."""
    made, make = [], shared_bins.find_cuts

    def counted(*arguments):
        made.append(threading.get_ident())
        return make(*arguments)

    monkeypatch.setattr(shared_bins, "find_cuts", counted)
    return made


@pytest.mark.parametrize(
    ("form", "parameters"),
    [
        (np.array, {"early_stopping_rounds": 2, "random_state": 0}),
        (pd.DataFrame, {"n_jobs": 2, "subsample": 0.5, "colsample_bytree": 0.5, "random_state": 1}),
    ],
)
def test_scores_are_those_of_fits_one_after_another(binary, form, parameters):
    data = form(binary[0]), binary[1]
    grid = GRID | {"min_child_weight": [1.0]}
    alone = search(data, grid, n_workers=1, **parameters)
    together = search(data, grid, **parameters)
    assert_array_equal(scores(together), scores(alone))
    assert_array_equal(
        together.best_estimator_.predict_proba(data[0]),
        alone.best_estimator_.predict_proba(data[0]),
    )


def test_candidates_share_the_bins_of_a_fold(binary, count):
    search(binary, n_workers=1)
    assert len(count) == N_CANDIDATES * N_FOLDS + 1  # the last is the fit on all rows
    count.clear()
    search(binary)
    # two threads that come to a fold at the same time both make its bins
    assert N_FOLDS + 1 <= len(count) <= 2 * N_FOLDS + 1


def test_a_candidate_that_fails_fails_alone(binary):
    grid = {"max_depth": [1, -1, 2]}
    with (
        pytest.warns(FitFailedWarning, match="max_depth=-1"),
        pytest.warns(UserWarning, match="non-finite"),
    ):
        found = scores(search(binary, grid))
    assert np.isnan(found[:, 1]).all()
    assert_array_equal(found[:, [0, 2]], scores(search(binary, {"max_depth": [1, 2]})))


INTERRUPTED = """
import signal, threading
import numpy as np
from joblib import parallel_config
from sklearn.model_selection import GridSearchCV
from sklboost import XGBRegressorLite
from sklboost.engine.parallel import _serve

random = np.random.default_rng(0)
X = random.normal(size=(2_000, 8)).astype(np.float32)
y = X[:, 0] * (X[:, 1] > 0) + random.normal(size=2_000)
expected = XGBRegressorLite(n_estimators=5).fit(X, y).predict(X)

def fit(n_estimators):
    grid = {"max_depth": [2, 3], "learning_rate": list(np.linspace(0.1, 0.3, 100))}
    model = XGBRegressorLite(n_estimators=n_estimators)
    return GridSearchCV(model, grid, cv=3, error_score="raise").fit(X, y)

with parallel_config("threading", n_jobs=2):
    for delay in (0.0, 0.05, 0.5):
        timer = threading.Timer(delay, signal.raise_signal, [signal.SIGINT])
        try:
            timer.start()
            fit(200)
            raise AssertionError("the search was over before it was interrupted")
        except KeyboardInterrupt:
            timer.join()
        found = XGBRegressorLite(n_estimators=5, n_jobs=2).fit(X, y).predict(X)
        assert np.array_equal(found, expected)
# joblib may leave idle daemons of a pool that was interrupted while it began; a team leaves none
left = [thread for thread in threading.enumerate() if getattr(thread, "_target", None) is _serve]
assert not left, left
print("ended well")
"""


@pytest.mark.slow
def test_an_interrupt_ends_the_search_and_the_process_goes_on(tmp_path):
    assert run_python(INTERRUPTED, tmp_path) == "ended well"
