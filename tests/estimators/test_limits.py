"""What ends a fit before its last round, and what is then left; the report of a fit."""

import re
import signal
import time

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from sklboost import TrainingCallback, XGBClassifierLite, XGBRegressorLite
from sklboost.boosting import rounds
from sklboost.estimators.fit import fitting


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True)


def make(**parameters):
    return XGBRegressorLite(**(dict(n_estimators=12, max_depth=3) | parameters))


class At(TrainingCallback):
    """Does something before or after one round."""

    def __init__(self, epoch, act, method="after_iteration", every_round=True):
        self.epoch = epoch
        self.act = act
        self.method = method
        self.every_round = every_round

    def before_iteration(self, training, epoch, evals_log):
        return self.method == "before_iteration" and epoch == self.epoch and self.act()

    def after_iteration(self, training, epoch, evals_log):
        return self.method == "after_iteration" and epoch == self.epoch and self.act()


def press_ctrl_c():
    signal.raise_signal(signal.SIGINT)


def fail():
    raise RuntimeError("the callback's own error")


def check_same_model(one, other):
    for name in ("nodes", "tree_starts", "base_score"):
        assert getattr(one.model_, name).tobytes() == getattr(other.model_, name).tobytes()


def state(model):
    """Return all that a fit has left."""
    return {name: value for name, value in vars(model).items() if name.endswith("_")}


# --- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epoch", "every_round"), [(0, False), (4, True), (4, False), (11, True)])
def test_ctrl_c_keeps_the_finished_rounds(data, epoch, every_round):
    X, y = data
    model = make(callbacks=[At(epoch, press_ctrl_c, every_round=every_round)])
    model.fit(X, y, X_val=X, y_val=y)
    assert (model.stop_reason_, model.n_estimators_) == ("interrupted", epoch + 1)
    assert len(model.evals_result_["validation_0"]["rmse"]) == epoch + 1
    shorter = make(n_estimators=epoch + 1).fit(X, y)
    check_same_model(model, shorter)
    assert_array_equal(model.predict(X), shorter.predict(X))
    assert model.fit_report_.n_rounds == epoch + 1
    assert model.set_params(callbacks=None).fit(X, y).stop_reason_ == "completed"


def test_ctrl_c_with_early_stopping_keeps_the_best_round(data):
    X, y = data
    parameters = dict(learning_rate=0.8, early_stopping_rounds=20, random_state=0)
    model = make(callbacks=[At(9, press_ctrl_c)], refit=True, **parameters).fit(X, y)
    values = model.evals_result_["validation_0"]["rmse"]
    assert (model.stop_reason_, len(values)) == ("interrupted", 10)
    assert model.best_iteration_ == np.argmin(values) < 9
    assert model.n_estimators_ == model.best_iteration_ + 1
    check_same_model(model, make(n_estimators=10, **parameters).fit(X, y))  # no refit


@pytest.mark.parametrize("is_fitted", [True, False])
def test_ctrl_c_before_the_first_round_is_raised(data, is_fitted):
    X, y = data
    model = make()
    if is_fitted:
        model.fit(X, y)
    before = state(model)
    model.set_params(callbacks=[At(0, press_ctrl_c, "before_iteration")])
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], y)
    assert state(model).keys() == before.keys()
    assert all(state(model)[name] is before[name] for name in before)
    if is_fitted:
        assert_array_equal(model.predict(X), make().fit(X, y).predict(X))


def test_ctrl_c_of_a_continued_fit(data):
    X, y = data
    model = make(warm_start=True, n_estimators=5).fit(X, y)
    model.set_params(n_estimators=12, callbacks=[At(7, press_ctrl_c)]).fit(X, y)
    assert (model.stop_reason_, model.n_estimators_) == ("interrupted", 8)
    check_same_model(model, make(n_estimators=8).fit(X, y))
    assert (model.fit_report_.n_rounds, model.fit_report_.n_trees) == (8, 8)  # all of it
    leaves = (model.trees_to_dataframe()["Feature"] == "Leaf").sum()
    assert model.fit_report_.n_leaves == leaves
    model.set_params(callbacks=[At(8, press_ctrl_c, "before_iteration")], n_estimators=12)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.n_estimators_ == 8
    model.set_params(callbacks=None).fit(X, y)
    check_same_model(model, make().fit(X, y))


@pytest.mark.parametrize("where", ["bin_rows", "start_of", "make_training"])
def test_ctrl_c_during_the_refit_leaves_the_first_training(data, where, monkeypatch):
    X, y = data
    parameters = dict(early_stopping_rounds=3, random_state=0)
    first = make(**parameters).fit(X, y)
    function, calls = getattr(fitting, where), []

    def interrupted(*arguments):
        calls.append(where)
        if len(calls) == 2:
            press_ctrl_c()
        return function(*arguments)

    monkeypatch.setattr(fitting, where, interrupted)
    model = make(refit=True, **parameters).fit(X, y)
    assert model.stop_reason_ == "interrupted"
    check_same_model(model, first)
    assert model.best_iteration_ == first.best_iteration_
    assert model.evals_result_ == first.evals_result_
    assert model.fit_report_.n_samples == first.fit_report_.n_samples
    assert_array_equal(model.predict(X), first.predict(X))


# --- time ----------------------------------------------------------------------------------------


@pytest.fixture
def pass_time(monkeypatch):
    """Return a function that lets an hour pass, of which nobody notices but the clock."""
    hours, now = [], time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: now() + 3600.0 * len(hours))
    return lambda: hours.append(1)


def test_time_is_up(data, pass_time):
    X, y = data
    model = make(max_time=3000.0, callbacks=[At(3, pass_time)]).fit(X, y)
    assert (model.stop_reason_, model.n_estimators_) == ("max_time", 4)
    check_same_model(model, make(n_estimators=4).fit(X, y))
    assert model.fit_report_.seconds["total"] > 3600.0
    model = make(max_time=4000.0, callbacks=[At(3, pass_time)]).fit(X, y)
    assert model.stop_reason_ == "completed"


def test_one_round_is_done_however_short_the_time(data):
    X, y = data
    model = make(max_time=1e-9, callbacks=[At(99, fail)]).fit(X, y)
    assert (model.stop_reason_, model.n_estimators_) == ("max_time", 1)


def test_time_is_up_in_the_refit(data, pass_time, monkeypatch):
    X, y = data
    # one round a call, as with many rows
    monkeypatch.setattr(rounds, "_VALUES_PER_CALL", 1)
    parameters = dict(learning_rate=0.1, early_stopping_rounds=20, random_state=0)
    first = make(**parameters).fit(X, y)
    assert first.best_iteration_ > 2
    model = make(refit=True, max_time=3000.0, callbacks=[At(11, pass_time)], **parameters)
    model.fit(X, y)
    assert model.stop_reason_ == "max_time"
    check_same_model(model, first)


# --- reasons -------------------------------------------------------------------------------------


def test_a_callback_that_stops_is_early_stopping(data):
    X, y = data
    model = make(callbacks=[At(2, lambda: True)]).fit(X, y)
    assert (model.stop_reason_, model.n_estimators_) == ("early_stopping", 3)
    assert not hasattr(model, "best_iteration_")


@pytest.mark.parametrize("method", ["before_iteration", "after_iteration"])
def test_an_error_in_a_callback_leaves_the_earlier_fit(data, method):
    X, y = data
    model = make().fit(X, y)
    before, prediction = state(model), model.predict(X)
    model.set_params(callbacks=[At(1, fail, method)], early_stopping_rounds=3)
    with pytest.raises(RuntimeError, match="the callback's own error"):
        model.fit(X[:, :2], y)
    assert state(model) == before
    assert_array_equal(model.predict(X), prediction)


# --- the report ----------------------------------------------------------------------------------


def test_numbers_of_the_report():
    X, y = load_iris(return_X_y=True, as_frame=True)
    X["constant"] = 3.0
    X["missing"] = np.nan
    X["two values"] = np.where(np.arange(150) % 2, np.nan, 1.0)
    weight = np.ones(150)
    weight[::10] = 0.0
    model = XGBClassifierLite(n_estimators=4, gamma=1.0, max_depth=5, n_jobs=2)
    model.fit(X, y, sample_weight=weight, eval_set=[(X, y), (X[:20], y[:20])])
    report, frame = model.fit_report_, model.trees_to_dataframe()
    assert (report.n_samples, report.n_validation_samples, report.n_features) == (135, 170, 7)
    assert report.constant_features == ["constant", "missing"]
    assert (report.n_rounds, report.n_trees) == (4, 12)
    assert report.n_leaves == (frame["Feature"] == "Leaf").sum()
    kept = X[weight > 0]
    # a bin for each value, at least one, and one for missing ones where there are any
    bins = np.maximum(kept.nunique(), 1) + kept.isna().any()
    assert report.n_bins == bins.sum()
    assert report.n_threads == 1  # as small as that
    seconds = report.seconds
    assert set(seconds) == {"checks", "binning", "boosting", "evaluation", "other", "total"}
    assert min(seconds.values()) >= 0.0
    assert seconds["total"] == pytest.approx(
        sum(spent for name, spent in seconds.items() if name != "total")
    )
    assert re.search(r"^n samples +135$", str(report), re.MULTILINE)
    assert re.search(r"^constant features +constant, missing$", str(report), re.MULTILINE)


def test_splits_that_pruning_removed():
    X, y = load_breast_cancer(return_X_y=True)
    parameters = dict(n_estimators=1, max_depth=5)
    whole = XGBClassifierLite(**parameters).fit(X, y).fit_report_
    pruned = XGBClassifierLite(gamma=5.0, **parameters).fit(X, y).fit_report_
    assert whole.n_pruned_splits == 0
    assert pruned.n_pruned_splits == whole.n_leaves - pruned.n_leaves > 0


def test_threads_that_did_the_work(data):
    X, y = data
    X, y = np.tile(X, (40, 1)), np.tile(y, 40)
    for n_jobs in (1, 2, 3):
        assert make(n_jobs=n_jobs).fit(X, y).fit_report_.n_threads == n_jobs


def test_few_values_are_binned_by_one_thread(data, monkeypatch):
    sizes, training_bins = [], fitting.training_bins

    def watched(team, *arguments):
        sizes.append(team.size)
        return training_bins(team, *arguments)

    monkeypatch.setattr(fitting, "training_bins", watched)
    X, y = data
    for n_copies, n_threads in ((10, 1), (40, 2)):  # of 4,420 values
        model = make(n_jobs=2).fit(np.tile(X, (n_copies, 1)), np.tile(y, n_copies))
        assert (sizes.pop(), model.fit_report_.n_threads) == (n_threads, 2)
