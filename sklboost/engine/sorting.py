"""Floats in increasing order, sorted by their digits, from the last to the first.

A digit takes a nanosecond or two a value, on any processor. NumPy's sort takes no longer where its
vector instructions are fast, but six times as long on a Zen 4, which is slow to compress vectors
into memory, and its stable one twenty times as long.
"""

import numpy as np

from sklboost.engine.compiling import kernel

_DIGIT_BITS = 11
_LAST_DIGIT = np.uint64(2**_DIGIT_BITS - 1)
# Fewer are sorted by NumPy before the digits are counted.
_LEAST_VALUES = 4000


def sort_floats(values: np.ndarray) -> np.ndarray:
    """Return a sorted copy of an array of floats; NaN is last, and -0.0 may become 0.0."""
    if not _is_worth_it(values):
        return np.sort(values)
    return _by_digits(values, np.empty(0, dtype=np.int64))[0]


def order_floats(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return floats as :func:`sort_floats` and the place (int64) of each before; ties by place."""
    if not _is_worth_it(values):
        order = np.argsort(values, kind="stable")
        return values[order], order
    return _by_digits(values, np.arange(len(values)))


def _is_worth_it(values: np.ndarray) -> bool:
    return len(values) >= _LEAST_VALUES and values.dtype in (np.float32, np.float64)


def _by_digits(values: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = values + values.dtype.type(0.0)  # -0.0 is equal to 0.0, but less as bits
    values[np.isnan(values)] = np.nan  # of one sign
    n_bits = 8 * values.itemsize
    bits, signed = values.view(f"u{values.itemsize}"), values.view(f"i{values.itemsize}")
    # as unsigned integers, numbers of these bits have the order of the floats
    sign = bits.dtype.type(1 << (n_bits - 1))
    bits ^= (signed >> (n_bits - 1)).view(bits.dtype) | sign
    found, spare = (bits, order), (np.empty_like(bits), np.empty_like(order))
    counts = np.empty(1 << _DIGIT_BITS, dtype=np.int64)
    for shift in range(0, n_bits, _DIGIT_BITS):
        if sort_by_digit(*found, *spare, np.uint64(shift), counts):
            found, spare = spare, found
    bits, order = found
    bits ^= ~(bits.view(signed.dtype) >> (n_bits - 1)).view(bits.dtype) | sign
    return bits.view(values.dtype), order


@kernel
def sort_by_digit(numbers, order, to_numbers, to_order, shift, counts):
    """Copy numbers in the order of one digit, equal ones in their order; return 1.

    If all have the same digit, nothing is copied, and 0 returned.

    Parameters
    ----------
    numbers, to_numbers : ndarray of uint32 or uint64, shape (n,)
    order, to_order : ndarray of int64, shape (n,) or (0,)
        Copied as the numbers are.
    shift : uint64
        The first bit of the digit.
    counts : ndarray of int64, shape (2048,)
        Scratch.
    """
    counts[:] = 0
    for index in range(len(numbers)):
        counts[np.uint64(numbers[np.uint64(index)] >> shift) & _LAST_DIGIT] += 1
    start = np.int64(0)
    for place in range(len(counts)):
        count = counts[np.uint64(place)]
        if count == len(numbers):
            return np.int64(0)
        counts[np.uint64(place)] = start
        start += count
    for index in range(len(numbers)):
        number = numbers[np.uint64(index)]
        digit = np.uint64(number >> shift) & _LAST_DIGIT
        to = np.uint64(counts[digit])
        counts[digit] += 1
        to_numbers[to] = number
        if len(order) > 0:
            to_order[to] = order[np.uint64(index)]
    return np.int64(1)
