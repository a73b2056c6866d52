"""Floats in increasing order, sorted by their digits, from the last to the first.

That takes two or three passes over the values for each four bytes, on any processor. NumPy's sort
is as fast where its vector instructions are, but takes six times as long on a Zen 4, which is slow
to compress vectors into memory, and its stable one twenty times as long.

Source: H. H. Seward's sort by digits (1954), as in Knuth, The Art of Computer Programming 3, 5.2.5.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel

_DIGIT_BITS = 11
_N_DIGITS = 2**_DIGIT_BITS
_LAST_DIGIT = np.uint64(_N_DIGITS - 1)
# Fewer are sorted by NumPy before the digits are counted.
_LEAST_VALUES = 2000


def sort_floats(values: np.ndarray) -> np.ndarray:
    """Return a sorted copy of an array of floats; NaN is last."""
    if not _is_worth_it(values):
        return np.sort(values)
    return _by_digits(values, np.empty(0, dtype=np.int64))[0]


def order_floats(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return floats sorted as by :func:`sort_floats`, and the place (int64) where each was.

    Equal values stay in their order, but -0.0 may come before an earlier 0.0.
    """
    if not _is_worth_it(values):
        order = np.argsort(values, kind="stable")
        return values[order], order
    return _by_digits(values, np.arange(len(values)))


def _is_worth_it(values: np.ndarray) -> bool:
    return len(values) >= _LEAST_VALUES and values.dtype in (np.float32, np.float64)


def _by_digits(values: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    unsigned = np.dtype(f"u{values.itemsize}")
    infinity = np.uint64(np.array(np.inf, values.dtype).view(unsigned))
    keys, spare_keys = np.array(values).view(unsigned), np.empty(len(values), dtype=unsigned)
    spare_order, counts = np.empty_like(order), np.empty(_N_DIGITS, dtype=np.int64)
    if sort_by_digits(keys, order, spare_keys, spare_order, infinity, counts):
        keys, order = spare_keys, spare_order
    return keys.view(values.dtype), order


@kernel
def sort_by_digits(keys, order, spare_keys, spare_order, infinity, counts):
    """Sort floats, given as bits, and `order` with them; return 1 if they end in the spare arrays.

    Parameters
    ----------
    keys, spare_keys : ndarray of uint32 or uint64, shape (n,)
    order, spare_order : ndarray of int64, shape (n,) or (0,)
    infinity : uint64
        Its bits.
    counts : ndarray of int64, shape (2048,)
        Scratch.
    """
    sign = np.uint64(1) << np.uint64(8 * keys.itemsize - 1)
    for index in range(len(keys)):
        keys[index] = key_of(np.uint64(keys[index]), infinity, sign)
    is_spare = np.int64(0)
    for first_bit in range(0, 8 * keys.itemsize, _DIGIT_BITS):
        shift = np.uint64(first_bit)
        if is_spare == 0:
            is_spare = sort_by_digit(keys, order, spare_keys, spare_order, shift, counts)
        else:
            is_spare = 1 - sort_by_digit(spare_keys, spare_order, keys, order, shift, counts)
    found = spare_keys if is_spare == 1 else keys
    for index in range(len(found)):
        found[index] = bits_of(np.uint64(found[index]), sign)
    return is_spare


@inlined
def key_of(bits, infinity, sign):
    """Return a number whose order is that of the float with these bits; NaN is largest."""
    if bits & ~sign > infinity:
        return sign | (sign - np.uint64(1))
    return ~bits if bits & sign != np.uint64(0) else bits | sign


@inlined
def bits_of(key, sign):
    """Return the bits of the float with a key."""
    return key ^ sign if key & sign != np.uint64(0) else ~key


@kernel
def sort_by_digit(keys, order, to_keys, to_order, shift, counts):
    """Copy numbers in the order of one digit, equal ones in their order; return 1.

    If all have the same, nothing is copied, and 0 returned.
    """
    counts[:] = 0
    for index in range(len(keys)):
        counts[np.uint64(keys[np.uint64(index)] >> shift) & _LAST_DIGIT] += 1
    first = np.int64(0)
    for number in range(len(counts)):
        n_keys = counts[np.uint64(number)]
        if n_keys == len(keys):
            return np.int64(0)
        counts[np.uint64(number)] = first
        first += n_keys
    for index in range(len(keys)):
        key = keys[np.uint64(index)]
        digit = np.uint64(key >> shift) & _LAST_DIGIT
        place = np.uint64(counts[digit])
        counts[digit] += 1
        to_keys[place] = key
        if len(order) > 0:
            to_order[place] = order[np.uint64(index)]
    return np.int64(1)
