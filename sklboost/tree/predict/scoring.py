"""Rows that are scored again after every round: binned once, then the new trees are added.

The raw scores have the very bits that prediction gives. Prediction copies a block of rows feature
by feature and sends it down all trees. Here the trees come one at a time, and such a copy for each
would be most of the work. So it is made once, and of bins: a byte a value, which the caches hold
beside the training. A row's bin tells its side of a threshold, but for the one bin that the
threshold may lie in; there the raw value is looked at.
"""

from typing import NamedTuple

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import apply_cuts, missing_features
from sklboost.data.features import Features, raw_blocks, row_arrays_of, value_array
from sklboost.data.raw_values import RawMatrix, raw_matrix
from sklboost.data.row_arrays import RowArrays, row_blocks
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.compiling import kernel
from sklboost.engine.instructions import prefetch
from sklboost.engine.model import Model, Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import LINE_BYTES, BinCuts
from sklboost.tree.predict.assembly import allocate_model, lay_out
from sklboost.tree.predict.prediction import add_tree
from sklboost.tree.predict.walking import WORD, WalkScratch, allocate_scratch, part_of

_BLOCK_ROWS = 256


class ScoredRows(NamedTuple):
    """Rows as bins, in blocks, and their raw scores."""

    raw: RawMatrix  # their values
    raw_score: np.ndarray  # float64, shape (n_outputs, n_samples): of all trees so far
    # its `columns`, uint8 or uint16 of shape (n_blocks, n_features, 256), and `missing` are those
    # of the blocks
    scratch: WalkScratch
    cuts: BinCuts  # how values became bins


class NewTrees(NamedTuple):
    """Room for the trees of some rounds, laid out for prediction from bins."""

    model: Model  # its arrays have room for as many trees as there can be
    # uint16, shape (n_splits,): the first bin above each threshold. They fit the dtype of the bins,
    # whichever it is.
    thresholds: np.ndarray
    # int64, shape (n_nodes,): scratch
    depth: np.ndarray
    first: np.ndarray


def lay_out_rows(team: ThreadTeam, X: Features, cuts: BinCuts, raw_score: np.ndarray) -> ScoredRows:
    """Bin rows by the cuts of the training; trees will be added to `raw_score`."""
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
    (n_features, n_samples), arrays = bins.shape, row_arrays_of(X)
    n_blocks = -(-n_samples // _BLOCK_ROWS)
    # places beyond the last row are 0; where these go is never read
    padded = arrays.zeros((n_features, n_blocks * _BLOCK_ROWS), bins.dtype)
    for rows in row_blocks(n_samples):
        padded[:, rows] = bins[:, rows]
    missing = arrays.zeros((n_features, n_blocks * _BLOCK_ROWS // WORD), np.uint64)
    for feature in np.flatnonzero(has_missing):
        last_bin = cuts.starts[feature + 1] - cuts.starts[feature] + 1
        is_missing = padded[feature] == last_bin
        missing[feature] = np.packbits(is_missing, bitorder="little").view(np.uint64)
    scratch = allocate_scratch(
        _in_blocks(padded, _BLOCK_ROWS, arrays),
        _in_blocks(missing, _BLOCK_ROWS // WORD, arrays),
        team.size,
    )
    return ScoredRows(raw, raw_score, scratch, cuts)


def _values_of_bins(team: ThreadTeam, X: BinnedMatrix) -> np.ndarray:
    values = X.row_arrays.empty(X.shape)
    for rows, raw in raw_blocks(team, X):
        values[rows] = raw.values.reshape(-1, raw.n_features)
    return values


def _in_blocks(columns: np.ndarray, width: int, arrays: RowArrays) -> np.ndarray:
    """Cut (n_features, n_blocks * width) into (n_blocks, n_features, width)."""
    blocks = columns.reshape(len(columns), columns.shape[1] // width, width)
    return arrays.copy(blocks.transpose(1, 0, 2), columns.dtype)


def allocate_new_trees(trees: Trees, n_outputs: int, n_features: int) -> NewTrees:
    """Allocate what :func:`lay_out_trees` fills for the trees that will be written to `trees`."""
    model = allocate_model(trees, np.zeros(n_outputs), n_features)
    model = model._replace(tops=model.tops._replace(features=np.arange(n_features)))
    depth, first = np.empty((2, len(trees.nodes)), dtype=np.int64)
    return NewTrees(model, np.empty(len(model.tops.splits), dtype=np.uint16), depth, first)


@kernel
def lay_out_trees(new, cuts, n_trees):
    """Lay out the first `n_trees` trees of `new`, a NewTrees, for prediction from bins."""
    tops = new.model.tops
    lay_out(new.model, n_trees, new.depth, new.first)
    for index in range(tops.starts[n_trees]):
        split, threshold = tops.splits[index], tops.thresholds[index]
        if split.node >= 0:
            continue  # the bins are the categories
        feature_cuts = cuts.cuts[cuts.starts[split.column] : cuts.starts[split.column + 1]]
        bin_ = np.searchsorted(feature_cuts, threshold, side="right")
        # from a cut on, all values of the bin are on the right
        split.cuts_bin = 0 if bin_ > 0 and feature_cuts[bin_ - 1] == threshold else 1
        new.thresholds[index] = bin_


@kernel
def fetch_block(rows, block):
    """Prefetch the bins and raw scores of a block."""
    if block == len(rows.scratch.columns):
        return
    columns, raw_score = rows.scratch.columns[block], rows.raw_score
    for feature in range(len(columns)):
        for place in range(0, _BLOCK_ROWS, LINE_BYTES // columns.itemsize):
            prefetch(columns, feature, place)
    stop = min((block + 1) * _BLOCK_ROWS, raw_score.shape[1])
    for output in range(len(raw_score)):
        for row in range(block * _BLOCK_ROWS, stop, LINE_BYTES // raw_score.itemsize):
            prefetch(raw_score, output, row)


@kernel
def add_to_block(team, model, thresholds, trees, rows, block):
    """Add the trees ``[start, stop)`` to the raw scores of one block of rows, a ScoredRows.

    `thresholds` are those of NewTrees in the dtype of the bins.
    """
    first_row = block * _BLOCK_ROWS
    n_rows = min(_BLOCK_ROWS, rows.raw_score.shape[1] - first_row)
    scratch = part_of(rows.scratch, block, team.rank, n_rows)
    for tree in range(trees[0], trees[1]):
        add_tree(model, thresholds, tree, rows.raw, first_row, scratch, rows.raw_score)
