"""Queries: which rows are the documents of one query, and the order that scores put them in.

Targets of a ranking are two rows: relevances, and the number of each document's query. Rows need
not be sorted: :func:`read_queries` lists them query by query.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel

# Documents that are sorted by counting.
_STRETCH = 128


class Queries(NamedTuple):
    """The documents of all queries, one query after the other."""

    # int64, shape (n_samples,): the row of each document; within a query in the order of the rows
    rows: np.ndarray
    starts: np.ndarray  # int64, shape (n_queries + 1,): where the documents of each query begin
    labels: np.ndarray  # float64, shape (n_samples,): relevance of each document

    @property
    def sizes(self) -> np.ndarray:
        """Documents of each query."""
        sizes: np.ndarray = np.diff(self.starts)
        return sizes


def read_queries(y: np.ndarray) -> Queries:
    """Return the queries of encoded targets, shape (2, n_samples): relevances, query numbers."""
    rows = np.argsort(y[1], kind="stable").astype(np.int64)
    numbers = y[1][rows]
    starts = np.flatnonzero(np.r_[True, numbers[1:] != numbers[:-1], True]).astype(np.int64)
    return Queries(rows, starts, np.ascontiguousarray(y[0][rows], np.float64))


def spread(of_queries: np.ndarray, queries: Queries) -> np.ndarray:
    """Return a number of each query for each of its documents."""
    spread_out: np.ndarray = np.repeat(of_queries, queries.sizes)
    return spread_out


@kernel
def sort_documents(scores, places, other_scores, other_places):
    """Sort the scores of a query's documents from high to low, and their places with them.

    Equal scores keep their order. In stretches of `_STRETCH` documents each is put where the number
    of those before it says; to count them takes no jumps that a processor could mispredict, so it
    is faster than to sort that few. Then the stretches are merged. The last two arrays are scratch
    of the same length.
    """
    n_documents = len(scores)
    for start in range(0, n_documents, _STRETCH):
        stretch = scores[start : start + _STRETCH]
        for index in range(len(stretch)):
            place = start + _count_before(stretch, index)
            other_scores[place], other_places[place] = stretch[index], places[start + index]
    width, is_in_scratch = _STRETCH, True
    while width < n_documents:
        if is_in_scratch:
            _merge(other_scores, other_places, width, scores, places)
        else:
            _merge(scores, places, width, other_scores, other_places)
        width, is_in_scratch = 2 * width, not is_in_scratch
    if is_in_scratch:
        for index in range(n_documents):
            scores[index], places[index] = other_scores[index], other_places[index]


@inlined
def _count_before(scores, index):
    """Count the scores that come before one of them: higher ones, and equal ones in front."""
    score, count = scores[index], 0
    earlier, later = scores[:index], scores[index + 1 :]
    for other in range(len(earlier)):
        count += earlier[other] >= score
    for other in range(len(later)):
        count += later[other] > score
    return count


@inlined
def _merge(scores, places, width, merged_scores, merged_places):
    """Merge stretches of `width` sorted documents, two at a time."""
    n_documents = len(scores)
    for start in range(0, n_documents, 2 * width):
        middle, stop = min(start + width, n_documents), min(start + 2 * width, n_documents)
        left, right = start, middle
        for index in range(start, stop):
            takes_left = right == stop or (left < middle and scores[left] >= scores[right])
            source = left if takes_left else right
            merged_scores[index], merged_places[index] = scores[source], places[source]
            left, right = left + takes_left, right + (not takes_left)
