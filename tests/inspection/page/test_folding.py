"""Folded derivations unfold to what they were, and numbers are written as Python does."""

import json

import pytest

from sklboost.inspection.derivation import Derivation, Section, Step, given, number
from sklboost.inspection.page import MARK, column, fold_derivations, rounded, token


def derivation(node, gain, feature="f0", extra=()):
    lines = (
        f"{feature} < 1.5: to node {node + 1}.",
        given("sum", "G", gain),
        Step("twice", "T", "G + G", {"G": gain}, 2 * gain),
        *extra,
    )
    return Derivation(f"Tree 0, node {node}", (Section("Split", lines),))


def unfolded(folded):
    """Return the texts of all lines, in the plainest way."""
    counts = [0] * len(folded["templates"])
    found = []
    for kind in folded["kinds"]:
        template = folded["templates"][kind]
        slots = iter(template["slots"])

        def value(template=template, slots=slots, index=counts[kind]):
            column = template["columns"][next(slots)]
            return column[index] if isinstance(column, list) else column

        counts[kind] += 1
        for _, lines in template["sections"]:
            for line in lines:
                if isinstance(line, int):
                    text = folded["sentences"][value()]
                    for _ in range(line):
                        text = text.replace(MARK, str(value()), 1)
                    found.append(text)
                else:
                    found.append((*line[:3], *(str(value()) for _ in line[3]), str(value())))
    return found


def lines_of(own):
    found = [own.title]
    for section in own.sections:
        for line in section.lines:
            if isinstance(line, str):
                found.append(line)
            else:
                found.append((*line[:3], *map(number, line.values.values()), number(line.result)))
    return found


def check(derivations):
    folded = json.loads(json.dumps(fold_derivations(derivations)))
    assert unfolded(folded) == [line for own in derivations for line in lines_of(own)]
    return folded


def test_one_kind_of_derivation_is_one_template():
    folded = check([derivation(0, 1.25), derivation(1, -3.0, "b"), derivation(7, 1e-9)])
    assert len(folded["templates"]) == 1
    assert folded["kinds"] == [0, 0, 0]


def test_equal_numbers_are_kept_once():
    (template,) = check([derivation(node, 2.5) for node in range(5)])["templates"]
    assert template["columns"].count([0, 1, 2, 3, 4]) == 1  # the node
    assert template["columns"].count(2.5) == 1  # of two slots, in five derivations
    assert template["slots"].count(template["columns"].index(2.5)) == 2


def test_other_lines_are_another_template():
    folded = check([derivation(0, 1.0), derivation(1, 1.0, extra=("A leaf.",)), derivation(2, 1.0)])
    assert folded["kinds"] == [0, 1, 0]


def test_numbers_in_names_and_odd_numbers_come_through():
    for name in (
        "f10",
        "a 3 b",
        "x_1.5",
        "v1.0",
        "1.50",
        "-0",
        "1e-7",
        "3.",
        "+4",
        "1..2",
        MARK,
        "100000000000000003",
        "2020-05-25",
        "0.12345678901234567891",
        "0.0000001",
    ):
        check([derivation(0, 1.0, name), derivation(1, 2.0, name), derivation(2, 2.0, "c")])


# --- numbers that JavaScript writes as Python does


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
