"""Rows that are scored again after every round: laid out once, then the new trees are added.

In: raw values and, round by round, new trees. Out: raw scores, the bits that prediction gives.

Prediction copies a block of rows feature by feature and sends it down all trees. Here the trees
come one at a time, and such a copy for each would be most of the work: it is made once and kept.
"""

from typing import NamedTuple

import numpy as np

from sklboost.compiling import kernel
from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.features import raw_blocks
from sklboost.data.raw import RawMatrix, read_only
from sklboost.parallel import ThreadTeam, share
from sklboost.structs import ROUTE_DTYPE, TOP_LEVELS, Model, Trees, records
from sklboost.tree.assembly import allocate_tops, fill_routes, fill_tops
from sklboost.tree.prediction import (
    WORD,
    PredictionScratch,
    add_tree,
    allocate_scratch,
    copy_block,
)

_BLOCK_ROWS = 256  # as the blocks of values that bins become


class ScoredRows(NamedTuple):
    """Rows, in blocks, and their raw scores.

    Attributes
    ----------
    raw : RawMatrix
        The same memory as `columns`, for deep trees.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Of all trees so far.
    scratch : PredictionScratch
        Its `columns`, shape (n_blocks, n_features, 256), and `missing` are those of the blocks.
    """

    raw: RawMatrix
    raw_score: np.ndarray
    scratch: PredictionScratch


class NewTrees(NamedTuple):
    """Room for the trees of some rounds, laid out for prediction.

    Attributes
    ----------
    model : Model
        Its arrays have room for as many trees as there can be.
    depth, place : ndarray of int64, shape (n_nodes,)
        Scratch.
    """

    model: Model
    depth: np.ndarray
    place: np.ndarray


def lay_out_rows(
    team: ThreadTeam, X: np.ndarray | BinnedMatrix, raw_score: np.ndarray
) -> ScoredRows:
    """Copy the rows feature by feature; `raw_score` is what they start from, and is modified."""
    n_samples, n_features = X.shape
    dtype = np.dtype(np.float64) if isinstance(X, BinnedMatrix) else X.dtype
    n_blocks = -(-n_samples // _BLOCK_ROWS)
    # beyond the last row lie zeros, whose way nobody asks for
    columns = np.zeros((n_blocks, n_features, _BLOCK_ROWS), dtype=dtype)
    missing = np.zeros((n_blocks, n_features, _BLOCK_ROWS // WORD), dtype=np.uint64)
    features = np.arange(n_features)
    for rows, raw in raw_blocks(team, X):
        blocks = slice(rows.start // _BLOCK_ROWS, -(-rows.stop // _BLOCK_ROWS))
        team.run(fill_blocks, raw, features, columns[blocks], missing[blocks])
    scratch = allocate_scratch(columns, missing, team.size)
    # element (row, feature) of a block lies `feature` times 256 places behind the row's first
    raw = RawMatrix(read_only(columns.reshape(-1)), n_samples, n_features, 1, _BLOCK_ROWS)
    return ScoredRows(raw, raw_score, scratch)


@kernel
def fill_blocks(team, raw, features, columns, missing):
    """Fill the blocks with the rows of `raw`; each member a share of them."""
    start, stop = share(team, len(columns))
    for block in range(start, stop):
        first_row = block * _BLOCK_ROWS
        n_rows = min(_BLOCK_ROWS, raw.n_samples - first_row)
        copy_block(raw, features, first_row, n_rows, columns[block], missing[block])


def allocate_new_trees(trees: Trees, n_outputs: int, n_features: int) -> NewTrees:
    """Make room to lay out trees that will be written to `trees`."""
    n_nodes, n_trees = len(trees.nodes), len(trees.n_pruned)
    model = Model(
        nodes=trees.nodes.view(np.recarray),
        tree_starts=trees.starts,
        routes=records(n_nodes, ROUTE_DTYPE),
        values=np.empty(n_nodes),
        tops=allocate_tops(n_trees * (2**TOP_LEVELS - 1), n_trees, np.arange(n_features)),
        depths=np.empty(n_trees, dtype=np.int64),
        n_pruned=trees.n_pruned,
        base_score=np.zeros(n_outputs),
        params=trees.params.view(np.recarray),
        n_features=n_features,
    )
    depth, place = np.empty((2, n_nodes), dtype=np.int64)
    return NewTrees(model, depth, place)


@kernel
def lay_out_trees(new, n_trees):
    """Lay out the first `n_trees` trees for prediction."""
    model = new.model
    starts = model.tree_starts[: n_trees + 1]
    new.depth[: starts[n_trees]] = 0
    fill_routes(model.nodes, starts, model.routes, new.depth)
    fill_tops(model.nodes, starts, new.depth, new.place, model.tops)
    for tree in range(n_trees):
        model.depths[tree] = 0
        for position in range(starts[tree], starts[tree + 1]):
            model.values[position] = model.nodes[position].value
            model.depths[tree] = max(model.depths[tree], new.depth[position])


@kernel
def add_new_trees(team, model, thresholds, trees, rows):
    """Add the trees ``[start, stop)`` to the raw scores; each member takes a share of the blocks.

    Parameters
    ----------
    team : Team
    model : Model
        Of :class:`NewTrees`.
    thresholds : ndarray of the dtype of the rows, shape (n_splits,)
    trees : tuple of int
    rows : ScoredRows
        Modified.
    """
    scratch, raw_score = rows.scratch, rows.raw_score
    n_outputs, n_samples = raw_score.shape
    start, stop = share(team, len(scratch.columns))
    for block in range(start, stop):
        first_row = block * _BLOCK_ROWS
        n_rows = min(_BLOCK_ROWS, n_samples - first_row)
        own = PredictionScratch(
            scratch.columns[block],
            scratch.missing[block],
            scratch.here[team.rank],
            scratch.goes_right[team.rank],
            scratch.digits[team.rank],
            scratch.positions[team.rank, :n_rows],
        )
        first_value = block * scratch.columns.shape[1] * _BLOCK_ROWS
        for tree in range(trees[0], trees[1]):
            scores = raw_score[tree % n_outputs, first_row : first_row + n_rows]
            add_tree(model, thresholds, tree, rows.raw, first_value, own, scores)
