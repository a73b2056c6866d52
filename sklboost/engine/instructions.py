"""Instructions of the processor that NumPy and numba have no names for.

Each is a plain Python function, which runs where nothing is compiled. What numba compiles a call of
it to is in :mod:`sklboost.engine.compiler.lowering`. Bits and bytes are in the order of
little-endian processors.
"""

import numpy as np

LANES = 64
FEW_LANES = 16
WORDS = 8  # of 64 bits, which `descend` takes together


def at_least(values, start, threshold):
    """Compare 64 numbers: bit i of the word (uint64) is 1 if number i is at least `threshold`.

    Number i is ``values[start + i]``, `start` uint64; there must be 64. `values` is a contiguous
    array of floats or unsigned integers, `threshold` of the same dtype.
    """
    numbers = values[start : start + np.uint64(LANES)]
    return np.packbits(numbers >= threshold, bitorder="little").view(np.uint64)[0]


def above(values, start, threshold):
    """Compare 64 numbers as :func:`at_least`: bit i is 1 if number i is above the threshold."""
    numbers = values[start : start + np.uint64(LANES)]
    return np.packbits(numbers > threshold, bitorder="little").view(np.uint64)[0]


def count_at_most(numbers, start, value):
    """Return how many of the 16 floats from ``numbers[start]`` on are at most `value` (uint64).

    NaN never is. There must be 16. `start` is uint64, `value` of the dtype of the numbers.
    """
    return np.uint64(np.count_nonzero(numbers[start : start + np.uint64(FEW_LANES)] <= value))


def add_where(numbers, bits, value):
    """Add `value` to those of 64 integers whose bit in `bits` (uint64) is 1; all of one dtype."""
    bytes_ = np.array([bits], dtype=np.uint64).view(np.uint8)
    numbers[:LANES] += np.unpackbits(bytes_, bitorder="little") * numbers.dtype.type(value)


def descend(decisions, places, landings):
    """Fill ``landings[:512]`` (uint8) with where 512 rows come to in a tree of 6 levels.

    The places below the tree are numbered from left to right, 0 to 63, and a split has the number
    of the first place on its right: the root is 32, its children are 16 and 48. `decisions`
    (uint64, shape (n, 8), C order) has a row for each comparison: bit i of its word w is 1 if row
    ``64 w + i`` goes right. ``places[k]`` (int32, shape (64,)) is the comparison of split k;
    ``places[0]`` is not used. With ``()`` it is comparison k.
    """
    words = np.ascontiguousarray(decisions[places] if len(places) > 0 else decisions)
    bits = np.unpackbits(words.view(np.uint8).reshape(LANES, -1), axis=1, bitorder="little")
    rows = np.arange(bits.shape[1])
    landing = np.zeros(len(rows), dtype=np.uint8)
    half = LANES // 2
    while half > 0:
        landing += half * bits[landing + half, rows]
        half //= 2
    landings[: len(rows)] = landing


def load_lanes(values, start, lanes):
    """Return a tuple of neighbouring int64 from ``values[start]`` on, as many as `lanes` has.

    `lanes` is a tuple of any whole numbers; what counts is its length, which the compiler knows.
    """
    return tuple(values[start + np.uint64(lane)] for lane in range(len(lanes)))


def add_lanes(cells, place, values, sign):
    """Add each of a tuple of int64, times `sign`, to ``cells[place]`` and the cells behind it."""
    for lane, value in enumerate(values):
        cells[place + np.uint64(lane)] += sign * value


def sum_eight(cells, start):
    """Return the sum of eight neighbouring int64, and the sum of those that are not negative.

    They begin at ``cells[start]`` (uint64); there must be so many.
    """
    total = positive = np.int64(0)
    for cell in cells[start : start + np.uint64(8)]:
        total += cell
        positive += max(cell, np.int64(0))
    return total, positive


def load_word(array, row, column):
    """Return the 8 bytes from ``array[row, column]`` on (uint64), the first in the lowest place.

    `array` is 2-D, in C order, and its row has as many bytes left.
    """
    return np.frombuffer(array[row, column:].tobytes()[:8], np.uint64)[0]


def item_bytes(array):
    """Return ``array.itemsize``, which the compiler takes for a number that it does not know."""
    return array.itemsize


def trailing_zeros(bits):
    """Return the position of the lowest 1 among the 64 bits of `bits` (uint64, not 0)."""
    return np.uint64((int(bits) & -int(bits)).bit_length() - 1)


def atomic_add(array, index, value):
    """Add `value` to ``array[index]`` (int64) at once and return what was there before."""
    before = array[index]
    array[index] += value
    return before


def atomic_load(array, index):
    """Return ``array[index]`` (int64) as the other threads last stored it."""
    return array[index]


def atomic_store(array, index, value):
    """Store `value` in ``array[index]`` (int64) so that the other threads see it."""
    array[index] = value


def prefetch(array, row, column):
    """Ask for an element of `array` to be in the cache; if that is 1-D, `column` is ignored."""


def prefetch_l2(array, row, column):
    """Prefetch an element, but not into the first-level cache (``prefetcht1`` on x86).

    A Zen 4 can wait for more cache lines at once this way.
    """


def call_packed(function, words):
    """Call a packed function, see ``engine/packing.py``; return 0 if all went well.

    Given are addresses. The result of the function is dropped.
    """
    raise NotImplementedError("where nothing is compiled, nothing is packed")


def pause():
    """Tell the processor that this thread waits for another one to store something.

    It then leaves its core to the other thread there is on it, for some ten nanoseconds.
    """


def yield_processor():
    """Let another thread run on this processor."""
