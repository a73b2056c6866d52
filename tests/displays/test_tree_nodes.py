import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost import XGBRegressorLite
from sklboost.data.encoding import Encoding
from tests.small_models import small

pytestmark = pytest.mark.interpreted


def threshold_of(column, y):
    """Return the threshold that a stump has for a column, as a value of it."""
    settings = dict(n_estimators=1, max_depth=1)
    model = small(XGBRegressorLite, **settings).fit(pd.DataFrame({"x": column}), y)
    encodings = model._fitted.encodings
    encoding = Encoding() if encodings is None else encodings[0]
    (value,) = encoding.originals(model.model_.nodes.threshold[:1])
    return value


def step(n, place):
    return (np.arange(n) >= place).astype(float)


def test_numbers_are_as_they_are():
    assert threshold_of(np.arange(10.0), step(10, 4)) == 3.5


@pytest.mark.parametrize(
    "column",
    [
        pd.date_range("2020-01-01", periods=10, freq="D"),
        pd.date_range("2020-01-01", periods=10, freq="h"),
        pd.to_timedelta(np.arange(10), unit="min"),
        pd.array(2**60 + np.arange(10), dtype="Int64"),
        pd.Timestamp("2020-01-01") + pd.to_timedelta(2**58 + np.arange(10), unit="ns"),
    ],
)
@pytest.mark.parametrize("place", [1, 4, 9])
def test_x_less_than_the_value_says_what_the_threshold_says(column, place):
    value = threshold_of(column, step(10, place))
    values = np.asarray(column)
    value = value if values.dtype.kind == "i" else value.astype(values.dtype)
    assert_array_equal(values < value, np.arange(10) < place)
