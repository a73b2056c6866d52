"""``objective="survival:aft"`` of the estimator of survival times; the rest: test_survival.py."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklboost import XGBSurvivalLite, load_model, survival_targets
from tests.kinds_of_models import file_of

N_ROWS = 400
SMALL = dict(objective="survival:aft", n_estimators=10, max_depth=2, learning_rate=0.3)


def make_data(seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(N_ROWS, 3))
    time = np.exp(1.0 + X[:, 0] + 0.3 * random.normal(size=N_ROWS))
    censored = random.exponential(8.0, size=N_ROWS)
    lower = np.minimum(time, censored)
    upper = np.where(time < censored, lower, np.inf)
    upper[::3] *= 1.3
    return X, survival_targets(lower=lower, upper=upper)


X, Y = make_data()


@pytest.mark.slow  # of the class with its other loss they are in test_survival.py
@parametrize_with_checks([XGBSurvivalLite(objective="survival:aft", n_estimators=5)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_weight_2_is_the_row_twice():
    weight = np.random.default_rng(0).integers(0, 4, N_ROWS)
    copies = np.repeat(np.arange(N_ROWS), weight)
    weighted = XGBSurvivalLite(**SMALL).fit(X, Y, sample_weight=weight)
    copied = XGBSurvivalLite(**SMALL).fit(X[copies], Y[copies])
    assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-7)


@pytest.mark.parametrize("distribution", ["normal", "logistic", "extreme"])
def test_it_learns(distribution):
    model = XGBSurvivalLite(
        **SMALL | dict(n_estimators=50),
        aft_loss_distribution=distribution,
        aft_loss_distribution_scale=0.5,
    ).fit(X, Y)
    X_test, y_test = make_data(1)
    assert model.score(X_test, y_test) > 0.85
    times = model.predict_time(X_test)
    assert np.corrcoef(np.log(times), X_test[:, 0])[0, 1] > 0.9
    assert_allclose(times, np.exp(-model.predict(X_test)))
    curves = model.predict_survival_function(X_test)
    if distribution != "extreme":
        is_known = times < curves[0].domain[1]
        medians = [
            curve(time) for curve, time in zip(curves[is_known], times[is_known], strict=True)
        ]
        assert 0.5 < np.mean(medians) < 0.55  # steps: the value before the median
    array = model.predict_survival_function(X_test, return_array=True)
    assert_allclose(array, np.exp(-model.predict_cumulative_hazard_function(X_test, True)))
    assert (np.diff(array, axis=1) <= 0.0).all()


def test_copies_and_threads():
    model = XGBSurvivalLite(
        **SMALL, aft_loss_distribution="logistic", aft_loss_distribution_scale=0.4
    ).fit(X, Y)
    expected = model.predict_survival_function(X, True)
    for copied in (
        pickle.loads(pickle.dumps(model)),
        load_model(file_of(model, "json")),
        *(XGBSurvivalLite(**model.get_params() | dict(n_jobs=n)).fit(X, Y) for n in (1, 2, 3)),
    ):
        assert_array_equal(copied.predict_survival_function(X, True), expected)


def test_early_stopping_and_metrics():
    metrics = ["cindex", "interval-regression-accuracy", "aft-nloglik"]
    model = XGBSurvivalLite(**SMALL | dict(n_estimators=300), eval_metric=metrics)
    model.set_params(early_stopping_rounds=5).fit(X, Y)
    log = model.evals_result_["validation_0"]
    assert list(log) == metrics
    assert model.best_score_ == min(log["aft-nloglik"])
    assert XGBSurvivalLite(**SMALL).fit(X, Y, X_val=X, y_val=Y).evals_result_[
        "validation_0"
    ].keys() == {"aft-nloglik"}


def test_the_partial_likelihood_of_bounds_is_no_metric():
    model = XGBSurvivalLite(**SMALL, eval_metric="cox-nloglik")
    with pytest.raises(ValueError, match=r"upper bound of y of a metric.*needs times of events"):
        model.fit(X, Y, X_val=X, y_val=Y)
    y = survival_targets(np.isfinite(Y["upper"]), Y["lower"] + 1.0)
    log = model.fit(X, Y, X_val=X, y_val=y).evals_result_["validation_0"]["cox-nloglik"]
    assert log[-1] < log[0]


def test_base_score_is_a_time():
    model = XGBSurvivalLite(**SMALL | dict(n_estimators=1, learning_rate=0.0), base_score=3.0)
    assert_allclose(model.fit(X, Y).predict_time(X), 3.0)
    with pytest.raises(ValueError, match="base_score=-1"):
        model.set_params(base_score=-1.0).fit(X, Y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (survival_targets([True], [0.0]), r"=0: objective='survival:aft' needs times above 0"),
        (survival_targets([True], [1.0], entry_time=[0.5]), "entry times or strata, which obj"),
        (survival_targets([True, False], [1, 2], strata=[1, 2]), "entry times or strata, which"),
        (survival_targets([False], [1.0]), "y has no event: there is nothing"),
        (survival_targets(lower=[0.0], upper=[1.0]), "y has no lower bound above 0"),
    ],
)
def test_what_it_cannot_learn(y, message):
    with pytest.raises(ValueError, match=message):
        XGBSurvivalLite(objective="survival:aft").fit(X[: len(y)], y)


@pytest.mark.parametrize(
    "parameters",
    [
        dict(aft_loss_distribution="weibull"),
        dict(aft_loss_distribution_scale=0.0),
        dict(aft_loss_distribution_scale=np.inf),
    ],
    ids=str,
)
def test_parameters(parameters):
    ((name, value),) = parameters.items()
    with pytest.raises(ValueError, match=f"{name}={value!r}: it must be"):
        XGBSurvivalLite(**SMALL, **parameters).fit(X, Y)


def test_times_are_not_for_cox():
    for name in ("aft-nloglik", "interval-regression-accuracy"):
        with pytest.raises(ValueError, match=f"{name}' is for the raw scores of 'survival:aft'"):
            XGBSurvivalLite(eval_metric=name).fit(X, np.arange(N_ROWS) + 1)
    y = survival_targets(np.ones(N_ROWS, bool), Y["lower"])
    with pytest.raises(ValueError, match="objective='survival:cox' has no formula for times"):
        XGBSurvivalLite(n_estimators=2).fit(X, y).predict_time(X)
