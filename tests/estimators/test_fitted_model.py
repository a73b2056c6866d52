import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from sklboost import XGBClassifierLite, XGBRegressorLite
from sklboost.estimators.predict.fitted_model import fitted_model
from tests.small_models import small

pytestmark = pytest.mark.interpreted

X = np.arange(24.0).reshape(12, 2)


@pytest.mark.parametrize(
    ("estimator", "y", "names"),
    [
        (XGBRegressorLite, np.arange(12.0), [""]),
        (XGBRegressorLite, np.column_stack([X[:, 0], X[:, 1]]), ["target 0", "target 1"]),
        (XGBClassifierLite, np.arange(12) % 2, ["class 1"]),
        (XGBClassifierLite, np.array(list("abc" * 4)), ["class 'a'", "class 'b'", "class 'c'"]),
        (XGBClassifierLite, np.eye(12)[:, :2].astype(int), ["label 0", "label 1"]),
    ],
)
def test_names_of_outputs(estimator, y, names):
    fitted = fitted_model(small(estimator).fit(X, y))
    assert fitted.output_names == names
    assert fitted.feature_names == ["f0", "f1"]
    assert fitted.categories == []
    assert fitted.model.n_outputs == len(names)


def test_errors():
    with pytest.raises(TypeError, match=r"LinearRegression\(\) is no estimator of sklboost"):
        fitted_model(LinearRegression())
    with pytest.raises(NotFittedError):
        fitted_model(XGBRegressorLite())
