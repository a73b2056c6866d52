"""Labels of any kind, and the probabilities of their classes."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost import XGBClassifierLite
from tests.small_models import small

LABELS = {
    "text": np.array(["no", "yes"]),
    "objects": np.array(["zebra", "ant"], dtype=object),
    "booleans": np.array([True, False]),
    "integers": np.array([7, -3]),
    "unsigned": np.array([200, 3], dtype=np.uint8),
    "whole floats": np.array([2.0, 1.0]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(kind, binary):
    X, y = binary
    labels = LABELS[kind][y]
    model = small(XGBClassifierLite).fit(X, labels)
    assert_array_equal(model.classes_, np.unique(LABELS[kind]))
    prediction = model.predict(X)
    assert prediction.dtype == labels.dtype
    assert np.mean(prediction == labels) > 0.95
    assert_array_equal(prediction, model.classes_[model.predict_proba(X).argmax(axis=1)])
    # the sign of the scores, and the order of the columns, follow classes_
    positive = labels == model.classes_[1]
    assert model.decision_function(X)[positive].mean() > 1
    assert model.predict_proba(X)[positive, 1].mean() > 0.8


def test_labels_from_pandas(multiclass):
    X, y = multiclass
    names = np.array(["setosa", "versicolor", "virginica"])
    expected = small(XGBClassifierLite).fit(X, names[y]).predict(X)
    for labels in (pd.Series(names[y]), pd.Series(names[y], dtype="category"), list(names[y])):
        assert_array_equal(small(XGBClassifierLite).fit(X, labels).predict(X), expected)


def test_probabilities_are_probabilities(binary, multiclass):
    for X, y in (binary, multiclass):
        model = small(XGBClassifierLite, n_estimators=50).fit(X, y)
        probabilities = model.predict_proba(X)
        assert probabilities.shape == (len(y), len(model.classes_))
        assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
        assert probabilities.min() >= 0
        raw = model.decision_function(X)
        if len(model.classes_) == 2:
            assert raw.shape == (len(y),)
            assert_allclose(probabilities[:, 1], 1 / (1 + np.exp(-raw)), rtol=1e-12)
        else:
            exponentials = np.exp(raw)
            expected = exponentials / exponentials.sum(axis=1, keepdims=True)
            assert_allclose(probabilities, expected, rtol=1e-12)
