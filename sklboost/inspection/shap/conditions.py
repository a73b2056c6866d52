"""Which conditions rows meet: how each row stands to each edge of a tree.

In: edges and values of rows. Out: a byte for each edge and row. A row without a feature, as the
background of an explanation, is described in the same way.
"""

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.tree.predict.category_bits import is_listed

# Of the splits on an edge's feature, from the root on, as if all others let every row pass:
GONE = np.uint8(0)  # an earlier one has sent the row elsewhere
LEAVES = np.uint8(1)  # this one is the first that does
STAYS = np.uint8(2)  # the row passes them all: it meets the edge's condition


@kernel
def fill_states(edges, tree, columns, rows, states):
    """Fill the state of rows for each edge of a tree.

    Parameters
    ----------
    edges : Edges
    tree : int
    columns : ndarray of float64, shape (n_columns, n_rows)
        The values of the features that occur.
    rows : tuple of int
        Start and stop.
    states : ndarray of uint8, shape (n_nodes or more, stop - start or more)
    """
    own = edges.edges[edges.starts[tree] : edges.starts[tree + 1]]
    states[0] = STAYS  # no edge leads to the root
    for node in range(len(own)):
        split = own[node]
        if split.column >= 0:
            values = columns[split.column, rows[0] : rows[1]]
            above = states[own[node + 1].previous]
            fill_children(split, values, edges.bits, above, states[node + 1], states[split.right])


@kernel
def fill_children(split, values, bits, above, left, right):
    """Fill the states for the edges to both children of a split.

    `above` are those for the edge before that has the feature of the split.
    """
    threshold, missing_right = split.threshold, split.default_left == 0
    if threshold == threshold:
        for row in range(len(values)):
            value = values[row]
            goes_right = (value >= threshold) | ((value != value) & missing_right)
            left[row] = state_below(above[row], not goes_right)
            right[row] = state_below(above[row], goes_right)
        return
    for row in range(len(values)):
        goes_right = missing_right
        if values[row] == values[row]:
            goes_right = not is_listed(np.int64(values[row]), bits, split.position)
        left[row] = state_below(above[row], not goes_right)
        right[row] = state_below(above[row], goes_right)


@inlined
def state_below(above, stays):
    """Give the state for an edge, from that for the edge before and whether the split passes it."""
    here = STAYS if stays else LEAVES
    return here if above == STAYS else GONE
