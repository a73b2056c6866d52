"""Validation rows on a cluster stay there, and are judged as on one machine, to the bit."""

import os
import re
import signal

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import default_client
from sklearn.base import clone

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.boosting.callbacks import TrainingCallback
from sklboost.distributed.columns import ClusterColumn
from sklboost.distributed.features import ClusterFeatures
from sklboost.distributed.training import ClusterRounds
from tests.distributed.conftest import workers_here
from tests.distributed.machines import assert_same_model
from tests.distributed.worker_groups import open_group

N_ROWS, N_JUDGES = 13_000, 9_100


def make_rows(seed, n_rows):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).round(2)
    X[rng.random(X.shape) < 0.02] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.sin(3 * np.nan_to_num(X[:, 1])) + rng.normal(size=n_rows)
    weight = np.where(np.arange(n_rows) // 700 == 2, 0.0, rng.exponential(size=n_rows))
    return {"X": X, "y": y, "sample_weight": weight}


TRAIN = make_rows(0, N_ROWS)
JUDGES = {f"{name}_val": values for name, values in make_rows(1, N_JUDGES).items()}
REGRESSOR = XGBRegressorLite(
    n_estimators=60, learning_rate=0.5, early_stopping_rounds=3, random_state=0
)


def in_chunks(rows, n_rows):
    """Divide each array in a way of its own. Each part takes Dask some milliseconds."""
    sizes = range(n_rows, n_rows + 400 * len(rows), 400)
    return {
        name: da.from_array(values, chunks=(size, *values.shape[1:]))
        for (name, values), size in zip(rows.items(), sizes, strict=True)
    }


@pytest.fixture
def stay(monkeypatch):
    """Let no features, targets, weights or raw scores of rows come to the client."""

    def refuse(*arguments, **settings):
        raise AssertionError("values of rows came to the client")

    monkeypatch.setattr(ClusterColumn, "__array__", refuse)
    monkeypatch.setattr(ClusterFeatures, "here", refuse)
    monkeypatch.setattr(ClusterRounds, "raw_score", refuse)


def assert_same_course(one, other):
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_
    assert one.best_iteration_ == other.best_iteration_
    assert one.best_score_ == other.best_score_
    assert one.fit_report_.n_validation_samples == other.fit_report_.n_validation_samples


@pytest.mark.usefixtures("stay")
@pytest.mark.parametrize("n_workers", [1, 3])
def test_rows_stay_and_metrics_have_the_same_bits(n_workers):
    margins = {
        name: {**rows, f"base_margin{end}": 0.3 * np.nan_to_num(rows[f"X{end}"][:, 0])}
        for name, rows, end in (("train", TRAIN, ""), ("judges", JUDGES, "_val"))
    }
    classifier = clone(XGBClassifierLite(**REGRESSOR.get_params() | {"objective": None}))
    labels = [
        rows | {f"y{end}": np.array(["a", "b", "c"])[np.digitize(rows[f"y{end}"], [-1, 1])]}
        for rows, end in ((TRAIN, ""), (JUDGES, "_val"))
    ]
    few = {name: values[:1000] for name, values in JUDGES.items()}  # fewer than a block
    several = [
        {**rows, name: np.column_stack([rows[name], np.where(rows[name] > 0, np.nan, 9.0)])}
        for rows, name in ((TRAIN, "y"), (JUDGES, "y_val"))
    ]
    several[0]["base_margin"] = np.column_stack([TRAIN["y"] / 2, 1.0 + TRAIN["y"]])
    several[1]["base_margin_val"] = np.column_stack([JUDGES["y_val"] / 2, np.full(N_JUDGES, 2.0)])
    fits = [
        (clone(REGRESSOR).set_params(eval_metric=["mae", "rmse"]), TRAIN, JUDGES),
        (clone(REGRESSOR).set_params(objective="reg:absoluteerror"), *margins.values()),
        (clone(REGRESSOR).set_params(booster="dart", rate_drop=0.2), TRAIN, few),
        (classifier, *labels),
        (clone(REGRESSOR).set_params(eval_metric=["mae", "rmse"]), *several),
    ]
    if n_workers == 1:  # which exchanges nothing, whatever is judged
        fits = fits[:1]
    alone = [clone(model).fit(**train, **judges) for model, train, judges in fits]
    assert all(one.best_iteration_ < 57 for one in alone)
    with workers_here(n_workers):
        for one, (model, train, judges) in zip(alone, fits, strict=True):
            # of the first, in more partitions
            n_rows = (5000, 2300) if one is alone[0] else (7000, 4600)
            there = in_chunks(train, n_rows[0]) | in_chunks(judges, n_rows[1])
            assert_same_course(one, clone(model).fit(**there))


@pytest.mark.usefixtures("cluster", "stay")
def test_columns_are_read_as_those_of_the_fit():
    def frame_of(rows):
        X, y, weight = rows.values()
        frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, weight=weight)
        frame["town"] = np.where(y > 1, "Oslo", np.where(X[:, 2] > 0, "Rome", "Bern"))
        return frame.assign(town=frame["town"].astype("category"), day=frame["a"].gt(0).astype(str))

    train, judges = frame_of(TRAIN), frame_of(JUDGES)
    judges.loc[3, "town"] = np.nan
    features = [*"abcd", "town", "day"]
    model = clone(REGRESSOR).set_params(categorical_features=["town", "day"])
    courses = []
    for rows, others in (
        (train, judges),
        (dd.from_pandas(train, npartitions=5), dd.from_pandas(judges, npartitions=3)),
    ):
        shuffled = others[[*reversed(features)]]
        given = dict(X_val=shuffled, y_val=others["y"], sample_weight_val=others["weight"])
        courses.append(clone(model).fit(rows[features], rows["y"], **given))
    assert_same_course(*courses)


@pytest.mark.usefixtures("cluster", "stay")
def test_sparse_rows_stay():
    dense, its = np.nan_to_num(TRAIN["X"]), np.nan_to_num(JUDGES["X_val"])
    one = clone(REGRESSOR).fit(dense, TRAIN["y"], eval_set=[(its, JUDGES["y_val"])])
    there, others = (
        da.from_array(values, chunks=(7000, 4)).map_blocks(sp.csr_matrix) for values in (dense, its)
    )
    y, y_val = (da.from_array(values, chunks=7000) for values in (TRAIN["y"], JUDGES["y_val"]))
    assert_same_course(one, clone(REGRESSOR).fit(there, y, eval_set=[(others, y_val)]))


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("how", ["warm start", "of functions", "held out", "lines"])
def test_features_stay_in_other_fits(monkeypatch, how):
    """What such fits need of the rows besides comes here: targets, or raw scores."""

    def largest_error(y, prediction):
        return np.abs(y - prediction).max()

    def refuse(features):
        raise AssertionError("features came to the client")

    monkeypatch.setattr(ClusterFeatures, "here", refuse)
    train, judges, model = TRAIN, JUDGES, clone(REGRESSOR)
    if how == "of functions":
        model.set_params(eval_metric=["rmse", "r2", largest_error, "neg_mean_absolute_error"])
    elif how == "held out":  # and a refit, of several targets
        judges, y = {}, TRAIN["y"]
        train = {**TRAIN, "y": np.column_stack([y, np.where(y > 0, np.nan, y**2)])}
        model.set_params(refit=True)
    courses = []
    for is_there in (False, True):
        rows = in_chunks(train, 7000) | in_chunks(judges, 4600) if is_there else train | judges
        course = clone(model)
        if how == "lines":  # after rounds of lines constant ones, too
            course.set_params(linear_tree=True, n_estimators=3).fit(**rows)
            course.set_params(linear_tree=False, warm_start=True, n_estimators=60)
        if how == "warm start":
            course.set_params(warm_start=True, n_estimators=4).fit(**rows).set_params(
                n_estimators=60
            )
        courses.append(course.fit(**rows))
    assert_same_course(*courses)


class KillOne(TrainingCallback):
    """Kills a worker after some rounds."""

    def __init__(self, client):
        self.client = client

    def after_iteration(self, model, epoch, evals_log):
        if epoch == 2:
            address = next(iter(self.client.scheduler_info()["workers"]))
            (process,) = self.client.run(os.getpid, workers=[address]).values()
            os.kill(process, signal.SIGKILL)
        return False


@pytest.mark.usefixtures("stay")
def test_a_worker_that_is_killed_is_not_missed():
    model = clone(REGRESSOR).set_params(booster="dart", rate_drop=0.2)  # changes earlier trees, too
    one = clone(model).fit(**TRAIN, **JUDGES)
    with open_group(3, processes=True):
        client = default_client()
        before = set(client.scheduler_info()["workers"])
        model.set_params(callbacks=[KillOne(client)])
        other = model.fit(**in_chunks(TRAIN, 4000), **in_chunks(JUDGES, 2300))
        assert before - set(client.scheduler_info()["workers"])
    assert_same_course(one, other)
    assert one.best_iteration_ > 2


@pytest.mark.usefixtures("cluster")
def test_errors_are_those_of_one_machine():
    y_val = JUDGES["y_val"]
    faults = {
        "X_val: X has 3 features": {"X_val": JUDGES["X_val"][:, :3]},
        "X_val has 9100 rows, but its y has 9000": {"y_val": y_val[:9000]},
        "y of X_val contains NaN": {"y_val": np.where(y_val > 3, np.nan, y_val)},
        "sample_weight of X_val": {"sample_weight_val": -JUDGES["sample_weight_val"]},
        "rmsle of a target of .* in row [0-9]+": {},  # of those of positive weight
        "rmsle of a prediction of .* in row [0-9]+": {"y_val": np.abs(y_val)},
    }
    model = clone(REGRESSOR).set_params(eval_metric="rmsle", base_score=0.0)
    for message, fault in faults.items():
        judges, texts = JUDGES | fault, []
        for given in (TRAIN | judges, in_chunks(TRAIN, 7000) | in_chunks(judges, 4600)):
            with pytest.raises(ValueError, match=message) as caught:
                clone(model).fit(**given)
            texts.append(re.search(message, str(caught.value))[0])
        assert texts[0] == texts[1]


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("of", ["one partition", "two partitions"])
def test_labels_without_an_order_are_named_as_those_of_validation_rows(of):
    labels = [np.where(rows > 0, "yes", "no") for rows in (TRAIN["y"], JUDGES["y_val"])]
    train, judges = TRAIN | {"y": labels[0]}, JUDGES | {"y_val": labels[1].astype(object)}
    judges["y_val"][: 1 if of == "one partition" else 1100] = 3
    words = "^y of X_val holds Python objects of type int, str"
    for given in (train | judges, in_chunks(train, 5000) | in_chunks(judges, 700)):
        with pytest.raises(ValueError, match=words):
            XGBClassifierLite(n_estimators=1).fit(**given)
