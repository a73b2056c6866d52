"""Ranks of values among sorted thresholds: the bins of training, and what predictions compare."""

import numpy as np

from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import FEW_LANES, LANES, add_where, at_least, count_at_most

_PIVOTS = 15  # of a table, which all values are compared with


def shifts_of(n_thresholds: np.ndarray) -> np.ndarray:
    """Return the shift of tables with so many thresholds, int64.

    The pivots are ``16 * 2**shift`` apart.
    """
    groups = (n_thresholds + 1) / ((_PIVOTS + 1) * FEW_LANES)
    shifts: np.ndarray = np.ceil(np.log2(groups)).clip(0).astype(np.int64)
    return shifts


def table_length(n_thresholds: int) -> int:
    """Return the fewest entries of a table with so many thresholds."""
    return (n_thresholds // FEW_LANES + 1) * FEW_LANES


def rounded_up(thresholds: np.ndarray) -> np.ndarray:
    """Return the smallest float32 that are not below float64 thresholds.

    Every float32 is then on the same side of them. Compiled, for one threshold, this is
    :func:`~sklboost.tree.predict.assembly.round_up`.
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
        above = np.nextafter(rounded, np.float32(np.inf))
    result: np.ndarray = np.where(rounded < thresholds, above, rounded)
    return result


@kernel
def rank_values(values, table, shift, missing_rank, ranks):
    """Fill `ranks` with the number of entries of a sorted table that are at or below each value.

    Up to 15 of them at equal distances, the pivots, are compared with 64 values at once. What lies
    between two of these is searched by halves, without a branch and a step for all values before
    the next one, down to 16 entries, which are compared with the value at once.

    Parameters
    ----------
    values : ndarray of float32 or float64, shape (n,)
        n is a multiple of 64.
    table : ndarray of the same dtype
        In increasing order, some perhaps equal, then padded with NaN, which no value reaches, to
        :func:`table_length` or more.
    shift : uint64
        Of :func:`shifts_of`.
    missing_rank : number of the dtype of `ranks`
        The rank of NaN.
    ranks : ndarray of uint8 or uint16, shape (n,)
        Filled.
    """
    width, length = np.uint64(FEW_LANES) << shift, np.uint64(len(table))
    n_pivots = min(np.uint64(_PIVOTS), length // width)
    for start in range(0, len(values), LANES):
        word_ranks = ranks[start : start + LANES]
        word_ranks[:] = 0
        for pivot in range(np.uint64(1), n_pivots + np.uint64(1)):
            threshold = table[pivot * width - np.uint64(1)]
            if threshold != threshold:
                break
            are_above = at_least(values, np.uint64(start), threshold)
            add_where(word_ranks, are_above, ranks.dtype.type(width))
    half = width
    while half > np.uint64(FEW_LANES):
        half >>= np.uint64(1)
        for row in range(len(values)):
            rank = np.uint64(ranks[np.uint64(row)])
            middle = table[min(rank + half, length) - np.uint64(1)]  # the last entry is NaN
            is_above = np.uint64(middle <= values[np.uint64(row)])
            ranks[np.uint64(row)] = rank + is_above * half
    for row in range(len(values)):
        rank = np.uint64(ranks[np.uint64(row)])
        ranks[np.uint64(row)] = rank + count_at_most(table, rank, values[np.uint64(row)])
    for start in range(0, len(values), LANES):
        is_missing = ~at_least(values, np.uint64(start), table.dtype.type(-np.inf))
        add_where(ranks[start : start + LANES], is_missing, missing_rank)
