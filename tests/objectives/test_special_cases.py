"""Losses that are another loss in a special case, figures by hand, extremes, and exact sums."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import expectile

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.objectives import start_values
from sklboost.objectives.losses.classes import FocalLoss, HingeLoss, LogLoss, OneVsRest, Softmax
from sklboost.objectives.losses.regression import (
    AbsolutePercentageError,
    ExpectileError,
    Fair,
    Gamma,
    Huber,
    LogCosh,
    Poisson,
    PseudoHuber,
    SquaredLogError,
    Tweedie,
)
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.start_values import (
    class_sums,
    each_target,
    exact_sum,
    find_constants,
    weighted_mean,
    weighted_quantile,
)
from tests.objectives.training import derivatives_in_training
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


@pytest.mark.interpreted
@pytest.mark.parametrize("offset", [0.0, 2.0**13, 2.0**40])
@pytest.mark.parametrize("scale", [1.0, 2.0**-40, 2.0**-80, 2.0**60])
def test_a_constant_is_as_exact_in_any_unit_of_the_targets(monkeypatch, scale, offset):
    looks, derivatives_at = [], start_values.derivatives_at

    def look(*arguments, **settings):
        looks.append(1)
        return derivatives_at(*arguments, **settings)

    monkeypatch.setattr(start_values, "derivatives_at", look)
    y = np.round(POSITIVE, 2)
    targets = scale * (y + offset)
    tolerance = max(1e-11, 4 * np.spacing(offset))
    for alpha in (0.2, 0.9):
        (start,) = ExpectileError(1, (alpha,)).start(targets[np.newaxis], NO_WEIGHT)
        assert_allclose(start / scale - offset, expectile(y, alpha), rtol=tolerance)
    looks.clear()
    for kind in (Huber, PseudoHuber, Fair):
        (expected,) = kind(1, (0.5,)).start(y[np.newaxis], NO_WEIGHT)
        (start,) = kind(1, (0.5 * scale,)).start(targets[np.newaxis], NO_WEIGHT)
        assert_allclose(start / scale - offset, expected, rtol=tolerance)
    assert len(looks) <= 6 * 2 * 10  # searches, of two passes a step


@pytest.mark.parametrize("kind", [Huber, PseudoHuber, LogCosh, Fair])
def test_a_constant_where_the_loss_is_flat_does_not_follow_rounding(kind):
    # so far apart only the signs of residuals count: between two middle targets the slope is 0
    random, loss = np.random.default_rng(0), kind(1, (1.0,))
    for n_rows in range(10, 60, 6):
        y, weight = random.normal(size=n_rows) * 1e20, random.integers(1, 4, n_rows)
        weighted = loss.start(y[np.newaxis], weight.astype(float))
        copies = loss.start(np.repeat(y, weight)[np.newaxis], NO_WEIGHT)
        assert_allclose(weighted, copies, rtol=1e-9)


@pytest.mark.interpreted
def test_derivatives_and_weights_by_hand():
    y, raw = np.array([1.0, 4.0]), np.array([[2.0, 2.0]])
    assert SquaredError().value(y, raw, NO_WEIGHT) == (0.5 + 2.0) / 2
    assert SquaredError().value(y, raw, np.array([3.0, 1.0])) == (3 * 0.5 + 2.0) / 4
    y, raw = np.array([1.0, 0.0]), np.array([[math.log(3), math.log(3)]])  # p = 3/4
    assert_allclose(LogLoss().value(y, raw, NO_WEIGHT), -math.log(3 / 4 * 1 / 4) / 2)
    gradient, hessian = LogLoss().gradients(y, raw)
    assert_allclose(gradient, [[-1 / 4, 3 / 4]])
    assert_allclose(hessian, [[3 / 16, 3 / 16]])
    raw = np.log([[1.0], [2.0], [5.0]])  # p = 1/8, 2/8, 5/8
    assert_allclose(Softmax(3).value(np.array([2.0]), raw, NO_WEIGHT), -math.log(5 / 8))
    gradient, hessian = Softmax(3).gradients(np.array([2.0]), raw)
    assert_allclose(gradient[:, 0], [1 / 8, 2 / 8, -3 / 8])
    assert_allclose(hessian[:, 0], 1.5 * np.array([7, 12, 15]) / 64)


# --- extremes ------------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_confident_and_wrong_is_as_costly_as_it_is_wrong():
    raw = np.array([[800.0, -800.0]])
    y = np.array([0.0, 1.0])
    assert LogLoss().value(y, raw, NO_WEIGHT) == 800.0
    of_classes = np.array([[0.0, 0.0], [800.0, -800.0]])
    assert Softmax(2).value(y, of_classes, NO_WEIGHT) == 800.0
    gradient, _ = LogLoss().gradients(y, raw)
    assert_array_equal(gradient, [[1.0, -1.0]])
    gradient, _ = Softmax(2).gradients(y, of_classes)
    assert_array_equal(gradient, [[-1.0, 1.0], [1.0, -1.0]])


@pytest.mark.interpreted
def test_confident_and_right_keeps_its_small_gradient():
    raw = np.array([[40.0, -40.0]])
    gradient, hessian = derivatives_in_training(LogLoss(), np.array([1.0, 0.0]), raw)
    assert_allclose(gradient, [[-math.exp(-40), math.exp(-40)]], rtol=1e-6)
    assert_allclose(hessian, 1e-16)  # the floor, as in XGBoost


# --- sums ----------------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_exact_sum_by_hand():
    assert exact_sum(np.array([0.1, 0.2, 0.3])) == pytest.approx(0.6, rel=1e-16)
    assert exact_sum(np.array([1e300, 1.0, -1e300])) == 0.0  # 1 is below the step
    assert exact_sum(np.array([3.0, -3.0, 0.5])) == 0.5
    for scale in (2.0**-1070, 2.0**1020):  # for the first, the step is below all numbers
        assert exact_sum(scale * np.array([3.0, -1.0, 5.0])) == 7.0 * scale
    assert exact_sum(np.zeros(3)) == exact_sum(np.empty(0)) == 0.0
    assert exact_sum(np.array([5e-324, 5e-324])) == 1e-323
    assert exact_sum(np.full(1000, 1e300)) == pytest.approx(1e303, rel=1e-15)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_sum_with_what_is_no_number_is_none(value):
    np.testing.assert_equal(exact_sum(np.array([1.0, value, 2.0])), value)
    np.testing.assert_equal(weighted_mean(np.array([1.0, value]), np.array([1.0, 2.0])), value)
    assert np.isnan(exact_sum(np.array([np.inf, -np.inf])))


@pytest.mark.interpreted
@pytest.mark.parametrize("n_values", [1, 500, 100_000])
def test_the_order_does_not_change_a_sum(n_values):
    random = np.random.default_rng(0)
    values = random.standard_cauchy(n_values) * 10.0 ** random.integers(-5, 5, n_values)
    first = exact_sum(values)
    for _ in range(5):
        assert exact_sum(random.permutation(values)) == first
    assert exact_sum(values[::-1]) == first
    step = 2.0**-61 * n_values * np.abs(values).max()
    assert_allclose(first, math.fsum(values), rtol=1e-15, atol=n_values * step)


@pytest.mark.interpreted
@pytest.mark.parametrize("others", [[], [np.nan], [0.25], [0.0, np.nan, 0.5]])
def test_classes_are_counted_with_the_bits_of_their_sum(others):
    y = np.append((random.random(1000) < 0.3).astype(float), others)[np.newaxis]
    weight = np.ones(y.shape[1])
    for loss in (LogLoss(1), SquaredError(1)):
        assert loss.start(y, NO_WEIGHT) == loss.start(y, weight)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.uint8, np.float64])
def test_the_weights_of_each_class_have_the_bits_of_their_sum(dtype):
    random = np.random.default_rng(0)
    codes = random.integers(0, 4, 70_000).astype(dtype)  # more than are added up at a time
    weight = random.exponential(size=70_000) * 10.0 ** random.integers(-9, 9, 70_000)
    for weights in (weight, NO_WEIGHT):
        expected = [exact_sum((codes == class_) * 1.0, weights) for class_ in range(5)]
        assert_array_equal(class_sums(codes, weights, 5), expected)
        assert_array_equal(class_sums(codes[::-1], weights[::-1], 5), expected)


@pytest.mark.interpreted
def test_weighted_mean():
    values = np.array([1.0, 2.0, 6.0])
    assert weighted_mean(values, NO_WEIGHT) == 3.0
    assert weighted_mean(values, np.array([2.0, 1.0, 1.0])) == 2.5
    assert weighted_mean(values, np.full(3, 1e9)) == 3.0


def test_medians_do_not_depend_on_rows_of_unknown_targets():
    known, heavy = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 1.0, 1.0, 1.0, 1e17, 1e17])
    y = np.append(known, [np.nan, np.nan])
    (of_known,) = each_target(y[np.newaxis], heavy)
    assert weighted_quantile(*of_known, 0.5) == weighted_quantile(known, heavy[:4], 0.5) == 2.5
    for scale in (1e-20, 1.0, 1e20):
        both = scale * np.array([y, np.arange(1.0, 7.0)])
        starts = AbsolutePercentageError(2).start(both, NO_WEIGHT)
        alone = [AbsolutePercentageError().start(of, NO_WEIGHT) for of in (scale * known, both[1])]
        assert_array_equal(starts, np.ravel(alone))


# --- whole fits ----------------------------------------------------------------------------------


def predictions(X, y, objective, weight=None):
    model = small(XGBRegressorLite, objective=objective, n_estimators=20)
    return model.fit(X, y, weight).predict(X)


def test_fits_of_special_cases(regression):
    X, y = regression
    assert_allclose(
        predictions(X, y, "reg:squaredlogerror"),
        np.expm1(predictions(X, np.log1p(y), "reg:squarederror")),
        rtol=1e-6,
    )
    # scaled so that the mean weight is 1: lambda counts in that
    weight = 1 / y
    weighted = predictions(X, y, "reg:absoluteerror", weight=weight / weight.mean())
    assert_allclose(predictions(X, y, "reg:mape"), weighted, rtol=1e-3)


@pytest.mark.parametrize(
    "objective", ["reg:huber", "reg:pseudohubererror", "reg:logcosh", "reg:fair", "reg:mape"]
)
def test_hessians_that_fall_with_the_unit_of_the_targets(regression, objective):
    X, y = regression
    y = y / y.mean()
    large, larger = (predictions(X, scale * y, objective) / scale for scale in (1e14, 1e28))
    assert_allclose(larger, large, rtol=1e-4)


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
