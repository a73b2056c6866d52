import numpy as np
import pytest

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.objectives.losses.several_classes import Softmax
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.losses.two_classes import LogLoss
from sklboost.objectives.registry import OBJECTIVES, find_objective


def make(name, task, size=1, **parameters):
    return find_objective(name, task).make(size, parameters)


def test_the_first_of_a_task_is_its_default():
    assert isinstance(make(None, "regression"), SquaredError)
    assert isinstance(make(None, "binary"), LogLoss)
    assert isinstance(make(None, "multiclass", 3), Softmax)


@pytest.mark.parametrize("task", OBJECTIVES)
def test_every_name_and_alias_is_found_and_none_means_two_things(task):
    names = [word for own in OBJECTIVES[task] for word in (own.name, *own.aliases)]
    assert len(names) == len(set(names))
    for objective in OBJECTIVES[task]:
        for word in (objective.name, *objective.aliases):
            assert find_objective(word, task) is objective


def test_sizes_and_parameters():
    assert make("multi:softprob", "multiclass", 5).n_outputs == 5
    assert make("reg:squarederror", "regression", 3).n_outputs == 3
    one = make("quantile", "regression", quantile_alpha=0.3)
    assert (one.n_outputs, one.parameters.tolist()) == (1, [0.3])
    several = make("quantile", "regression", 2, quantile_alpha=[0.9, 0.1])
    assert (several.n_outputs, several.parameters.tolist()) == (4, [0.1, 0.1, 0.9, 0.9])


def test_errors_name_the_nearest_and_the_task():
    with pytest.raises(ValueError, match=r"'reg:squarederor' is not known; did you mean 'reg:squ"):
        make("reg:squarederor", "regression")
    with pytest.raises(ValueError, match="for regression, not for two classes: choose one of bin"):
        make("reg:quantileerror", "binary")


X, Y = np.arange(40.0)[:, np.newaxis], np.arange(40.0)


def test_estimators_know_the_objectives_of_their_task():
    with pytest.raises(ValueError, match="is an objective for regression, not for two"):
        XGBClassifierLite(objective="reg:squarederror").fit(X, Y > 3)
    # as with XGBoost, one name does for both numbers of classes
    for objective in ("binary:logistic", "multi:softprob"):
        for y in (Y > 20, Y // 14):
            model = XGBClassifierLite(objective=objective, n_estimators=2).fit(X, y)
            plain = XGBClassifierLite(n_estimators=2).fit(X, y)
            np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_probabilities_as_targets():
    y = 1 / (1 + np.exp(-(Y - 20) / 5))
    model = XGBRegressorLite(objective="reg:logistic", n_estimators=50).fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 0.05
    np.testing.assert_allclose(model.model_.base_score, np.log(y.mean() / (1 - y.mean())))
    with pytest.raises(ValueError, match=r"y\[7\]=1.5: objective='reg:logistic' needs targets"):
        XGBRegressorLite(objective="reg:logistic").fit(X, np.where(Y == 7, 1.5, y))


def test_several_levels_never_cross():
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3))
    y = X[:, 0] + random.normal(size=500) * np.exp(X[:, 1])
    model = XGBRegressorLite(objective="quantile", quantile_alpha=[0.9, 0.1, 0.5]).fit(X, y)
    predictions = model.predict(random.normal(size=(1000, 3)) * 2)
    assert predictions.shape == (1000, 3)
    assert (np.diff(predictions, axis=1) >= 0).all()
    shares = (y[:, np.newaxis] <= model.predict(X)).mean(axis=0)
    np.testing.assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.06)
    # without the order that they are put in, some would cross
    raw = np.diff(model._raw_scores(X), axis=0)
    assert (raw < 0).any()
