"""Functions that give what no tree can be grown on: the error names the first row."""

import re
from functools import cache

import numpy as np
import pytest

from sklboost import Loss, XGBClassifierLite, XGBRegressorLite
from tests.custom_losses import compiled

N_ROWS = 200
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
Y = np.arange(N_ROWS) / 10.0


def fit(objective, given=None, **settings):
    model = XGBRegressorLite(objective=objective, **(dict(n_estimators=20) | settings))
    return model.fit(X, Y, **(given or {}))


# The targets of rows of which something is wrong, and what it is.
FAULTS = {
    101.0: ("hessian", "-0.25", "hessians"),
    102.0: ("gradient", "nan", "gradients"),
    103.0: ("hessian", "inf", "hessians"),
    104.0: ("hessian", "nan", "hessians"),
}


def faulty(y_true, y_pred):
    gradient, hessian = y_pred - y_true, 1.0
    if y_true == 101.0 or (12.35 < y_true < 100.0):
        hessian = -0.25
    elif y_true == 102.0:
        gradient = np.nan
    elif y_true == 103.0:
        hessian = np.inf
    elif y_true == 104.0:
        hessian = np.nan
    return gradient, hessian


@cache
def compiled_faulty():
    return compiled(faulty)


def of_arrays(function):
    """Make a function of arrays of one of numbers."""
    both = np.vectorize(function, otypes=[float, float])
    return lambda y_true, y_pred: both(y_true, y_pred)


each_way = pytest.mark.parametrize("way", [of_arrays, compiled], ids=["NumPy", "numba"])


def made_faulty(way):
    return compiled_faulty() if way is compiled else of_arrays(faulty)


def expected(row=124, y=None):
    y = Y[row] if y is None else y
    kind, value, rule = FAULTS.get(y, FAULTS[101.0])
    words = f"the {kind} for row {row} of X in round 0 is {value} (y_true={y:g}, y_pred=0): {rule}"
    return re.escape(words)


@each_way
@pytest.mark.parametrize("wrong", FAULTS)
def test_the_first_row_is_named(wrong, way):
    y = Y.copy()
    y[[124, 150]] = wrong
    y[125:150] = y[151:] = 1.0
    with pytest.raises(ValueError, match=expected(124, wrong)):
        XGBRegressorLite(objective=made_faulty(way)).fit(X, y)


@each_way
def test_a_row_has_the_number_that_the_user_knows(way):
    objective = made_faulty(way)
    given = dict(sample_weight=np.where(np.arange(N_ROWS) % 4 == 0, 0.0, 1.5))
    with pytest.raises(ValueError, match=expected(125)):
        fit(objective, given)
    given = dict(sample_weight=np.where(np.arange(N_ROWS) % 4 == 0, 0, 3))  # rows are repeated
    with pytest.raises(ValueError, match=expected(125)):
        fit(objective, given, subsample=0.9)
    with pytest.raises(ValueError, match=expected()):
        fit(objective, early_stopping_rounds=2, validation_split="time")
    is_held_out = np.arange(N_ROWS) > 120  # all that are bad
    given = dict(X_val=X[is_held_out], y_val=Y[is_held_out])
    model = XGBRegressorLite(objective=objective, early_stopping_rounds=2, refit=True)
    with pytest.raises(ValueError, match=r"for row 3 of the validation data in round 0 is -0.25"):
        model.fit(X[~is_held_out], Y[~is_held_out], **given)


@each_way
def test_a_fault_in_a_later_round(way):
    def soon(y_true, y_pred):
        return y_pred - y_true, 1.0 if y_pred < 15.0 else -1.0

    def stage(n_rounds):
        model = XGBRegressorLite(base_score=0.0, n_estimators=n_rounds).fit(X, Y)
        return model.predict(X)

    n_rounds = next(n for n in range(1, 20) if (stage(n) >= 15.0).any())
    assert n_rounds > 1
    row = int(np.argmax(stage(n_rounds) >= 15.0))
    score = f"{stage(n_rounds)[row]:g}"
    text = (
        f"hessian for row {row} of X in round {n_rounds} is -1 (y_true={Y[row]:g}, y_pred={score})"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        fit(way(soon))


@each_way
def test_hessians_of_0_only(way):
    with pytest.raises(ValueError, match=r"all hessians are 0.* return 1 for every row"):
        fit(way(lambda t, p: (np.sign(p - t), 0.0)))
    # some of them may be, and where there is no gradient there is nothing to do
    fit(way(lambda t, p: (p - t, 0.0 if t < 10.0 else 1.0)))
    fit(way(lambda t, p: (0.0, 0.0)))


def test_what_a_compiled_function_raises():
    @compiled
    def divide(y_true, y_pred):
        return 1.0 / (y_true - 12.4), 1.0

    with pytest.raises(
        ValueError, match=r"raised ZeroDivisionError: .*, for row 124 of X in round 0"
    ):
        fit(divide)

    @compiled
    def refuse(y_true, y_pred):
        if y_true > 12.35:
            raise ValueError("too large")
        return y_pred - y_true, 1.0

    with pytest.raises(ValueError, match=r"refuse raised ValueError: too large, for row 124 of X"):
        fit(refuse)


@pytest.mark.timeout(120)
def test_a_fault_in_any_thread_ends_all():
    random = np.random.default_rng(0)
    many = random.normal(size=(30_000, 6))
    targets = random.normal(size=30_000)

    @compiled
    def fail(y_true, y_pred):
        if y_true == 100.0 and y_pred > 0.5:
            raise ValueError("a hundred")
        return y_pred - y_true, 1.0

    @compiled
    def negative(y_true, y_pred):
        return y_pred - y_true, -1.0 if y_true == 100.0 and y_pred > 0.5 else 1.0

    for objective, bad in (
        (fail, [29_999]),
        (negative, [3, 29_999]),
        (fail, [14_000, 16_000, 20_000]),
    ):
        y, messages = targets.copy(), []
        y[bad] = 100.0
        for n_jobs in (1, 2):
            model = XGBRegressorLite(objective=objective, n_jobs=n_jobs, n_estimators=50)
            with pytest.raises(ValueError, match=f"{objective.__name__}.*row {bad[0]} ") as error:
                model.fit(many, y)
            messages.append(str(error.value))
            assert not hasattr(model, "model_")
        assert messages[0] == messages[1]


NONSENSE = [
    (lambda t, p: None, TypeError, "returned None: it must return two arrays"),
    (lambda t, p: p - t, TypeError, "returned ndarray of 200: it must return two arrays"),
    (lambda t, p: (p, p, p), TypeError, "returned tuple of 3: it must return two arrays"),
    (lambda t, p: (p - t, 1.0), ValueError, r"a hessian of shape \(\): .* raw scores, \(200,\)"),
    (lambda t, p: ((p - t)[:-1], p), ValueError, r"a gradient of shape \(199,\): .*\(200,\)"),
    (lambda t, p: ((p - t)[:, None], p), ValueError, r"a gradient of shape \(200, 1\): .*\(200,\)"),
    (lambda t, p: (p * 1j, p), TypeError, "gradient that is ndarray of dtype complex128"),
    (lambda t, p: (p, [[1.0], [2.0, 3.0]]), TypeError, "hessian that is list of dtype object"),
    (lambda t, p: (p.astype(str), p), TypeError, "gradient that is ndarray of dtype <U"),
    (lambda p: p, TypeError, r"has the parameters \(p\): they must be \(y_true, y_pred\) or"),
    (lambda t, p, weight: (p, p), TypeError, r"\(t, p, weight\): .* sample_weight\), by this name"),
]


@pytest.mark.parametrize(("objective", "kind", "text"), NONSENSE)
def test_what_is_no_pair_of_arrays(objective, kind, text):
    with pytest.raises(kind, match=rf"objective=<lambda> .*{text}"):
        fit(objective)


def test_outputs_are_named():
    def uneven(y_true, y_pred):
        hessian = np.ones_like(y_pred)
        hessian[5, 2] = -3.0
        return y_pred, hessian

    model = XGBClassifierLite(objective=uneven)
    with pytest.raises(ValueError, match="the hessian of output 2 for row 5 of X in round 0 is -3"):
        model.fit(X, np.arange(N_ROWS) % 3)
    model = XGBClassifierLite(objective=lambda t, p: (p[:, 0], p[:, 0]))
    with pytest.raises(ValueError, match=r"shape \(200,\): .* raw scores, \(200, 3\)"):
        model.fit(X, np.arange(N_ROWS) % 3)


def test_a_subclass_is_checked_alike():
    class Wrong(Loss):
        def gradients(self, y, raw_score):
            return raw_score - y, np.where(y == 4.0, -1.0, 1.0)

    with pytest.raises(ValueError, match="objective=Wrong: the hessian for row 40 of X in round 0"):
        fit(Wrong())
    Wrong.gradients = lambda self, y, raw_score: (raw_score[0], raw_score[0])
    with pytest.raises(ValueError, match=r"shape \(200,\): .* raw scores, \(1, 200\)"):
        fit(Wrong())


def test_lists_and_whole_numbers_will_do():
    def listed(y_true, y_pred):
        return list(y_pred - y_true), np.ones(len(y_true), dtype=np.int8)

    assert np.abs(fit(listed, n_estimators=100).predict(X) - Y).mean() < 2.0
