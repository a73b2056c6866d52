"""Vectors of 64-bit numbers and calls by address, compiled and interpreted."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from sklboost.engine.compiling import address_of, by_address, kernel
from sklboost.engine.instructions import (
    add_lanes,
    add_where,
    count_at_most,
    descend,
    item_bytes,
    load_lanes,
    load_word,
    sum_eight,
)


@kernel
def add_from(values, start, cells, place, sign, lanes):
    add_lanes(cells, np.uint64(place), load_lanes(values, np.uint64(start), lanes), sign)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_lanes", [1, 4])
@pytest.mark.parametrize("sign", [1, -1])
def test_neighbouring_numbers_are_added(n_lanes, sign):
    values, cells = np.array([2**40, -3, 5, 7, -(2**62), 9]), np.arange(10)
    add_from(values, 1, cells, 3, sign, (0,) * n_lanes)
    expected = np.arange(10)
    expected[3 : 3 + n_lanes] += sign * values[1 : 1 + n_lanes]
    assert cells.tolist() == expected.tolist()
    add_from(values, 2, cells, 10 - n_lanes, sign, (0,) * n_lanes)  # up to the end
    expected[-n_lanes:] += sign * values[2 : 2 + n_lanes]
    assert cells.tolist() == expected.tolist()


@kernel
def bytes_of(array):
    return item_bytes(array)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_bytes_of_an_element(dtype):
    assert bytes_of(np.zeros((2, 3), dtype)) == np.dtype(dtype).itemsize


@kernel
def word_at(array, row, column):
    return load_word(array, np.uint64(row), np.uint64(column))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_eight_bytes_as_a_word(dtype):
    size = np.dtype(dtype).itemsize
    array = np.arange(1, 25).reshape(2, 12).astype(dtype)
    for row, column in [(0, 0), (0, 3), (1, 12 - 8 // size)]:  # the last: up to the end
        numbers = array[row, column : column + 8 // size].tolist()
        expected = sum(number << (8 * size * i) for i, number in enumerate(numbers))
        assert word_at(array, row, column) == expected
    array[:] = 255
    assert word_at(array, 0, 0) == (2**64 - 1 if dtype == np.uint8 else 0x00FF00FF00FF00FF)


@kernel
def sums_of_eight(cells, start):
    return sum_eight(cells, np.uint64(start))


@pytest.mark.interpreted
@pytest.mark.parametrize("start", [0, 3, 12])
def test_sum_of_eight_and_of_those_not_negative(start):
    cells = np.random.default_rng(0).integers(-(2**58), 2**58, 20)
    eight = cells[start : start + 8]
    assert sums_of_eight(cells, start) == (eight.sum(), eight[eight > 0].sum())


@kernel
def number_at_most(numbers, start, value):
    return count_at_most(numbers, np.uint64(start), value)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_how_many_of_sixteen_are_at_most_a_value(dtype):
    numbers = np.random.default_rng(0).normal(size=40).astype(dtype)
    numbers[[3, 20]], numbers[25] = np.nan, np.inf
    for start in (0, 7, 24):
        some = numbers[start : start + 16]
        for value in (numbers[start], dtype(0.0), dtype(np.inf), dtype(-np.inf), dtype(np.nan)):
            assert number_at_most(numbers, start, value) == (some <= value).sum()


@kernel
def add_where_set(numbers, bits, value):
    add_where(numbers, bits, value)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_a_value_is_added_where_a_bit_is_set(dtype):
    numbers, most = np.arange(64).astype(dtype), dtype(np.iinfo(dtype).max - 63)
    add_where_set(numbers, np.uint64(0x8000_0000_0000_0005), most)
    expected = np.arange(64)
    expected[[0, 2, 63]] += int(most)
    assert numbers.tolist() == expected.tolist()


@kernel
def fill_landings(decisions, places, landings):
    descend(decisions, places, landings)


@pytest.mark.interpreted
@pytest.mark.parametrize("n_comparisons", [64, 1, 200])
def test_rows_descend_by_the_decisions_of_each_split(n_comparisons):
    rng = np.random.default_rng(0)
    decisions = rng.integers(2**64, size=(n_comparisons, 8), dtype=np.uint64)
    places = rng.integers(n_comparisons, size=64, dtype=np.int32)
    if n_comparisons == 64:
        places = ()  # in the order of their places
    before, landings = decisions.copy(), np.full(520, 99, dtype=np.uint8)
    fill_landings(decisions, places, landings)
    expected = [99] * 520
    for row in range(512):
        first, width = 0, 64
        while width > 1:
            width //= 2
            split = first + width
            words = decisions[places[split] if len(places) > 0 else split]
            first += width * (int(words[row // 64]) >> row % 64 & 1)
        expected[row] = first
    assert landings.tolist() == expected
    assert len(set(expected)) > (60 if n_comparisons > 1 else 2)
    assert_array_equal(decisions, before)


@by_address("int64, float64")
def call_code(address, number, factor):
    return address(number, factor)


@kernel
def product(number, factor):
    if number < 0:
        raise ValueError("negative")
    return int(number * factor)


@kernel
def call_twice(address, out):
    out[0] = call_code(address, 3, 2.5)
    out[1] = call_code(address, 4, 2)  # an integer becomes the float that the code takes


@pytest.mark.interpreted
def test_code_is_called_by_its_address():
    out = np.zeros(2, dtype=np.int64)
    call_twice(address_of(product, "int64, float64"), out)
    assert out.tolist() == [7, 8]


@kernel
def call_with_a_negative_number(address):
    return call_code(address, -3, 2.5)


def test_code_that_raises_returns_minus_two():
    assert call_with_a_negative_number(address_of(product, "int64, float64")) == -2
