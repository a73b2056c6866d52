import numpy as np
import pandas as pd
import pytest

from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import ArrangedColumns

pytestmark = pytest.mark.interpreted

ORDER = np.array([2, 0, 1])
FRAME = pd.DataFrame(
    {
        "count": pd.array([1, None, 3], dtype="Int64"),
        "when": pd.to_datetime(["2020-01-01", None, "2020-01-03"]),
        "kind": pd.Categorical(["b", None, "a"], categories=["a", "b", "c"]),
        "size": [0.5, 1.5, 2.5],
    }
)


def read(column):
    """Return the values of a column, as numbers, times or categories, with None where missing."""
    if column.kind == "number":
        values, missing = column.numbers()
    elif column.kind == "time":
        values, missing, _ = column.times()
    else:
        codes, categories = column.categories()
        values, missing = categories[codes], codes < 0
    missing = np.zeros(len(values), dtype=bool) if missing is None else missing
    return [None if m else v for v, m in zip(values.tolist(), missing, strict=True)]


def test_columns_in_any_order_each_with_its_rows_in_order():
    places = [(3, ORDER), (0, ORDER), (0, None), (1, ORDER), (2, ORDER)]
    arranged = ArrangedColumns(adapter_for(FRAME), places)
    assert (arranged.shape, arranged.names, arranged.label(1)) == ((3, 5), None, "column 1")
    assert adapter_for(arranged) is arranged  # it has its reader already
    for i, (number, order) in enumerate(places):
        rows = FRAME if order is None else FRAME.iloc[order]
        found, expected = arranged.column(i), adapter_for(rows).column(number)
        assert read(found) == read(expected)
        assert (found.kind, found.dtype_name) == (expected.kind, expected.dtype_name)
        assert found.is_exact() == expected.is_exact()
    assert arranged.column(4).examples() == ["b"]
