"""scikit-learn's searches over a Dask cluster, and fits in its tasks."""

import joblib
import numpy as np
import pytest
from dask.tokenize import tokenize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict

from sklboost import BinnedMatrix, XGBClassifierLite, XGBRegressorLite, bin_features
from sklboost.boosting.callbacks import TrainingCallback
from sklboost.engine.thread_counts import default_n_threads, n_threads_for

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


def test_predictions_of_folds(client):
    estimator = XGBClassifierLite(n_estimators=5)
    found = in_dask(cross_val_predict, estimator, X, Y, method="predict_proba", cv=3)
    assert (found == cross_val_predict(estimator, X, Y, method="predict_proba", cv=3)).all()


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


def fit_and_predict(n_jobs, seed):
    rows = np.random.default_rng(seed).normal(size=(5_000, 4))
    return XGBRegressorLite(n_estimators=5, n_jobs=n_jobs).fit(rows, rows[:, 0]).predict(rows)


def test_fits_at_the_same_time_in_the_threads_of_a_worker(client):
    for n_jobs in (None, 3):
        futures = client.map(fit_and_predict, [n_jobs] * 6, range(6), pure=False)
        for seed, found in enumerate(client.gather(futures)):
            assert (found == fit_and_predict(1, seed)).all()


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
