"""Every access to a document is checked, and the error names the place."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklboost import ModelFileError
from sklboost.files.sections import DEEPEST, DocumentSection

WRONG = [None, True, 1, 1.5, "a", [1], {"a": 1}, [True], [1, "a"], [[1]], np.array([1.0])]


def section(value):
    return DocumentSection(value, "file: here")


def refused(problem):
    return pytest.raises(ModelFileError, match=f"^file: here{problem}")


@pytest.mark.parametrize("value", [value for value in WRONG if not isinstance(value, dict)])
def test_no_objects(value):
    for access in (lambda s: s["a"], lambda s: s.get("a"), lambda s: s.items()):
        with refused(": must be an object, and is "):
            access(section(value))


def test_lists():
    for values in ([1, 2], np.array([1, 2])):
        assert [part.place for part in section(values)] == ["file: here[0]", "file: here[1]"]
        assert [part.value for part in section(values)] == [1, 2]
        assert len(section(values)) == 2
    for value in (1, "ab", {"a": 1}, None):
        for access in (len, list):
            with refused(": must be a list, and is "):
                access(section(value))


def test_single_values():
    assert section("a").text() == section("a").text(["a", "b"]) == "a"
    assert section(True).flag() is True
    assert section(3).integer(3, 3) == 3
    assert section(3).number() == 3.0
    assert section("-Infinity").number() == -math.inf
    assert math.isnan(section("NaN").number())


@pytest.mark.parametrize(
    ("access", "right"),
    [
        (lambda s: s.text(), str),
        (lambda s: s.text(["b"]), ()),
        (lambda s: s.flag(), bool),
        (lambda s: s.integer(2, 10**30), ()),
        (lambda s: s.integer(-5, 0), ()),
    ],
)
def test_wrong_single_values(access, right):
    for value in WRONG:
        if not isinstance(value, right):
            with refused(": must be "):
                access(section(value))


@pytest.mark.parametrize("value", [None, True, "a", "nan", [1], 10**400, -(10**400)])
def test_no_number(value):
    with refused(": must be a number"):
        section(value).number()


# --- arrays

NO_ARRAYS = [None, True, 1, "a", {}, [True], ["1"], [[1]], [None]]
NO_INTEGERS = [[1.0], np.array([1.0]), np.array([True]), np.array(["1"])]


@pytest.mark.parametrize("value", [*NO_ARRAYS, *NO_INTEGERS], ids=repr)
def test_no_integers(value):
    with refused(": must be a list of integers"):
        section(value).integers(0, 9)


@pytest.mark.parametrize("value", NO_ARRAYS, ids=repr)
def test_no_numbers(value):
    with refused(": must be a list of numbers"):
        section(value).numbers()


@pytest.mark.parametrize(
    "values", [[5, -1], [5, 10], [5, 2**63], [5, -(2**70)], np.array([5, 200], dtype=np.uint8)]
)
def test_integers_out_of_range(values):
    with refused(r"(\[1\]: must be an integer|: must be a list of integers) from 0 to 9"):
        section(values).integers(0, 9)


def test_integers_that_int64_does_not_hold():
    huge = section(np.array([2**63], dtype=np.uint64))
    with refused(r"\[0\]: must be an integer"):
        huge.integers(0, 2**63 - 1)


def test_sizes():
    for values in ([1, 2], np.array([1, 2])):
        for access in (lambda s: s.integers(0, 9, 3), lambda s: s.numbers(3)):
            with refused(": must have 3 elements, and has 2"):
                access(section(values))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_integers(values):
    found = section(values).integers(-(2**63), 2**63 - 1, len(values))
    assert found.dtype == np.int64
    assert found.tolist() == values


@given(st.lists(st.floats()))
def test_numbers(values):
    for given_values in (values, np.array(values, dtype=">f8")):
        found = section(given_values).numbers(len(values), finite=False)
        assert found.dtype == np.float64
        assert found.dtype.isnative
        assert repr(found.tolist()) == repr([float(value) for value in values])
        if not np.isfinite(values).all():
            with refused(r"\[\d+\]: must be a finite number"):
                section(given_values).numbers()


def test_numbers_beyond_their_limits():
    for values in ([0.0, 2.0], [0.0, math.nan], np.array([0, 2]), np.array([0, 3], dtype=">f4")):
        with refused(r"\[1\]: must be a number from 0 to 1, and is (nan|2|3)"):
            section(values).numbers(finite=False, limits=(0.0, 1.0))
    with refused(": must be a list of numbers that float64 can hold"):
        section([10**400]).numbers()


# --- what errors cost


def test_values_and_keys_in_errors_are_short():
    with pytest.raises(ModelFileError) as caught:
        section({"k" * 10**6: "v" * 10**6})["k" * 10**6].flag()
    assert len(str(caught.value)) < 200


def test_a_long_key_above_a_long_list_takes_no_time():
    found = section({"k" * 10**6: [0] * 10**5})
    assert sum(part.value for part in found["k" * 10**6]) == 0  # 10**11 characters otherwise


def test_depth():
    value = [[]]
    for _ in range(DEEPEST - 1):
        value = [value]
    for nested, is_refused in ((value, False), ([value], True)):
        part = section(nested)
        try:
            while len(part) > 0:
                part = next(iter(part))
            assert not is_refused
        except ModelFileError as error:
            assert is_refused
            assert "nested more than 64 deep" in str(error)  # noqa: PT017
