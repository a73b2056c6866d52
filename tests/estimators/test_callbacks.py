"""Callbacks in real fits."""

import pickle
import signal

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split

from sklboost import (
    Checkpoint,
    EarlyStopping,
    LearningRateScheduler,
    TrainingCallback,
    XGBClassifierLite,
    XGBRegressorLite,
)


@pytest.fixture(scope="module")
def data():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def parts():
    X, y = load_breast_cancer(return_X_y=True)
    X, X_val, y, y_val = train_test_split(X, y, random_state=0)
    return (X, y), dict(X_val=X_val, y_val=y_val)


def small(**parameters):
    return XGBRegressorLite(**(dict(n_estimators=6, max_depth=2) | parameters))


class Recorder(TrainingCallback):
    """Keeps what it sees; may do something at a round."""

    def __init__(self, at=None, act=None):
        self.at = at
        self.act = act
        self.seen = []

    def before_training(self, training):
        self.seen = [("before", training.first_round, training.n_estimators, training.n_rounds)]

    def before_iteration(self, training, epoch, evals_log):
        self.seen.append(("round", epoch, training.n_rounds, training.learning_rate))
        return False

    def after_iteration(self, training, epoch, evals_log):
        self.seen.append((training.n_rounds, training.training_loss()))
        return epoch == self.at and self.act()

    def after_training(self, training):
        self.seen.append(("after", training.n_rounds))


class StopAt(TrainingCallback):
    """Keeps nothing of a training, though it holds a list."""

    def __init__(self, epoch):
        self.epochs = [epoch]

    def after_iteration(self, training, epoch, evals_log):
        return epoch in self.epochs


# --- what callbacks see and do -------------------------------------------------------------------


def test_what_a_callback_sees(data):
    X, y = data
    recorder = Recorder()
    model = small(n_estimators=2, callbacks=[recorder]).fit(X, y)
    losses = [np.mean((prediction - y) ** 2) / 2 for prediction in model.staged_predict(X)]
    before, begin_0, end_0, begin_1, end_1, after = recorder.seen
    assert before == ("before", 0, 2, 0)
    assert (begin_0, begin_1) == (("round", 0, 0, 0.3), ("round", 1, 1, 0.3))
    assert end_0 == (1, pytest.approx(losses[0]))
    assert end_1 == (2, pytest.approx(losses[1]))
    assert after == ("after", 2)
    assert_array_equal(model.predict(X), small(n_estimators=2).fit(X, y).predict(X))


def test_what_a_callback_sets_is_kept_until_the_next_fit(data):
    model = small()

    def set_attributes():
        model.history_ = [1.0]
        return False

    model.set_params(callbacks=[Recorder(at=2, act=set_attributes)])
    for _ in range(2):
        assert model.fit(*data).history_ == [1.0]
    assert not hasattr(model.set_params(callbacks=None).fit(*data), "history_")


def test_learning_rates_are_used(data):
    X, y = data
    rates = [0.5, 0.1]
    model = small(n_estimators=2, callbacks=[LearningRateScheduler(rates)]).fit(X, y)
    first = small(n_estimators=1, learning_rate=0.5).fit(X, y)
    both = small(n_estimators=1, learning_rate=0.1).fit(X, y, init_model=first)
    assert_array_equal(model.predict(X), both.predict(X))


def test_early_stopping_as_callback_and_as_parameter(parts):
    (X, y), validation = parts
    parameter = XGBClassifierLite(early_stopping_rounds=3).fit(X, y, **validation)
    stop = EarlyStopping(3)
    for _ in range(2):  # nothing sticks from one model to the next
        model = XGBClassifierLite(callbacks=[stop]).fit(X, y, **validation)
        assert model.best_iteration_ == parameter.best_iteration_ < 99
        assert model.best_score_ == parameter.best_score_
        assert_array_equal(model.predict_proba(X), parameter.predict_proba(X))
    # no improvement counts
    model = XGBClassifierLite(callbacks=[EarlyStopping(3, min_delta=1.0)]).fit(X, y, **validation)
    assert model.best_iteration_ == 0


def test_a_checkpoint_of_an_interrupted_fit(data, tmp_path, capsys):
    X, y = data
    interrupt = Recorder(at=2, act=lambda: signal.raise_signal(signal.SIGINT))
    small(verbose=1, callbacks=[interrupt, Checkpoint(tmp_path)]).fit(X, y)
    assert capsys.readouterr().err.endswith("\n")  # the bar has an end
    assert [path.name for path in tmp_path.iterdir()] == ["model_3.joblib"]
    saved = joblib.load(tmp_path / "model_3.joblib")
    resumed = small(n_estimators=3).fit(X, y, init_model=saved)
    assert_array_equal(resumed.predict(X), small().fit(X, y).predict(X))


def test_clones_have_callbacks_of_their_own(data):
    recorder = Recorder()
    model = small(callbacks=[recorder])
    with pytest.warns(UserWarning, match="Recorder in callbacks is a copy, .*best_est") as caught:
        clone(model).fit(*data)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(UserWarning, match="Recorder in callbacks is a copy"):
        search = GridSearchCV(model, {"max_depth": [1, 2]}, cv=2).fit(*data)
    assert recorder.seen == []
    assert len(search.best_estimator_.callbacks[0].seen) == 14
    # no warning of callbacks that keep nothing
    kept_nothing = [EarlyStopping(2), LearningRateScheduler(lambda epoch: 0.3), StopAt(3)]
    search = GridSearchCV(small(), {"callbacks": [None, kept_nothing]}, cv=2).fit(*data)
    assert len(search.cv_results_["params"]) == 2


def test_callbacks_that_a_clone_is_given_are_no_copies(data):
    mine = Recorder()
    clone(small(callbacks=[Recorder()])).set_params(callbacks=[mine]).fit(*data)
    assert mine.seen
    copied = pickle.loads(pickle.dumps(clone(small(callbacks=[Recorder()]))))  # as in a worker
    with pytest.warns(UserWarning, match="Recorder in callbacks is a copy"):
        copied.fit(*data)


@pytest.mark.filterwarnings("ignore:.* in callbacks is a copy")
def test_replaced_callbacks_of_a_clone_are_in_no_file(data, tmp_path):
    mine = Recorder()
    mine.function = lambda: None  # which no pickle can hold
    model = clone(small(callbacks=[mine, Checkpoint(tmp_path, interval=2)])).fit(*data)
    (path,) = tmp_path.glob("*_2.joblib")
    assert joblib.load(path)._copied == ()
    assert pickle.loads(pickle.dumps(model.set_params(callbacks=None)))._copied == ()


@pytest.mark.parametrize(
    "callbacks",
    [EarlyStopping(2), [EarlyStopping], [None], [print], ["early_stopping"], (c for c in ()), 3],
)
def test_what_is_no_list_of_callbacks(data, callbacks):
    message = "callbacks=.*: it must be None or a list of objects .* from sklboost.TrainingCallback"
    with pytest.raises(ValueError, match=message):
        small(callbacks=callbacks).fit(*data)
