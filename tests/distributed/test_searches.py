"""scikit-learn's searches over a Dask cluster, fits in its tasks, lazy predictions there."""

import threading

import dask.array as da
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
from dask.tokenize import tokenize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklboost import BinnedMatrix, XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.boosting.callbacks import TrainingCallback
from sklboost.engine.parallel import default_n_threads, n_threads_for

random = np.random.default_rng(0)
X = random.normal(size=(400, 4))
SIGNAL = X[:, 0] + 0.5 * random.normal(size=400)
Y = (SIGNAL > 0).astype(int)
GRID = {"max_depth": [2, 3], "learning_rate": [0.1, 0.3]}


class StopAfterThree(TrainingCallback):
    """Ends the training after three rounds."""

    def after_iteration(self, training, epoch, evals_log):
        return epoch == 2


def search(rows=X, **parameters):
    estimator = XGBClassifierLite(n_estimators=5, random_state=0, **parameters)
    return GridSearchCV(estimator, GRID, cv=3).fit(rows, Y)


def in_dask(function, *arguments, **named):
    with joblib.parallel_config(backend="dask"):
        return function(*arguments, **named)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("processes", dict(callbacks=[StopAfterThree()])),
        ("threads", dict(early_stopping_rounds=2, subsample=0.5)),
    ],
)
def test_search_over_a_cluster(request, name, parameters):
    with request.getfixturevalue(name).as_current():
        found = in_dask(search, **parameters)
    local = search(**parameters)
    for score in ("mean_test_score", "split2_test_score"):
        assert (found.cv_results_[score] == local.cv_results_[score]).all()
    assert (found.predict_proba(X) == local.predict_proba(X)).all()
    assert found.best_estimator_.n_estimators_ == local.best_estimator_.n_estimators_


def test_bins_go_to_a_cluster_once(client, monkeypatch):
    reduce, sent = BinnedMatrix.__reduce__, []
    monkeypatch.setattr(BinnedMatrix, "__reduce__", lambda bins: sent.append(1) or reduce(bins))
    bins = bin_features(X)
    found = in_dask(search, bins)
    assert len(sent) <= 1  # not at all to a worker in this process
    local = search(bins)
    assert (found.cv_results_["mean_test_score"] == local.cv_results_["mean_test_score"]).all()


# --- tasks


def threads_of_task():
    return default_n_threads(), n_threads_for(3, 10**9, 1_000)


def test_threads_in_a_task(client):
    # of joblib's tasks, too, in which it would ask the scheduler for the size of the cluster
    assert client.submit(threads_of_task, pure=False).result() == (1, 3)
    assert (
        in_dask(lambda: joblib.Parallel()([joblib.delayed(threads_of_task)()] * 4)) == [(1, 3)] * 4
    )


def test_threads_beside_a_cluster(threads, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setattr(joblib, "effective_n_jobs", lambda n_jobs: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert threads.submit(default_n_threads, pure=False).result() == 1
    assert default_n_threads() == 8


def test_names_of_results_tell_fits_apart(threads):
    estimator = XGBRegressorLite(n_estimators=2)
    one, other = clone(estimator).fit(X, SIGNAL), clone(estimator).fit(X, -SIGNAL)
    assert tokenize(one) == tokenize(one)
    assert len({tokenize(each) for each in (one, other, estimator)}) == 3
    assert tokenize(estimator) == tokenize(clone(estimator))
    assert tokenize(estimator) != tokenize(clone(estimator).set_params(n_estimators=3))
    # Dask takes tasks of one name for one task
    predict = XGBRegressorLite.predict
    found = threads.gather([threads.submit(predict, each, X[:3]) for each in (one, other)])
    assert not (found[0] == found[1]).any()


# --- lazy predictions that workers compute

# How often an estimator of this class came to this process.
arrivals = []


class Counted(XGBRegressorLite):
    """Notes when it comes from another process."""

    def __setstate__(self, state):
        arrivals.append(1)
        super().__setstate__(state)


def n_arrivals():
    return len(arrivals)


def test_predictions_on_a_cluster(client):
    local = XGBClassifierLite(n_estimators=5).fit(X, Y)
    array = da.from_array(X, chunks=(70, 2))
    frame = dd.from_pandas(pd.DataFrame(X), npartitions=5)
    assert (local.predict_proba(array).compute() == local.predict_proba(X)).all()
    assert (local.predict_proba(array).persist().compute() == local.predict_proba(X)).all()
    assert (local.predict_proba(frame).compute() == local.predict_proba(X)).all(axis=None)
    assert (client.compute(local.apply(array)).result() == local.apply(X)).all()
    assert local.score(frame, da.from_array(Y)) == local.score(X, Y)


class Locked(TrainingCallback):
    """Has what cannot be sent to another process."""

    def __init__(self):
        self.lock = threading.Lock()


def test_models_of_what_is_hard_to_send(client):
    parameters = dict(callbacks=[Locked()], objective=lambda y, score: (score - y, score**0))
    local = XGBRegressorLite(n_estimators=5, **parameters).fit(X, SIGNAL)
    assert (local.predict(da.from_array(X, chunks=70)).compute() == local.predict(X)).all()
    assert len(local.callbacks) == 1


def test_the_model_comes_to_a_worker_once(processes):
    local = Counted(n_estimators=5).fit(X, SIGNAL)
    with processes.as_current():
        found = local.predict(da.from_array(X, chunks=10)).compute()
    assert (found == local.predict(X)).all()
    assert max(processes.run(n_arrivals).values()) == 1
