"""Bundles: sparse features that share a column of bins, since no row has an entry in two of them.

In: which rows each feature has entries in, and how many histogram cells it needs. Out: the column
of each feature.

The one idea: a feature needs no cell for the bin of 0, whose content is the node's sum less that of
its other bins. So a column says of each row which one feature has an entry, and in which bin::

    column   0 | 1 2 3 | 4 | 5 6 ...     0: no feature of this column has an entry in the row
                 a a a   b   c c         the bins of features a, b, c, without those of 0

Features are taken by decreasing number of entries, each going to the first column that has none of
its rows yet (Ke et al. 2017, "LightGBM", algorithm 3, but without any conflict: the bits of a model
do not depend on who shares a column).
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.sparse_table import Entries
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import trailing_zeros

# Columns are filled so many at a time, in words of 64: 32 bytes a row say which have an entry.
_WORDS = 4
_WORD = 64
_BYTE_CELLS, _MOST_CELLS = 2**8, 2**16


class Bundles(NamedTuple):
    """How features share columns.

    Attributes
    ----------
    column : ndarray of int64, shape (n_features,)
    is_alone : ndarray of bool, shape (n_features,)
        The only feature of its column that is not always 0 has a cell for its bin of 0.
    first_cell : ndarray of int64, shape (n_features,)
        Of its column's cells, its first; 0 if it is alone.
    n_cells : ndarray of int64, shape (n_columns,)
        Of each column, the one of rows without entry included.
    """

    column: np.ndarray
    is_alone: np.ndarray
    first_cell: np.ndarray
    n_cells: np.ndarray


@inlined
def cell_of_bin(place, bin_):
    """Give the histogram cell of a feature's bin; the bin of 0 has none in a shared column."""
    return place.first_cell + bin_ - (place.is_shared & np.int64(place.zero_bin < bin_))


@kernel
def find_room(rows, n_cells, most_cells, taken, filled):
    """Give the first column without any of the rows and with room for the cells, or -1.

    Parameters
    ----------
    rows : ndarray of int32
    n_cells, most_cells : int
        That are needed, and that a column may have.
    taken : ndarray of uint64, shape (n_words, n_samples)
        Bit i of word w: whether column 64 w + i has an entry in the row.
    filled : ndarray of int64, shape (64 * n_words,)
        The cells that the columns have; 0: none yet, so neither have those behind it.
    """
    for word in range(len(taken)):
        bits = np.uint64(0)
        for row in rows:
            bits |= taken[word, row]
        bits = ~bits
        while bits != np.uint64(0):
            column = word * _WORD + np.int64(trailing_zeros(bits))
            if filled[column] == 0 or filled[column] + n_cells <= most_cells:
                return column
            bits &= bits - np.uint64(1)
    return -1


@kernel
def place_features(entries, features, n_cells, most_cells, taken, filled, columns):
    """Fill the column of each feature that finds room, counted from 0, and -1 for the others.

    `features` are listed in the order in which they are placed; `taken` and `filled` begin as 0.
    """
    for feature in features:
        rows = entries.numbers[entries.starts[feature] : entries.starts[feature + 1]]
        column = find_room(rows, n_cells[feature], most_cells, taken, filled)
        columns[feature] = column
        if column >= 0:
            filled[column] = max(filled[column], 1) + n_cells[feature]
            bit = np.uint64(1) << np.uint64(column % _WORD)
            for row in rows:
                taken[column // _WORD, row] |= bit


def share_columns(
    entries: Entries, n_cells: np.ndarray, n_samples: int, most_cells: int
) -> np.ndarray:
    """Give the column of each feature, int64; columns are numbered without gaps."""
    columns = np.full(len(n_cells), -1, dtype=np.int64)
    left = np.argsort(-np.diff(entries.starts), kind="stable")
    n_columns = 0
    while len(left) > 0:
        taken = np.zeros((_WORDS, n_samples), dtype=np.uint64)
        filled = np.zeros(_WORDS * _WORD, dtype=np.int64)
        place_features(entries, left, n_cells, most_cells, taken, filled, columns)
        found = columns[left] >= 0
        columns[left[found]] += n_columns
        left = left[~found]
        n_columns += int(np.count_nonzero(filled))
    return columns


def bundle_features(entries: Entries, n_bins: np.ndarray, n_samples: int) -> Bundles:
    """Decide which features share a column.

    Parameters
    ----------
    entries : Entries
        By features, those in the bin of 0 left out; their values do not matter.
    n_bins : ndarray of int64, shape (n_features,)
        Bins of each feature, that of 0 and that of missing values included.
    n_samples : int
    """
    n_cells = n_bins - 1
    column = share_columns(entries, n_cells, n_samples, _MOST_CELLS)
    if n_bins.max() <= _BYTE_CELLS:
        narrow = share_columns(entries, n_cells, n_samples, _BYTE_CELLS)
        # a byte a row for each column, unless half as many columns of two bytes do
        if narrow.max() < 2 * (column.max() + 1):
            column = narrow
    order = np.argsort(column, kind="stable")
    ends = np.cumsum(n_cells[order])
    last = np.cumsum(np.bincount(column)) - 1
    column_ends = ends[last]
    before = np.concatenate([[0], column_ends[:-1]])  # cells of all columns before
    first_cell = np.empty(len(column), dtype=np.int64)
    first_cell[order] = ends - n_cells[order] - before[column[order]] + 1
    # a feature that is always 0 needs no cell, and disturbs nobody
    n_sharing = np.bincount(column, n_cells > 0)
    is_alone = (n_sharing[column] == 1) & (n_cells > 0)
    first_cell[is_alone] = 0
    return Bundles(column, is_alone, first_cell, column_ends - before + 1)
