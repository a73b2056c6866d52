"""The levels that splits on categories send left, as bits: written, asked for, cut and joined.

In: the levels that a grown tree's splits list. Out: :class:`~sklboost.engine.model.CategoryBits`.

The one idea: a level is a bit of a word, as in a table of bits, but words without a bit are left
out. So a set takes no more room than the levels that it lists, of however many there are.
"""

from collections.abc import Sequence

import numpy as np

from sklboost.engine.compiling import kernel, late
from sklboost.engine.model import NO_BITS, CategoryBits

_BITS_OF_WORD = 64  # a power of two: the compiler divides by a shift


def most_words(n_categories: int, most_listed: int) -> int:
    """Give the words that a split can need which lists at most so many of the levels."""
    return min(-(-n_categories // _BITS_OF_WORD), most_listed)


def allocate_bits(n_nodes: int, n_words: int) -> CategoryBits:
    """Make room for so many words a node; of one type, so that rounds are compiled once."""
    starts = np.zeros(n_nodes + 1 if n_words > 0 else 0, dtype=np.int64)
    numbers = np.empty(n_nodes * n_words, dtype=np.uint16)
    return CategoryBits(starts, numbers, np.empty(n_nodes * n_words, dtype=np.uint64), (1,))


@kernel
def add_category(category, first, stop, bits):
    """Add a level to a node's words ``[first, stop)``; return where they end then."""
    number, position = category // _BITS_OF_WORD, stop
    while position > first and bits.numbers[position - 1] >= number:
        position -= 1
    bit = np.uint64(1) << np.uint64(category % _BITS_OF_WORD)
    if position < stop and bits.numbers[position] == number:
        bits.words[position] |= bit
        return stop
    for moved in range(stop, position, -1):
        bits.numbers[moved], bits.words[moved] = bits.numbers[moved - 1], bits.words[moved - 1]
    bits.numbers[position], bits.words[position] = number, bit
    return stop + 1


@late()
def store_categories(growing, bits, start):
    """Store the levels that a finished tree's splits list, for the nodes from `start` on."""
    for node in range(growing.counts[0].n_nodes):
        first = stop = bits.starts[start + node]
        # what a leaf's split would have been is of no interest
        n_listed = growing.splits[node].n_listed if growing.nodes[node].left >= 0 else 0
        for index in range(n_listed):
            stop = add_category(np.int64(growing.categories[node, index]), first, stop, bits)
        bits.starts[start + node + 1] = stop


@late("boolean")
def is_listed(category, bits, node):
    """Tell whether a level is among those that go left at a node.

    Parameters
    ----------
    level : int64
        Its code; -1 is none.
    bits : CategoryBits
        Of all nodes.
    node : int
    """
    number = category // _BITS_OF_WORD
    first, last = bits.starts[node], bits.starts[node + 1] - 1
    # where the word is if none before it is left out; else it comes earlier
    position = min(first + number, last)
    while position >= first and bits.numbers[position] > number:
        position -= 1
    if position < first or bits.numbers[position] != number:
        return False
    bit = np.uint64(1) << np.uint64(category % _BITS_OF_WORD)
    return bits.words[position] & bit != np.uint64(0)


def listed_categories(bits: CategoryBits, node: int) -> np.ndarray:
    """Give the codes of the levels that go left at a node, increasing; int64."""
    own = slice(bits.starts[node], bits.starts[node + 1])
    digits = np.arange(_BITS_OF_WORD, dtype=np.uint64)
    is_bit = bits.words[own, np.newaxis] >> digits & np.uint64(1) == 1
    codes = _BITS_OF_WORD * bits.numbers[own, np.newaxis].astype(np.int64) + digits.astype(int)
    return codes[is_bit]


def first_bits(bits: CategoryBits, n_nodes: int) -> CategoryBits:
    """Give the levels of the first nodes."""
    if len(bits.starts) == 0:
        return NO_BITS
    n_words = bits.starts[n_nodes]
    return CategoryBits(
        bits.starts[: n_nodes + 1], bits.numbers[:n_words], bits.words[:n_words], (1,)
    )


def copy_bits(bits: CategoryBits) -> CategoryBits:
    """Give the same levels in memory of their own."""
    return CategoryBits(bits.starts.copy(), bits.numbers.copy(), bits.words.copy(), bits.in_use)


def join_bits(parts: Sequence[tuple[CategoryBits, int]]) -> CategoryBits:
    """Put levels behind one another, given with their numbers of nodes."""
    known = [(bits, n_nodes) for bits, n_nodes in parts if n_nodes > 0]
    if all(len(bits.starts) == 0 for bits, _ in known):
        return NO_BITS
    counts = [
        np.diff(bits.starts) if len(bits.starts) > 0 else np.zeros(n_nodes, dtype=np.int64)
        for bits, n_nodes in known
    ]
    return CategoryBits(
        np.cumsum(np.concatenate([[0], *counts]), dtype=np.int64),
        np.concatenate([bits.numbers for bits, _ in known]),
        np.concatenate([bits.words for bits, _ in known]),
        (1,),
    )
