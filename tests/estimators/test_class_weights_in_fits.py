"""Class weights in whole fits: they are weights of rows, and can be undone in the probabilities."""

import numpy as np
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold, cross_validate

from sklboost import XGBClassifierLite
from sklboost.estimators.fit.reading import read_task
from sklboost.estimators.input.rows import FitArguments
from tests.small_models import small

NAMES = np.array(["malignant", "benign"])


@pytest.fixture(scope="module")
def rare():
    """Return a real problem with one positive in ten rows."""
    X, y = load_breast_cancer(return_X_y=True)
    rows = np.sort(np.concatenate([np.flatnonzero(y == 1), np.flatnonzero(y == 0)[:40]]))
    return X[rows], (y[rows] == 0).astype(int)


def scores(X, y, sample_weight=None, **parameters):
    return small(XGBClassifierLite, **parameters).fit(X, y, sample_weight).decision_function(X)


def test_class_weights_are_weights_of_rows(rare):
    X, y = rare
    own = np.linspace(0.0, 2.0, len(y))  # one of them is 0
    for given in (None, own):
        weight = np.ones(len(y)) if given is None else given
        for parameters, heavier in (
            (dict(class_weight={1: 5}), np.where(y == 1, 5.0, 1.0)),
            (dict(class_weight={0: 0.5, 1: 4}), np.where(y == 1, 4.0, 0.5)),
            (dict(scale_pos_weight=8), np.where(y == 1, 8.0, 1.0)),
            (dict(class_weight={1: 4}, scale_pos_weight=2), np.where(y == 1, 8.0, 1.0)),
        ):
            expected = scores(X, y, weight * heavier)
            assert_array_equal(scores(X, y, given, **parameters), expected)
            assert not np.array_equal(scores(X, y, given), expected)


def test_balanced(rare):
    X, y = rare
    labels = NAMES[1 - y]
    weight = len(y) / (2 * np.bincount(y))
    assert_array_equal(
        small(XGBClassifierLite, class_weight="balanced").fit(X, labels).decision_function(X),
        small(XGBClassifierLite).fit(X, labels, sample_weight=weight[y]).decision_function(X),
    )
    # both classes count alike, so the start is even
    model = small(XGBClassifierLite, class_weight="balanced").fit(X, y)
    assert_allclose(model.model_.base_score, 0.0, atol=1e-12)


@pytest.mark.parametrize("is_held_out", [False, True])
def test_metrics_are_weighted_by_sample_weights_alone_as_in_xgboost(is_held_out, rare):
    X, y = rare
    weight = np.random.default_rng(0).exponential(size=len(y))
    settings = dict(scale_pos_weight=9, eval_metric=["error", "auc", "logloss"], random_state=0)
    if is_held_out:
        model = small(XGBClassifierLite, **settings, early_stopping_rounds=8)
        task = read_task(model, X, y, FitArguments(sample_weight=weight))
        rows = task.validation["validation_0"].numbers
        model.fit(X, y, weight)
    else:
        rows = np.arange(0, len(y), 2)
        given = dict(eval_set=[(X[rows], y[rows])], sample_weight_eval_set=[weight[rows]])
        model = small(XGBClassifierLite, **settings).fit(X, y, weight, **given)
    found = {name: log[-1] for name, log in model.evals_result_["validation_0"].items()}
    probability = model.predict_proba(X[rows])
    expected = log_loss(y[rows], probability, sample_weight=weight[rows])
    assert found["logloss"] == pytest.approx(expected, rel=1e-9)
    booster = model.to_xgboost()
    booster.set_param([("eval_metric", name) for name in found])
    text = booster.eval(xgboost.DMatrix(X[rows], y[rows], weight=weight[rows]))
    for name, value in found.items():
        assert float(text.split(f"-{name}:")[1].split()[0]) == pytest.approx(value, rel=1e-5)


@pytest.mark.parametrize("weights", [dict(class_weight="balanced"), dict(class_weight={2: 9})])
def test_metrics_of_a_calibrated_model_are_about_those_of_its_probabilities(weights):
    X, y = load_wine(return_X_y=True)
    model = small(XGBClassifierLite, calibrated_prior=True, n_estimators=60, **weights)
    model.fit(X[::2], y[::2], X_val=X[1::2], y_val=y[1::2])
    losses = [log_loss(y[1::2], p) for p in model.staged_predict_proba(X[1::2])]
    found = model.evals_result_["validation_0"]["mlogloss"]
    assert_allclose(found[0], losses[0], rtol=0.1)
    assert_allclose(found[-1], losses[-1], rtol=0.2)


def test_scale_pos_weight_with_several_classes_is_ignored_as_in_xgboost(rare):
    X, y = rare
    three = y.copy()
    three[:20] = 2
    with pytest.warns(
        UserWarning, match=r"^scale_pos_weight=3 is ignored, because y has 3 c"
    ) as caught:
        weighted = small(XGBClassifierLite, scale_pos_weight=3).fit(X, three)
    assert [warning.filename for warning in caught] == [__file__]
    plain = small(XGBClassifierLite).fit(X, three)
    assert weighted.model_.nodes.tobytes() == plain.model_.nodes.tobytes()


def test_a_fold_without_a_class_needs_no_other_dict():
    X, y = load_wine(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = small(XGBClassifierLite, class_weight={"a": 1, "c": 3, "b": 2})
    result = cross_validate(model, X, names, cv=KFold(3), return_estimator=True)
    for fitted, (train, _) in zip(result["estimator"], KFold(3).split(X), strict=True):
        by_hand = small(XGBClassifierLite).fit(X[train], names[train], 1.0 + y[train])
        assert_array_equal(fitted.predict_proba(X), by_hand.predict_proba(X))


# --- the calibrated prior ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weighted", "parameters"),
    [
        (False, dict(class_weight="balanced")),
        (True, dict(scale_pos_weight=20)),
        (False, dict(class_weight={0: 3, 1: 100}, n_estimators=2)),
        (True, dict(class_weight="balanced", base_score=0.9)),
        (False, dict(scale_pos_weight=9.5, subsample=0.5, early_stopping_rounds=3, refit=True)),
    ],
)
def test_the_mean_probability_is_the_base_rate(weighted, parameters, rare):
    X, y = rare
    weight = np.random.default_rng(0).exponential(size=len(y)) if weighted else None
    base_rate = np.average(y, weights=weight)

    def mean_probability(**more):
        model = small(XGBClassifierLite, random_state=0, **(parameters | more))
        model.fit(X, y, weight)
        return np.average(model.predict_proba(X)[:, 1], weights=weight)

    assert mean_probability() > base_rate + 0.01
    assert_allclose(mean_probability(calibrated_prior=True), base_rate, atol=1e-8)


def test_the_mean_probabilities_of_three_classes_are_their_shares():
    X, y = load_wine(return_X_y=True)
    weighted = small(XGBClassifierLite, n_estimators=2, class_weight={2: 9})
    assert abs(weighted.fit(X, y).predict_proba(X).mean(axis=0) - np.bincount(y) / 178).max() > 0.1
    weighted.set_params(calibrated_prior=True).fit(X, y)
    assert_allclose(weighted.predict_proba(X).mean(axis=0), np.bincount(y) / 178, atol=1e-8)


def test_all_scores_are_shifted_by_the_same(rare):
    X, y = rare
    weighted, calibrated = (
        small(XGBClassifierLite, class_weight="balanced", calibrated_prior=c).fit(X, y)
        for c in (False, True)
    )
    shift = calibrated.decision_function(X) - weighted.decision_function(X)
    assert_allclose(shift, shift[0])
    assert shift[0] < -0.5
    assert_array_equal(weighted.apply(X), calibrated.apply(X))
    # a class's rows are told from the others as well as before, only the threshold has moved
    for proba, predicted in zip(
        calibrated.staged_predict_proba(X), calibrated.staged_predict(X), strict=True
    ):
        assert_array_equal(proba[:, 1] > 0.5, predicted == 1)
    assert_array_equal(proba, calibrated.predict_proba(X))


def test_without_class_weights_the_means_are_made_right_as_well(rare):
    X, y = rare
    for parameters in ({}, dict(base_score=0.5)):
        model = small(XGBClassifierLite, calibrated_prior=True, n_estimators=3, **parameters)
        assert_allclose(model.fit(X, y).predict_proba(X)[:, 1].mean(), y.mean(), atol=1e-8)
