"""Leaf weights of log losses are bounded: no fit runs away where hessians vanish."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.objectives.losses.classes import (
    FocalLoss,
    LogisticRegression,
    LogLoss,
    OneVsRest,
    Softmax,
)

# of a hessian almost no cover is asked for, and nothing is added to it
BARE = dict(reg_lambda=0.0, min_child_weight=5e-6, subsample=0.65, n_jobs=1, random_state=0)


@pytest.mark.parametrize("far", [15.0, 100.0])
def test_steps_from_scores_that_are_certain_and_wrong(far):
    # no gradients that rounding makes up move the other rows: their hessians are almost 0
    random = np.random.default_rng(1)
    X = random.normal(size=(6000, 4)).round(3)
    y = (X[:, 0] > 0).astype(int)
    is_wrong = random.random(len(y)) < 0.002
    given = np.where(is_wrong, 1 - y, y)
    margin = far * (2.0 * y - 1.0)
    model = XGBClassifierLite(n_estimators=100, **BARE).fit(X, given, base_margin=margin)
    score = model.predict(X, output_margin=True, base_margin=margin)
    assert np.abs(score).max() < 2 * far + 60.0
    # but for neighbours of wrong ones, in leaves of a few rows
    assert np.mean((score * (2 * y - 1))[~is_wrong] > 0.0) > 0.999


def rare(objective):
    """Return a leaf of a class of 1 row in 1,000, whose Newton step is about 1,000."""
    X, y = np.zeros((3000, 1)), np.zeros(3000)
    X[:3], y[:3] = 1.0, 1.0
    settings = dict(n_estimators=1, learning_rate=0.5, min_child_weight=0, reg_lambda=0)
    estimator = XGBRegressorLite if objective == "reg:logistic" else XGBClassifierLite
    if objective.startswith("multi"):
        y[3:5], X[3:5] = 2.0, 2.0
    return estimator(objective=objective, **settings), X, y


@pytest.mark.parametrize(
    ("objective", "loss"),
    [
        ("binary:logistic", LogLoss),
        ("reg:logistic", LogisticRegression),
        ("binary:focal", FocalLoss),
        ("multi:softprob", Softmax),
        ("multi:onevsrest", OneVsRest),
    ],
)
def test_only_steps_beyond_10_are_shortened(objective, loss, monkeypatch):
    model, X, y = rare(objective)
    for most in (3.0, 30.0):  # the user's own bound holds, too
        model.set_params(max_delta_step=most)
        assert model.fit(X, y).trees_to_dataframe()["Output"].abs().max() == min(most, 10.0)
    model.set_params(max_delta_step=0.0)
    bounded = model.fit(X, y).trees_to_dataframe()
    assert bounded["Output"].max() == 10.0
    is_bounded = (bounded["Output"] == 10.0) & (bounded["Feature"] == "Leaf")
    assert_array_equal(bounded["Gain"][is_bounded], 0.5 * 10.0)  # the leaf value
    likely = np.arange(3000) % 3 if objective.startswith("multi") else np.arange(3000) % 2
    same = model.fit(X, likely).trees_to_dataframe()
    monkeypatch.setattr(loss, "largest_step", np.inf)
    assert model.fit(X, y).trees_to_dataframe()["Output"].max() > 15.0
    assert model.fit(X, likely).trees_to_dataframe().equals(same)
