"""Fits with losses of the user's own: they are as good as ours, and as safe."""

import pickle

import cloudpickle
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from sklboost import Loss, XGBClassifierLite, XGBRegressorLite
from sklboost.engine.backend import BACKEND, Backend
from tests.custom_losses import (
    LOG_LOSSES,
    SQUARED_ERRORS,
    SquaredErrorOfArrays,
    log_loss,
    loss_named,
    softmax,
    squared_error,
    weighted_squared_error,
)

START = {XGBRegressorLite: 0.0, XGBClassifierLite: 0.5}
each_copy = pytest.mark.parametrize(
    ("estimator", "name"),
    [
        *((XGBRegressorLite, name) for name in SQUARED_ERRORS),
        *((XGBClassifierLite, name) for name in LOG_LOSSES),
    ],
)
each_log_loss = pytest.mark.parametrize("name", ["log_loss", "log_loss_of_row"])


def data(estimator):
    load = load_diabetes if estimator is XGBRegressorLite else load_breast_cancer
    return load(return_X_y=True)


def check_same_bits(own, builtin):
    for name in ("nodes", "tree_starts", "base_score"):
        assert getattr(own.model_, name).tobytes() == getattr(builtin.model_, name).tobytes()


def fit_both(estimator, objective, X, y, given=None, **settings):
    settings = dict(n_estimators=15, base_score=START[estimator], random_state=0) | settings
    models = [estimator(objective=one, **settings) for one in (objective, None)]
    return [model.fit(X, y, **(given or {})) for model in models]


# --- a copy of ours is ours ----------------------------------------------------------------------


@each_copy
def test_a_copy_of_a_loss_gives_the_model_of_the_loss(estimator, name):
    X, y = data(estimator)
    own, builtin = fit_both(estimator, loss_named(name), X, y, n_estimators=5)
    check_same_bits(own, builtin)
    assert_array_equal(own.predict(X), builtin.predict(X))
    if estimator is XGBClassifierLite:
        assert_array_equal(own.predict_proba(X), builtin.predict_proba(X))
    # so it does with weights, draws and early stopping
    weight = np.random.default_rng(0).exponential(size=len(y))
    weight[::7] = 0.0
    settings = dict(subsample=0.7, colsample_bynode=0.5, early_stopping_rounds=3)
    given = dict(sample_weight=weight)
    own, builtin = fit_both(
        estimator, loss_named(name), X, y, given, n_estimators=200, refit=True, **settings
    )
    check_same_bits(own, builtin)
    assert own.evals_result_ == builtin.evals_result_
    assert own.stop_reason_ == "early_stopping"


@each_log_loss
def test_continuing_gives_the_bits_of_one_go(name):
    X, y = data(XGBClassifierLite)
    settings = dict(objective=loss_named(name), random_state=0)
    whole = XGBClassifierLite(n_estimators=9, **settings).fit(X, y)
    begun = XGBClassifierLite(n_estimators=4, **settings).fit(X, y)
    check_same_bits(
        XGBClassifierLite(n_estimators=5, **settings).fit(X, y, init_model=begun), whole
    )
    check_same_bits(begun.set_params(n_estimators=9, warm_start=True).fit(X, y), whole)


def test_number_of_threads_changes_no_bit():
    random = np.random.default_rng(0)
    X = random.normal(size=(30_000, 6))
    y = X[:, 0] + random.normal(size=len(X))
    settings = dict(objective=loss_named("squared_error_of_row"), n_estimators=3)
    one = XGBRegressorLite(n_jobs=1, **settings).fit(X, y)
    two = XGBRegressorLite(n_jobs=2, **settings).fit(X, y)
    assert two.fit_report_.n_threads == 2
    check_same_bits(one, two)


def test_softmax_of_ones_own():
    X, y = load_wine(return_X_y=True)
    labels = np.array(["red", "rose", "white"])[y]
    own, builtin = (
        XGBClassifierLite(objective=objective, n_estimators=10, base_score=0.0)
        for objective in (softmax, None)
    )
    own.fit(X, labels), builtin.fit(X, labels)
    assert own.model_.n_outputs == 3
    # ours keeps e^z as float32
    assert_allclose(own.predict_proba(X), builtin.predict_proba(X), atol=1e-4)
    assert_array_equal(own.predict(X), labels)


@pytest.mark.parametrize("name", ["squared_error", "squared_error_of_row"])
def test_several_targets_not_all_known(name):
    X, y = data(XGBRegressorLite)
    targets = np.column_stack([y, X[:, 2], X[:, 3]])
    targets[::3, 1] = np.nan
    own, builtin = fit_both(XGBRegressorLite, loss_named(name), X, targets, n_estimators=5)
    check_same_bits(own, builtin)
    assert own.predict(X).shape == targets.shape


@each_log_loss
def test_several_labels(name):
    X, y = data(XGBClassifierLite)
    labels = np.column_stack([y, X[:, 0] > 14])
    own, builtin = fit_both(XGBClassifierLite, loss_named(name), X, labels, n_estimators=5)
    check_same_bits(own, builtin)
    assert_array_equal(own.predict_proba(X), builtin.predict_proba(X))


def test_a_class_of_one_output_with_several():
    objective = loss_named("LogLossOfRows")
    X, y = data(XGBClassifierLite)
    with pytest.raises(ValueError, match=r"n_outputs=1: y needs 2 \(one for"):
        XGBClassifierLite(objective=objective).fit(X, np.column_stack([y, X[:, 0] > 14]))
    X, y = load_wine(return_X_y=True)
    with pytest.raises(ValueError, match=r"n_outputs=1: y needs 3 \(one for"):
        XGBClassifierLite(objective=objective).fit(X, y)


# --- what the function is given ------------------------------------------------------------------


def test_one_call_a_round_with_raw_scores_and_copies():
    X, y = data(XGBClassifierLite)
    labels = np.where(y == 1, "yes", "no")
    calls = []

    def spoil(y_true, y_pred):
        both = log_loss(y_true, y_pred)
        calls.append((y_true.copy(), y_pred.copy()))
        y_true[:], y_pred[:] = 7.0, np.nan
        return both

    model = XGBClassifierLite(objective=spoil, n_estimators=5).fit(X, labels)
    assert len(calls) == 5
    for y_true, y_pred in calls:
        assert_array_equal(y_true, y)
        assert y_true.dtype == y_pred.dtype == np.float64
    assert_array_equal(calls[0][1], 0.0)
    before_last = model.decision_function(X, iteration_range=(0, 4))
    assert_array_equal(calls[-1][1], before_last)
    check_same_bits(model, XGBClassifierLite(objective=log_loss, n_estimators=5).fit(X, y))


def test_a_start_other_than_0():
    X, y = data(XGBRegressorLite)
    model = XGBRegressorLite(objective=squared_error, n_estimators=1, base_score=150).fit(X, y)
    assert_array_equal(model.model_.base_score, [150.0])
    X, y = data(XGBClassifierLite)
    model = XGBClassifierLite(objective=log_loss, n_estimators=1, base_score=0.75).fit(X, y)
    assert_allclose(model.model_.base_score, [np.log(3.0)])


def test_a_function_that_takes_weights_has_weighted_already():
    X, y = data(XGBRegressorLite)
    weight = np.random.default_rng(0).exponential(size=len(y))
    weight[3] = 0.0
    by_us, by_itself = (
        XGBRegressorLite(objective=objective, n_estimators=10).fit(X, y, sample_weight=weight)
        for objective in (squared_error, weighted_squared_error)
    )
    check_same_bits(by_us, by_itself)
    check_same_bits(
        XGBRegressorLite(objective=squared_error, n_estimators=10).fit(X, y),
        XGBRegressorLite(objective=weighted_squared_error, n_estimators=10).fit(X, y),
    )


def test_the_weights_it_gets_are_those_of_rows_and_classes():
    X, y = data(XGBClassifierLite)
    seen = []

    def weighted(y_true, y_pred, sample_weight):
        seen.append(sample_weight.copy())
        sample_weight[:] = np.nan  # a copy
        return tuple(seen[-1] * own for own in log_loss(y_true, y_pred))

    settings = dict(objective=weighted, n_estimators=2)
    XGBClassifierLite(class_weight={0: 1, 1: 3}, **settings).fit(X, y, sample_weight=2.0)
    assert_array_equal(seen[1], np.where(y == 1, 6.0, 2.0))
    XGBClassifierLite(**settings).fit(X, y)
    assert_array_equal(seen[-1], np.ones(len(y)))  # it has to be given something


def test_the_progress_of_a_loss_without_a_value(caplog):
    X, y = data(XGBClassifierLite)
    caplog.set_level("INFO", logger="sklboost")
    XGBClassifierLite(objective=log_loss, n_estimators=2, verbose=2).fit(X, y)
    assert caplog.messages == ["round 1 of 2: done", "round 2 of 2: done"]


# --- subclasses of Loss --------------------------------------------------------------------------


class Poisson(Loss):
    """Deviance of counts, raw scores the logarithms of their means."""

    link = "log"

    def gradients(self, y, raw_score):
        return np.exp(raw_score) - y, np.exp(raw_score)

    def value(self, y, raw_score, weight):
        losses = np.exp(raw_score[0]) - y[0] * raw_score[0]
        return np.average(losses, weights=weight if len(weight) else None)

    def start(self, y, weight):
        return np.log([np.average(y[0], weights=weight if len(weight) else None)])

    def check_targets(self, y, name):
        if (y < 0).any():
            raise ValueError(f"{name} must not be negative")


def test_link_start_and_check_of_a_subclass(caplog):
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 3))
    y = random.poisson(np.exp(1 + X[:, 0])).astype(float)
    settings = dict(objective=Poisson(), n_estimators=20)
    model = XGBRegressorLite(**settings).fit(X, y)
    assert_allclose(model.model_.base_score, [np.log(y.mean())])
    assert (model.predict(X) > 0).all()
    assert np.corrcoef(model.predict(X), np.exp(X[:, 0]))[0, 1] > 0.9
    other = XGBRegressorLite(base_score=5.0, **settings).fit(X, y)
    assert_allclose(other.model_.base_score, [np.log(5.0)])
    with pytest.raises(
        ValueError, match=r"^base_score=-1: .* objective='Poisson' predicts numbers > 0"
    ):
        XGBRegressorLite(base_score=-1.0, **settings).fit(X, y)
    with pytest.raises(ValueError, match="y must not be negative"):
        XGBRegressorLite(**settings).fit(X, -y)
    caplog.set_level("INFO", logger="sklboost")
    XGBRegressorLite(objective=Poisson(), n_estimators=1, verbose=2).fit(X, y)
    assert caplog.messages[0].startswith("round 1 of 1: training loss -")


def test_a_class_is_no_loss_and_links_must_fit():
    X, y = data(XGBClassifierLite)
    with pytest.raises(
        ValueError, match=r"objective=<class .*Poisson'>: .* an object \(no class\)"
    ):
        XGBRegressorLite(objective=Poisson).fit(X, y)
    with pytest.raises(ValueError, match=r"Poisson has link='log': set it to 'logit', or write"):
        XGBClassifierLite(objective=Poisson()).fit(X, y)
    for changes, text in [
        (dict(link="power"), r"link='power': set it to 'identity' or 'log' or 'logit'"),
        (dict(link="other"), r"or write a method predictions\(raw_score\)"),
        (dict(predictions=lambda self, raw: raw[0] ** 2), "set link='other'"),
    ]:
        with pytest.raises(ValueError, match=text):
            XGBRegressorLite(objective=type("Mine", (SquaredErrorOfArrays,), changes)()).fit(X, y)
    with pytest.raises(NotImplementedError, match="Nothing needs a method gradients"):
        XGBRegressorLite(objective=type("Nothing", (Loss,), {})()).fit(X, y)


def test_a_function_of_rows_must_be_compiled():
    if BACKEND is Backend.INTERPRETER:
        return
    with pytest.raises(TypeError, match=r"Mine.row_derivatives=.*: compile it with numba.njit"):
        type("Mine", (Loss,), {"row_derivatives": squared_error})


# --- parameters, copies, files -------------------------------------------------------------------


@pytest.mark.parametrize("name", SQUARED_ERRORS)
def test_clone_and_pickle(name):
    objective = loss_named(name)
    X, y = data(XGBRegressorLite)
    model = XGBRegressorLite(objective=objective, n_estimators=3)
    assert type(clone(model).objective) is type(objective)
    assert model.get_params()["objective"] is objective
    model.fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    assert_array_equal(copied.predict(X), model.predict(X))
    check_same_bits(copied.fit(X, y), model)


def local_function():
    return lambda t, p: squared_error(t, p)


def local_class():
    class Mine(Loss):
        row_derivatives = loss_named("squared_error_of_row")

    return Mine()


each_local = pytest.mark.parametrize(
    ("make", "name"), [(local_function, "lambda"), (local_class, "Mine")]
)


@each_local
def test_what_cannot_be_imported_is_named_by_pickle(make, name):
    X, y = data(XGBRegressorLite)
    model = XGBRegressorLite(objective=make(), n_estimators=3).fit(X, y)
    with pytest.raises((AttributeError, pickle.PicklingError), match=name):
        pickle.dumps(model)
    sent = pickle.loads(cloudpickle.dumps(model))  # as joblib does it
    assert_array_equal(sent.predict(X), model.predict(X))
    check_same_bits(sent.fit(X, y), model)
