"""Occupied bins: the places at which a node can be split on a feature.

A row's packed hessian is never 0, so a bin is empty if and only if its sum is 0.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.instructions import trailing_zeros

# Listing few occupied bins pays where a node has less than a quarter as many rows as bins.
_FEW = 4
_BIT = np.uint64(1) << np.arange(64, dtype=np.uint64)


@inlined
def list_occupied(cells, n_rows, bins, sums):
    """List the occupied bins of a feature and the sum of all before each; return how many.

    Parameters
    ----------
    cells : ndarray of int64, shape (n_bins,)
        The feature's part of a histogram, the missing bin left out.
    n_rows : int
        Of the node.
    bins : ndarray of int64
        Filled with bin numbers.
    sums : ndarray of int64
        Filled with packed sums.
    """
    if _FEW * n_rows < len(cells):
        return list_few(cells, bins, sums)
    return list_many(cells, bins, sums)


@inlined
def list_many(cells, bins, sums):
    """Do what :func:`list_occupied` does, bin by bin."""
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
def list_few(cells, bins, sums):
    """Do what :func:`list_occupied` does, faster where few bins are occupied.

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


@inlined
def occupied_bits(cells):
    """Return 64 bits, of which bit i is 1 if cell i is occupied."""
    bits = np.uint64(0)
    for bin_ in range(len(cells)):
        bits |= _BIT[bin_] if cells[bin_] != 0 else np.uint64(0)
    return bits
