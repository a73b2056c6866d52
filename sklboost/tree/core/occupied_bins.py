"""Occupied bins: the places at which a node can be split on a feature.

In: a feature's part of a node's histogram. Out: its bins that are not empty, in order, and before
each the packed sum of all that come earlier.

A row's packed hessian is never 0, so a bin is empty if and only if its sum is 0; for the same
reason the bins of one output are those of all.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import trailing_zeros

_BIT = np.uint64(1) << np.arange(64, dtype=np.uint64)


@inlined
def list_many(cells, bins, sums):
    """List the occupied bins of a feature and the sum of all before each; return how many.

    Parameters
    ----------
    cells : ndarray of int64, shape (n_bins,)
        The feature's part of a histogram, the missing bin left out.
    bins : ndarray of int64
        Filled with bin numbers.
    sums : ndarray of int64
        Filled with packed sums.
    """
    n_occupied = np.uint64(0)
    before = np.int64(0)
    for bin_ in range(len(cells)):
        content = cells[np.uint64(bin_)]
        # written always, kept if the bin is occupied: no branch to mispredict
        bins[n_occupied] = bin_
        sums[n_occupied] = before
        before += content
        n_occupied += np.uint64(content != 0)
    return np.int64(n_occupied)


@inlined
def occupied_bits(cells):
    """Give 64 bits, of which bit i is 1 if cell i is occupied."""
    bits = np.uint64(0)
    for bin_ in range(len(cells)):
        bits |= _BIT[bin_] if cells[bin_] != 0 else np.uint64(0)
    return bits


@inlined
def list_few(cells, bins, sums):
    """Do what :func:`list_many` does, faster where few bins are occupied.

    Eight cells are compared at once, then only the occupied ones are visited.
    """
    n_occupied = np.uint64(0)
    before = np.int64(0)
    for first in range(0, len(cells), 64):
        bits = occupied_bits(cells[first : min(first + 64, len(cells))])
        while bits != np.uint64(0):
            bin_ = np.uint64(first) + trailing_zeros(bits)
            bins[n_occupied] = np.int64(bin_)
            sums[n_occupied] = before
            before += cells[bin_]
            n_occupied += np.uint64(1)
            bits &= bits - np.uint64(1)
    return np.int64(n_occupied)


@kernel
def list_sums(numbers, n_lanes, lane, bins, sums):
    """Fill `sums` as :func:`list_many` does, for one of several outputs.

    Parameters
    ----------
    numbers : ndarray of int64, shape (n_bins * n_lanes,)
        The feature's part of a strip's histogram.
    n_lanes, lane : int
    bins : ndarray of int64
        Those that are known to be occupied.
    sums : ndarray of int64
        Filled.
    """
    before = np.int64(0)
    for position in range(len(bins)):
        sums[np.uint64(position)] = before
        before += numbers[np.uint64(bins[np.uint64(position)] * n_lanes + lane)]
