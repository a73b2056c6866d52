"""SHAP values of rows, up to 64 side by side: a walk through each tree, down and back.

Rows differ only in which factor of an edge they take (see ``factors``). On the way down each row
and point of the quadrature has a product, of one more factor with every edge; at a leaf the product
is multiplied by its value, and on the way back the leaves below each edge are added up. A row takes
a few multiplications an edge and point, whatever its values.
"""

from typing import NamedTuple

import numpy as np

from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.parallel import assemble, next_rows
from sklboost.inspection.shap.edges import LEAVES, STAYS, fill_states
from sklboost.inspection.shap.factors import (
    FIRST_DIFFERENCE,
    MET,
    NOT_MET,
    fill_row_tables,
    fill_tables,
)

# Rows side by side: their products of a few depths stay in the first-level cache.
LANES = 64


class ShapScratch(NamedTuple):
    """What a walk writes on the way; the first axis is threads."""

    states: np.ndarray  # uint8, shape (n_threads, n_nodes, n_block_rows): of the explained rows
    # uint8, shape (n_threads, n_nodes, n_backgrounds): of the background rows
    background: np.ndarray
    # float64, shape (n_threads, n_tables, n_points, N_PLACES): one for each edge, or for each state
    # of a background row
    tables: np.ndarray
    # float64, shape (n_threads, max_depth + 1, n_points, LANES): of the factors on the way to the
    # current node
    products: np.ndarray
    # float64, shape (n_threads, max_depth + 1, n_tree_outputs, n_points, LANES): over the leaves
    # visited so far below each node on this way
    sums: np.ndarray
    # int64, shape (n_threads, 2, max_depth + 1): the nodes on this way, and 1 where an edge below
    # has the feature of the edge to them
    path: np.ndarray


class Contributions(NamedTuple):
    """What features and pairs of features add to raw scores."""

    single: np.ndarray  # float64, shape (n_outputs, n_columns, n_rows)
    # float64, shape (n_outputs, n_columns, n_columns, n_rows), or 0 rows: an interaction is divided
    # in any way between (i, k) and (k, i). 0 rows: not computed.
    pairs: np.ndarray


@kernel
def multiply(before, factors, value, states, after):
    """Set `after` to `before` times a value and the factor of each row's state."""
    gone, leaves, stays = value * factors[0], value * factors[1], value * factors[2]
    for lane in range(len(states)):
        state = states[lane]
        factor = stays if state == STAYS else (leaves if state == LEAVES else gone)
        after[lane] = before[lane] * factor


@kernel
def add_sums(sums, differences, states, above, total):
    """Add the sums of an edge to those of the node above it, and times differences to `total`."""
    leaves, stays = differences[1], differences[2]
    for lane in range(len(states)):
        state = states[lane]
        factor = stays if state == STAYS else (leaves if state == LEAVES else 0.0)
        total[lane] += sums[lane] * factor
        above[lane] += sums[lane]


@kernel
def add_pair(sums, factors, other_factors, states, other_states, total):
    """Add the interaction of the features of an edge and of one above it to `total`."""
    leaves, stays = factors[FIRST_DIFFERENCE + 1], factors[FIRST_DIFFERENCE + 2]
    not_met, met = other_factors[NOT_MET], other_factors[MET]
    for lane in range(len(states)):
        state = states[lane]
        factor = stays if state == STAYS else (leaves if state == LEAVES else 0.0)
        other = met if other_states[lane] == STAYS else not_met
        total[lane] += sums[lane] * factor * other


@inlined
def table_of(edge, background, scratch):
    """Return the number of the table with an edge's factors: its own, or by the background row."""
    if scratch.background.shape[1] == 0:
        return edge
    return np.int64(scratch.background[edge, background])


@kernel
def descend(edges, node, values, lanes, background, scratch):
    """Fill the products of a node from those of its parent; of a leaf its sums."""
    edge, path = edges[node], scratch.path
    path[0, edge.depth], path[1, edge.depth] = node, 0
    if edge.previous > 0:
        path[1, edges[edge.previous].depth] = 1
    states = scratch.states[node, lanes[0] : lanes[1]]
    table = scratch.tables[table_of(node, background, scratch)]
    before, after = scratch.products[edge.depth - 1], scratch.products[edge.depth]
    if edge.column >= 0:
        for point in range(len(table)):
            multiply(before[point], table[point], 1.0, states, after[point])
        scratch.sums[edge.depth] = 0.0
        return
    for output in range(len(values)):
        value, sums = values[output, edge.position], scratch.sums[edge.depth, output]
        for point in range(len(table)):
            multiply(before[point], table[point], value, states, sums[point])


@kernel
def ascend(edges, node, lanes, background, scratch, output, contributions):
    """Add the contributions of the edge to a node, below which all leaves have been visited."""
    edge = edges[node]
    depth, column = edge.depth, edges[edge.parent].column
    states = scratch.states[node, lanes[0] : lanes[1]]
    table = scratch.tables[table_of(node, background, scratch)]
    for index in range(scratch.sums.shape[1]):
        sums, above = scratch.sums[depth, index], scratch.sums[depth - 1, index]
        total = contributions.single[output + index, column, lanes[2] : lanes[3]]
        for point in range(len(table)):
            add_sums(sums[point], table[point, FIRST_DIFFERENCE:], states, above[point], total)
    if len(contributions.pairs) > 0:
        add_pairs(edges, node, lanes, background, scratch, output, contributions.pairs)
    if edge.previous > 0:
        scratch.path[1, edges[edge.previous].depth] = 0


@kernel
def add_pairs(edges, node, lanes, background, scratch, output, pairs):
    """Add the interactions of the feature of an edge with all others on the way to it."""
    edge = edges[node]
    depth, column = edge.depth, edges[edge.parent].column
    states = scratch.states[node, lanes[0] : lanes[1]]
    table = scratch.tables[table_of(node, background, scratch)]
    for other_depth in range(1, depth):
        if scratch.path[1, other_depth] == 1:  # the last edge of a feature counts
            continue
        other = scratch.path[0, other_depth]
        other_states = scratch.states[other, lanes[0] : lanes[1]]
        other_table = scratch.tables[table_of(other, background, scratch)]
        other_column = edges[edges[other].parent].column
        for index in range(scratch.sums.shape[1]):
            total = pairs[output + index, column, other_column, lanes[2] : lanes[3]]
            for point in range(len(table)):
                sums = scratch.sums[depth, index, point]
                add_pair(sums, table[point], other_table[point], states, other_states, total)


@kernel
def walk(edges, tree, lanes, background, scratch, output, contributions):
    """Walk through a tree with some rows side by side, and add to their contributions.

    Parameters
    ----------
    edges : Edges
    tree : int
    lanes : tuple of int
        Start and stop of the rows in ``scratch.states``, and in `contributions`.
    background : int
        The background row, if there are any.
    scratch : ShapScratch
        Of one thread, with the states and tables of the tree.
    output : int
        The first of those that the tree has values for.
    contributions : Contributions
    """
    nodes = edges.edges[edges.starts[tree] : edges.starts[tree + 1]]
    scratch.products[0] = 1.0
    for node in range(1, len(nodes)):
        descend(nodes, node, edges.values, lanes, background, scratch)
        next_depth = nodes[node + 1].depth if node + 1 < len(nodes) else 1
        for depth in range(nodes[node].depth, next_depth - 1, -1):
            visited = scratch.path[0, depth]
            ascend(nodes, visited, lanes, background, scratch, output, contributions)


@kernel
def explain_rows(team, edges, trees, columns, given, scratches, contributions):
    """Add the contributions of rows in the trees ``[start, stop)``; members take blocks of rows.

    Parameters
    ----------
    team : Team
    edges : Edges
    trees : tuple of int
    columns : ndarray of float64, shape (n_columns, n_rows)
    given : tuple of ndarray
        Values of background rows, shape (n_columns, n_backgrounds), without rows: spread by cover;
        and the points of the quadrature.
    scratches : ShapScratch
    contributions : Contributions
        Added to tree after tree, so in the same order for any number of threads.
    """
    if not assemble(team):
        return
    background, points = given
    n_rows, n_backgrounds = columns.shape[1], background.shape[1]
    n_block_rows = scratches.states.shape[2]
    others = (np.int64(0), n_backgrounds)  # 0 alone is a type of its own
    start = next_rows(team, n_rows, n_block_rows)
    while start < n_rows:
        n_explained = min(n_block_rows, n_rows - start)
        scratch = ShapScratch(
            scratches.states[team.rank],
            scratches.background[team.rank],
            scratches.tables[team.rank],
            scratches.products[team.rank],
            scratches.sums[team.rank],
            scratches.path[team.rank],
        )
        for tree in range(trees[0], trees[1]):
            fill_states(edges, tree, columns, (start, start + n_explained), scratch.states)
            if n_backgrounds > 0:
                fill_states(edges, tree, background, others, scratch.background)
                fill_row_tables(points, scratch.tables)
            else:
                fill_tables(edges, tree, points, scratch.tables)
            output = tree * len(edges.values) % len(contributions.single)
            for row in range(max(1, n_backgrounds)):
                for lane in range(0, n_explained, LANES):
                    stop = min(lane + LANES, n_explained)
                    lanes = (lane, stop, start + lane, start + stop)
                    walk(edges, tree, lanes, row, scratch, output, contributions)
        start = next_rows(team, n_rows, n_block_rows)
