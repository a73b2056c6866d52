"""A hash of each row's content, by which rows can be chosen at random without a random stream.

Equal rows have the same 32 bits, wherever in the table they are and whether its values are float32
or float64; so a choice by hash does not depend on the order of the rows. The hash is made of a sum
over the features, to which a value of 0 adds nothing: a sparse row has the hash of a dense one, in
time that is in proportion to its stored values.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import Features, RemoteFeatures
from sklboost.data.sparse_table import SparseTable
from sklboost.data.table import Table
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.elementary import hash_key, mix_bits
from sklboost.engine.structs import RemoteColumn

# Values that are converted at a time: small enough for the second-level cache.
_BLOCK_VALUES = 32_768


def hash_rows(X: Features | RemoteFeatures, y: Any, seed: int) -> Any:
    """Return a hash of (seed, values, target) of each row, uint32; a column, if `y` is one.

    Values count as float64: 0.0 equals -0.0, and all NaN are one. Of a BinnedMatrix the bins count.
    """
    if not isinstance(X, RemoteFeatures):
        return hash_totals(value_totals(X), y, seed)
    hashes = X.hashes(y, seed)
    return hashes if isinstance(y, RemoteColumn) else np.asarray(hashes)


def value_totals(X: Features) -> np.ndarray:
    """Return the total of the bits of each row's values, uint64, shape (n_samples,)."""
    n_samples, n_features = X.shape
    totals = np.zeros(n_samples, dtype=np.uint64)
    if isinstance(X, SparseTable):
        entries = X.by_row
        add_entries(entries.starts, entries.numbers, _words(entries.values), totals)
    else:
        for rows, values in _blocks(X, max(64, _BLOCK_VALUES // n_features)):
            add_values(_words(values.T), totals[rows])
    return totals


def hash_totals(totals: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Return the hash of each row, uint32, given the totals of the values."""
    n_samples = len(totals)
    hashes = np.full(n_samples, hash_key(seed, 0, 0), dtype=np.uint32)
    targets = y if y.ndim > 1 else y[:, np.newaxis]
    for first in range(0, n_samples, _BLOCK_VALUES):
        rows = slice(first, first + _BLOCK_VALUES)
        mix_values(totals[rows].view(np.uint32).reshape(1, -1, 2), hashes[rows])
        mix_values(_words(targets[rows].T), hashes[rows])
    return hashes


def _blocks(
    X: np.ndarray | Table | BinnedMatrix, n_rows: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield ranges of so many rows and their values, or bins."""
    if isinstance(X, Table):
        yield from X.blocks(n_rows)
        return
    values = X.bins if isinstance(X, BinnedMatrix) else X
    for first in range(0, len(X), n_rows):
        rows = slice(first, first + n_rows)
        yield rows, values[rows]


def tell_copies_apart(hashes: Any, weight: Any) -> Any:
    """Return hashes with how many equal ones come before each, so that copies differ.

    Copies are counted from the lightest on, whatever their order; `weight` may be empty: all 1.
    `hashes`, uint32, may be a column, and then weights are one, too.
    """
    weights = [weight] if len(weight) else []
    if isinstance(hashes, RemoteColumn):
        return hashes.apply(mix_copies, hashes.apply_by_value(number_copies, *weights))
    return mix_copies(hashes, number_copies(hashes, *weights))


def number_copies(hashes: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return how many equal hashes come before each, from the lightest on; float64."""
    # stable: other sorts put equal ones in an order that depends on the processor
    order = np.argsort(hashes, kind="stable") if weight is None else np.lexsort((weight, hashes))
    ordered, places = hashes[order], np.arange(len(hashes))
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    numbers = np.empty(len(hashes))
    numbers[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    return numbers


def mix_copies(hashes: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """Return hashes with a number mixed into each."""
    mixed = hashes.copy()
    mix_values(_words(numbers[np.newaxis]), mixed)
    return mixed


def _words(columns: np.ndarray) -> np.ndarray:
    """Return each value as two words, equal ones for equal values; shape (..., n_rows, 2)."""
    values = np.array(columns, dtype=np.float64, order="C")
    values += 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint32).reshape(*values.shape, 2)


@inlined
def value_bits(feature, low, high):
    """Return 32 bits for a value of a feature, from its two words; 0 for the value 0."""
    bits = mix_bits(np.uint64(feature + 1)) ^ np.uint64(low)
    bits = mix_bits(mix_bits(bits) ^ np.uint64(high))
    return bits if (low | high) != 0 else np.uint64(0)


@kernel
def add_values(words, totals):
    """Add to each row's total the bits of its values, uint32 of shape (n_features, n_rows, 2).

    Totals are uint64: sums of 32-bit numbers, so that none is lost, in whatever order they come.
    """
    for feature in range(words.shape[0]):
        column = words[feature]
        for row in range(len(totals)):
            totals[row] += value_bits(feature, column[row, 0], column[row, 1])


@kernel
def add_entries(starts, numbers, words, totals):
    """Do what :func:`add_values` does, for the Entries of a sparse table and their words."""
    for row in range(len(totals)):
        for index in range(starts[row], starts[row + 1]):
            totals[row] += value_bits(numbers[index], words[index, 0], words[index, 1])


@kernel
def mix_values(words, hashes):
    """Mix the values of a block of rows, uint32 of shape (n_columns, n_rows, 2), into their hashes.

    The order of the columns matters.
    """
    for number in range(words.shape[0]):
        column = words[number]
        for row in range(len(hashes)):
            bits = mix_bits(np.uint64(hashes[row] ^ column[row, 0]))
            hashes[row] = mix_bits(bits ^ np.uint64(column[row, 1]))
