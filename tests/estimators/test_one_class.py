"""A classifier that has seen one class predicts it, and everything else goes on as ever."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

from sklboost import XGBClassifierLite, XGBRFClassifierLite

N_ROWS = 60
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
ALL_A = np.array(["a"] * N_ROWS)
LABELS = [0, 1, -1, 2.0, True, "a"]


def small(**parameters):
    return XGBClassifierLite(**{"n_estimators": 5, "max_depth": 2} | parameters)


@pytest.mark.parametrize(
    ("estimator", "label"),
    [*((XGBClassifierLite, label) for label in LABELS), (XGBRFClassifierLite, "a")],
)
def test_it_is_predicted_for_sure(estimator, label):
    y = np.array([label] * N_ROWS)
    model = estimator(n_estimators=3).fit(X, y)
    assert model.classes_.tolist() == [label]
    predicted = model.predict(X)
    assert predicted.dtype == y.dtype
    assert_array_equal(predicted, y)
    assert_array_equal(model.predict_proba(X), np.ones((N_ROWS, 1)))
    assert model.score(X, y) == 1.0
    # the log-odds of another class, as XGBoost and LightGBM have them
    assert model.decision_function(X).max() < -10.0


@pytest.mark.parametrize(
    "parameters",
    [
        dict(class_weight="balanced"),
        dict(class_weight={"a": 3.0, "b": 1.0}, calibrated_prior=True),
        dict(scale_pos_weight=9.0),
        dict(objective="multi:softprob"),
        dict(objective="binary:focal"),
        dict(objective="binary:hinge"),
        dict(objective=lambda y, z: (1 / (1 + np.exp(-z)) - y, np.full(len(y), 0.25))),
        dict(base_score=0.9),
        dict(booster="dart", rate_drop=0.5),
        dict(linear_tree=True),
        dict(multi_strategy="multi_output_tree"),
        dict(subsample=0.5, random_state=0),
        dict(reg_lambda=0.0, min_child_weight=0.0),
    ],
)
def test_whatever_the_parameters(parameters):
    model = small(**parameters).fit(X, ALL_A)
    assert_array_equal(model.predict(X), ALL_A)
    assert_array_equal(model.predict_proba(X), np.ones((N_ROWS, 1)))
    assert np.isfinite(model.decision_function(X)).all()


def test_all_that_a_model_can_tell(tmp_path):
    weight = np.array([1.0, 0.0] * 30)  # rows of weight 0 have no class
    model = small().fit(X, np.array(["a", "b"] * 30), sample_weight=weight)
    assert model.classes_.tolist() == ["a"]
    model = small().fit(X, ALL_A, base_margin=np.full(N_ROWS, 5.0))
    assert_array_equal(model.predict(X, base_margin=np.full(N_ROWS, 50.0)), ALL_A)
    model = small().fit(X, ALL_A)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), ALL_A)
    assert [stage.shape for stage in model.staged_predict_proba(X)] == [(N_ROWS, 1)] * 5
    assert all((stage == "a").all() for stage in model.staged_predict(X))
    *_, last = model.staged_decision_function(X)
    assert_array_equal(last, model.decision_function(X))
    assert_array_equal(model.apply(X), np.zeros((N_ROWS, 5)))
    assert_array_equal(model.shap_values(X), np.zeros((N_ROWS, 3)))
    contributions = model.predict(X, pred_contribs=True)
    assert_allclose(contributions.sum(axis=1), model.decision_function(X))
    assert len(model.trees_to_dataframe()) == 5
    assert_array_equal(model.feature_importances_, np.zeros(3))
    derivation = model.explain_prediction(X[0]).text
    assert "probability: p = 1 / (1 + exp(" in derivation
    assert "Predicted class: 'a', the only one in the training." in derivation
    model.to_html(tmp_path / "model.html", X, ALL_A)
    page = (tmp_path / "model.html").read_text(encoding="utf-8")
    assert "Predicted class: 'a', the only one in the training." in page


# --- validation data -----------------------------------------------------------------------------


def test_other_classes_in_validation_data():
    message = r"y of X_val has the labels \['b'\], which y does not have: the classes are \['a'\]"
    with pytest.raises(ValueError, match=message):
        small().fit(X, ALL_A, X_val=X, y_val=np.array(["a", "b"] * 30))


def test_early_stopping_keeps_rows_of_the_class():
    model = small(early_stopping_rounds=2, refit=True).fit(X, ALL_A)
    losses = model.evals_result_["validation_0"]["logloss"]
    assert max(losses) < 1e-6
    assert_array_equal(model.predict(X), ALL_A)


def returns_nan(y_true, y_pred):
    return np.nan


def cannot(y_true, y_pred):
    raise ValueError("two classes are needed")


@pytest.mark.parametrize("metric", ["auc", "aucpr", "neg_log_loss", "f1", returns_nan, cannot])
def test_metrics_that_need_two_classes_are_nan(metric):
    metrics = ["error", metric]
    model = small(early_stopping_rounds=2, eval_metric=metrics, n_estimators=20).fit(X, ALL_A)
    name, values = [*model.evals_result_["validation_0"].items()][-1]
    assert name == getattr(metric, "__name__", metric)
    assert np.isnan(values).all()
    assert set(model.evals_result_["validation_0"]["error"]) == {0.0}
    assert (len(values), model.stop_reason_) == (2, "early_stopping")
    assert_array_equal(model.predict(X), ALL_A)


# --- continuing ----------------------------------------------------------------------------------


def test_continuing():
    model = small(warm_start=True).fit(X, ALL_A)
    model.set_params(n_estimators=8).fit(X, ALL_A)
    assert model.n_estimators_ == 8
    with pytest.raises(ValueError, match=r"y has the classes \['a', 'b'\], but the model of warm"):
        model.set_params(n_estimators=9).fit(X, np.array(["a", "b"] * 30))


# --- scikit-learn's tools ------------------------------------------------------------------------


def test_folds_of_one_class():
    y = np.repeat(["ham", "spam"], 30)
    assert_array_equal(cross_val_score(small(), X, y, cv=KFold(2)), 0.0)
    with pytest.warns(RuntimeWarning, match="Number of classes in training fold"):
        probability = cross_val_predict(small(), X, y, cv=KFold(2), method="predict_proba")
    assert_array_equal(probability, np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0))
