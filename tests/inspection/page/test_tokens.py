"""Numbers that JavaScript writes as Python does."""

import pytest

from sklboost.inspection.page.tokens import column, rounded, token


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12", 12), ("-0.25", -0.25), ("0", 0), ("120.3333", 120.3333)],
)
def test_plain_numbers(text, expected):
    found = token(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "text",
    ["1e-05", "1.50", "-0", "inf", "nan", "01", "x"]
    + ["100000000000000003", "9007199254740993", "0.0000001", "2020-01-01"],
)
def test_what_javascript_would_write_otherwise_stays_text(text):
    assert token(text) == text


def test_rounding_is_that_of_derivations():
    assert rounded(120.33333333) == 120.3333
    assert rounded(1e-7) == "1e-07"
    assert rounded(4.0) == 4


def test_columns_have_nine_digits():
    assert column([1 / 3, 1e-20, 12345678912.0]) == [0.333333333, 1e-20, 12345678900.0]
