"""A hash of each row's content, by which rows can be chosen at random without a random stream.

In: features and targets. Out: 32 bits a row. Equal rows have the same hash, wherever in the table
they are and whether its values are float32 or float64; so a choice by hash does not depend on the
order of the rows.
"""

from collections.abc import Iterator

import numpy as np

from sklboost.compiling import kernel
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.table import Table
from sklboost.hashing import hash_key, mix_bits

# Values that are converted at a time: small enough for the second-level cache.
_BLOCK_VALUES = 32_768


def hash_rows(X: np.ndarray | Table | BinnedMatrix, y: np.ndarray, seed: int) -> np.ndarray:
    """Give a hash of (seed, values, target) of each row.

    Parameters
    ----------
    X : ndarray of float32 or float64, Table or BinnedMatrix; shape (n_samples, n_features)
        Values count as float64: 0.0 equals -0.0, and all NaN are one. Of a BinnedMatrix the bins
        count.
    y : ndarray of float64, shape (n_samples,) or (n_samples, n_targets)
    seed : int

    Returns
    -------
    ndarray of uint32, shape (n_samples,)
    """
    n_samples, n_features = X.shape
    hashes = np.full(n_samples, hash_key(seed, 0, 0), dtype=np.uint32)
    step = max(64, _BLOCK_VALUES // n_features)
    targets = y.reshape(n_samples, -1)
    for rows, values in _blocks(X, step):
        mix_values(_words(values.T), hashes[rows])
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


def tell_copies_apart(hashes: np.ndarray, weight: np.ndarray) -> None:
    """Mix into each hash how many equal ones come before it, so that copies are chosen one by one.

    Parameters
    ----------
    hashes : ndarray of uint32, shape (n_samples,)
        Modified.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Copies are counted from the lightest on, whatever their order. Empty: all 1.
    """
    order = np.lexsort((weight, hashes)) if len(weight) else np.argsort(hashes)
    ordered, places = hashes[order], np.arange(len(hashes))
    is_first = np.r_[True, ordered[1:] != ordered[:-1]]
    number = np.empty(len(hashes))
    number[order] = places - np.maximum.accumulate(np.where(is_first, places, 0))
    mix_values(_words(number[np.newaxis]), hashes)


def _words(columns: np.ndarray) -> np.ndarray:
    """Give each value as two words; equal values as equal words. Shape (..., n_rows, 2)."""
    values = np.array(columns, dtype=np.float64, order="C")
    values += 0.0  # -0.0 becomes 0.0
    values[np.isnan(values)] = np.nan
    return values.view(np.uint32).reshape(*values.shape, 2)


@kernel
def mix_values(words, hashes):
    """Mix the values of a block of rows into their hashes.

    Parameters
    ----------
    words : ndarray of uint32, shape (n_columns, n_rows, 2)
    hashes : ndarray of uint32, shape (n_rows,)
        Modified; the order of the columns matters.
    """
    for column in range(words.shape[0]):
        own_words = words[column]
        for row in range(len(hashes)):
            bits = mix_bits(np.uint64(hashes[row] ^ own_words[row, 0]))
            hashes[row] = mix_bits(bits ^ np.uint64(own_words[row, 1]))
