"""Exact SHAP values and interaction values: what each feature adds to a raw score."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sklboost.data.features import Features, raw_blocks
from sklboost.data.raw_values import array_of
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.model import CategoryBits, Model
from sklboost.engine.parallel import ThreadTeam, assemble, n_threads_for, next_rows
from sklboost.engine.structs import records
from sklboost.tree.predict.category_bits import is_listed

# Places in a table: factors by state, differences by state, then c itself.
FIRST_DIFFERENCE, NOT_MET, MET = 3, 6, 7
N_PLACES = 8
# With single background rows z and z' are 0 or 1, by the state of the row.
N_ROW_TABLES = 3


def quadrature(n_different: int, n_backgrounds: int) -> np.ndarray:
    """Return points and weights that integrate products over `n_different` features exactly.

    float64, shape (n_points, 2): points in (0, 1), and weights that add up to
    ``1 / n_backgrounds``, since integrals are averaged over background rows.
    """
    points, weights = np.polynomial.legendre.leggauss(max(1, -(-n_different // 2)))
    return np.stack([(points + 1.0) / 2.0, weights / (2.0 * n_backgrounds)], axis=1)


@kernel
def fill_table(before, share, fraction, points, table):
    """Fill the factors of one edge, shape (n_points, N_PLACES).

    `before` and `share` are z of the previous edge with its feature, 1 if there is none, and of the
    edge itself; `fraction` is ``share / before``.
    """
    for index in range(len(points)):
        t, weight = points[index, 0], points[index, 1]
        product_before, product = t + (1.0 - t) * before, t + (1.0 - t) * share
        table[index, 0] = fraction
        table[index, 1] = (1.0 - t) * share / product_before
        table[index, 2] = product / product_before
        table[index, 3] = 0.0
        table[index, 4] = -weight / ((1.0 - t) * product_before)
        table[index, 5] = weight * (before - share) / (product * product_before)
        table[index, 6] = -1.0 / (1.0 - t)
        table[index, 7] = (1.0 - share) / product


@kernel
def fill_tables(edges, tree, points, tables):
    """Fill the factors of all edges of a tree, with unknown features spreading rows by cover."""
    nodes = edges.edges[edges.starts[tree] : edges.starts[tree + 1]]
    for node in range(1, len(nodes)):
        edge = nodes[node]
        before = nodes[edge.previous].share
        fill_table(before, edge.share, edge.fraction, points, tables[node])


@kernel
def fill_row_tables(points, tables):
    """Fill the factors of any edge, a table for each state of a single background row."""
    fill_table(0.0, 0.0, 1.0, points, tables[0])  # any fraction: these products are 0
    fill_table(1.0, 0.0, 0.0, points, tables[1])
    fill_table(1.0, 1.0, 1.0, points, tables[2])


# A node, and the edge from its parent to it. Nodes are counted from their tree's root, in the order
# of the walk.
EDGE_DTYPE = np.dtype(
    [
        ("threshold", np.float64),  # of the node's own split, as in NODE_DTYPE
        ("fraction", np.float64),  # of the parent's cover
        # the fractions of this edge and of all edges above it that have its feature, multiplied
        ("share", np.float64),
        ("reach", np.float64),  # the fractions of all edges from the root on, multiplied
        ("position", np.int64),  # of the node in the model
        ("column", np.int64),  # of the node's own split, see Edges.features; -1 for a leaf
        ("right", np.int64),  # the node's right child; the left one comes next
        ("default_left", np.int64),
        ("parent", np.int64),
        ("previous", np.int64),  # the edge above with this edge's feature; 0: there is none
        ("depth", np.int64),  # 0 for the root
        ("n_different", np.int64),  # features on the way from the root
    ],
    align=True,
)

# The state of a row at an edge, by the splits on the edge's feature, from the root on:
GONE = np.uint8(0)  # an earlier split sends the row elsewhere
LEAVES = np.uint8(1)  # the edge's split is the first that does
STAYS = np.uint8(2)  # no split does: the row meets the edge's condition


class Edges(NamedTuple):
    """The trees of a model, each in the order root, left branch, right branch."""

    edges: np.recarray  # the first of each tree is its root, to which no edge leads
    # int64, shape (n_trees + 1,): tree t owns ``edges[starts[t]:starts[t + 1]]``
    starts: np.ndarray
    # float64, shape (n_tree_outputs, n_nodes_of_all_trees): leaf values, in the model's order of
    # nodes
    values: np.ndarray
    bits: CategoryBits  # of the splits on categories, in the same order
    features: np.ndarray  # int64, shape (n_columns,): the features that occur


@np.errstate(all="ignore")
def lay_out_edges(model: Model) -> Edges:
    """Return the trees of a model in the order of a walk in depth."""
    nodes = model.nodes
    features = np.unique(nodes.feature[nodes.left >= 0]).astype(np.int64)
    column_of = np.full(model.n_features, -1, dtype=np.int64)
    column_of[features] = np.arange(len(features))
    edges = records(len(nodes), EDGE_DTYPE)
    places = np.empty(len(nodes), dtype=np.int64)
    place_nodes(model.constant, places)
    fill_edges(model.constant, column_of, places, edges)
    return Edges(edges, model.tree_starts, model.values, model.tops.bits, features)


@kernel
def place_nodes(model, places):
    """Fill the place of each node in a walk in depth through its tree."""
    nodes, starts = model.nodes, model.tree_starts
    for tree in range(len(starts) - 1):
        root = starts[tree]
        # first the sizes of branches, from below: children lie behind their parent
        for position in range(starts[tree + 1] - 1, root - 1, -1):
            node = nodes[position]
            places[position] = 1
            if node.left >= 0:
                places[position] += places[root + node.left] + places[root + node.right]
        places[root] = 0
        for position in range(root, starts[tree + 1]):
            node = nodes[position]
            if node.left >= 0:
                size_of_left = places[root + node.left]
                places[root + node.left] = places[position] + 1
                places[root + node.right] = places[position] + 1 + size_of_left


@kernel
def fill_edges(model, column_of, places, edges):
    """Fill `edges` from the nodes and their places."""
    nodes, starts = model.nodes, model.tree_starts
    for tree in range(len(starts) - 1):
        root = starts[tree]
        in_tree = edges[root : starts[tree + 1]]
        in_tree[0].fraction = in_tree[0].share = in_tree[0].reach = 1.0
        in_tree[0].parent = in_tree[0].previous = in_tree[0].depth = in_tree[0].n_different = 0
        for position in range(root, starts[tree + 1]):
            node, place = nodes[position], places[position]
            edge = in_tree[place]
            edge.position, edge.threshold = position, node.threshold
            edge.default_left = node.default_left
            edge.column = edge.right = -1
            if node.left >= 0:
                edge.column, edge.right = column_of[node.feature], places[root + node.right]
                previous = find_previous(in_tree, place)
                left, right = nodes[root + node.left].cover, nodes[root + node.right].cover
                # sampling can leave both without rows
                fraction = left / (left + right) if left + right > 0.0 else 0.5
                add_child(in_tree, place, place + 1, previous, fraction)
                add_child(in_tree, place, edge.right, previous, 1.0 - fraction)


@kernel
def find_previous(edges, node):
    """Return the last edge on the way to a node that has the feature of its split; 0: none."""
    column, edge = edges[node].column, np.int64(node)
    while edge > 0 and edges[edges[edge].parent].column != column:
        edge = edges[edge].parent
    return edge


@kernel
def add_child(edges, parent, child, previous, fraction):
    """Fill the fields of the edge from `parent` to `child` that follow from those above it."""
    edge = edges[child]
    edge.parent, edge.previous, edge.fraction = parent, previous, fraction
    edge.share = fraction * edges[previous].share
    edge.reach = fraction * edges[parent].reach
    edge.depth = edges[parent].depth + 1
    edge.n_different = edges[parent].n_different + (previous == 0)


@np.errstate(all="ignore")
def mean_scores(edges: Edges, trees: tuple[int, int], n_outputs: int) -> np.ndarray:
    """Return what trees ``[start, stop)`` add on average, by cover; float64, shape (n_outputs,)."""
    nodes = edges.edges[edges.starts[trees[0]] : edges.starts[trees[1]]].view(np.recarray)
    tree_of = np.repeat(np.arange(*trees), np.diff(edges.starts[trees[0] : trees[1] + 1]))
    is_leaf, n_tree_outputs = nodes.column < 0, len(edges.values)
    first_output = (tree_of * n_tree_outputs % n_outputs)[is_leaf]
    means = np.zeros(n_outputs)
    for index, values in enumerate(edges.values):
        added = nodes.reach[is_leaf] * values[nodes.position[is_leaf]]
        means += np.bincount(first_output + index, added, minlength=n_outputs)
    return means


@kernel
def fill_states(edges, tree, columns, rows, states):
    """Fill ``states[node, row]`` for the rows ``[start, stop)`` and the edges to a tree's nodes."""
    nodes = edges.edges[edges.starts[tree] : edges.starts[tree + 1]]
    states[0] = STAYS  # no edge leads to the root
    for node in range(len(nodes)):
        split = nodes[node]
        if split.column >= 0:
            values = columns[split.column, rows[0] : rows[1]]
            above = states[nodes[node + 1].previous]
            fill_children(split, values, edges.bits, above, states[node + 1], states[split.right])


@kernel
def fill_children(split, values, bits, above, left, right):
    """Fill the states at the edges to both children of a split.

    `above` are those at the last edge before it that has the same feature.
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
    """Return the state at an edge, from that at the previous edge of the feature."""
    here = STAYS if stays else LEAVES
    return here if above == STAYS else GONE


# Rows side by side: their products of a few depths stay in the first-level cache.
LANES = 64


class ShapScratch(NamedTuple):
    """The memory that walks write to; the first axis is threads."""

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
    """The contributions of features and of pairs of features to raw scores."""

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
    """Add the sums of an edge to the sums above it, and times differences to `total`."""
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
    """Fill the products of a node from its parent's; of a leaf its sums."""
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
    """Walk through a tree with some rows together, and add to their contributions.

    `scratch` belongs to one thread and has the states and tables of the tree. `output` is the first
    that the tree has values for, `background` the background row, if there are any.
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

    `given` are the values of background rows, shape (n_columns, n_backgrounds), without any: spread
    by cover, and the points of the quadrature. Trees are added in order.
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


# Rows times edges times points that are done in the time it takes to start a thread.
_STEPS_PER_THREAD = 1_000_000
# Rows for which the factors of a tree's edges are computed once: that takes as long as 50 rows.
_BLOCK_ROWS = 8 * LANES
# Background rows whose states a thread keeps at a time.
_BACKGROUND_ROWS = 256
# Results before they are transposed: 64 MB.
_WAITING_VALUES = 2**23


@np.errstate(all="ignore")
def add_contributions(
    model: Model,
    X: Features,
    trees: tuple[int, int],
    background: Features | None,
    n_jobs: int | None,
    out: np.ndarray,
) -> None:
    """Add the SHAP values of the trees ``[start, stop)``, or their interaction values, to `out`.

    `out` is float64, of shape (n_samples, n_outputs, n_features). With one axis more it takes
    interaction values: (i, k) and (k, i) get half of their interaction each, and (i, i) the SHAP
    value of i less its halves. The values of background rows take the place of unknown features,
    and the results are averaged; without them rows go both ways at a split on an unknown feature,
    in proportion to the cover.
    """
    edges, has_pairs = lay_out_edges(model), out.ndim == 4
    n_backgrounds, n_columns = 0 if background is None else len(background), len(edges.features)
    points = quadrature(int(edges.edges.n_different.max()), max(1, n_backgrounds))
    n_edges = int(edges.starts[trees[1]] - edges.starts[trees[0]])
    work = len(X) * n_edges * len(points) * max(1, n_backgrounds)
    n_values = model.n_outputs * n_columns * (1 + n_columns * has_pairs)
    n_rows = max(1, min(len(X), _WAITING_VALUES // max(1, n_values)))
    with ThreadTeam(n_threads_for(n_jobs, work, _STEPS_PER_THREAD)) as team:
        # without background, one block of no rows
        others = [np.empty((n_columns, 0))]
        if background is not None:
            others = [columns for _, columns in _blocks(team, edges, background, _BACKGROUND_ROWS)]
        scratch = _allocate_scratch(team.size, edges, points, n_rows, others)
        for rows, columns in _blocks(team, edges, X, n_rows):
            shape = (model.n_outputs, n_columns, columns.shape[1])
            of_pairs = (model.n_outputs, n_columns, *shape[1:]) if has_pairs else (0, 0, 0, 0)
            single, pairs = added = Contributions(np.zeros(shape), np.zeros(of_pairs))
            for other in others:
                team.run(explain_rows, edges, trees, columns, (other, points), scratch, added)
            if not has_pairs:
                out[rows, :, edges.features] += single.transpose(2, 0, 1)
                continue
            halves = (pairs + pairs.swapaxes(1, 2)) / 2.0
            for column, feature in enumerate(edges.features):
                # the diagonal is 0 before
                halves[:, column, column] = single[:, column] - halves[:, column].sum(axis=1)
                out[rows, :, feature, edges.features] += halves[:, column].transpose(2, 0, 1)


def _blocks(
    team: ThreadTeam, edges: Edges, X: Features, n_rows: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield ranges of rows and the values of the features that occur, (n_columns, n_rows)."""
    for rows, raw in raw_blocks(team, X):
        values = array_of(raw)
        for start in range(0, len(values), n_rows):
            block = values[start : start + n_rows, edges.features]
            first = rows.start + start
            columns = np.ascontiguousarray(block.T, dtype=np.float64)
            yield slice(first, first + len(block)), columns


def _allocate_scratch(
    n_threads: int, edges: Edges, points: np.ndarray, n_rows: int, others: list[np.ndarray]
) -> ShapScratch:
    n_nodes = int(np.diff(edges.starts).max())
    n_depths = int(edges.edges.depth.max()) + 1
    n_backgrounds = max(columns.shape[1] for columns in others)
    n_tables = n_nodes if n_backgrounds == 0 else N_ROW_TABLES
    # two blocks a thread, if that leaves some rows for each
    n_block_rows = min(_BLOCK_ROWS, max(LANES, -(-n_rows // (2 * n_threads))))
    lanes = (len(points), min(LANES, n_rows))
    return ShapScratch(
        states=np.empty((n_threads, n_nodes, min(n_block_rows, n_rows)), dtype=np.uint8),
        background=np.empty((n_threads, n_nodes, n_backgrounds), dtype=np.uint8),
        tables=np.empty((n_threads, n_tables, len(points), N_PLACES)),
        products=np.empty((n_threads, n_depths, *lanes)),
        sums=np.zeros((n_threads, n_depths, len(edges.values), *lanes)),
        path=np.empty((n_threads, 2, n_depths), dtype=np.int64),
    )
