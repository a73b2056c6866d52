from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils.validation import validate_data

from sklboost import XGBRegressorLite
from sklboost.data.encoding import Encoding
from sklboost.estimators.input import features as check_features
from sklboost.estimators.input.targets import RegressionTargets
from tests.small_models import features

pytestmark = pytest.mark.interpreted

X = np.arange(8.0).reshape(4, 2)


@pytest.mark.parametrize("y", [[1e30, -1e30], [0.0, 1e-30], [5.0, 5.0], [-1.0, 1.0]])
def test_usable_targets(y):
    RegressionTargets(1).encode(np.array(y), "y")


@pytest.mark.parametrize(
    ("y", "words"), [([0, -1.1e30], "divide it by"), ([1e-40, 2e-40], "multiply it by a constant")]
)
def test_targets_that_float32_gradients_cannot_hold(y, words):
    with pytest.raises(ValueError, match=words):
        RegressionTargets(1).encode(np.array(y), "y")


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
