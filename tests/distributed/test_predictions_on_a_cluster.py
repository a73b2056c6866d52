"""Lazy predictions that the workers of a Dask cluster compute."""

import threading

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.boosting.callbacks import TrainingCallback

random = np.random.default_rng(0)
X = random.normal(size=(400, 4))
SIGNAL = X[:, 0] + 0.5 * random.normal(size=400)
Y = (SIGNAL > 0).astype(int)

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
