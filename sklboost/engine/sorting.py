"""Floats in increasing order, sorted by their digits, from the last to the first.

100,000 float32 take 5 ns a value on a Zen 4, where NumPy's sort takes 22, since that processor is
slow to compress vectors into memory (without its AVX-512 instructions NumPy takes 4); with their
order 7, where a stable ``argsort`` takes 92.
"""

import numpy as np

from sklboost.engine.compiling import kernel

_DIGIT_BITS = 11
_LAST_DIGIT = np.uint64(2**_DIGIT_BITS - 1)
# Fewer take NumPy less time.
_LEAST_VALUES = 4000


def sort_floats(values: np.ndarray) -> np.ndarray:
    """Return a sorted copy of an array of floats.

    NaN is last. Of 4,000 values or more, -0.0 becomes 0.0 and each NaN the same one.
    """
    if not _is_worth_it(values):
        return np.sort(values)
    return _by_digits(values, np.empty(0, dtype=np.int64))[0]


def order_floats(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return floats sorted as by :func:`sort_floats`, and where each was (int64).

    Equal values, and NaN, stay in their order.
    """
    if not _is_worth_it(values):
        order = np.argsort(values, kind="stable")
        return values[order], order
    return _by_digits(values, np.arange(len(values)))


def _is_worth_it(values: np.ndarray) -> bool:
    return len(values) >= _LEAST_VALUES and values.dtype in (np.float32, np.float64)


def _by_digits(values: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    values = np.array(values)
    values[np.isnan(values)] = np.nan  # of one sign
    n_bits = 8 * values.itemsize
    bits, signed = values.view(f"u{values.itemsize}"), values.view(f"i{values.itemsize}")
    sign = bits.dtype.type(1 << (n_bits - 1))
    bits[bits == sign] = 0  # -0.0 becomes 0.0
    # from bits to keys: unsigned integers in the order of the floats
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
