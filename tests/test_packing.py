"""Python's arguments as the words that machine code takes."""

import ctypes
import pickle
import struct
from typing import NamedTuple

import numpy as np
import pytest

from sklboost.engine import packing
from sklboost.engine.packing import PackedOnce, pack

pytestmark = pytest.mark.interpreted

POINT = np.dtype([("x", np.float64), ("left", np.int32), ("right", np.int32)], align=True)


class Inner(NamedTuple):
    values: np.ndarray
    number: object


class Outer(NamedTuple):
    first: object
    inner: Inner
    last: object


class Kept(Inner, PackedOnce):
    """Packed once."""


def words(*arguments):
    return pack(arguments)[1].tolist()


def words_at(address, n_words):
    return list((ctypes.c_int64 * n_words).from_address(address))


def bits(number):
    return struct.unpack("<q", struct.pack("<d", number))[0]


def array_words(array):
    address = array.__array_interface__["data"][0]
    # NumPy may give an empty array a stride of 0
    strides = [array.itemsize] if array.shape == (0,) else array.strides
    return [0, 0, array.size, array.itemsize, address, *array.shape, *strides]


@pytest.mark.parametrize(
    ("value", "kind", "word"),
    [
        (7, "int64", 7),
        (-7, "int64", -7),
        (np.int64(-(2**62)), "int64", -(2**62)),
        (np.uint64(2**64 - 2), "uint64", -2),
        (2.5, "float64", bits(2.5)),
        (np.float64("nan"), "float64", bits(float("nan"))),
        (np.float32(1), "float32", 0x3F800000),
        (True, "bool", 1),
        (np.bool_(False), "bool", 0),
        (None, "none", 0),
    ],
)
def test_a_scalar_is_a_word(value, kind, word):
    assert pack((value,))[0] == kind
    assert words(value) == [word]


ARRAYS = [
    np.arange(5.0),
    np.zeros((2, 3), dtype=np.uint8),
    np.zeros((2, 3, 4))[:, ::-2],
    np.asfortranarray(np.zeros((3, 2))),
    np.empty(0, dtype=np.int64),
    np.empty(4, dtype=POINT),
    np.empty(4, dtype=POINT).view(np.recarray),
    np.empty(4, dtype=POINT).view(np.recarray)[1:],
    np.broadcast_to(np.arange(3), (2, 3)),
]


@pytest.mark.parametrize("array", ARRAYS)
def test_an_array_is_its_place_and_its_shape(array):
    assert words(array) == array_words(array)


@pytest.mark.parametrize("array", ARRAYS)
def test_the_address_is_the_same_by_both_ways(array):
    by_attribute = packing._address_by_attribute(array)
    assert packing._address_in_object(array) == by_attribute
    assert packing._address_of(array) == by_attribute


def test_kinds_tell_apart_what_different_code_takes():
    values = [np.zeros(3), np.zeros(3, np.float32), np.zeros((3, 1)), np.zeros((4, 4))[:, ::2]]
    values += [np.zeros((4, 4)).T, np.zeros(6)[::2], np.zeros(3, np.int64), np.zeros(3, ">f8")]
    values += [np.zeros(2, POINT), np.zeros(2, [("x", "f8"), ("left", "i4"), ("other", "i4")])]
    values += [np.zeros(2, [("x", "f8"), ("left", "i4"), ("right", "i8")])]
    values += [1, 1.0, True, None, np.float32(1), np.uint64(1), (), (1,), (1, 1), (1.0, 1)]
    values += [Inner(np.zeros(1), 1), Inner(np.zeros(1), 1.0), (np.zeros(1), 1)]
    kinds = [pack((value,))[0] for value in values]
    assert len(set(kinds)) == len(values)
    assert pack(((1,), 1))[0] != pack(((1, 1),))[0]


def test_kinds_do_not_tell_apart_what_the_same_code_takes():
    array = np.zeros(3)
    array.flags.writeable = False
    assert pack((array,))[0] == pack((np.ones(7),))[0]
    assert pack((np.zeros(2, POINT),))[0] == pack((np.recarray(2, POINT),))[0]
    assert pack((1,))[0] == pack((np.int64(1),))[0]


def test_items_of_a_tuple_follow_one_another():
    array = np.arange(3)
    assert words((1, (2, array), ()), 3) == [1, 2, *array_words(array), 3]


def test_a_group_is_a_pointer_to_its_fields():
    array, number = np.arange(3), 4
    group = Outer(1, Inner(array, number), 2.5)
    kinds, memory, alive = pack((group, 6))
    expected = [1, *array_words(array), 4, bits(2.5)]
    assert words_at(memory[0], len(expected)) == expected
    assert memory[1:].tolist() == [6]
    assert kinds == f"Outer( int64 Inner( {pack((array,))[0]} int64 ) float64 ) int64"
    assert alive
    # within a tuple, the fields themselves
    assert words((group,)) == expected


def test_a_group_that_is_packed_once():
    array = np.arange(3.0)
    group = Kept(array, 5)
    first, second = pack((group,)), pack((group,))
    assert first[1] == second[1]
    assert words_at(first[1][0], 8) == [*array_words(array), 5]
    # within another group, too
    outer = pack((Outer(1, group, 2),))
    assert words_at(outer[1][0], 10) == [1, *array_words(array), 5, 2]
    assert outer[0].count("Kept(") == 1
    changed = group._replace(number=6)
    assert words_at(pack((changed,))[1][0], 8) == [*array_words(array), 6]


def test_words_are_not_pickled():
    group = Kept(np.arange(3.0), 5)
    before = pickle.dumps(group)
    pack((group,))
    assert pickle.dumps(group) == before
    again = pickle.loads(before)
    assert words_at(pack((again,))[1][0], 8) == [*array_words(again.values), 5]


@pytest.mark.parametrize("value", ["text", [1], {}, 1j, np.int8(1), object()])
def test_what_machine_code_cannot_take(value):
    with pytest.raises(TypeError, match="machine code takes no argument of type"):
        pack((1, value))
