import sys

import pytest

from sklboost.displays import figures
from sklboost.displays.figures import literal, short, short_names, short_number

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("age", "age"),
        ("ten letter", "ten letter"),
        ("more than ten", "more … ten"),
        ("two\nlines ", "two lines"),
    ],
)
def test_short(text, shown):
    assert short(text, 10) == shown
    assert len(short(text, 10)) <= 10


def test_names_that_differ_in_the_middle_stay_different():
    names = [f"measurement number {i} of the left sensor" for i in range(20)]
    shown = short_names([*names, "age"], 20)
    assert len(set(shown)) == 21
    assert max(map(len, shown)) <= 20
    assert shown[17] == "measu…17 of the lef…"
    assert shown[-1] == "age"


def test_names_that_are_the_same_are_shown_the_same():
    assert short_names(["a very long name"] * 2, 10) == ["a ver…name"] * 2


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (-0.0, "0"), (1 / 3, "0.3333"), (-12.345, "-12.35"), (123456.7, "123,457")]
    + [(1e-7, "1e-07"), (2.5e12, "2.5e+12"), (9999.0, "9999"), (10000.0, "10,000")],
)
def test_short_number(value, text):
    assert short_number(value, 4) == text


def test_dollars_are_dollars():
    assert literal("price in $ or $10") == r"price in \$ or \$10"


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "sklboost\[plot\]"'):
        figures.pyplot()
