"""The explainers of the shap package take our estimators after `import sklboost.shap`."""

import numpy as np
import pandas as pd
import pytest
import shap
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sklboost.shap
from sklboost import XGBClassifierLite, XGBRegressorLite, from_xgboost


def of_diabetes():
    """A regressor of numbers and of a text category, and its rows."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X = X.assign(size=pd.Categorical(np.where(X["bmi"] > 0, "large", "small")))
    return XGBRegressorLite(n_estimators=10).fit(X, y), X


def of_iris():
    """A classifier of three classes, and its rows."""
    X, y = load_iris(return_X_y=True)
    return XGBClassifierLite(n_estimators=5).fit(X, y), X


def of_two_targets():
    """A regressor of two targets with trees of both, and its rows."""
    X, y = load_diabetes(return_X_y=True)
    settings = dict(n_estimators=5, multi_strategy="multi_output_tree")
    return XGBRegressorLite(**settings).fit(X, np.column_stack([y, -y])), X


@pytest.mark.parametrize("front_door", [shap.TreeExplainer, shap.Explainer])
@pytest.mark.parametrize("has_background", [False, True])
@pytest.mark.parametrize("make", [of_diabetes, of_iris, of_two_targets])
def test_explanations_are_the_values_of_the_model(make, has_background, front_door):
    model, X = make()
    rows, background = X[-20:], X[:50] if has_background else None
    explainer = front_door(model, *([background] if has_background else []))
    explanation = explainer(rows)
    assert_allclose(
        explanation.values, model.shap_values(rows, X_background=background), atol=1e-12
    )
    expected = model.shap_explanation(rows, X_background=background)
    assert_allclose(explanation.base_values, expected.base_values, rtol=1e-13)
    sums = explanation.base_values + explanation.values.sum(axis=1)
    margin = {"output_margin": True} if isinstance(model, XGBClassifierLite) else {}
    assert_allclose(sums, model.predict(rows, **margin), atol=1e-10)
    pairs = model.shap_interaction_values(rows, X_background=background)
    assert_allclose(explainer.shap_interaction_values(rows), pairs, atol=1e-12)
    one = rows.iloc[0] if isinstance(rows, pd.DataFrame) else rows[0]
    assert_allclose(explainer.shap_values(one), explanation.values[0], atol=1e-12)
    assert_allclose(explainer.shap_interaction_values(one), pairs[0], atol=1e-12)


def test_values_are_those_that_shap_computes_of_the_same_trees(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    X = X.astype(np.float32)  # as XGBoost compares
    model = XGBRegressorLite(n_estimators=20).fit(X, y)
    model.save_model(tmp_path / "model.json")
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    theirs = shap.TreeExplainer(booster)
    ours = shap.TreeExplainer(model)
    assert_allclose(ours.shap_values(X), theirs.shap_values(X), atol=1e-3)
    assert_allclose(ours.expected_value, theirs.expected_value, rtol=1e-5)
    imported = shap.TreeExplainer(from_xgboost(booster))
    assert_allclose(imported.shap_values(X), ours.shap_values(X), atol=1e-3)


def test_the_first_rounds_of_the_last_step_of_a_pipeline():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), XGBClassifierLite(n_estimators=5)).fit(X, y)
    rows = pipeline[:-1].transform(X)
    found = shap.TreeExplainer(pipeline[-1]).shap_values(rows, tree_limit=2)
    assert_array_equal(found, pipeline[-1].shap_values(rows, iteration_range=(0, 2)))


def test_an_explainer_keeps_the_model_that_it_was_made_of():
    model, X = of_iris()
    explainer = shap.TreeExplainer(model)
    before = explainer.shap_values(X)
    model.set_params(n_estimators=1).fit(X[:, :2], np.arange(len(X)) % 2)
    assert_array_equal(explainer.shap_values(X), before)


def test_by_cover_if_asked_for():
    model, X = of_iris()
    explainer = shap.TreeExplainer(model, X[:50], feature_perturbation="tree_path_dependent")
    assert explainer.feature_perturbation == "tree_path_dependent"
    assert_array_equal(explainer.shap_values(X), model.shap_values(X))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of NumPy, within shap
def test_other_models_are_explained_as_before():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    for explainer in (shap.TreeExplainer(forest), shap.Explainer(forest)):
        assert type(explainer) is shap.explainers.TreeExplainer
        values = explainer.shap_values(X)
        assert_allclose(values.sum(axis=1) + explainer.expected_value, forest.predict(X), atol=1e-9)


def test_what_values_of_raw_scores_cannot_say_is_refused():
    model, X = of_iris()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        shap.Explainer(XGBClassifierLite())
    with pytest.raises(ValueError, match=r"model_output='probability'.*PermutationExplainer"):
        shap.TreeExplainer(model, X, model_output="probability")
    with pytest.raises(ValueError, match="needs background rows: pass data"):
        shap.TreeExplainer(model, feature_perturbation="interventional")
    with pytest.raises(ValueError, match="feature_perturbation='none': it must be"):
        shap.TreeExplainer(model, feature_perturbation="none")
    with pytest.raises(ValueError, match="y is given"):
        shap.TreeExplainer(model).shap_values(X, y=X[:, 0])
    linear = XGBRegressorLite(n_estimators=2, linear_tree=True).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="linear_tree=False"):
        shap.TreeExplainer(linear)
    assert isinstance(shap.TreeExplainer(model), sklboost.shap.TreeExplainer)
