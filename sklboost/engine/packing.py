"""Python's arguments as machine code takes them: words of 8 bytes, and a text that says of what.

An argument after the other:

- whole numbers, float64, bool (0 or 1): a word; float32: the low half of a word; None: 0,
- an array: ``0, 0, size, itemsize, address, *shape, *strides``, as numba has it,
- a tuple: its items; a group (a NamedTuple): a pointer to the words of its fields, and within
  another group or a tuple just its fields.

The text, the *kinds*, is what numba's types are for the compiler: equal for arguments that the same
machine code takes. Whether an array may be written to does not count.
"""

import ctypes
import functools
import struct
import sys
from array import array
from typing import Any

import numpy as np

_shape_of = np.ndarray.shape.__get__
_strides_of = np.ndarray.strides.__get__
_size_of = np.ndarray.size.__get__
_dtype_of = np.ndarray.dtype.__get__
_flags_of = np.ndarray.flags.__get__
_pack_float64, _pack_float32 = struct.Struct("<d").pack, struct.Struct("<f4x").pack
_unpack_word = struct.Struct("<q").unpack
_SIGNED = 1 << 63


class Packed:
    """A group as words, with all that they point to."""

    __slots__ = ("address", "kinds", "memory", "words")

    def __init__(self, kinds: list[str], words: list[int]):
        self.kinds = kinds
        self.words = words
        self.memory = array("q", words)  # as machine code reads them
        self.address = self.memory.buffer_info()[0]


class PackedOnce:
    """Base of groups that are packed when they are first passed to a kernel, and then no more.

    For groups of many arrays that many calls take, such as a model.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the words, whose addresses mean nothing in another process."""
        return type(self), tuple(self)  # type: ignore[arg-type]


def pack(arguments: tuple[Any, ...]) -> tuple[str, "array[int]", list[Packed]]:
    """Return kinds and words of arguments, and what must live as long as the words are used.

    TypeError if machine code cannot take an argument, OverflowError for a whole number of more than
    64 bits.
    """
    kinds: list[str] = []
    words: list[int] = []
    groups: list[Packed] = []
    for value in arguments:
        if type(value) not in _ARRAYS and hasattr(value, "_fields"):
            packed = _pack_group(value)
            kinds += packed.kinds
            words.append(packed.address)
            groups.append(packed)
        else:
            _add(value, kinds, words)
    return " ".join(kinds), array("q", words), groups


def _pack_group(group: Any) -> Packed:
    is_kept = isinstance(group, PackedOnce)
    if is_kept and hasattr(group, "_packed"):
        kept: Packed = group._packed
        return kept
    kinds: list[str] = []
    words: list[int] = []
    _add_fields(group, kinds, words)
    packed = Packed(kinds, words)
    if is_kept:
        group._packed = packed
    return packed


def _add(value: Any, kinds: list[str], words: list[int]) -> None:
    """Add a value's kinds and words to `kinds` and `words`."""
    kind = type(value)
    if kind in _ARRAYS:
        _add_array(value, kinds, words)
    elif kind is int:  # as are most
        kinds.append("int64")
        words.append(value)
    elif kind in _SCALARS:
        name, word = _SCALARS[kind]
        kinds.append(name)
        words.append(word(value))
    elif isinstance(value, PackedOnce):
        packed = _pack_group(value)
        kinds += packed.kinds
        words += packed.words
    elif isinstance(value, tuple):
        _add_fields(value, kinds, words)
    elif isinstance(value, np.ndarray):
        _add_array(value, kinds, words)
    else:
        raise TypeError(f"machine code takes no argument of type {kind.__name__}: {value!r}")


def _add_fields(group: tuple[Any, ...], kinds: list[str], words: list[int]) -> None:
    kind = type(group)
    kinds.append("(" if kind is tuple else f"{kind.__name__}(")
    for field in group:
        if type(field) in _ARRAYS:  # most
            _add_array(field, kinds, words)
        else:
            _add(field, kinds, words)
    kinds.append(")")


def _add_array(value: np.ndarray, kinds: list[str], words: list[int]) -> None:
    flags, shape = _flags_of(value), _shape_of(value)
    if flags.c_contiguous and len(shape) == 1:  # most, and strides need not be asked for
        kind, itemsize = _vector_kind(_dtype_of(value))
        (size,) = shape
        words += (0, 0, size, itemsize, _address_of(value), size, itemsize)
    else:
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        kind, itemsize = _array_kind(_dtype_of(value), len(shape), layout)
        words += (0, 0, _size_of(value), itemsize, _address_of(value), *shape, *_strides_of(value))
    kinds.append(kind)


@functools.cache
def _array_kind(dtype: np.dtype, n_axes: int, layout: str) -> tuple[str, int]:
    return f"{_dtype_name(dtype)}[{n_axes}{layout}]", dtype.itemsize


@functools.cache
def _vector_kind(dtype: np.dtype) -> tuple[str, int]:
    return _array_kind(dtype, 1, "C")


def _dtype_name(dtype: np.dtype) -> str:
    """Return a name that only dtypes of the same layout share."""
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        return f"{_dtype_name(inner)}{shape}"
    if dtype.fields is None:
        return dtype.str.lstrip("<|=")
    fields = ",".join(
        f"{name}:{_dtype_name(kind)}@{offset}" for name, (kind, offset, *_) in dtype.fields.items()
    )
    return f"{{{fields}:{dtype.itemsize}}}"


def _signed(value: Any) -> int:
    """Return the word of a whole number; an unsigned one becomes the signed one of its bits."""
    number = int(value)
    return number if number < _SIGNED else number - 2 * _SIGNED


def _float64_word(value: Any) -> int:
    word: int = _unpack_word(_pack_float64(value))[0]
    return word


def _float32_word(value: Any) -> int:
    word: int = _unpack_word(_pack_float32(value))[0]
    return word


_SCALARS: dict[type, tuple[str, Any]] = {
    float: ("float64", _float64_word),
    bool: ("bool", int),
    type(None): ("none", lambda _: 0),
    np.int64: ("int64", _signed),
    np.uint64: ("uint64", _signed),
    np.float64: ("float64", _float64_word),
    np.float32: ("float32", _float32_word),
    np.bool_: ("bool", int),
}
_ARRAYS = {np.ndarray, np.recarray}


# --- addresses

# An array begins with what every object of Python begins with, and then the address of its data:
# compiled extensions read it there, too, so NumPy keeps it. The attribute for it takes ten times as
# long, which is most of the time of a prediction of one row.
_HEADER = object.__basicsize__
_word_at = ctypes.c_void_p.from_address


def _address_in_object(value: np.ndarray) -> int:
    return _word_at(id(value) + _HEADER).value or 0


def _address_by_attribute(value: np.ndarray) -> int:
    address: int = value.__array_interface__["data"][0]
    return address


def _is_in_object() -> bool:
    """Whether the data of an array is where this module looks for it."""
    if sys.implementation.name != "cpython":  # elsewhere an id need not be a place in memory
        return False
    numbers: np.ndarray = np.zeros((2, 2))
    probes = [numbers, numbers[1:], numbers.view(np.recarray)]
    return all(_address_in_object(probe) == _address_by_attribute(probe) for probe in probes)


_address_of = _address_in_object if _is_in_object() else _address_by_attribute
