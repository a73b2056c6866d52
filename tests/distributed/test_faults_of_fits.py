"""Fits that lose workers on the way end with the model that they would have had."""

import os
import signal
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from sklboost import (
    TrainingCallback,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
    survival_targets,
)
from sklboost.distributed import training
from sklboost.distributed.worker_group import LostWorkersError, WorkerGroup
from tests.conftest import ROOT
from tests.distributed.machines import assert_same_model
from tests.distributed.worker_groups import open_group, wait_until

N_ROWS = 20_000
X = np.random.default_rng(0).normal(size=(N_ROWS, 4)).round(2)
Y = X[:, 0] + np.sin(3 * X[:, 1])


@pytest.fixture(scope="module")
def cluster():
    with open_group(3, processes=True) as group:
        yield group._client


@pytest.fixture
def client(cluster):
    wait_until(lambda: len(cluster.ncores()) >= 2, 60)
    return cluster


def kill(client, *, n_workers=1):
    for process in list(client.run(os.getpid).values())[:n_workers]:
        os.kill(process, signal.SIGKILL)


class At(TrainingCallback):
    """Does something after some rounds."""

    def __init__(self, rounds, do):
        self.rounds, self.do = rounds, do

    def after_iteration(self, training, epoch, evals_log):
        if epoch in self.rounds:
            self.do()
        return False


def fit(callbacks=(), **settings):
    model = XGBRegressorLite(n_estimators=8, subsample=0.7, random_state=0, **settings)
    collection = da.from_array(X, chunks=(3000, 4))
    return model.set_params(callbacks=list(callbacks)).fit(
        collection, da.from_array(Y, chunks=7000)
    )


@pytest.fixture(scope="module")
def alone():
    return XGBRegressorLite(n_estimators=8, subsample=0.7, random_state=0).fit(X, Y)


@pytest.mark.parametrize(
    ("rounds", "n_workers"), [({1, 4}, 1), pytest.param({2}, 3, marks=pytest.mark.slow)]
)
def test_workers_are_killed_after_some_rounds(client, alone, rounds, n_workers):
    assert_same_model(fit([At(rounds, lambda: kill(client, n_workers=n_workers))]), alone)


@pytest.mark.parametrize("of", ["queries", "strata"])
def test_a_worker_with_a_part_of_groups_is_killed(client, of):
    model = XGBRankerLite(n_estimators=6, objective="rank:yeti", min_child_weight=0)
    y, given = np.digitize(Y, [0.0, 1.0]), dict(qid=np.arange(N_ROWS) // 30)
    if of == "strata":
        model = XGBSurvivalLite(n_estimators=6, ties="efron")
        time, given = np.exp(Y).round(1).clip(0.1), {}
        y = survival_targets(Y < 0.0, time, strata=np.arange(N_ROWS) % 2)
    alone = clone(model).fit(X, y, **given)
    model.set_params(callbacks=[At({2}, lambda: kill(client))])
    collections = (da.from_array(values, chunks=(3000, -1)[: values.ndim]) for values in (X, y))
    there = {name: da.from_array(values, chunks=7000) for name, values in given.items()}
    assert_same_model(model.fit(*collections, **there), alone)


def test_a_worker_with_several_targets_is_killed(client):
    y = np.column_stack([Y, np.where(X[:, 2] > 0, 9 + X[:, 2], np.nan)])
    model, margin = XGBRegressorLite(n_estimators=6), np.column_stack([X[:, 3], 9 + Y])
    alone = clone(model).fit(X, y, base_margin=margin)
    model.set_params(callbacks=[At({2}, lambda: kill(client))])
    collections = (da.from_array(values, chunks=(3000, -1)) for values in (X, y))
    there = model.fit(*collections, base_margin=da.from_array(margin, chunks=(7000, -1)))
    assert_same_model(there, alone)


def test_a_worker_with_linear_leaves_is_killed(client):
    model = XGBRegressorLite(n_estimators=6, linear_tree=True)
    alone = clone(model).fit(X, Y, X_val=X[:99], y_val=Y[:99])
    model.set_params(callbacks=[At({2}, lambda: kill(client))])
    there = [da.from_array(X, chunks=(3000, -1)), da.from_array(Y, chunks=7000)]
    model.fit(*there, X_val=there[0][:99], y_val=there[1][:99])
    assert_same_model(model, alone)
    assert model.evals_result_ == alone.evals_result_


def test_a_worker_that_leaves_in_peace(alone):
    with open_group(2) as group:
        client = group._client

        def retire():
            client.retire_workers([next(iter(client.ncores()))])

        assert_same_model(fit([At({3}, retire)]), alone)
        assert len(client.ncores()) == 1


def test_workers_that_are_lost_again_and_again_end_the_fit(client, monkeypatch):
    start, n_starts = training.ClusterRounds._start, []

    def start_and_kill(self):
        start(self)
        n_starts.append(1)
        address = self._group._members[0].address
        os.kill(client.run(os.getpid, workers=[address])[address], signal.SIGKILL)

    monkeypatch.setattr(training.ClusterRounds, "_start", start_and_kill)
    with pytest.raises(LostWorkersError) as info:
        fit()
    assert "rounds from 0 on were begun 5 times" in info.value.__notes__[0]
    assert len(n_starts) <= 5


def test_a_cluster_without_workers_ends_the_fit(monkeypatch):
    monkeypatch.setattr(WorkerGroup, "absence", 0.3)
    with open_group(1) as group:
        client = group._client

        def lose_all():
            client.cluster.scale(0)
            wait_until(lambda: not client.ncores())

        with pytest.raises(RuntimeError, match=r"no workers for 0\.3 seconds"):
            fit([At({1}, lose_all)])


def test_a_partition_that_cannot_be_computed(threads):
    def fail(block):
        raise OSError("the file of this part is gone")

    collection = da.from_array(X, chunks=(5000, 4)).map_blocks(fail, dtype=float, meta=X[:0])
    with threads.as_current(), pytest.raises(OSError, match="the file of this part") as info:
        XGBRegressorLite(n_estimators=2).fit(collection, Y)
    assert "partition 0 of X" in info.value.__notes__[0]


@pytest.mark.slow
def test_workers_are_killed_at_random_moments_of_calls_and_fits():
    command = [sys.executable, "-m", "tests.distributed.soak", "--kills", "5"]
    told = subprocess.check_output(command, cwd=ROOT, text=True)
    assert "all finished with the same bits" in told
