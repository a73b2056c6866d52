"""Text, LaTeX and HTML of the same steps."""

import html.parser
import math
import re

import pytest

from sklboost.inspection.derivation import (
    Derivation,
    Section,
    Step,
    fill_in,
    given,
    number,
)

pytestmark = pytest.mark.interpreted

HOSTILE = "<script>alert('&')</script> 50% a_b $x^2$ {~} \\ #"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (120 + 1 / 3, "120.3333"),
        (4.0, "4"),
        (-10.5, "-10.5"),
        (100.0, "100"),
        (3.5 / 43, "0.081395"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.99999999, "1"),
        (1.23456789e-5, "1.23457e-05"),
        (123456789.5, "123456789.5"),
        (2.5e12, "2.5e+12"),
        (math.inf, "inf"),
        (math.nan, "nan"),
    ],
)
def test_numbers(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("formula", "values", "text"),
    [
        ("G² / (H + λ)", {"G": -10.5, "H": 1, "λ": 0}, "(-10.5)² / (1 + 0)"),
        ("G_L² / (H_L + λ)", {"G_L": 2, "H_L": 1, "λ": 0}, "2² / (1 + 0)"),
        ("-G / (H + λ)", {"G": -6.5, "H": 3, "λ": 1}, "-(-6.5) / (3 + 1)"),
        ("S_L + S_R - S", {"S_L": -1, "S_R": -2, "S": -3}, "-1 + (-2) - (-3)"),
        ("exp(-F_2,1)", {"F_2,1": 1.5}, "exp(-1.5)"),
        ("max(G - α, 0)", {"α": 2, "G": -1}, "max(-1 - 2, 0)"),
        ("F_1 + F_11", {"F_1": 1, "F_11": 2}, "1 + 2"),
    ],
)
def test_numbers_in_place_of_symbols(formula, values, text):
    assert fill_in(formula, values) == text


def make(word="node"):
    values = {"G_L": -10.5, "H_L": 1.0, "λ": 1e-5}
    steps = (
        f"{word} goes left ≥ 3.",
        Step(f"similarity of {word}", "S_L", "G_L² / (H_L + λ)", values, 110.25),
        given("gradients", "G_L", -10.5),
    )
    return Derivation(f"Tree of {word}", (Section(f"Sums of {word}", steps),))


def test_text():
    assert str(make()) == repr(make()) == make().text
    assert make().text.splitlines() == [
        "Tree of node",
        "",
        "Sums of node",
        "  node goes left ≥ 3.",
        "  similarity of node: S_L = G_L² / (H_L + λ) = (-10.5)² / (1 + 1e-05) = 110.25",
        "  gradients: G_L = -10.5",
    ]


def test_latex():
    text = make().latex
    assert text == make()._repr_latex_()
    assert r"S_{L} &= \frac{G_{L}^2}{H_{L} + \lambda}" in text
    assert r"= \frac{(-10.5)^2}{1 + 1 \cdot 10^{-5}} = 110.25 &&\text{similarity of node}" in text
    assert "node goes left $\\ge$ 3." in text
    assert text.count(r"\begin{align*}") == text.count(r"\end{align*}") == 1


def test_html():
    text = make().html
    assert text == make()._repr_html_()
    assert (
        "<i>S</i><sub>L</sub> = <i>G</i><sub>L</sub>² / (<i>H</i><sub>L</sub> + <i>λ</i>)" in text
    )
    assert "= (-10.5)² / (1 + 1e-05) = 110.25</td>" in text
    assert '<th scope="row">similarity of node</th>' in text


class Reader(html.parser.HTMLParser):
    """Collects the tags and the text of a page; every tag is closed."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text, self.open = set(), "", []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_names_stay_text_in_html():
    page = Reader(make(HOSTILE).html)
    assert page.tags == {"div", "h3", "h4", "section", "table", "tr", "th", "td", "i", "sub"}
    assert page.text.count(HOSTILE) == 4


def test_names_are_escaped_in_latex():
    text = make(HOSTILE).latex
    # without escaped letters, what is left of the special ones is LaTeX's own, and in pairs
    bare = re.sub(r"\\[&%$#_{}]", "", text)
    assert not set("%#~") & set(bare)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert r"\textbackslash{}" in text
    assert r"a\_b" in text


def test_results_by_symbol():
    assert make().result("S_L") == 110.25
    assert [step.symbol for step in make().steps] == ["S_L", "G_L"]
    with pytest.raises(KeyError, match=r"symbol='gain'.*S_L, G_L"):
        make().result("gain")


def test_a_step_prints_as_its_equation():
    step = Step("twice", "t", "2 · x", {"x": 3.0}, 6.0)
    assert str(step) == "twice: t = 2 · x = 2 · 3 = 6"
    assert str(given("a number", "x", 3.0)) == "a number: x = 3"
