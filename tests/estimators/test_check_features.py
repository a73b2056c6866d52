from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils.validation import validate_data

from sklboost import XGBRegressorLite
from sklboost.data.encoding import Encoding
from sklboost.estimators.input import check_features
from sklboost.estimators.input.arguments import FitArguments
from sklboost.estimators.input.feature_tables import feature_settings
from sklboost.estimators.input.rows import training_rows
from sklboost.estimators.input.target_kinds import RegressionTargets
from sklboost.estimators.input.targets import check_target_range
from sklboost.estimators.input.weights import row_weights
from tests.small_models import features

pytestmark = pytest.mark.interpreted

X = np.arange(8.0).reshape(4, 2)


def check(y, weight=None, X=X):
    settings = feature_settings("XGBRegressorLite", XGBRegressorLite())
    return training_rows(
        X, y, FitArguments(weight), settings, kind=RegressionTargets, encodings=None
    )[0]


def test_no_weights_are_an_empty_array():
    data = check([1.0, 2, 3, 4])
    assert data.weight.shape == (0,)
    assert np.shares_memory(data.X, X)
    assert np.shares_memory(check([1.0, 2, 3, 4], np.ones(4)).X, X)
    assert check([1.0, 2, 3, 4], X=X.astype(np.float32)).X.dtype == np.float32


def test_rows_of_weight_zero_are_dropped():
    data = check([1.0, 2, 3, 4], [0.0, 1, 0, 2])
    assert_array_equal(data.X, X[[1, 3]])
    assert_array_equal(data.y, [2, 4])
    assert_array_equal(data.weight, [1, 2])


@pytest.mark.parametrize(
    ("weight", "words"),
    [
        ([1, 2, -3, 1], r"sample_weight\[2\]=-3: weights must be >= 0"),
        ([0, 0, 0, 0], "zero for every row"),
        ([[1, 1, 1, 1]], "must be 1-D"),
        ([1, 2, 3], "inconsistent numbers of samples"),
        ([1, np.nan, 1, 1], "contains NaN"),
    ],
)
def test_unusable_weights(weight, words):
    with pytest.raises(ValueError, match=words):
        row_weights(weight, X)


@pytest.mark.parametrize("y", [[1e30, -1e30], [0.0, 1e-30], [5.0, 5.0], [-1.0, 1.0]])
def test_usable_targets(y):
    check_target_range(np.array(y), "y")


@pytest.mark.parametrize(
    ("y", "words"), [([0, -1.1e30], "divide it by"), ([1e-40, 2e-40], "multiply it by a constant")]
)
def test_targets_that_float32_gradients_cannot_hold(y, words):
    with pytest.raises(ValueError, match=words):
        check_target_range(np.array(y), "y")


PLAIN = {
    "float64": X,
    "float32": X.astype(np.float32),
    "Fortran order": np.asfortranarray(X),
    "missing and infinite": np.array([[np.nan, np.inf]]),
}
OTHERS = {
    "list": X.tolist(),
    "integers": X.astype(int),
    "bytes in the other order": X.astype(X.dtype.newbyteorder()),
    "rows apart": np.repeat(X, 2, axis=0)[::2, :],
    "three features": np.zeros((4, 3)),
    "no rows": X[:0],
    "one dimension": X[0],
    "complex": X.astype(complex),
}


@pytest.mark.parametrize("values", PLAIN.values(), ids=PLAIN)
def test_plain_arrays_are_taken_as_they_are(values, monkeypatch):
    estimator = XGBRegressorLite(n_estimators=1).fit(X, X[:, 0])
    checked = validate_data(estimator, values, reset=False, ensure_all_finite=False)
    assert checked is values  # so nothing is lost
    monkeypatch.setattr(check_features, "_checked_values", None)
    assert features(estimator, values) is values


@pytest.mark.parametrize("values", OTHERS.values(), ids=OTHERS)
def test_all_else_is_checked(values, monkeypatch):
    estimator = XGBRegressorLite(n_estimators=1).fit(X, X[:, 0])
    monkeypatch.setattr(check_features, "_checked_values", None)
    with pytest.raises(TypeError, match="not callable"):
        features(estimator, values)


def test_arrays_that_have_to_be_encoded_are_not_taken_as_they_are():
    estimator = XGBRegressorLite(n_estimators=1).fit(X, X[:, 0])
    assert features(estimator, X) is X
    marked = XGBRegressorLite(n_estimators=1, missing=0.0).fit(X, X[:, 0])
    assert features(marked, X) is not X
    known, encodings = estimator._trained, (Encoding(ranks=np.arange(8)),) * 2
    known = replace(known, features=known.features._replace(encodings=encodings))
    vars(estimator)["_trained"] = known
    assert features(estimator, X) is not X


def test_an_array_where_fit_had_names_is_checked():
    estimator = XGBRegressorLite(n_estimators=1).fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 0])
    with pytest.warns(UserWarning, match="valid feature names"):
        estimator.predict(X)
