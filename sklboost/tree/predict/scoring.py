"""Rows that are scored again after every round: binned once, then the new trees are added.

In: raw values, how values become bins, and round by round new trees. Out: raw scores, the very bits
that prediction gives.

Prediction copies a block of rows feature by feature and sends it down all trees. Here the trees
come one at a time, and such a copy for each would be most of the work. So it is made once, and of
bins: a byte a value, which the caches hold beside the training. A row's bin tells its side of a
threshold, but for the one bin that the threshold may lie in; there the raw value is looked at.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import apply_cuts, missing_features
from sklboost.data.features import Features, raw_blocks, value_array
from sklboost.data.raw_values import RawMatrix, raw_matrix
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import prefetch
from sklboost.engine.model import (
    NO_BITS,
    ROUTE_DTYPE,
    TOP_DEPTH,
    Model,
    Trees,
)
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import BinCuts, records
from sklboost.tree.predict.assembly import (
    allocate_tops,
    fill_node_values,
    fill_routes,
    fill_tops,
)
from sklboost.tree.predict.prediction import WORD, PredictionScratch, add_tree, allocate_scratch

_BLOCK_ROWS = 256
_LINE_BYTES = 64  # of the cache


class ScoredRows(NamedTuple):
    """Rows as bins, in blocks, and their raw scores.

    Attributes
    ----------
    raw : RawMatrix
        Their values.
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Of all trees so far.
    scratch : PredictionScratch
        Its `columns`, uint8 or uint16 of shape (n_blocks, n_features, 256), and `missing` are those
        of the blocks.
    cuts : BinCuts
        How values became bins.
    """

    raw: RawMatrix
    raw_score: np.ndarray
    scratch: PredictionScratch
    cuts: BinCuts


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


def lay_out_rows(team: ThreadTeam, X: Features, cuts: BinCuts, raw_score: np.ndarray) -> ScoredRows:
    """Bin rows by the cuts of the training; `raw_score`, what they start from, will be modified."""
    if isinstance(X, BinnedMatrix):
        # for the few values that are looked at, one from the middle of each bin
        raw = raw_matrix(_values_of_bins(team, X))
        bins, has_missing = X.bins.T, X.binning.has_missing
    elif isinstance(X, SparseTable):
        # trees are added to their scores elsewhere, see Evaluation
        raw, bins = raw_matrix(np.empty((0, 0))), np.empty((0, len(X)), dtype=np.uint8)
        has_missing = np.empty(0, dtype=np.int64)
    else:
        # of a table this is a copy: the values that decide are looked at one by one
        X = value_array(X)
        raw, has_missing = raw_matrix(X), missing_features(team, X)
        bins = apply_cuts(team, X, cuts, has_missing).columns
    n_features, n_samples = bins.shape
    n_blocks = -(-n_samples // _BLOCK_ROWS)
    # beyond the last row lie zeros, whose way nobody asks for
    padded = np.zeros((n_features, n_blocks * _BLOCK_ROWS), dtype=bins.dtype)
    padded[:, :n_samples] = bins
    missing = np.zeros((n_features, n_blocks * _BLOCK_ROWS // WORD), dtype=np.uint64)
    for feature in np.flatnonzero(has_missing):
        last_bin = cuts.starts[feature + 1] - cuts.starts[feature] + 1
        is_missing = padded[feature] == last_bin
        missing[feature] = np.packbits(is_missing, bitorder="little").view(np.uint64)
    scratch = allocate_scratch(
        _in_blocks(padded, _BLOCK_ROWS), _in_blocks(missing, _BLOCK_ROWS // WORD), team.size
    )
    return ScoredRows(raw, raw_score, scratch, cuts)


def _values_of_bins(team: ThreadTeam, X: BinnedMatrix) -> np.ndarray:
    values = np.empty(X.shape)
    for rows, raw in raw_blocks(team, X):
        values[rows] = raw.values.reshape(-1, raw.n_features)
    return values


def _in_blocks(columns: np.ndarray, width: int) -> np.ndarray:
    """Cut (n_features, n_blocks * width) into (n_blocks, n_features, width)."""
    blocks = columns.reshape(len(columns), columns.shape[1] // width, width)
    return np.ascontiguousarray(blocks.transpose(1, 0, 2))


def allocate_new_trees(trees: Trees, n_outputs: int, n_features: int) -> NewTrees:
    """Make room to lay out trees that will be written to `trees`."""
    n_nodes, n_trees = len(trees.nodes), len(trees.n_pruned)
    n_tree_outputs = max(1, trees.outputs.shape[1])
    n_splits = n_trees * (2**TOP_DEPTH - 1)
    tops = allocate_tops(n_splits, n_trees, n_tree_outputs, np.arange(n_features))
    model = Model(
        nodes=trees.nodes.view(np.recarray),
        tree_starts=trees.starts,
        routes=records(n_nodes, ROUTE_DTYPE),
        values=np.empty((n_tree_outputs, n_nodes)),
        tops=tops._replace(bits=trees.bits if len(trees.bits.starts) > 0 else NO_BITS),
        depths=np.empty(n_trees, dtype=np.int64),
        n_pruned=trees.n_pruned,
        base_score=np.zeros(n_outputs),
        params=trees.params.view(np.recarray),
        n_features=n_features,
        outputs=trees.outputs.view(np.recarray),
    )
    depth, place = np.empty((2, n_nodes), dtype=np.int64)
    return NewTrees(model, depth, place)


@kernel
def lay_out_trees(new, cuts, n_trees, thresholds):
    """Lay out the first `n_trees` trees for prediction from bins.

    Parameters
    ----------
    new : NewTrees
        Modified.
    cuts : BinCuts
    n_trees : int
    thresholds : ndarray of uint16, shape (n_splits,)
        Filled. They fit the dtype of the bins, whichever it is.
    """
    model = new.model
    starts = model.tree_starts[: n_trees + 1]
    n_nodes = starts[n_trees]
    new.depth[:n_nodes] = 0
    fill_routes(model.nodes, starts, model.routes, new.depth)
    fill_node_values(model.nodes[:n_nodes], model.outputs, model.values)
    fill_tops(model.nodes, starts, model.values, new.depth, new.place, model.tops)
    for tree in range(n_trees):
        model.depths[tree] = 0
        for position in range(starts[tree], starts[tree + 1]):
            model.depths[tree] = max(model.depths[tree], new.depth[position])
    for index in range(model.tops.starts[n_trees]):
        split, threshold = model.tops.splits[index], model.tops.thresholds[index]
        if split.node >= 0:
            continue  # the bins are the levels
        own_cuts = cuts.cuts[cuts.starts[split.column] : cuts.starts[split.column + 1]]
        bin_ = np.searchsorted(own_cuts, threshold, side="right")
        # from a cut on, all values of the bin are on the right
        split.cuts_bin = 0 if bin_ > 0 and own_cuts[bin_ - 1] == threshold else 1
        thresholds[index] = bin_


@kernel
def fetch_block(rows, block):
    """Ask for the bins and raw scores of a block, so that they are there when their turn comes."""
    if block == len(rows.scratch.columns):
        return
    columns, raw_score = rows.scratch.columns[block], rows.raw_score
    for feature in range(len(columns)):
        for place in range(0, _BLOCK_ROWS, _LINE_BYTES // columns.itemsize):
            prefetch(columns, feature, place)
    stop = min((block + 1) * _BLOCK_ROWS, raw_score.shape[1])
    for output in range(len(raw_score)):
        for row in range(block * _BLOCK_ROWS, stop, _LINE_BYTES // raw_score.itemsize):
            prefetch(raw_score, output, row)


@kernel
def add_to_block(team, model, thresholds, trees, rows, block):
    """Add the trees ``[start, stop)`` to the raw scores of one block of rows.

    Parameters
    ----------
    team : Team
    model : Model
        Of :class:`NewTrees`.
    thresholds : ndarray of the dtype of the bins, shape (n_splits,)
    trees : tuple of int
    rows : ScoredRows
        Modified.
    block : int
    """
    scratch, raw_score = rows.scratch, rows.raw_score
    first_row = block * _BLOCK_ROWS
    n_rows = min(_BLOCK_ROWS, raw_score.shape[1] - first_row)
    own = PredictionScratch(
        scratch.columns[block],
        scratch.missing[block],
        scratch.here[team.rank],
        scratch.goes_right[team.rank],
        scratch.digits[team.rank],
        scratch.positions[team.rank, :n_rows],
    )
    for tree in range(trees[0], trees[1]):
        add_tree(model, thresholds, tree, rows.raw, first_row, own, raw_score)
