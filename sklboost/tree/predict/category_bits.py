"""The categories that splits send left, as bits: written and looked up.

A category is a bit of a word of 64, and words without a bit are left out. So a set takes no more
room than the categories that it lists, of however many there are.
"""

import numpy as np

from sklboost.engine.compiling import kernel, late
from sklboost.engine.model import NO_BITS, CategoryBits

_BITS_OF_WORD = 64  # a power of two: the compiler divides by a shift


def most_words(n_categories: int, most_listed: int) -> int:
    """Return the most words that a split listing at most so many categories can need."""
    return min(-(-n_categories // _BITS_OF_WORD), most_listed)


def allocate_bits(n_nodes: int, n_words: int) -> CategoryBits:
    """Allocate `n_words` a node; of one type also for 0, so that rounds are compiled once."""
    starts = np.zeros(n_nodes + 1 if n_words > 0 else 0, dtype=np.int64)
    numbers = np.empty(n_nodes * n_words, dtype=np.uint16)
    return CategoryBits(starts, numbers, np.empty(n_nodes * n_words, dtype=np.uint64), (1,))


@kernel
def add_category(category, first, stop, bits):
    """Add a category to a node's words ``[first, stop)``; return where they end then."""
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
    """Store the categories that a grown tree's splits list, for the nodes from `start` on."""
    for node in range(growing.counts[0].n_nodes):
        first = stop = bits.starts[start + node]
        # what a leaf's split would have been is of no interest
        n_listed = growing.splits[node].n_listed if growing.nodes[node].left >= 0 else 0
        for index in range(n_listed):
            stop = add_category(np.int64(growing.categories[node, index]), first, stop, bits)
        bits.starts[start + node + 1] = stop


@late("boolean")
def is_listed(category, bits, node):
    """Whether a category, given as its code, goes left at a node; the code -1 never does."""
    number = category // _BITS_OF_WORD
    first, last = bits.starts[node], bits.starts[node + 1] - 1
    if last < first or number < 0:
        return False
    # where the word is if none before it is left out; else it comes earlier
    position = min(first + number, last)
    while position > first and bits.numbers[position] > number:
        position -= 1
    # without a branch, which a processor would predict wrongly for every other row
    word = bits.words[position] >> np.uint64(category % _BITS_OF_WORD)
    return (word & np.uint64(bits.numbers[position] == number)) != np.uint64(0)


def listed_categories(bits: CategoryBits, node: int) -> np.ndarray:
    """Return the codes of the categories that go left at a node, increasing; int64."""
    words = slice(bits.starts[node], bits.starts[node + 1])
    digits = np.arange(_BITS_OF_WORD, dtype=np.uint64)
    is_bit = bits.words[words, np.newaxis] >> digits & np.uint64(1) == 1
    codes = _BITS_OF_WORD * bits.numbers[words, np.newaxis].astype(np.int64) + digits.astype(int)
    return np.extract(is_bit, codes)


def all_listed_categories(bits: CategoryBits) -> tuple[np.ndarray, np.ndarray]:
    """Return how many categories go left at each node, and their codes node after node; int64."""
    if len(bits.starts) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    digits = np.arange(_BITS_OF_WORD, dtype=np.uint64)
    word, digit = np.nonzero(bits.words[:, np.newaxis] >> digits & np.uint64(1))
    node_of_word = np.repeat(np.arange(len(bits.starts) - 1), np.diff(bits.starts))
    counts = np.bincount(node_of_word[word], minlength=len(bits.starts) - 1)
    return counts, _BITS_OF_WORD * bits.numbers[word].astype(np.int64) + digit


def bits_of_categories(counts: np.ndarray, codes: np.ndarray, is_used: bool) -> CategoryBits:
    """Return the set of categories of each node, the inverse of :func:`all_listed_categories`.

    Codes increase within a node. `is_used` says whether any node is split on categories: its set
    may be empty.
    """
    if not is_used:
        return NO_BITS
    node, number = np.repeat(np.arange(len(counts)), counts), codes // _BITS_OF_WORD
    is_first = (np.diff(node, prepend=-1) != 0) | (np.diff(number, prepend=-1) != 0)
    bits = np.uint64(1) << (codes % _BITS_OF_WORD).astype(np.uint64)
    n_words = np.bincount(node[is_first], minlength=len(counts))
    return CategoryBits(
        np.append(0, np.cumsum(n_words)),
        number[is_first].astype(np.uint16),
        np.bitwise_or.reduceat(bits, np.flatnonzero(is_first)),
        (1,),
    )
