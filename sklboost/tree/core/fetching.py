"""Fetching of rows that lie scattered over memory, ahead of their use.

A processor fetches what lies in order by itself, and instructions for that cost more than they
save. It waits for more lines of memory at once where they go to the second-level cache only, so
rows are first fetched into that, long before their use, and from there into the first level.
"""

import numpy as np

from sklboost.engine.compiling import inlined
from sklboost.engine.instructions import item_bytes, prefetch, prefetch_l2

# Rows ahead of their use. Memory answers about 40 rows later, the second-level cache at once.
_FAR_ROWS, _NEAR_ROWS = np.int64(64), np.int64(4)
# Bins are scattered if from one listed row to the next there are more bytes than this on average (a
# cache line), numbers of which a row has one if more rows.
_MOST_BYTES, _MOST_ROWS = 64, 40


@inlined
def bins_are_scattered(bins, row_list):
    """Whether the bins of listed rows lie so far apart that fetching them ahead pays."""
    return mean_distance(row_list) * (bins.shape[1] * item_bytes(bins)) > _MOST_BYTES


@inlined
def numbers_are_scattered(row_list):
    """Whether numbers, one a row, lie so far apart that fetching them ahead pays."""
    return mean_distance(row_list) > _MOST_ROWS


@inlined
def mean_distance(row_list):
    """Return how many rows it is from one listed row to the next, which go up or down."""
    if len(row_list) < 2:
        return 0.0
    distance = np.int64(row_list[len(row_list) - 1]) - np.int64(row_list[0])
    return abs(distance) / (len(row_list) - 1)


@inlined
def fetch_bins(bins, row_list, position, columns):
    """Fetch the columns ``[start, stop)`` of rows that are listed soon after a position."""
    first, stop = columns
    last = stop - np.uint64(1)  # a row may go on into another cache line
    far = row_ahead(row_list, position, _FAR_ROWS)
    near = row_ahead(row_list, position, _NEAR_ROWS)
    prefetch(bins, near, first)
    prefetch(bins, near, last)
    prefetch_l2(bins, far, first)
    prefetch_l2(bins, far, last)


@inlined
def fetch_numbers(numbers, n_each, row_list, position):
    """Fetch the `n_each` neighbouring numbers (uint64) of a row that is listed later."""
    place = row_ahead(row_list, position, _FAR_ROWS) * n_each
    prefetch_l2(numbers, place, place)


@inlined
def row_ahead(row_list, position, n_ahead):
    """Return the row that is listed so many places later, or else the last one."""
    return np.uint64(row_list[np.uint64(min(position + n_ahead, len(row_list) - 1))])
