"""Weights weigh rows; they never split one between training and validation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.fit.reading import read_task
from sklboost.estimators.input.rows import FitArguments

N_ROWS = 600
STOPPING = dict(n_estimators=300, early_stopping_rounds=10, random_state=0)


@pytest.fixture(scope="module")
def noise():
    """Return features, and targets and classes (one in ten is 1) that do not depend on them."""
    random = np.random.default_rng(0)
    return random.normal(size=(N_ROWS, 10)), random.normal(size=N_ROWS), np.arange(N_ROWS) % 10 == 0


def task_of(model, X, y, **arguments):
    return read_task(model, X, y, FitArguments(**arguments))


# --- which rows are held out ---------------------------------------------------------------------


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_row_is_on_one_side_and_the_unit_of_the_weights_does_not_matter(data):
    draw = data.draw
    random = np.random.default_rng(draw(st.integers(0, 99)))
    n_rows = draw(st.integers(20, 80))
    X = random.integers(0, draw(st.integers(2, 9)), (n_rows, 2)).astype(
        float
    )  # some rows are equal
    y = np.arange(n_rows) % 2
    is_whole = draw(st.booleans())
    weight = random.integers(1, 9, n_rows) if is_whole else random.exponential(size=n_rows)
    groups = random.integers(0, 6, n_rows) if draw(st.booleans()) else None
    how = "random" if groups is not None else draw(st.sampled_from(["random", "time"]))
    kind = draw(st.sampled_from([XGBRegressorLite, XGBClassifierLite]))
    model = kind(
        early_stopping_rounds=2,
        validation_fraction=draw(st.sampled_from([0.1, 0.3])),
        validation_split=how,
        subsample=draw(st.sampled_from([1.0, 0.5])),
        refit=draw(st.booleans()),
        random_state=draw(st.integers(0, 9)),
    )
    if kind is XGBClassifierLite:
        model.set_params(scale_pos_weight=draw(st.sampled_from([1, 3, 2.5])))
    held_out = []
    for factor in (1.0, 2.0 ** draw(st.integers(-40, 40))):
        task = task_of(model, X, y, sample_weight=weight * factor, groups=groups)
        (validation,) = task.validation.values()
        assert len(np.unique(validation.numbers)) == len(validation.numbers)
        trained = np.unique(task.rows.numbers)
        assert task.rows.n_given == len(trained)
        assert task.everything.n_given == n_rows
        assert_array_equal(np.union1d(validation.numbers, trained), np.arange(n_rows))
        assert len(np.intersect1d(validation.numbers, trained)) == 0
        held_out.append(validation.numbers)
    assert_array_equal(*held_out)


def test_weights_of_classes_do_not_choose_what_is_held_out(noise):
    X, _, y = noise
    groups = np.arange(N_ROWS) // 7
    for arguments in ({}, dict(groups=groups)):
        chosen = [
            task_of(XGBClassifierLite(**STOPPING, **given), X, y, **arguments).rows.numbers
            for given in ({}, dict(scale_pos_weight=9), dict(class_weight="balanced"))
        ]
        assert_array_equal(chosen[0], chosen[1])
        assert_array_equal(chosen[0], chosen[2])


# --- weight 2 is the row twice -------------------------------------------------------------------


def twice(X, y, seed=0):
    """Return weights of 1 to 3, and the numbers of the rows so often."""
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    return weight, np.repeat(np.arange(len(y)), weight)


@pytest.mark.parametrize(
    ("weights", "is_calibrated"),
    [
        (dict(class_weight="balanced"), False),
        (dict(scale_pos_weight=2.5), True),
        (dict(scale_pos_weight=3), False),
    ],
)
def test_drawn_rows_under_weights_of_classes(weights, is_calibrated):
    X, y = load_breast_cancer(return_X_y=True)
    weight, rows = twice(X, y)
    model = XGBClassifierLite(
        n_estimators=20, subsample=0.5, random_state=0, calibrated_prior=is_calibrated, **weights
    )
    expected = model.fit(X[rows], y[rows]).predict_proba(X)
    assert model.fit_report_.n_samples == len(rows)
    model.fit(X, y, sample_weight=weight)
    assert model.fit_report_.n_samples == len(y)
    assert_allclose(model.predict_proba(X), expected, rtol=1e-9, atol=1e-12)


# --- weights too small for a split ---------------------------------------------------------------


def test_weights_too_small_for_a_split(noise):
    X, y, is_rare = noise
    share = np.full(N_ROWS, 1 / N_ROWS)
    for model, target, cover in ((XGBRegressorLite, y, "1"), (XGBClassifierLite, is_rare, "0.09")):
        with pytest.warns(
            UserWarning, match=f"no tree .* is {cover}, .*sample_weight is 1, its mean 0.00166667"
        ):
            model(n_estimators=2).fit(X, target, sample_weight=share)
        # with splits, or too few rows for one whatever the weights
        model(n_estimators=2).fit(X, target, sample_weight=N_ROWS * share)
        model(n_estimators=2, min_child_weight=0.01).fit(X, target, sample_weight=share)
        model(n_estimators=2, min_child_weight=N_ROWS).fit(X, target, sample_weight=share)
        with pytest.warns(
            UserWarning, match="no tree .*min_child_samples=20 counts.* sum .* is 1;"
        ):
            model(min_child_samples=20, min_child_weight=0).fit(X, target, sample_weight=share)
        model(min_child_samples=N_ROWS, min_child_weight=0).fit(X, target, sample_weight=share)


def test_small_hessians_are_no_reason_to_warn(noise):
    X, y, _ = noise
    XGBClassifierLite(n_estimators=3).fit(X, np.arange(N_ROWS) == 3)  # as is usual of rare events
    XGBRegressorLite(n_estimators=3, objective="count:poisson").fit(X, 1e-5 * abs(y))
    XGBClassifierLite(n_estimators=3).fit(X, np.zeros(N_ROWS))
