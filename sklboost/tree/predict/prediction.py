"""Prediction: leaf values added to raw scores, or the leaf that each row reaches in each tree.

:func:`add_trees` and :func:`find_leaves` take rows of any kind, read block by block. How rows go
down a tree is in :mod:`sklboost.tree.predict.walking`.

A linear leaf is its constant value and something added to it. So its tree is grown, laid out and
walked as all others are, and constant trees run kernels without it.
"""

from collections.abc import Iterable

import numpy as np

from sklboost.data.features import Features, raw_blocks
from sklboost.data.raw_values import ARRAY_BLOCK_VALUES, RawMatrix, raw_matrix
from sklboost.engine.compiling import inlined, kernel
from sklboost.engine.instructions import descend, load_word
from sklboost.engine.model import TOP_DEPTH, Model
from sklboost.engine.parallel import ThreadTeam, assemble, next_rows
from sklboost.tree.predict.ranking import compare, rank_block, ranked_walk
from sklboost.tree.predict.walking import (
    MIN_ROWS,
    TREES_TOGETHER,
    begin_block,
    part_of,
    prepare_walk,
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
    """Add the leaf values of the trees ``[start, stop)`` to raw scores.

    Parameters
    ----------
    team : ThreadTeam
    model : Model
    X : Features or RawMatrix
    trees : tuple of int
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Added to tree after tree, so in the same order for any number of threads.
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


def find_leaves(
    team: ThreadTeam, model: Model, X: Features | RawMatrix, leaves: np.ndarray
) -> None:
    """Fill `leaves`, int32 of shape (n_samples, n_trees), with numbers of nodes of each tree."""
    for rows, raw in _blocks(team, X):
        walk = prepare_walk(model, raw, team.size)
        team.run(list_leaves, model.constant, raw, walk, leaves[rows])


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

    ``scratch.decisions`` are those of the block. Output by output, so that several trees of the
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
