"""Prediction: leaf values added to raw scores, and the leaf that each row reaches."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sklboost.data.binned_matrix import BinnedMatrix
from sklboost.data.binning import apply_cuts
from sklboost.data.cuts import survey
from sklboost.data.features import Features, raw_blocks, row_arrays_of, value_array, values_of_bins
from sklboost.data.raw_values import (
    ARRAY_BLOCK_VALUES,
    RawMatrix,
    RowArrays,
    raw_matrix,
    row_blocks,
)
from sklboost.data.sparse_table import SparseTable
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import descend, load_word, prefetch
from sklboost.engine.model import TOP_DEPTH, Model, Trees
from sklboost.engine.parallel import ThreadTeam, assemble, next_rows
from sklboost.engine.structs import LINE_BYTES, BinCuts
from sklboost.tree.predict.assembly import allocate_model, lay_out
from sklboost.tree.predict.walking import (
    MIN_ROWS,
    TREES_TOGETHER,
    WORD,
    WalkScratch,
    allocate_scratch,
    begin_block,
    compare,
    part_of,
    prepare_walk,
    rank_block,
    ranked_walk,
    take_steps,
    take_top,
    walk_on,
    walk_tree,
)

# Trees that a row goes down together; shallow ones take as many steps as the deepest of them.
_TREES_AT_ONCE = 16
_TREES = tuple(np.uint64(tree) for tree in range(TREES_TOGETHER))
_BYTES = 8  # which are read together


def add_trees(
    team: ThreadTeam,
    model: Model,
    X: Features | RawMatrix,
    trees: tuple[int, int],
    raw_score: np.ndarray,
) -> None:
    """Add the leaf values of the trees ``[start, stop)`` to raw scores, (n_outputs, n_samples).

    Tree after tree, so in the same order for any number of threads.
    """
    for rows, raw in _blocks(team, X):
        # C order, as kernels want it: a copy only of blocks of several outputs
        scores = np.ascontiguousarray(raw_score[:, rows])
        if model.linear is None and (ranked := ranked_walk(model, raw, trees, team.size)):
            team.run(add_ranked_leaves, model.constant, raw, trees, ranked, scores)
        else:
            walk = prepare_walk(model, raw, team.size)
            if model.linear is None:
                team.run(add_constant_leaves, model.constant, raw, trees, walk, scores)
            else:
                arguments = (model.linear, raw, trees, walk, scores)
                team.run(add_linear_leaves, model.constant, *arguments)
        raw_score[:, rows] = scores


def add_to_few_rows(
    model: Model, X: np.ndarray, trees: tuple[int, int], raw_score: np.ndarray
) -> None:
    """Add leaf values as :func:`add_trees`, of constant leaves to fewer than MIN_ROWS rows.

    Without a team and all else that takes longer than a row does.
    """
    positions = np.empty(_TREES_AT_ONCE, dtype=np.int64)
    add_few_rows(model.paths, raw_matrix(X), trees, positions, raw_score)


def find_leaves(team: ThreadTeam, model: Model, X: Features | RawMatrix) -> np.ndarray:
    """Return the leaf that each row reaches in each tree, int32 of shape (n_samples, n_trees)."""
    n_samples = X.n_samples if isinstance(X, RawMatrix) else len(X)
    leaves = np.empty((n_samples, model.n_trees), dtype=np.int32)
    for rows, raw in _blocks(team, X):
        walk = prepare_walk(model, raw, team.size)
        team.run(list_leaves, model.constant, raw, walk, leaves[rows])
    return leaves


def _blocks(team: ThreadTeam, X: Features | RawMatrix) -> Iterable[tuple[slice, RawMatrix]]:
    if isinstance(X, np.ndarray) and X.size <= ARRAY_BLOCK_VALUES:
        X = raw_matrix(X)  # one block, without three generators
    return [(slice(None), X)] if isinstance(X, RawMatrix) else raw_blocks(team, X)


@kernel
def list_leaves(team, model, raw, walk, leaves):
    """Fill ``leaves[row, tree]`` with the number of the leaf, counted from the tree's root."""
    if not assemble(team):
        return
    thresholds, scratches = walk.thresholds, walk.scratch
    n_rows = scratches.positions.shape[1]
    start = next_rows(team, raw.n_samples, n_rows)
    while start < raw.n_samples:
        scratch = begin_block(team, model, raw, start, scratches)
        for tree in range(leaves.shape[1]):
            walk_tree(model, thresholds, tree, raw, start, scratch)
            for row in range(len(scratch.positions)):
                leaves[start + row, tree] = scratch.positions[row] - model.tree_starts[tree]
        start = next_rows(team, raw.n_samples, n_rows)


@kernel
def add_constant_leaves(team, model, raw, trees, walk, raw_score):
    """Add the values of constant leaves; every member of the team takes blocks of rows."""
    if not assemble(team):
        return
    thresholds, scratches = walk.thresholds, walk.scratch
    n_rows = scratches.positions.shape[1]
    start = next_rows(team, raw.n_samples, n_rows)
    while start < raw.n_samples:
        scratch = begin_block(team, model, raw, start, scratches)
        for tree in range(trees[0], trees[1]):
            add_tree(model, thresholds, tree, raw, start, scratch, raw_score)
        start = next_rows(team, raw.n_samples, n_rows)


@kernel
def add_few_rows(paths, raw, trees, positions, raw_score):
    """Add the values of constant leaves to a few rows; `positions` is scratch.

    A step down a tree waits for the step before it, so each row goes down several trees together.
    """
    routes, values, bits = paths.routes, paths.values, paths.bits
    for row in range(raw.n_samples):
        for start in range(trees[0], trees[1], len(positions)):
            depths = paths.depths[start : min(start + len(positions), trees[1])]
            n_steps = np.int64(0)
            for index in range(len(depths)):
                positions[index] = paths.tree_starts[start + index]
                n_steps = max(n_steps, depths[index])
            leaves = positions[: len(depths)]
            take_steps(routes, bits, n_steps, raw, row * raw.row_step, 0, leaves)
            for index in range(len(leaves)):
                first = first_output(paths, start + index, raw_score)
                for output in range(len(values)):
                    raw_score[first + output, row] += values[output, leaves[index]]


@kernel
def add_ranked_leaves(team, model, raw, trees, walk, raw_score):
    """Add the values of constant leaves, as :func:`add_constant_leaves`; `walk` is a RankedWalk."""
    if not assemble(team):
        return
    ranking, scratches = walk.ranking, walk.scratch
    n_rows = scratches.positions.shape[1]
    start = next_rows(team, raw.n_samples, n_rows)
    while start < raw.n_samples:
        stop = min(start + n_rows, raw.n_samples)
        scratch = part_of(scratches, team.rank, team.rank, stop - start)
        rank_block(raw, ranking, start, stop - start, walk.values[team.rank], scratch.columns)
        size = ranking.group_trees
        for group in range(trees[0] // size, -(-trees[1] // size)):
            compare(ranking, group, scratch)
            some = (max(trees[0], group * size), min(trees[1], (group + 1) * size))
            add_compared(model, ranking.comparisons, some, raw, start, scratch, raw_score)
        start = next_rows(team, raw.n_samples, n_rows)


@kernel
def add_compared(model, comparisons, trees, raw, first_row, scratch, raw_score):
    """Add the trees ``[start, stop)`` of a group to a block of rows.

    ``scratch.decisions`` are the block's. Output by output, so that several trees of the
    same output can be added at once.
    """
    # the next tree of the same output is so many trees later
    step = len(raw_score) // len(model.values)
    for begin in range(trees[0], min(trees[0] + step, trees[1])):
        for first in range(begin, trees[1], TREES_TOGETHER * step):
            count, are_shallow = np.int64(0), True
            for tree in range(first, min(first + TREES_TOGETHER * step, trees[1]), step):
                descend(scratch.decisions, comparisons[tree], scratch.landings[count])
                are_shallow &= model.depths[tree] <= TOP_DEPTH
                count += 1
            if are_shallow and count == TREES_TOGETHER:
                add_four(model, first, step, first_row, scratch, raw_score)
                continue
            for index in range(count):
                tree, landings = first + index * step, scratch.landings[index]
                add_leaves(model, tree, raw, first_row, landings, scratch.positions, raw_score)


@kernel
def add_four(model, tree, step, first_row, scratch, raw_score):
    """Add four trees no deeper than `TOP_DEPTH`, of the same outputs, to a block of rows.

    The first one is `tree`, each of the others `step` trees after the one before it.
    """
    landings, values = scratch.landings, model.tops.values
    first, n_rows = first_output(model, tree, raw_score), len(scratch.positions)
    for output in range(len(model.values)):
        scores = raw_score[first + output, first_row : first_row + n_rows]
        tables = (
            values[tree, output],
            values[tree + step, output],
            values[tree + 2 * step, output],
            values[tree + 3 * step, output],
        )
        for start in range(0, n_rows, _BYTES):
            # A processor reads only so many numbers at a time: the landings of eight rows are one
            row = np.uint64(start)
            bytes_ = (
                load_word(landings, _TREES[0], row),
                load_word(landings, _TREES[1], row),
                load_word(landings, _TREES[2], row),
                load_word(landings, _TREES[3], row),
            )
            if n_rows - start >= _BYTES:
                for place in range(_BYTES):
                    add_values_at(tables, bytes_, place, scores, row)
            else:
                for place in range(n_rows - start):
                    add_values_at(tables, bytes_, place, scores, row)


@inlined
def add_values_at(tables, bytes_, place, scores, first):
    """Add the values of four trees, one after the other, to the score of row ``first + place``.

    Byte number `place` of eight is the row's landing in a tree.
    """
    shift, byte = np.uint64(8 * place), np.uint64(0xFF)
    score = scores[first + np.uint64(place)]
    score += tables[0][(bytes_[0] >> shift) & byte]
    score += tables[1][(bytes_[1] >> shift) & byte]
    score += tables[2][(bytes_[2] >> shift) & byte]
    score += tables[3][(bytes_[3] >> shift) & byte]
    scores[first + np.uint64(place)] = score


@kernel
def add_tree(model, thresholds, tree, raw, first_row, scratch, raw_score):
    """Add the leaf values of one tree to the raw scores of the block of rows in `scratch`.

    The block begins at `first_row` of `raw_score`, which has shape (n_outputs, n_samples).
    """
    landings, positions = scratch.landings[0], scratch.positions
    if len(positions) >= MIN_ROWS:
        take_top(model.tops, thresholds, tree, raw, first_row, scratch)
    add_leaves(model, tree, raw, first_row, landings, positions, raw_score)


@kernel
def add_leaves(model, tree, raw, first_row, landings, positions, raw_score):
    """Add the leaf values of a tree, whose `landings` have been filled if rows are no fewer than 8.

    `positions` is scratch; it has the length of the block.
    """
    first, n_rows = first_output(model, tree, raw_score), len(positions)
    if model.depths[tree] <= TOP_DEPTH and n_rows >= MIN_ROWS:
        for output in range(len(model.values)):
            scores = raw_score[first + output, first_row : first_row + n_rows]
            values = model.tops.values[tree, output]
            for row in range(n_rows):
                scores[row] += values[np.uint64(landings[row])]
        return
    walk_on(model, tree, raw, first_row, landings, positions)
    for output in range(len(model.values)):
        scores = raw_score[first + output, first_row : first_row + n_rows]
        values = model.values[output]
        for row in range(n_rows):
            scores[row] += values[np.uint64(positions[row])]


@inlined
def first_output(model, tree, raw_score):
    """Return the first of the outputs that a tree adds to, as many as it has values for."""
    n_tree_outputs = len(model.values)
    return tree * n_tree_outputs % len(raw_score)


@kernel
def add_linear_leaves(team, model, linear, raw, trees, walk, raw_score):
    """Add the values and linear parts of leaves, which training adds one after the other, too."""
    if not assemble(team):
        return
    thresholds, scratches = walk.thresholds, walk.scratch
    n_outputs, n_rows = raw_score.shape[0], scratches.positions.shape[1]
    start = next_rows(team, raw.n_samples, n_rows)
    while start < raw.n_samples:
        scratch = begin_block(team, model, raw, start, scratches)
        for tree in range(trees[0], trees[1]):
            walk_tree(model, thresholds, tree, raw, start, scratch)
            scores = raw_score[tree % n_outputs, start : start + len(scratch.positions)]
            for index in range(len(scores)):
                leaf = scratch.positions[index]
                scores[index] += model.values[0, leaf]
                scores[index] += linear_part(linear, leaf, raw, start + index)
        start = next_rows(team, raw.n_samples, n_rows)


@kernel
def linear_part(linear, leaf, raw, row):
    """Return what a linear leaf adds to its value for one row; 0 if a value is not finite.

    0 also if terms are infinite and cancel one another.
    """
    total = linear.shifts[leaf]
    first = row * raw.row_step
    for index in range(linear.starts[leaf], linear.starts[leaf + 1]):
        term = linear.terms[index]
        value = np.float64(raw.values[first + term.feature * raw.feature_step])
        if not abs(value) < np.inf:
            return 0.0
        total += term.slope * (value - term.centre)
    if total != total:
        return 0.0
    return min(max(total, linear.limits[leaf, 0]), linear.limits[leaf, 1])


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
        raw = raw_matrix(values_of_bins(team, X))
        bins, has_missing = X.bins.T, X.binning.has_missing
    elif isinstance(X, SparseTable):
        # trees are added to their scores elsewhere, see Evaluation
        raw, bins = raw_matrix(np.empty((0, 0))), np.empty((0, len(X)), dtype=np.uint8)
        has_missing = np.empty(0, dtype=np.int64)
    else:
        # of a table this is a copy: the values that decide are looked at one by one
        X = value_array(X)
        raw, (has_missing, _) = raw_matrix(X), survey(team, X, np.empty(0, np.int64))
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
        n_categories=int(np.diff(cuts.starts).max(initial=0)) + 1,  # as many as bins, at most
    )
    return ScoredRows(raw, raw_score, scratch, cuts)


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

    `thresholds` are ``NewTrees.thresholds`` in the dtype of the bins.
    """
    first_row = block * _BLOCK_ROWS
    n_rows = min(_BLOCK_ROWS, rows.raw_score.shape[1] - first_row)
    scratch = part_of(rows.scratch, block, team.rank, n_rows)
    for tree in range(trees[0], trees[1]):
        add_tree(model, thresholds, tree, rows.raw, first_row, scratch, rows.raw_score)
