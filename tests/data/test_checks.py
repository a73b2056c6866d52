"""Tables that are refused: the message names the columns, what is in them, what to do."""

import numpy as np
import polars as pl
import pytest

from sklboost.data.frames import adapter_for
from sklboost.data.frames.adapter import check_kinds, check_names, kind_changed
from tests.accepted_data import PAGE, page

pytestmark = pytest.mark.interpreted


def message(error, X, categorical=()):
    with pytest.raises(error) as caught:
        check_kinds(adapter_for(X), categorical)
    assert type(caught.value) is error
    return str(caught.value)


def test_names_that_occur_twice():
    with pytest.raises(ValueError, match=r"^X has more than one column of the name 'a', 3: give"):
        check_names(["a", 3, "b", 3, "a"])
    with pytest.raises(ValueError, match=r"8, 9 and 2 more: give"):
        check_names([*range(12), *range(12)])
    # as pandas.get_dummies(dummy_na=True) names a column
    with pytest.raises(ValueError, match=r"^X has a column of the name nan, which is not equal to"):
        check_names([1.0, np.nan, 2.0])


def test_text():
    frame = pl.DataFrame({"x": [1.5, 2.5], "city": [None, "Paris"], "job": ["clerk", "x"]})
    text = message(ValueError, frame)
    assert text.startswith("text is not a number: column 'city' (String, such as 'Paris'), ")
    assert (
        'Set categorical_features="auto", which reads text as categories or dates; or name' in text
    )
    assert "city" not in message(ValueError, frame, {1})
    check_kinds(adapter_for(frame), {1, 2})
    assert "column 1 (object, such as 'b')" in message(ValueError, [[1, "b"]])
    long = message(ValueError, pl.DataFrame({"a": ["b" * 100]}))
    assert f"'{'b' * 36}...)" in long


def test_text_without_any_value_is_no_text():
    frame = pl.DataFrame({"x": [1.5, 2.5], "city": [None, None]}, schema_overrides={"city": str})
    check_kinds(adapter_for(frame), ())
    check_kinds(adapter_for(frame.to_pandas()), ())


def test_mixed_objects():
    text = message(ValueError, [["x", 1], [3, 2]])
    assert "column 0 (object, such as 'x' (str) and 3 (int)). Set categorical_features=" in text
    check_kinds(adapter_for([["x", 1], [3, 2]]), {0})


def test_other_objects():
    # whatever is declared: it can be neither a number nor a category
    text = message(TypeError, np.array([[{"a": 1}, 2.0]], dtype=object), {0})
    assert text.startswith("float() argument must be a string or a real number, not 'dict': column")
    assert "such as {'a': 1}" in text


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ("category", "number", "column 'a' held categories at fit and holds numbers (x) now: g"),
        ("number", "text", "column 'a' held numbers at fit and holds text (x) now: convert"),
        ("datetime64", "number", "column 'a' held dates at fit and holds numbers (x) now: give i"),
        ("timedelta64", "datetime64", "column 'a' held durations at fit and holds dates (x) now: "),
        ("number", "mixed", "column 'a' held numbers at fit and holds Python objects (x) now: co"),
        ("text", "unsupported", "column 'a' held text at fit and holds values that can be no feat"),
    ],
)
def test_a_column_of_another_kind(was, now, expected):
    assert kind_changed("column 'a'", was, now, "x").startswith(expected)


def test_the_page_of_what_is_accepted_is_up_to_date():
    """``python -m tests.accepted_data`` writes it, with the error of all that is refused."""
    assert PAGE.read_text(encoding="utf-8") == page()
