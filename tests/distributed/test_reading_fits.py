"""What a fit reads of Dask collections, up to the rows to train and validate on."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRankerLite, XGBRegressorLite, XGBSurvivalLite
from sklboost.data.features import RemoteFeatures, value_array
from sklboost.estimators.fit.reading import read_task
from sklboost.estimators.input.rows import FitArguments

N_ROWS = 2000


def planned(estimator, X, y, **given):
    """Return what a fit is to do, once its arguments are read."""
    return read_task(estimator, X, y, FitArguments(**given))


def planned_of_columns(booster, frame, X, y, **names):
    """Plan the fit of columns of a frame, in partitions and in one place."""
    return (
        planned(booster, rows[X], rows[y], **{key: rows[name] for key, name in names.items()})
        for rows in (dd.from_pandas(frame, npartitions=4), frame)
    )


def assert_same_rows(ours, theirs):
    for mine, other in zip(ours[1:], theirs[1:], strict=True):
        assert_array_equal(mine, other)
    X = value_array(ours.X.here() if isinstance(ours.X, RemoteFeatures) else ours.X)
    assert_array_equal(X, value_array(theirs.X))


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N_ROWS)
    letter = rng.choice(list("abc"), N_ROWS)
    return pd.DataFrame(
        {
            "x": x,
            "letter": pd.Categorical(letter),
            "y": x + (letter == "b") + rng.normal(size=N_ROWS),
            "weight": rng.integers(3, size=N_ROWS),
            "group": rng.integers(50, size=N_ROWS),
        }
    )


FEATURES = ["x", "letter"]


@pytest.mark.parametrize("by", ["weights", "groups", "time"])
def test_the_same_rows_are_held_out(cluster, frame, by):
    how = "time" if by == "time" else "random"
    booster = XGBRegressorLite(early_stopping_rounds=5, random_state=3, validation_split=how)
    names = {"weights": {"sample_weight": "weight"}, "groups": {"groups": "group"}}.get(by, {})
    ours, theirs = planned_of_columns(booster, frame, FEATURES, "y", **names)
    assert isinstance(ours.rows.X, RemoteFeatures)
    assert ours.split_seed == theirs.split_seed
    for mine, other in [
        (ours.rows, theirs.rows),
        (ours.everything, theirs.everything),
        (ours.validation["validation_0"], theirs.validation["validation_0"]),
    ]:
        assert_same_rows(mine, other)
    assert isinstance(ours.validation["validation_0"].X, RemoteFeatures)


def test_classes_are_held_out_alike(cluster, frame):
    booster = XGBClassifierLite(early_stopping_rounds=5, random_state=3, class_weight="balanced")
    ours, theirs = planned_of_columns(booster, frame, ["x"], "letter")
    assert ours.targets.classes.tolist() == ["a", "b", "c"]
    assert_same_rows(ours.rows, theirs.rows)
    assert_same_rows(ours.validation["validation_0"], theirs.validation["validation_0"])


@pytest.mark.parametrize("is_local", [False, True])
def test_validation_data(cluster, frame, is_local):
    booster = XGBRegressorLite(early_stopping_rounds=5)
    collection = dd.from_pandas(frame, npartitions=4)
    train, valid = frame.iloc[:1500], frame.iloc[1500:]
    X, y = collection[FEATURES], collection["y"]
    given = valid if is_local else dd.from_pandas(valid, npartitions=2)
    ours = planned(
        booster, X, y, X_val=given[FEATURES], y_val=given["y"], sample_weight_val=given["weight"]
    )
    theirs = planned(
        booster,
        frame[FEATURES],
        frame["y"],
        X_val=valid[FEATURES],
        y_val=valid["y"],
        sample_weight_val=valid["weight"],
    )
    assert_same_rows(ours.validation["validation_0"], theirs.validation["validation_0"])
    eval_set = [(given[FEATURES], given["y"]), (train[FEATURES], train["y"].to_numpy())]
    sets = planned(
        booster, X, y, eval_set=eval_set, sample_weight_eval_set=[given["weight"], None]
    ).validation
    assert_same_rows(sets["validation_0"], theirs.validation["validation_0"])
    assert len(sets["validation_1"].y) == 1500


def test_rows_are_repeated_and_targets_unknown(cluster):
    X = np.arange(24.0).reshape(12, 2)
    weight = np.array([1, 2, 0, 1, 3, 1, 0, 1, 1, 2, 1, 1])
    booster = XGBRegressorLite(subsample=0.5)
    collection = da.from_array(X, chunks=(5, 2))
    ours = planned(booster, collection, X[:, 0], sample_weight=weight)
    theirs = planned(booster, X, X[:, 0], sample_weight=weight)
    assert len(ours.rows.y) == weight.sum()
    assert_same_rows(ours.rows, theirs.rows)
    y = X.copy()
    y[[2, 7]] = np.nan
    ours = planned(XGBRegressorLite(), collection, da.from_array(y, chunks=(4, 1)))
    assert_same_rows(ours.rows, planned(XGBRegressorLite(), X, y).rows)
    assert len(ours.rows.y) == 10


@pytest.mark.usefixtures("cluster")
def test_queries_and_survival_times(frame, monkeypatch):
    """What is given row by row comes here in estimators with arguments of their own, too."""
    collection = dd.from_pandas(frame, npartitions=3)
    seen, reading = [], "sklboost.estimators.fit.reading"
    monkeypatch.setattr(f"{reading}.plan_task", lambda task: seen.append(task) or stop())
    for booster, X, given in [
        (XGBRankerLite(), ["x"], {"y": "weight", "qid": "group"}),
        (XGBSurvivalLite(), ["x"], {"y": "positive", "entry_time": "weight", "strata": "letter"}),
    ]:
        for source in (collection, frame):
            source = source.assign(positive=source["y"].abs() + 3.0)
            with pytest.raises(StopIteration):
                booster.fit(source[X], **{key: source[name] for key, name in given.items()})
        assert_same_rows(seen[-2].rows, seen[-1].rows)


def stop():
    raise StopIteration


def test_each_collection_is_computed_once(frame):
    """Features and categories here, all else on Dask: in a fit that learns from the weights."""
    computed = []

    def collection(name):
        def values():
            computed.append(name)
            return frame[name].to_numpy(float)

        return da.from_delayed(dask.delayed(values)(), (N_ROWS,), float)

    given = {name: collection(name) for name in ("weight", "group", "y")}
    validation = dd.from_pandas(frame[FEATURES], npartitions=2), collection("x")
    with dask.config.set(scheduler="synchronous"):  # in this process
        task = planned(
            XGBRegressorLite(),
            frame[FEATURES],
            given["y"],
            sample_weight=given["weight"],
            groups=given["group"],
            eval_set=[validation],
        )
    assert sorted(computed) == ["group", "weight", "x", "y"]
    assert_array_equal(task.rows.weight, frame.weight[frame.weight > 0])
    assert_array_equal(task.validation["validation_0"].y, frame.x)
