"""Importances from splits, as the estimators give them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from sklboost import XGBRegressorLite, XGBRFRegressorLite
from tests.small_models import small

pytestmark = pytest.mark.interpreted


@pytest.fixture
def model():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    return small(XGBRegressorLite).fit(X, X[:, 0] + 0.3 * X[:, 2])


def test_features_without_a_split_are_left_out():
    X = pd.DataFrame({"size": np.arange(20.0), "nothing": np.zeros(20)})
    model = small(XGBRFRegressorLite).fit(X, X["size"])
    assert list(model.get_score()) == ["size"]
    assert small(XGBRegressorLite).fit(np.zeros((5, 2)), np.arange(5.0)).get_score() == {}


def test_names_that_are_no_strings_are_shown_as_text():
    X = pd.DataFrame({10: np.zeros(20), 20: np.arange(20.0)})
    assert list(small(XGBRegressorLite).fit(X, X[20]).get_score()) == ["20"]


def test_features_of_the_same_name_are_told_apart(model):
    model.feature_names_in_ = np.array(["size", "size", "age", "size"], dtype=object)
    weights = np.bincount(
        model.model_.nodes.feature[model.model_.nodes.left >= 0], minlength=4
    ).tolist()
    names = ["size (column 0)", "size (column 1)", "age", "size (column 3)"]
    assert model.get_score() == {n: w for n, w in zip(names, weights, strict=True) if w > 0}


def test_errors(model):
    words = r"^importance_type='gini': it must be one of 'gain', 'total_gain', 'cover'"
    with pytest.raises(ValueError, match=words):
        model.get_score("gini")
    with pytest.raises(ValueError, match=words):
        _ = model.set_params(importance_type="gini").feature_importances_
    with pytest.raises(ValueError, match=words):
        model.fit(np.zeros((3, 1)), np.zeros(3))
    with pytest.raises(NotFittedError):
        XGBRegressorLite().get_score()
