"""Software prefetching: rows that lie scattered over memory are asked for ahead of their use.

A processor fetches by itself what is read in order; instructions for that cost more than they
save. The bins of scattered rows are prefetched twice: long before their use into the second-level
cache, since a Zen 4 can wait for more cache lines at once there, and shortly before it from there
into the first level. Arrays of one value a row are prefetched into the second level only.

Lists of rows must be sorted, up or down, as a node's rows in a block are.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.instructions import item_bytes, prefetch, prefetch_l2
from sklboost.engine.structs import LINE_BYTES

# Prefetch distances, in rows. 32 to 192 and 2 to 12 were as fast.
_FAR, _NEAR = np.int64(64), np.int64(4)
# Arrays of one value a row are scattered if rows are farther apart than this, on average. Values
# nearer to one another are read as fast without prefetching.
_NEARBY_ROWS = 40


@inlined
def bins_are_scattered(bins, row_list):
    """Whether the bins of listed rows lie so far apart that prefetching them pays.

    That is if there are more bytes than a cache line has from row to row, on average. Wide rows are
    scattered even in order, since only a block of their columns is read.
    """
    return mean_step(row_list) * (bins.shape[1] * item_bytes(bins)) > LINE_BYTES


@inlined
def values_are_scattered(row_list):
    """Whether the values of listed rows, one a row, lie so far apart that prefetching them pays."""
    return mean_step(row_list) > _NEARBY_ROWS


@inlined
def mean_step(row_list):
    """Return the mean difference between neighbouring rows of a sorted list, 0.0 if it has none."""
    if len(row_list) < 2:
        return 0.0
    difference = np.int64(row_list[len(row_list) - 1]) - np.int64(row_list[0])
    return abs(difference) / (len(row_list) - 1)


@inlined
def prefetch_bins(bins, row_list, position, columns):
    """Prefetch the columns ``[start, stop)`` of the rows listed `_FAR` and `_NEAR` places later."""
    first, stop = columns
    last = stop - np.uint64(1)  # the row may go on into the next cache line
    far = row_ahead(row_list, position, _FAR)
    near = row_ahead(row_list, position, _NEAR)
    prefetch(bins, near, first)
    prefetch(bins, near, last)
    prefetch_l2(bins, far, first)
    prefetch_l2(bins, far, last)


@inlined
def prefetch_values(values, n_each, row_list, position):
    """Prefetch what an array has for the row listed `_FAR` places later.

    `values` is 1-D and has `n_each` (uint64) neighbouring values for each row.
    """
    place = row_ahead(row_list, position, _FAR) * n_each
    prefetch_l2(values, place, place)


@inlined
def row_ahead(row_list, position, distance):
    """Return the row that is listed so many places after `position`, or the last one."""
    return np.uint64(row_list[np.uint64(min(position + distance, len(row_list) - 1))])
