"""``check_loss``: it passes what is right and names what is wrong."""

import numpy as np
import pytest

from sklboost import Loss, check_loss
from tests.custom_losses import compiled, loss_named, softmax, squared_error

RANDOM = np.random.default_rng(0)
Y = RANDOM.normal(size=30)
LABELS = np.arange(30) % 2
CLASSES = np.arange(30) % 4


def half_the_square(y_true, y_pred):
    return (y_true - y_pred) ** 2 / 2


@pytest.mark.parametrize(
    ("objective", "y"),
    [
        ("reg:squarederror", Y),
        ("squared_error", 1e6 + Y),
        ("l2", 1e-6 * Y),
        ("reg:absoluteerror", Y),
        ("reg:quantileerror", Y),
        ("binary:logistic", LABELS),
        ("reg:logistic", np.linspace(0.0, 1.0, 30)),
        ("multi:softprob", CLASSES),
    ],
)
def test_our_losses_pass(objective, y):
    check_loss(objective, y)


def test_parameters_of_a_loss():
    check_loss("quantile", Y, quantile_alpha=[0.1, 0.5, 0.9])
    check_loss("quantile", Y, np.column_stack([Y + 1, Y - 1]), quantile_alpha=[0.1, 0.5])
    with pytest.raises(TypeError, match=r"no parameters \['alpha'\]"):
        check_loss("quantile", Y, alpha=0.3)


def test_several_targets():
    y = RANDOM.normal(size=(10, 3))
    y[::2, 1] = np.nan
    check_loss("reg:squarederror", y)
    check_loss(squared_error, y, value=lambda t, p: np.nansum(half_the_square(t, p), axis=1))


def test_functions():
    check_loss(squared_error, Y, value=half_the_square)

    def deviance(y_true, y_pred):
        own = y_pred[np.arange(len(y_true)), y_true.astype(int)]
        return np.log(np.exp(y_pred).sum(axis=1)) - own

    with pytest.raises(AssertionError, match=r"the hessian of output \d of softmax is off in 30"):
        check_loss(softmax, CLASSES, n_outputs=4, value=deviance)  # larger on purpose


def test_a_class_of_rows():
    class WithValue(type(loss_named("LogLossOfRows"))):
        def value(self, y, raw_score, weight):
            return np.mean(np.log1p(np.exp(raw_score)) - y * raw_score)

    check_loss(WithValue(), LABELS)


def test_compiled_functions():
    with pytest.warns(UserWarning, match="log_loss_of_row has no value"):
        check_loss(loss_named("log_loss_of_row"), LABELS)
    with pytest.raises(ValueError, match="the hessian for row 0 is -1 "):
        check_loss(compiled(lambda t, p: (t - p, -1.0)), Y, value=half_the_square)


def test_without_a_value_only_the_hessian_is_compared():
    with pytest.warns(UserWarning, match="squared_error has no value, .* pass value="):
        check_loss(squared_error, Y)
    with (
        pytest.warns(UserWarning, match="no value"),
        pytest.raises(AssertionError, match=r"is 2, and should be 1 by .* of the gradient"),
    ):
        check_loss(lambda t, p: (p - t, np.full_like(p, 2.0)), Y)


@pytest.mark.parametrize("scale", [1e-8, 1e4])
def test_the_worst_row_is_named(scale):
    def wrong(y_true, y_pred):
        gradient = y_pred - y_true
        gradient[7] *= 1.01
        gradient[11] *= 1.5
        return gradient, np.ones_like(y_pred)

    y, raw_score = scale * np.arange(30.0), np.zeros(30)
    text = rf"gradient of wrong is off in 2 of 30 rows, most in row 11 \(y_true={scale * 11:g}, y_"
    with pytest.raises(AssertionError, match=text):
        check_loss(wrong, y, raw_score, value=half_the_square)


def test_a_bound_may_be_larger_and_not_smaller():
    class Bound(Loss):
        hessian_is_bound = True
        height = 1.5

        def gradients(self, y, raw_score):
            return raw_score - y, np.full_like(raw_score, self.height)

        def value(self, y, raw_score, weight):
            return half_the_square(y, raw_score).mean()

    check_loss(Bound(), Y)
    low = Bound()
    low.height = 0.5
    with pytest.raises(AssertionError, match=r"it is 0\.5, and should be at least 1 by"):
        check_loss(low, Y)
    low.hessian_is_bound = False
    low.height = 1.5
    with pytest.raises(AssertionError, match=r"it is 1\.5, and should be 1 by"):
        check_loss(low, Y)


def test_what_training_would_not_take():
    with pytest.raises(ValueError, match="the hessian for row 0 is -1 "):
        check_loss(lambda t, p: (t - p, np.full_like(p, -1.0)), Y, value=half_the_square)
    with pytest.raises(ValueError, match=r"raw_score has shape \(3,\): .* needs 1 .* the 30 rows"):
        check_loss("l2", Y, raw_score=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"raw_score has shape \(30, 2\): .* needs 3 raw score"):
        check_loss(softmax, CLASSES, np.zeros((30, 2)), n_outputs=3)
    with pytest.raises(ValueError, match="'reg:squared' is not known; did you mean"):
        check_loss("reg:squared", Y)
    with pytest.raises(TypeError, match="must be a name, a function or an object of a Loss"):
        check_loss(Loss, Y)
