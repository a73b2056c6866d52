"""Methods and attributes by which XGBoost's estimators tell what a fit was."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from sklboost import (
    XGBClassifierLite,
    XGBRegressorLite,
    XGBRFClassifierLite,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = X[:, 0] + 0.1 * RNG.normal(size=200)
TWO = (Y > 0).astype(int)
THREE = np.digitize(Y, [-0.5, 0.5])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def regressor(**parameters):
    return XGBRegressorLite(**{"n_estimators": 5} | parameters)


def classifier(**parameters):
    return XGBClassifierLite(**{"n_estimators": 5} | parameters)


@pytest.fixture(scope="module")
def stopped():
    model = XGBClassifierLite(n_estimators=60, early_stopping_rounds=3)
    return model.fit(X[:150], TWO[:150], eval_set=[(X[150:], TWO[150:])])


# --- what a fit was ------------------------------------------------------------------------------


def test_metrics_of_the_rounds(stopped):
    assert stopped.evals_result() is stopped.evals_result_
    assert list(stopped.evals_result()) == ["validation_0"]
    assert len(stopped.evals_result()["validation_0"]["logloss"]) > stopped.n_estimators_
    assert stopped.get_num_boosting_rounds() == 60
    assert XGBRFClassifierLite(n_estimators=7).get_num_boosting_rounds() == 1
    with pytest.raises(ValueError, match="no validation data: give it eval_set, X_val"):
        regressor().fit(X, Y).evals_result()


@pytest.mark.parametrize("name", ["best_iteration", "best_score"])
def test_no_best_round_without_early_stopping(name):
    model = regressor().fit(X, Y, eval_set=[(X, Y)])
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="early stopping only: set early_stopping_rounds"):
        getattr(model, name)


@pytest.mark.parametrize(
    "name", ["best_iteration", "best_score", "intercept_", "n_classes_", "feature_importances_"]
)
def test_nothing_before_a_fit(name):
    assert not hasattr(classifier(), name)
    with pytest.raises(NotFittedError):
        getattr(classifier(), name)
    with pytest.raises(NotFittedError):
        classifier().evals_result()


def test_numbers_of_classes():
    assert classifier().fit(X, TWO).n_classes_ == 2
    assert classifier().fit(X, THREE).n_classes_ == 3
    assert classifier().fit(X, np.column_stack([TWO, TWO, TWO])).n_classes_ == 3
    assert not hasattr(regressor().fit(X, Y), "n_classes_")


@pytest.mark.parametrize(
    ("objective", "y"),
    [
        ("reg:squarederror", Y),
        ("count:poisson", TWO),
        ("reg:gamma", np.abs(Y) + 0.1),
        ("reg:logistic", TWO),
    ],
)
def test_base_scores_of_regressors_are_xgboosts(objective, y):
    theirs = xgboost.XGBRegressor(n_estimators=1, objective=objective).fit(X, y)
    ours = regressor(objective=objective).fit(X, y)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-6)


def test_base_scores():
    theirs = xgboost.XGBClassifier(n_estimators=1).fit(X, TWO)
    assert_allclose(classifier().fit(X, TWO).intercept_, theirs.intercept_, rtol=1e-6)
    assert_allclose(classifier(base_score=0.3).fit(X, TWO).intercept_, [0.3])
    assert_allclose(classifier().fit(X, np.column_stack([TWO, 1 - TWO])).intercept_[0], TWO.mean())
    two_targets = regressor().fit(X, np.column_stack([Y, 2 * Y]))
    assert_allclose(two_targets.intercept_, [Y.mean(), 2 * Y.mean()])
    raw_scores = classifier().fit(X, THREE).intercept_
    assert_allclose(np.exp(raw_scores) / np.exp(raw_scores).sum(), np.bincount(THREE) / 200)


# --- raw scores ----------------------------------------------------------------------------------


def test_raw_scores():
    for y in (TWO, THREE, np.column_stack([TWO, 1 - TWO])):
        model = classifier().fit(X, y)
        assert_array_equal(model.predict(X, output_margin=True), model.decision_function(X))
    model = regressor(objective="count:poisson").fit(X, TWO)
    raw_score = model.predict(X, output_margin=True)
    assert raw_score.shape == (200,)
    assert_allclose(np.exp(raw_score), model.predict(X))
    started = model.predict(X, output_margin=True, base_margin=np.zeros(200))
    assert_allclose(started + np.log(model.intercept_), raw_score)
    first = model.predict(X, output_margin=True, iteration_range=(0, 1))
    assert not np.array_equal(first, raw_score)
    plain = regressor().fit(X, np.column_stack([Y, -Y]))
    assert_array_equal(plain.predict(X, output_margin=True), plain.predict(X))


def test_a_regressor_has_no_decision_function():
    model = regressor().fit(X, Y)
    assert is_regressor(model)
    assert not is_classifier(model)
    assert not hasattr(model, "decision_function")
    with pytest.raises(AttributeError, match=r"predict\(X, output_margin=True\) returns raw sco"):
        model.decision_function(X)


# --- columns by position -------------------------------------------------------------------------

RENAMED = FRAME.rename(columns={"a": "z"})


@pytest.mark.parametrize("rows", [RENAMED, pa.Table.from_pandas(RENAMED), X, csr_matrix(X)])
def test_names_are_not_looked_at(rows):
    model = regressor().fit(FRAME, Y)
    labels = classifier().fit(FRAME, TWO)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_array_equal(model.predict(rows, validate_features=False), model.predict(FRAME))
        found = labels.predict_proba(rows, validate_features=False)
        assert_array_equal(found, labels.predict_proba(FRAME))
        contributions = model.predict(rows, validate_features=False, pred_contribs=True)
    assert_array_equal(contributions, model.predict(FRAME, pred_contribs=True))


def test_columns_are_taken_by_position():
    model = regressor().fit(FRAME, Y)
    turned = FRAME[["c", "a", "b"]]
    assert_array_equal(model.predict(turned), model.predict(FRAME))
    by_position = model.predict(turned, validate_features=False)
    assert_array_equal(by_position, regressor().fit(X, Y).predict(turned.to_numpy()))
    mixed = FRAME.assign(kind=pd.Categorical(np.where(X[:, 1] > 0, "up", "down")))
    model = regressor().fit(mixed, Y)
    other = mixed.rename(columns={"kind": "sort", "a": "A"})
    assert_array_equal(model.predict(other, validate_features=False), model.predict(mixed))


@pytest.mark.parametrize("rows", [FRAME[["a", "b"]], X[:, :2]])
def test_the_number_of_columns_is_looked_at(rows):
    with pytest.raises(ValueError, match="X has 2 features, but XGBRegressorLite is expecting 3"):
        regressor().fit(FRAME, Y).predict(rows, validate_features=False)


# --- arguments of fit ----------------------------------------------------------------------------


def lines(caplog):
    written = [text.partition(":")[0] for text in caplog.messages]
    caplog.clear()
    return written


def test_verbose_of_a_fit_goes_before_the_parameter(caplog):
    model = classifier(verbose=2, n_estimators=2)
    assert model.fit(X, TWO, verbose=False).get_params()["verbose"] == 2
    assert lines(caplog) == []
    model.fit(X, TWO)
    assert lines(caplog) == ["round 1 of 2", "round 2 of 2"]
    model.set_params(verbose=0, n_estimators=7).fit(X, TWO, verbose=3)
    assert lines(caplog) == ["round 3 of 7", "round 6 of 7", "round 7 of 7"]
    assert model.verbose == 0
    with pytest.raises(ValueError, match="verbose='loud': it must be True, False or an integer"):
        model.fit(X, TWO, verbose="loud")


def test_another_name_for_the_model_that_is_continued():
    before = classifier().fit(X, TWO)
    ours = classifier().fit(X, TWO, init_model=before)
    theirs = classifier().fit(X, TWO, xgb_model=before)
    assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    assert theirs.n_estimators_ == 10
    assert classifier().fit(X, TWO, xgb_model=None).n_estimators_ == 5
    with pytest.raises(ValueError, match="two names of one argument"):
        classifier().fit(X, TWO, init_model=before, xgb_model=before)


@pytest.mark.parametrize(
    "name", ["early_stopping_rounds", "eval_metric", "callbacks", "feature_weights"]
)
def test_former_arguments_of_fit_are_parameters_but_may_be_none(name):
    message = rf"'{name}' is a parameter of the estimator, XGBClassifierLite\({name}=\.\.\.\)"
    with pytest.raises(TypeError, match=message):
        classifier().fit(X, TWO, **{name: []})
    expected = classifier().fit(X, TWO).predict_proba(X)
    assert_array_equal(classifier().fit(X, TWO, **{name: None}).predict_proba(X), expected)
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        classifier().fit(X, TWO, nonsense=None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("raw_score", "output_margin"),
        ("output_margins", "output_margin"),
        ("ntree_limit", "iteration_range"),
        ("num_iteration", "iteration_range"),
        ("pred_contrib", "pred_contribs"),
    ],
)
def test_other_names_of_arguments_of_predict(name, meant):
    for model in (classifier().fit(X, TWO), regressor().fit(X, Y)):
        with pytest.raises(TypeError, match=rf"predict\(\) got .*'{name}'; did you mean '{meant}'"):
            model.predict(X, **{name: 1})
    with pytest.raises(TypeError, match=r"'n_jobs' is a parameter of the estimator"):
        model.predict(X, n_jobs=1)


# --- what is not here ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("get_booster", "trees_to_dataframe"),
        ("to_lightgbm", "save_model"),
        ("booster_", "get_score"),
        ("get_xgb_params", "get_params"),
        ("coef_", "shap_values"),
        ("n_iter_", "n_estimators_"),
        ("feature_names_in_", "strings"),
        ("feature_name_", "feature_names_in_"),
        ("validation_score_", "evals_result_"),
    ],
)
def test_what_is_not_here_names_the_way(name, way):
    for model in (regressor(), classifier().fit(X, TWO)):
        assert not hasattr(model, name)
        assert getattr(model, name, "default") == "default"
        with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{way}"):
            getattr(model, name)


def test_errors_of_other_names_are_those_of_python():
    class Broken(XGBRegressorLite):
        @property
        def depth_(self):
            return self.dept_

    with pytest.raises(AttributeError, match=r"'Broken' object has no attribute 'dept_'$"):
        Broken().depth_  # noqa: B018
