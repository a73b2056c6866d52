import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.objectives.losses.several_classes import Softmax
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.losses.two_classes import LogLoss
from sklboost.objectives.start_values import exact_sum, weighted_mean
from tests.objectives.training import derivatives_in_training

NO_WEIGHT = np.empty(0)
LOSSES = {
    "squared_error": SquaredError(),
    "log_loss": LogLoss(),
    "softmax of 2": Softmax(2),
    "softmax of 3": Softmax(3),
    "softmax of 7": Softmax(7),
}

# What the second derivative is multiplied by: see the docstring of Softmax.
FACTORS = {"softmax of 2": 2.0, "softmax of 3": 3 / 2, "softmax of 7": 7 / 6}


@pytest.fixture(params=LOSSES)
def name(request):
    return request.param


def derivatives(loss, y, raw_score, dtype=float, n_threads=1):
    """Return gradient and hessian; in float64, so that finite differences can tell them."""
    if np.dtype(dtype) == np.float64:
        return loss.gradients(y, raw_score)
    return derivatives_in_training(loss, y, raw_score, n_threads)


def make_data(loss, n_rows=40, scale=2.0):
    random = np.random.default_rng(0)
    raw_score = random.normal(scale=scale, size=(loss.n_outputs, n_rows))
    if isinstance(loss, SquaredError):
        return random.normal(size=n_rows), raw_score
    n_classes = max(2, loss.n_outputs)
    y = random.permutation(np.arange(n_rows) % n_classes).astype(float)
    return y, raw_score


def total(loss, y, raw_score):
    return len(y) * loss.value(y, raw_score, NO_WEIGHT)


# --- derivatives ---------------------------------------------------------------------------------


@pytest.mark.interpreted
def test_gradient_and_hessian_are_the_derivatives_of_the_value(name):
    loss, step = LOSSES[name], 1e-5
    y, raw_score = make_data(loss)
    gradient, hessian = derivatives(loss, y, raw_score)
    slope_before, _ = derivatives(loss, y, raw_score)
    for output in range(loss.n_outputs):
        for row in range(len(y)):
            up, down = raw_score.copy(), raw_score.copy()
            up[output, row] += step
            down[output, row] -= step
            one = slice(row, row + 1)
            rise = total(loss, y[one], up[:, one]) - total(loss, y[one], down[:, one])
            assert_allclose(rise / (2 * step), gradient[output, row], atol=1e-9)
            slope_up, _ = derivatives(loss, y[one], up[:, one])
            slope_down, _ = derivatives(loss, y[one], down[:, one])
            bend = (slope_up - slope_down)[output, 0] / (2 * step)
            expected = FACTORS.get(name, 1.0) * bend
            assert_allclose(hessian[output, row], expected, atol=1e-9)
    assert_array_equal(slope_before, gradient)


@pytest.mark.interpreted
def test_values_by_hand():
    y, raw = np.array([1.0, 4.0]), np.array([[2.0, 2.0]])
    assert SquaredError().value(y, raw, NO_WEIGHT) == (0.5 + 2.0) / 2
    assert SquaredError().value(y, raw, np.array([3.0, 1.0])) == (3 * 0.5 + 2.0) / 4
    y, raw = np.array([1.0, 0.0]), np.array([[math.log(3), math.log(3)]])  # p = 3/4
    assert_allclose(LogLoss().value(y, raw, NO_WEIGHT), -math.log(3 / 4 * 1 / 4) / 2)
    gradient, hessian = derivatives(LogLoss(), y, raw)
    assert_allclose(gradient, [[-1 / 4, 3 / 4]])
    assert_allclose(hessian, [[3 / 16, 3 / 16]])
    raw = np.log([[1.0], [2.0], [5.0]])  # p = 1/8, 2/8, 5/8
    assert_allclose(Softmax(3).value(np.array([2.0]), raw, NO_WEIGHT), -math.log(5 / 8))
    gradient, hessian = derivatives(Softmax(3), np.array([2.0]), raw)
    assert_allclose(gradient[:, 0], [1 / 8, 2 / 8, -3 / 8])
    assert_allclose(hessian[:, 0], 1.5 * np.array([7, 12, 15]) / 64)


@pytest.mark.interpreted
def test_softmax_of_two_classes_is_the_log_loss_of_the_difference():
    y, raw = make_data(Softmax(2))
    difference = raw[1:] - raw[:1]
    assert_allclose(
        Softmax(2).value(y, raw, NO_WEIGHT), LogLoss().value(y, difference, NO_WEIGHT), rtol=1e-12
    )
    gradient, hessian = derivatives(Softmax(2), y, raw)
    binary_gradient, binary_hessian = derivatives(LogLoss(), y, difference)
    assert_allclose(gradient, [-binary_gradient[0], binary_gradient[0]], atol=1e-15)
    # each tree moves by half of the binary step, so their difference by the whole
    assert_allclose(hessian, 2 * np.repeat(binary_hessian, 2, axis=0), rtol=1e-12)


@pytest.mark.interpreted
def test_a_softmax_gradient_sums_to_nothing_over_the_classes():
    y, raw = make_data(Softmax(7))
    gradient, hessian = derivatives(Softmax(7), y, raw)
    assert_allclose(gradient.sum(axis=0), 0.0, atol=1e-14)
    assert (hessian > 0).all()
    shifted, _ = derivatives(Softmax(7), y, raw + 123.0)  # only differences count
    assert_allclose(shifted, gradient, atol=1e-13)


@pytest.mark.interpreted
def test_float32_derivatives_are_the_float64_ones_rounded(name):
    y, raw_score = make_data(LOSSES[name])
    for wide, narrow in zip(
        derivatives(LOSSES[name], y, raw_score),
        derivatives(LOSSES[name], y, raw_score, dtype=np.float32),
        strict=True,
    ):
        assert_allclose(narrow, wide, rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("n_threads", [2, 5])
def test_every_row_is_filled_by_any_number_of_threads(name, n_threads):
    y, raw_score = make_data(LOSSES[name], 1003)
    one = derivatives(LOSSES[name], y, raw_score, dtype=np.float32)
    other = derivatives(LOSSES[name], y, raw_score, dtype=np.float32, n_threads=n_threads)
    assert_array_equal(one, other)


# --- start values --------------------------------------------------------------------------------


@pytest.mark.interpreted
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_is_the_best_constant(name, weighted):
    loss = LOSSES[name]
    y, raw_score = make_data(loss)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(y)) if weighted else NO_WEIGHT
    start = loss.start(y, weight)
    assert start.shape == (loss.n_outputs,)
    raw_score[:] = start[:, np.newaxis]
    gradient, _ = derivatives(loss, y, raw_score)
    assert_allclose(gradient @ (weight if weighted else np.ones(len(y))), 0.0, atol=1e-12)
    least = loss.value(y, raw_score, weight)
    for output in range(loss.n_outputs):
        for step in (-1e-3, 1e-3):
            other = raw_score.copy()
            other[output] += step
            assert loss.value(y, other, weight) > least


@pytest.mark.interpreted
def test_starts_by_hand():
    assert SquaredError().start(np.array([1.0, 2.0, 6.0]), NO_WEIGHT) == [3.0]
    assert SquaredError().start(np.array([1.0, 2.0]), np.array([3.0, 1.0])) == [1.25]
    five_of_nine = np.array([1.0, 0, 1, 1, 0, 0, 1, 1, 0])
    assert_allclose(LogLoss().start(five_of_nine, NO_WEIGHT), [math.log(5 / 4)], rtol=1e-14)
    classes = np.array([0.0, 1.0, 1.0, 2.0])
    assert_allclose(Softmax(3).start(classes, NO_WEIGHT), np.log([0.25, 0.5, 0.25]))


@pytest.mark.interpreted
def test_a_prediction_and_its_raw_score():
    assert SquaredError().raw_of(-7.25) == [-7.25]
    for p in (1e-300, 1e-9, 0.3, 0.5, 1 - 1e-9):
        raw = LogLoss().raw_of(p)
        assert_allclose(LogLoss().probabilities(raw[:, np.newaxis])[0, 1], p, rtol=1e-12)
    assert_array_equal(Softmax(4).raw_of(0.5), [0.5] * 4)
    assert_array_equal(Softmax(4).probabilities(np.full((4, 1), 0.5)), [[0.25] * 4])


# --- extremes ------------------------------------------------------------------------------------

EXTREMES = [0.0, -0.0, 1e-300, 1.0, 36.0, 40.0, 700.0, 710.0, 746.0, 1e5, 1e30]


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", EXTREMES)
@pytest.mark.parametrize("name", [name for name in LOSSES if name != "squared_error"])
def test_extreme_raw_scores_stay_finite(name, size, sign, dtype):
    loss = LOSSES[name]
    y = np.array([0.0, 1.0])
    raw_score = np.zeros((loss.n_outputs, 2))
    raw_score[0] = sign * size
    gradient, hessian = derivatives(loss, y, raw_score, dtype=dtype)
    assert (np.abs(gradient) <= 1).all()
    assert (hessian > 0).all()
    assert (hessian <= 0.5).all()
    assert math.isfinite(loss.value(y, raw_score, NO_WEIGHT))
    probabilities = loss.probabilities(raw_score)
    assert probabilities.shape == (2, max(2, loss.n_outputs))
    assert (probabilities >= 0).all()
    assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-15)


@pytest.mark.interpreted
def test_confident_and_wrong_is_as_costly_as_it_is_wrong():
    raw = np.array([[800.0, -800.0]])
    y = np.array([0.0, 1.0])
    assert LogLoss().value(y, raw, NO_WEIGHT) == 800.0
    assert Softmax(2).value(y, np.array([[0.0, 0.0], [800.0, -800.0]]), NO_WEIGHT) == 800.0
    gradient, _ = derivatives(LogLoss(), y, raw)
    assert_array_equal(gradient, [[1.0, -1.0]])


@pytest.mark.interpreted
def test_confident_and_right_keeps_its_small_gradient():
    raw = np.array([[40.0, -40.0]])
    gradient, hessian = derivatives(LogLoss(), np.array([1.0, 0.0]), raw, dtype=np.float32)
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
@pytest.mark.parametrize("n_values", [1, 2, 500, 100_000])
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
def test_weighted_mean():
    values = np.array([1.0, 2.0, 6.0])
    assert weighted_mean(values, NO_WEIGHT) == 3.0
    assert weighted_mean(values, np.array([2.0, 1.0, 1.0])) == 2.5
    assert weighted_mean(values, np.full(3, 1e9)) == 3.0
