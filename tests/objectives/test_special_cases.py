"""Losses that are another loss in a special case, and figures by hand."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.objectives.losses.counts import Gamma, Poisson, Tweedie
from sklboost.objectives.losses.quantiles import AbsoluteError, ExpectileError
from sklboost.objectives.losses.relative import AbsolutePercentageError, SquaredLogError
from sklboost.objectives.losses.robust import Fair, Huber, LogCosh, PseudoHuber
from sklboost.objectives.losses.several_classes import OneVsRest
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.losses.two_classes import FocalLoss, HingeLoss, LogLoss
from sklboost.objectives.start_values import find_constants
from tests.small_models import small

NO_WEIGHT = np.empty(0)
random = np.random.default_rng(0)
Z = random.normal(scale=2.0, size=(1, 50))
POSITIVE = random.gamma(2.0, size=50)
LABELS = random.integers(0, 2, 50).astype(float)

SAME = {
    "Tweedie of power 1 is Poisson": (Tweedie(1, (1.0,)), Poisson(), POSITIVE),
    "Tweedie of power 2 is gamma": (Tweedie(1, (2.0,)), Gamma(), POSITIVE),
    "the expectile in the middle is squared error": (ExpectileError(), SquaredError(), POSITIVE),
    "a slope that nothing reaches is squared error": (
        Huber(1, (100.0,)),
        SquaredError(),
        POSITIVE,
    ),
    "a focal loss without focus is log loss": (FocalLoss(1, (0.0,)), LogLoss(), LABELS),
}


@pytest.mark.interpreted
@pytest.mark.parametrize("name", SAME)
def test_special_cases(name):
    one, other, y = SAME[name]
    for mine, theirs in zip(one.gradients(y, Z), other.gradients(y, Z), strict=True):
        assert_allclose(mine, theirs, rtol=1e-12, atol=1e-15)
    values = [loss.value(y, Z, NO_WEIGHT) for loss in (one, other)]
    others = [loss.value(y, Z + 0.3, NO_WEIGHT) for loss in (one, other)]
    # values may differ by what does not depend on the raw score
    assert_allclose(np.subtract(values[0], others[0]), np.subtract(values[1], others[1]))
    assert_allclose(one.start(y, NO_WEIGHT), other.start(y, NO_WEIGHT), rtol=1e-9)


@pytest.mark.interpreted
def test_values_by_hand():
    def value(loss, y, raw_score):
        return loss.value(np.array([y]), np.array([[raw_score]]), NO_WEIGHT)

    assert value(Huber(1, (2.0,)), 1.0, 2.0) == 0.5
    assert value(Huber(1, (2.0,)), 1.0, 6.0) == 2.0 * (5.0 - 1.0)
    assert_allclose(value(PseudoHuber(1, (3.0,)), 0.0, 4.0), 9 * (5 / 3 - 1))
    assert_allclose(value(LogCosh(), 0.0, 1.5), math.log(math.cosh(1.5)))
    assert_allclose(value(Fair(1, (2.0,)), 0.0, -6.0), 4 * (3 - math.log(4)))
    assert value(AbsolutePercentageError(), -4.0, 2.0) == 1.5
    assert_allclose(value(ExpectileError(1, (0.9,)), 3.0, 1.0), 0.9 * 4)
    assert_allclose(value(ExpectileError(1, (0.9,)), 1.0, 3.0), 0.1 * 4)
    assert_allclose(value(SquaredLogError(), math.e - 1, 3.0), 2.0)
    assert_allclose(value(Poisson(), 3.0, math.log(2)), 2 - 3 * math.log(2))
    assert_allclose(value(Gamma(), 3.0, math.log(2)), 1.5 + math.log(2))
    assert value(HingeLoss(), 1.0, 0.25) == 0.75
    assert value(HingeLoss(), 0.0, 0.25) == 1.25
    # log-odds log(3): q = 1/4 for label 1
    assert_allclose(value(FocalLoss(1, (2.0,)), 1.0, math.log(3)), -math.log(3 / 4) / 16)


@pytest.mark.interpreted
@pytest.mark.parametrize("kind", [Huber, PseudoHuber, LogCosh, Fair])
def test_robust_hessians_are_a_quarter_of_the_weight_at_least(kind):
    loss = kind(1, (1.0,))
    residual = np.array([[1e-9, 1e-4, 0.3, 1.0, 5.0, 1e3, 1e9]])
    gradient, hessian = loss.gradients(np.zeros(residual.shape[1]), residual)
    weight = gradient / residual
    assert (np.diff(weight) <= 1e-15).all()
    assert (hessian >= 0.25 * weight).all()
    assert (hessian <= weight * (1 + 1e-12)).all()
    assert_allclose(hessian[0, 0], 1.0, rtol=1e-6)
    assert_allclose(hessian[0, -1], 0.25 * weight[0, -1])


@pytest.mark.interpreted
def test_a_constant_is_found_where_a_hessian_is_only_a_bound():
    y = np.random.default_rng(0).standard_cauchy(101)
    for slope in (1e-3, 1.0, 1e3):
        loss = Huber(1, (slope,))
        for guess in (None, np.array([1e4])):
            constant = find_constants(loss, y[np.newaxis], NO_WEIGHT, guess)
            gradient, _ = loss.gradients(y, np.full((1, len(y)), constant[0]))
            assert abs(gradient.mean()) < 1e-9 * slope


@pytest.mark.parametrize("kind", [Huber, PseudoHuber, LogCosh, Fair])
def test_a_constant_where_the_loss_is_flat_does_not_follow_rounding(kind):
    # so far apart only the signs of residuals count: between two middle targets the slope is 0
    random, loss = np.random.default_rng(0), kind(1, (1.0,))
    for n_rows in range(10, 60):
        y, weight = random.normal(size=n_rows) * 1e20, random.integers(1, 4, n_rows)
        weighted = loss.start(y[np.newaxis], weight.astype(float))
        copies = loss.start(np.repeat(y, weight)[np.newaxis], NO_WEIGHT)
        assert_allclose(weighted, copies, rtol=1e-9)


# --- whole fits ----------------------------------------------------------------------------------


def predictions(X, y, objective, weight=None, **parameters):
    model = small(XGBRegressorLite, objective=objective, n_estimators=20, **parameters)
    return model.fit(X, y, weight).predict(X)


def test_fits_of_special_cases(regression):
    X, y = regression
    squared = predictions(X, y, "reg:squarederror")
    # but for the last bit of the start, which is found, not computed
    assert_allclose(predictions(X, y, "reg:expectileerror"), squared, rtol=1e-12)
    assert_allclose(predictions(X, y, "reg:huber", huber_slope=1e9), squared, rtol=1e-12)
    assert_allclose(
        predictions(X, y, "reg:squaredlogerror"),
        np.expm1(predictions(X, np.log1p(y), "reg:squarederror")),
        rtol=1e-6,
    )
    # scaled so that the mean weight is 1: lambda counts in that
    weight = 1 / y
    weighted = predictions(X, y, "reg:absoluteerror", weight=weight / weight.mean())
    assert_allclose(predictions(X, y, "reg:mape"), weighted, rtol=1e-3)


def test_levels_of_expectiles_never_cross(regression):
    X, y = regression
    alphas = predictions(X, y, "reg:expectileerror", expectile_alpha=[0.9, 0.1, 0.5])
    assert alphas.shape == (len(y), 3)
    assert (np.diff(alphas, axis=1) >= 0).all()
    assert (alphas[:, 0] < alphas[:, 2]).mean() > 0.9


def test_outliers_do_not_move_a_robust_fit(regression):
    X, y = regression
    spoilt = y.copy()
    spoilt[::25] = 1e6
    clean = np.delete(np.arange(len(y)), np.arange(0, len(y), 25))

    def error(objective, **parameters):
        prediction = predictions(X, spoilt, objective, **parameters)
        return np.abs(prediction - y)[clean].mean()

    limit = np.abs(y - np.median(y)).mean()
    assert error("reg:squarederror") > 10 * limit
    for objective, parameters in {
        "reg:huber": {"huber_slope": 10},
        "reg:pseudohubererror": {"huber_slope": 10},
        "reg:fair": {"fair_c": 10},
        "reg:logcosh": {},
    }.items():
        assert error(objective, **parameters) < limit


def test_one_vs_rest_of_no_likely_class():
    raw_score = np.array([[-1e6, -800.0, 3.0], [-1e6, -801.0, -1e6], [-1e6, -800.0, -1e6]])
    probabilities = OneVsRest(3).probabilities(raw_score)
    assert_allclose(probabilities.sum(axis=1), 1.0)
    assert_allclose(probabilities[0], 1 / 3)
    assert_allclose(probabilities[1], np.array([1.0, math.exp(-1), 1.0]) / (2 + math.exp(-1)))


def test_one_vs_rest_is_a_log_loss_for_each_class(multiclass):
    X, y = multiclass
    model = small(XGBClassifierLite, objective="multi:onevsrest").fit(X, y)
    for label in range(3):
        own = small(XGBClassifierLite).fit(X, y == label)
        assert_allclose(model.decision_function(X)[:, label], own.decision_function(X), atol=1e-6)


def test_hinge_has_no_probabilities(binary):
    X, y = binary
    model = small(XGBClassifierLite, objective="binary:hinge").fit(X, y)
    assert set(np.unique(model.predict_proba(X))) == {0.0, 1.0}
    assert_array_equal(model.predict_proba(X)[:, 1], model.predict(X))
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize("objective", ["binary:hinge", "multi:onevsrest"])
def test_a_prior_that_cannot_be_calibrated(objective, binary, multiclass):
    data = binary if objective.startswith("binary") else multiclass
    model = XGBClassifierLite(objective=objective, calibrated_prior=True)
    with pytest.raises(ValueError, match=f"^calibrated_prior=True: objective='{objective}' has no"):
        model.fit(*data)


def test_absolute_error_is_the_limit_of_a_small_slope(regression):
    _, y = regression
    loss, absolute = Huber(1, (1e-6,)), AbsoluteError()
    assert_allclose(loss.start(y, NO_WEIGHT), absolute.start(y, NO_WEIGHT), atol=1e-3)
