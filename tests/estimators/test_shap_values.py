"""SHAP values as users ask for them: shapes, forms of rows, rounds, errors, the shap package."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from sklboost import (
    UnknownCategoryWarning,
    XGBClassifierLite,
    XGBRegressorLite,
    bin_features,
)
from tests.small_models import small


@pytest.mark.parametrize("task", ["regression", "binary", "multiclass"])
def test_shapes_and_sums(task, binary, multiclass, regression):
    X, y = {"binary": binary, "multiclass": multiclass, "regression": regression}[task]
    model = small(XGBRegressorLite if task == "regression" else XGBClassifierLite).fit(X, y)
    n, f = X.shape
    raw_score = model.predict(X) if task == "regression" else model.decision_function(X)
    values, pairs = model.shap_values(X), model.shap_interaction_values(X[:9])
    contribs = model.predict(X, pred_contribs=True)
    interactions = model.predict(X[:9], pred_interactions=True)
    assert values.flags.c_contiguous
    if task == "multiclass":
        assert (values.shape, pairs.shape) == ((n, f, 3), (9, f, f, 3))
        assert (contribs.shape, interactions.shape) == ((n, 3, f + 1), (9, 3, f + 1, f + 1))
        values, pairs = values.transpose(0, 2, 1), pairs.transpose(0, 3, 1, 2)
    else:
        assert (values.shape, pairs.shape) == ((n, f), (9, f, f))
        assert (contribs.shape, interactions.shape) == ((n, f + 1), (9, f + 1, f + 1))
    assert_array_equal(contribs[..., :-1], values)
    assert_array_equal(interactions[..., :-1, :-1], pairs)
    assert_allclose(contribs.sum(axis=-1), raw_score, atol=1e-11)
    assert_allclose(interactions.sum(axis=-1), contribs[:9], atol=1e-11)
    assert np.ptp(contribs[..., -1], axis=0).max() == 0.0  # the same bias for all rows
    assert_array_equal(interactions[..., -1, :-1], 0.0)


def test_features_that_no_tree_has_get_exactly_0(regression):
    X, y = regression
    X = np.concatenate([X, np.zeros((len(X), 2))], axis=1)
    model = small(XGBRegressorLite).fit(X, y)
    values = model.shap_values(X)
    assert_array_equal(values[:, -2:], 0.0)
    assert_array_equal(values.any(axis=0), model.feature_importances_ > 0.0)


def test_iteration_range(multiclass):
    X, y = multiclass
    model = small(XGBClassifierLite).fit(X, y)
    parts = [model.shap_values(X, iteration_range=own) for own in ((0, 3), (3, 0))]
    assert_allclose(parts[0] + parts[1], model.shap_values(X), atol=1e-12)
    contribs = model.predict(X, pred_contribs=True, iteration_range=(2, 5))
    raw_score = model.decision_function(X, iteration_range=(2, 5))
    assert_allclose(contribs.sum(axis=-1), raw_score, atol=1e-12)
    pairs = model.shap_interaction_values(X, iteration_range=(2, 5))
    assert_allclose(pairs.sum(axis=2).transpose(0, 2, 1), contribs[..., :-1], atol=1e-12)
    with pytest.raises(ValueError, match="iteration_range"):
        model.shap_values(X, iteration_range=(5, 20))


def test_the_same_in_any_form_of_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 6)).round(1).astype(np.float32)
    X[random.random(X.shape) < 0.5] = 0.0
    y = X[:, 0] - X[:, 1] * X[:, 2]
    model = small(XGBRegressorLite).fit(X, y)
    values, pairs = model.shap_values(X), model.shap_interaction_values(X)
    background = model.shap_values(X, X_background=X[:9])
    for form in (X.astype(float), np.asfortranarray(X), X.tolist(), csr_array(X), X[::-1][::-1]):
        assert_array_equal(model.shap_values(form), values)
        assert_array_equal(model.shap_interaction_values(form), pairs)
    assert_array_equal(model.shap_values(X, X_background=csr_array(X[:9])), background)
    bins = bin_features(X)
    of_bins = small(XGBRegressorLite).fit(bins, y)
    assert_array_equal(of_bins.shap_values(bins), values)
    names = list("abcdef")
    frame = pd.DataFrame(X, columns=names)
    of_frame = small(XGBRegressorLite).fit(frame, y)
    assert_array_equal(of_frame.shap_values(frame[names[::-1]]), values)
    assert_array_equal(of_frame.shap_values(frame, X_background=frame[names[::-1]][:9]), background)


def test_base_margin_and_calibrated_priors_are_in_the_bias(binary):
    X, y = binary
    margin = np.linspace(-1.0, 1.0, len(y))
    model = small(XGBClassifierLite).fit(X, y, base_margin=margin)
    contribs = model.predict(X, base_margin=margin, pred_contribs=True)
    assert_allclose(contribs.sum(axis=1), model.decision_function(X, base_margin=margin))
    with pytest.warns(UserWarning, match="fitted with base_margin"):
        without = model.predict(X, pred_contribs=True)
    assert_allclose(contribs[:, -1] - without[:, -1], margin)
    shifted = small(XGBClassifierLite, scale_pos_weight=5.0, calibrated_prior=True).fit(X, y)
    contribs = shifted.predict(X, pred_contribs=True)
    assert_allclose(contribs.sum(axis=1), shifted.decision_function(X))


def test_errors(binary):
    X, y = binary[0][:, :10], binary[1]
    model = small(XGBClassifierLite)
    for method in (model.shap_values, model.shap_interaction_values):
        with pytest.raises(NotFittedError):
            method(X)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"9 features, but .* is expecting 10"):
        model.shap_values(X[:, :9])
    with pytest.raises(ValueError, match=r"X_background: .*9 features"):
        model.shap_values(X, X_background=X[:, :9])
    with pytest.raises(ValueError, match=r"X_background: .*0 sample"):
        model.shap_values(X, X_background=X[:0])
    with pytest.raises(ValueError, match="predict gives one of them"):
        model.predict(X, pred_contribs=True, pred_interactions=True)


def test_linear_leaves_are_refused(regression):
    X, y = regression
    model = small(XGBRegressorLite, linear_tree=True).fit(X, y)
    for method in (model.shap_values, model.shap_interaction_values):
        with pytest.raises(ValueError, match=r"constant leaves.*linear_tree=False"):
            method(X)
    with pytest.raises(ValueError, match=r"constant leaves.*linear_tree=False"):
        model.predict(X, pred_contribs=True)


# --- the shap package, whose own warnings are not ours

of_shap = pytest.mark.filterwarnings("ignore")


@of_shap
def test_explanation_has_what_plots_need(regression, multiclass):
    shap = pytest.importorskip("shap")  # which requires numba
    X, y = regression
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(10)])
    model = small(XGBRegressorLite).fit(frame, y)
    explanation = model.shap_explanation(frame[frame.columns[::-1]])
    assert isinstance(explanation, shap.Explanation)
    assert_array_equal(explanation.values, model.shap_values(frame))
    assert explanation.base_values.shape == (442,)
    whole = explanation.values.sum(axis=1) + explanation.base_values
    assert_allclose(whole, model.predict(frame))
    assert_array_equal(explanation.data, X)
    assert_array_equal(explanation.display_data, X)
    assert explanation.feature_names == list(frame.columns)
    assert explanation.output_names is None
    background = model.shap_explanation(frame, X_background=frame[:50], iteration_range=(0, 2))
    whole = background.values.sum(axis=1) + background.base_values
    assert_allclose(whole, model.predict(frame, iteration_range=(0, 2)))

    X, y = multiclass
    names = np.array(["a", "b", "c"])
    model = small(XGBClassifierLite).fit(X, names[y])
    explanation = model.shap_explanation(X)
    assert explanation.values.shape == (150, 4, 3)
    whole = explanation.values.sum(axis=1) + explanation.base_values
    assert_allclose(whole, model.decision_function(X))
    assert explanation.output_names == ["a", "b", "c"]
    assert explanation.feature_names == ["f0", "f1", "f2", "f3"]
    assert explanation[:, :, 1].shape == (150, 4)


@of_shap
def test_rows_are_read_once():
    pytest.importorskip("shap")
    X = pd.DataFrame({"kind": pd.Categorical(["u", "v", "w"] * 20)})
    model = small(XGBRegressorLite).fit(X, np.arange(60) % 3)
    other = pd.DataFrame({"kind": ["u", "x"]})
    with pytest.warns(UnknownCategoryWarning) as record:
        explanation = model.shap_explanation(other)
    assert len([own for own in record if own.category is UnknownCategoryWarning]) == 1
    assert explanation.display_data.tolist() == [["u"], ["x"]]


def test_without_the_shap_package_the_remedy_is_named(regression, monkeypatch):
    X, y = regression
    model = small(XGBRegressorLite).fit(X, y)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r'pip install "sklboost\[plot\]"'):
        model.shap_explanation(X)
