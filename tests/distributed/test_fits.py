"""Estimators that are fitted on the workers of a cluster are those of one process, bit for bit."""

import pickle
import tracemalloc

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklboost import (
    Loss,
    TrainingCallback,
    XGBClassifierLite,
    XGBRankerLite,
    XGBRegressorLite,
    XGBSurvivalLite,
)
from sklboost.distributed.worker_group import WorkerGroup
from sklboost.estimators.fit import preset
from tests.distributed.machines import assert_same_model

N_ROWS = 13_000  # four blocks, the last one shorter


def make_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 5)).astype(np.float32).round(2)
    X[rng.random(X.shape) < 0.05] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.sin(3 * np.nan_to_num(X[:, 1])) + rng.normal(size=N_ROWS)
    return X, y


X, Y = make_rows()


def make_frame():
    X, y = make_rows()
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["town"] = pd.Categorical(rng.choice(["Oslo", "Rome", "Bern", "Lima"], N_ROWS))
    frame["size"] = pd.Categorical.from_codes(rng.integers(-1, 40, N_ROWS), [*range(100, 140)])
    frame["when"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(
        rng.integers(9999, size=N_ROWS), "h"
    )
    return frame, y + (frame["town"] == "Rome") + frame["size"].cat.codes % 3


def chunked(values, chunks=(4500, 8500)):
    """Return rows in partitions. A fit takes as long as there are of these."""
    return da.from_array(values, chunks=(chunks, *values.shape[1:]))


def unevenly(values):
    """Return rows in more partitions, one of them empty."""
    return chunked(values, (4000, 0, 500, 8500))


def assert_same_fit(one, other, X):
    assert_same_model(one, other)
    assert one.evals_result_ == other.evals_result_
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    for name in ("n_samples", "n_features", "n_bins", "constant_features", "n_leaves"):
        assert getattr(one.fit_report_, name) == getattr(other.fit_report_, name)


# Of trees that are grown in other ways: test_machines.py; of other losses: test_columns.py.
MODELS = {
    "sampled": XGBRegressorLite(
        n_estimators=4, subsample=0.6, colsample_bynode=0.5, random_state=0
    ),
    "two classes": XGBClassifierLite(
        n_estimators=4, class_weight="balanced", calibrated_prior=True
    ),
    "rounds that are dropped": XGBRegressorLite(
        n_estimators=6, booster="dart", rate_drop=0.5, random_state=0
    ),
    "lines": XGBRegressorLite(n_estimators=4, linear_tree=True),
}


@pytest.mark.parametrize("name", MODELS)
def test_arrays(cluster, name):
    X, y = make_rows()
    weight = np.random.default_rng(0).integers(0, 3, N_ROWS)
    if name == "two classes":
        y = np.where(y > 0.5, "b", "a")
    one = clone(MODELS[name]).fit(X, y, sample_weight=weight)
    other = clone(MODELS[name])
    there = unevenly(X), unevenly(y)
    assert other.fit(*there, sample_weight=unevenly(weight)) is other
    assert_same_fit(one, other, X)
    assert other.fit_report_.traffic["histograms"][0] > 0


@pytest.mark.parametrize("how", ["one_output_per_tree", "multi_output_tree", "lines"])
def test_frames_with_categories_times_and_several_targets(cluster, how):
    X, y = make_frame()
    targets = np.column_stack([y, np.where(X["a"] > 0, y**2, np.nan)])
    model = XGBRegressorLite(n_estimators=3, max_cat_to_onehot=5)
    model.set_params(**dict(linear_tree=True) if how == "lines" else dict(multi_strategy=how))
    one = model.fit(X, targets)
    frame = dd.from_pandas(X, npartitions=3, sort=False)
    other = clone(model).fit(frame, da.from_array(targets, chunks=5000))
    assert_same_fit(one, other, X)
    assert list(other.feature_names_in_) == list(X.columns)
    assert repr(other.categories_) == repr(one.categories_)


@pytest.mark.parametrize("linear_tree", [False, True])
def test_early_stopping_on_rows_that_are_held_out(cluster, linear_tree):
    model = XGBRegressorLite(
        n_estimators=200, learning_rate=0.6, early_stopping_rounds=2, refit=True, random_state=0
    ).set_params(linear_tree=linear_tree)
    one, other = model.fit(X, Y), clone(model).fit(chunked(X), Y)
    assert_same_fit(one, other, X)
    assert one.best_iteration_ == other.best_iteration_ < 199


@pytest.mark.parametrize("kind", ["numbers", "frame"])
def test_a_preset_chooses_what_it_does_on_one_machine(cluster, monkeypatch, kind):
    monkeypatch.setattr(preset, "_MOST_COMPARED", 2_000)  # then rounds are counted on all rows
    monkeypatch.setattr(preset, "_MOST_ROUNDS", 6)
    monkeypatch.setattr(preset, "FEWEST_CATEGORIES", 41)  # statistics are not tried
    settings = dict(learning_rate=0.3, early_stopping_rounds=2, refit=True, min_child_weight=4.0)
    settings |= dict(extra_trees=False, colsample_bylevel=1.0)
    rows, y = make_frame() if kind == "frame" else (X, Y)
    there = dd.from_pandas(rows, npartitions=2, sort=False) if kind == "frame" else chunked(rows)
    weight = np.random.default_rng(0).random(N_ROWS)
    one = XGBRegressorLite(preset="auto", **settings).fit(rows, y, sample_weight=weight)
    other = XGBRegressorLite(preset="auto", **settings)
    other.fit(there, chunked(np.asarray(y)), sample_weight=chunked(weight))
    assert other.chosen_params_ == one.chosen_params_
    assert other.chosen_params_.reasons == one.chosen_params_.reasons
    assert ("grow_policy" in one.chosen_params_) == (kind == "numbers")
    assert_same_fit(one, other, rows)


def test_a_preset_whose_metric_is_infinite_for_many_rows(cluster, monkeypatch):
    def of_few_rows(y_true, y_pred):
        return np.mean(np.abs(y_true - y_pred)) if len(y_true) < 1000 else np.inf

    monkeypatch.setattr(preset, "_MOST_COMPARED", 2_000)
    monkeypatch.setattr(preset, "_MOST_ROUNDS", 5)
    model = XGBRegressorLite(preset="auto", eval_metric=of_few_rows, max_depth=2, extra_trees=False)
    fits = []
    for rows in ((X, Y), (chunked(X), chunked(Y))):
        with pytest.warns(UserWarning, match="the metric is inf before the first round"):
            fits.append(clone(model).fit(*rows))
    one, other = fits
    assert other.chosen_params_.reasons == one.chosen_params_.reasons
    assert_same_fit(one, other, X)


def test_a_preset_does_not_try_statistics_of_categories_on_a_cluster(cluster, monkeypatch):
    monkeypatch.setattr(preset, "_MOST_ROUNDS", 5)
    categories = np.arange(N_ROWS) % 60
    model = XGBRegressorLite(preset="auto", categorical_features=[5])
    model.fit(chunked(np.column_stack([X, categories])), chunked(Y))
    assert "max_depth" in model.chosen_params_
    assert "max_ctr_complexity" not in model.chosen_params_


def test_pruning_paths(cluster):
    rows, y = make_frame()
    there = dd.from_pandas(rows, npartitions=2, sort=False)
    weight = np.arange(N_ROWS) % 4 / 4
    one = XGBRegressorLite().cost_complexity_pruning_path(rows, y, weight)
    other = XGBRegressorLite().cost_complexity_pruning_path(
        there, chunked(np.asarray(y)), chunked(weight)
    )
    np.testing.assert_array_equal(one.ccp_alphas, other.ccp_alphas)
    np.testing.assert_array_equal(one.impurities, other.impurities)


@pytest.mark.parametrize("linear_tree", [False, True])
def test_models_are_continued(cluster, linear_tree):
    one = XGBRegressorLite(n_estimators=5, subsample=0.5, random_state=0)
    one.set_params(linear_tree=linear_tree).fit(X, Y)
    start = clone(one).set_params(n_estimators=2).fit(chunked(X), Y)
    other = clone(one).set_params(n_estimators=3).fit(chunked(X), Y, init_model=start)
    assert_same_model(one, other)
    start.set_params(warm_start=True, n_estimators=5).fit(chunked(X), Y)
    assert_same_model(one, start)


def test_refit_on_the_rows_of_validation_too(cluster):
    model = XGBRegressorLite(
        n_estimators=60, learning_rate=0.8, early_stopping_rounds=2, refit=True
    )
    val = dict(X_val=X[:700] + 1, y_val=Y[:700])
    assert_same_model(model.fit(X, Y, **val), clone(model).fit(chunked(X), Y, **val))


def test_margins(cluster):
    model, margin = XGBRegressorLite(n_estimators=3), np.linspace(-1, 1, N_ROWS)
    one = model.fit(X, Y, base_margin=margin)
    other = clone(model).fit(chunked(X), chunked(Y), base_margin=chunked(margin))
    assert_same_model(one, other)


def test_raw_scores_that_all_rows_begin_with_are_not_sent(cluster, monkeypatch):
    sent, begun = [], WorkerGroup.start

    def start(group, make, arguments):
        for *_, (arrays, *_pieces) in arguments.values():
            sent.append([array.nbytes for array in arrays])
        begun(group, make, arguments)

    monkeypatch.setattr(WorkerGroup, "start", start)
    y = (np.arange(N_ROWS) % 7).astype(np.int64)
    one = XGBClassifierLite(n_estimators=1).fit(X, y)
    other = XGBClassifierLite(n_estimators=1).fit(chunked(X), y)
    assert_same_model(one, other)
    targets, weights, sample_weights, raw_scores = zip(*sent, strict=True)
    assert sum(targets) == N_ROWS  # a byte for each
    assert set(weights) == set(sample_weights) == {0}
    assert set(raw_scores) == {8 * 7}


def test_one_weight_that_all_rows_have_in_common(cluster):
    weight = np.broadcast_to(2.0, N_ROWS)
    one = XGBRegressorLite(n_estimators=2, min_child_samples=5).fit(X, Y, sample_weight=weight)
    other = clone(one).fit(chunked(X), Y, sample_weight=weight)
    assert_same_model(one, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    ["numbers", "several", "classes", "text", "times", "queries", "held out", "preset"],
)
def test_the_client_has_nothing_that_grows_with_the_rows(processes, monkeypatch, kind):
    model, peaks = XGBRegressorLite(n_estimators=1, max_depth=2), []
    if kind in ("classes", "text"):
        model = XGBClassifierLite(n_estimators=1, max_depth=2, class_weight="balanced")
    elif kind == "times":
        model = XGBSurvivalLite(n_estimators=1, max_depth=2, objective="survival:aft")
    elif kind == "queries":
        model = XGBRankerLite(n_estimators=1, max_depth=2)
    elif kind == "preset":
        monkeypatch.setattr(preset, "_MOST_ROUNDS", 3)
        model = XGBRegressorLite(preset="auto", max_depth=2, extra_trees=False)
        model.set_params(colsample_bylevel=1.0, grow_policy="depthwise", early_stopping_rounds=2)
    elif kind == "held out":
        model.set_params(n_estimators=2, early_stopping_rounds=2)
    most = 10_000_000 if kind in ("numbers", "held out") else 1_000_000
    with processes.as_current():
        for n_rows in (250_000, 250_000, most):  # the first imports and compiles
            # as many partitions of each: the client has a little of each task
            rows = da.random.default_rng(0).random((n_rows, 2), chunks=(n_rows // 5, 2))
            y = rows[:, 0]
            if kind in ("classes", "text", "times", "queries"):
                y = (3 * y).astype(np.int64)
            elif kind == "several":
                y = da.where(rows > 0.9, np.nan, rows)  # and rows of no known target
            # as many distinct times, and queries, some of which lie in several partitions
            y = {"times": 1 + y, "text": y.astype("U3")}.get(kind, y)
            weight = rows[:, 1] * (rows[:, 1] > 0.1) if kind == "text" else rows[:, 1]
            given = {"sample_weight": None if kind == "classes" else weight}
            if kind == "queries":
                given = {"qid": da.arange(n_rows, chunks=n_rows // 5) // (n_rows // 999)}
                given["sample_weight"] = 1.0 + given["qid"] % 2
            if kind == "preset":
                given["groups"] = da.arange(n_rows, chunks=n_rows // 5) % 999
            tracemalloc.start()
            model.fit(rows, y, **given)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[2] - peaks[1] < 500_000


class Rates(TrainingCallback):
    """Lowers the learning rate, and stops after four rounds."""

    def before_iteration(self, training, epoch, evals_log):
        training.learning_rate = 0.5 / (1 + epoch)
        return False

    def after_iteration(self, training, epoch, evals_log):
        self.snapshot = training.snapshot()
        self.loss = training.training_loss()
        return epoch == 3


def test_callbacks_are_called_in_the_process_of_the_client(cluster):
    here, there = Rates(), Rates()
    one = XGBRegressorLite(callbacks=[here]).fit(X, Y)
    other = XGBRegressorLite(callbacks=[there]).fit(chunked(X), Y)
    assert other.n_estimators_ == 4
    assert_same_fit(one, other, X)
    assert_same_model(here.snapshot, there.snapshot)
    assert here.loss == there.loss


def test_a_fitted_estimator_has_nothing_of_the_cluster(cluster):
    model = XGBRegressorLite(n_estimators=2).fit(chunked(X), chunked(Y))
    assert b"dask" not in pickle.dumps(model)
    assert b"distributed" not in pickle.dumps(model)


class OfUser(Loss):
    def gradients(self, y, raw_score):
        gradient = raw_score - y
        gradient[y == Y[9_000]] = np.inf
        return gradient, np.ones_like(y)


def of_all_rows(y_true, y_pred):
    return y_pred - y_true.mean(), np.ones_like(y_true)


def of_all_scores(y_true, y_pred):
    return y_pred - y_true + (y_pred - y_pred.mean()), np.ones_like(y_true)


def without_hessians(y_true, y_pred):
    return y_pred - y_true, np.zeros_like(y_true)


FAULTS = {
    "OfUser: the gradient for row 9000 of X in round 0 is inf": OfUser(),
    "without_hessians: all hessians are 0": without_hessians,
    "of_all_rows: the gradient for row .* of X in round 0 .* of a worker": of_all_rows,
    "of_all_scores: the gradient for row .* of X in round 1 .* of a worker": of_all_scores,
}


@pytest.mark.parametrize("message", FAULTS)
def test_derivatives_that_no_tree_can_be_grown_on(cluster, message):
    with pytest.raises(ValueError, match=message):
        XGBRegressorLite(objective=FAULTS[message]).fit(chunked(X), chunked(Y))


class NotOfRows(Loss):
    can_repeat = False

    def gradients(self, y, raw_score):
        return raw_score - y.mean(), np.ones_like(y)


class OfGroupsThatNothingPrepares(NotOfRows):
    can_repeat = True
    group_row = 0


REFUSED = {
    "NotOfRows": XGBRegressorLite(objective=NotOfRows()),
    "NotOfRows'": XGBClassifierLite(objective=NotOfRows()),
    "OfGroupsThatNothingPrepares": XGBRegressorLite(objective=OfGroupsThatNothingPrepares()),
    "max_ctr_complexity=1, whose statistics are of all rows,": XGBClassifierLite(
        max_ctr_complexity=1
    ),
    "lambdarank_unbiased=True, which adds up floats .* queries,": XGBRankerLite(
        lambdarank_unbiased=True
    ),
}


def unreadable(block):
    raise AssertionError("a partition was read")


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_all_rows_in_one_place_is_refused_before_any_is_read(cluster, name):
    queries = dict(qid=np.arange(N_ROWS) // 10) if "rank" in name else {}
    unread = chunked(X).map_blocks(unreadable, dtype=X.dtype, meta=X[:0])
    with pytest.raises(
        ValueError, match=name + ".* does not go with Dask collections yet.*compute"
    ):
        clone(REFUSED[name]).fit(unread, (Y > 0).astype(int), **queries)
