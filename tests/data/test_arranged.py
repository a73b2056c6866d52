import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from sklboost.data.frames import adapter_for
from sklboost.data.frames.arranged import ArrangedColumns

pytestmark = pytest.mark.interpreted

ORDER = np.array([2, 0, 1])


@pytest.fixture
def arranged():
    frame = pd.DataFrame(
        {
            "count": pd.array([1, None, 3], dtype="Int64"),
            "when": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
            "kind": pd.Categorical(["b", None, "a"], categories=["a", "b", "c"]),
            "size": [0.5, 1.5, 2.5],
        }
    )
    places = [(3, ORDER), (0, ORDER), (0, None), (1, ORDER), (2, ORDER)]
    return ArrangedColumns(adapter_for(frame), places)


def test_shape_and_no_names(arranged):
    assert arranged.shape == (3, 5)
    assert arranged.names is None
    assert arranged.label(1) == "column 1"
    assert adapter_for(arranged) is arranged  # it has its reader already


def test_numbers_in_their_order(arranged):
    values, missing = arranged.column(0).numbers()
    assert_array_equal(values, [2.5, 0.5, 1.5])
    assert missing is None
    values, missing = arranged.column(1).numbers()
    assert_array_equal(missing, [False, False, True])
    assert_array_equal(values[~missing], [3, 1])
    values, missing = arranged.column(2).numbers()
    assert_array_equal(missing, [False, True, False])
    assert_array_equal(values[~missing], [1, 3])


def test_times_in_their_order(arranged):
    values, missing, unit = arranged.column(3).times()
    assert_array_equal(missing, [False, False, True])
    expected = np.array(["2020-01-03", "2020-01-01"], dtype="datetime64[D]")
    assert_array_equal(values.view(unit)[~missing].astype("datetime64[D]"), expected)


def test_categories_in_their_order(arranged):
    codes, values = arranged.column(4).categories()
    assert_array_equal(codes, [values.tolist().index("a"), values.tolist().index("b"), -1])


def test_the_rest_is_the_column_s(arranged):
    assert [arranged.column(i).kind for i in range(5)] == ["number"] * 3 + ["time", "category"]
    assert arranged.column(1).dtype_name == "Int64"
    assert arranged.column(4).examples() == ["b"]
    frame_column = adapter_for(pd.DataFrame({"size": [0.5]})).column(0)
    assert arranged.column(0).is_exact() == frame_column.is_exact()
