"""Floats in increasing order, sorted by their digits, from the last to the first.

100,000 float32 take 4.4 ns a value on a Zen 4, where NumPy's sort takes 23, since that processor is
slow to compress vectors into memory (without its AVX-512 instructions NumPy takes 4); with their
order 16, where a stable ``argsort`` takes 96.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import item_bytes

_DIGIT_BITS = 11
_SHIFT = np.uint64(_DIGIT_BITS)
_LAST_DIGIT = np.uint64(2**_DIGIT_BITS - 1)
COUNTS_SHAPE = (6, 2**_DIGIT_BITS)  # of scratch: the digits of 64 bits


def order_floats(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers sorted as by :func:`sort_floats`, and where each was (int64).

    Equal values, and NaN, stay in their order.
    """
    return sort_floats(values, np.arange(len(values)))


def sort_floats(values: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers sorted, as floats, and `order`, (n,) or (0,), with them: copies.

    Equal values, and NaN, stay in their order; NaN is last, and always the same one, and -0.0
    becomes 0.0.
    """
    floats = np.array(values, np.float32 if values.dtype == np.float32 else np.float64)
    bits = floats.view(f"u{floats.itemsize}")
    sorted_, spare = (bits, np.array(order)), (np.empty_like(bits), np.empty_like(order))
    if sort_bits(*sorted_, *spare, np.empty(COUNTS_SHAPE, np.int64)):
        sorted_ = spare
    return sorted_[0].view(floats.dtype), sorted_[1]


@kernel
def sort_bits(bits, order, spare, spare_order, counts):
    """Sort floats by their bits; return 1 if they are in `spare` afterwards, 0 if in `bits`.

    Both are uint32 or uint64, shape (n,). `order` and `spare_order`, int64 of shape (n,) or (0,),
    are sorted as the floats are. `counts`, int64 of COUNTS_SHAPE, is scratch.
    """
    sign = np.uint64(1) << np.uint64(8 * item_bytes(bits) - 1)
    first_of_exponent = np.uint64(1) << np.uint64(23 if item_bytes(bits) == 4 else 52)
    infinity, nan = sign - first_of_exponent, sign - (first_of_exponent >> np.uint64(1))
    n_digits = item_bytes(bits) // 4 * 3
    for digit in range(n_digits):
        counts[digit] = 0
    for index in range(len(bits)):
        bits[index] = key_of(np.uint64(bits[index]), sign, infinity, nan)
    # a loop of its own: the one above becomes vector instructions
    for index in range(len(bits)):
        key = np.uint64(bits[index])
        for digit in range(np.uint64(n_digits)):
            counts[digit, (key >> (_SHIFT * digit)) & _LAST_DIGIT] += 1
    in_spare = np.int64(0)
    for digit in range(n_digits):
        shift = _SHIFT * np.uint64(digit)
        if not count_before(counts[digit], len(bits)):
            continue
        if in_spare == 0:
            sort_by_digit(bits, order, spare, spare_order, shift, counts[digit])
        else:
            sort_by_digit(spare, spare_order, bits, order, shift, counts[digit])
        in_spare = 1 - in_spare
    keys = spare if in_spare == 1 else bits
    for index in range(len(keys)):
        key = np.uint64(keys[index])
        keys[index] = key ^ (sign if key & sign else ~np.uint64(0))
    return in_spare


@inlined
def key_of(bits, sign, infinity, nan):
    """Return a number in the order of the floats, in its lowest bits, as many as a float has.

    -0.0 becomes 0.0.
    """
    magnitude = bits & (sign - np.uint64(1))
    if magnitude == np.uint64(0):
        bits = magnitude
    if magnitude > infinity:
        bits = nan
    return bits ^ (~np.uint64(0) if bits & sign else sign)


@inlined
def count_before(counts, n_numbers):
    """Replace the counts of a digit by the numbers of what comes before; False if all are one."""
    start = np.int64(0)
    for place in range(len(counts)):
        count = counts[place]
        if count == n_numbers:
            return False
        counts[place] = start
        start += count
    return True


@kernel
def sort_by_digit(numbers, order, to_numbers, to_order, shift, starts):
    """Copy numbers, and `order` with them, in the order of one digit, equal ones in their order.

    `shift`, uint64, is the first bit of the digit. `starts`, int64 of shape (2048,), is where the
    numbers of each digit begin; afterwards, where they end.
    """
    for index in range(len(numbers)):
        number = numbers[np.uint64(index)]
        digit = np.uint64(number >> shift) & _LAST_DIGIT
        to = np.uint64(starts[digit])
        starts[digit] += 1
        to_numbers[to] = number
        if len(order) > 0:
            to_order[to] = order[np.uint64(index)]
