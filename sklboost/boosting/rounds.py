"""Rounds of boosting: gradients of the loss, one tree per output or for all, new raw scores.

In: a binned matrix, targets, weights, a loss, settings. Out: trees.

A round has `num_parallel_tree` turns. In each, every output has a tree of its own draws; the
gradients are those from before the first. With one turn a round this is plain boosting, and with
one round of many turns a random forest.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from sklboost.data.raw import RawMatrix
from sklboost.engine.compiling import kernel
from sklboost.engine.hashing import hash_key
from sklboost.engine.model import (
    NODE_DTYPE,
    OUTPUT_DTYPE,
    Trees,
)
from sklboost.engine.parallel import ThreadTeam, assemble, barrier, share
from sklboost.engine.structs import (
    PARAMS_DTYPE,
    FeatureRules,
    TrainingBins,
    TreeParams,
    records,
)
from sklboost.objectives.losses.asking import (
    FaultyRowError,
    ask_derivatives,
    check_hessians,
    explain_fault,
)
from sklboost.objectives.losses.base import Loss
from sklboost.objectives.losses.blocks import NO_FAULT
from sklboost.objectives.losses.gradients import (
    CompiledLoss,
    Targets,
    allocate_scratch,
    compile_loss,
    fill_gradients,
    has_fault,
    targets_of,
)
from sklboost.tree.core.growing import Draws, Scores, TreeKeys, finish_tree, grow_tree
from sklboost.tree.core.quantization import Derivatives, derivatives_of, weigh
from sklboost.tree.core.workspace import RowPartition, allocate_workspace
from sklboost.tree.options.column_sampling import ColumnSample, allocate_column_sample
from sklboost.tree.options.linear_leaves import fit_linear_leaves
from sklboost.tree.options.renewal import Renewal, allocate_renewal, fill_residuals, renewal_of
from sklboost.tree.options.row_sampling import RowSample, allocate_row_sample, is_drawn, row_keys
from sklboost.tree.predict.category_bits import allocate_bits, most_words, store_categories
from sklboost.tree.predict.trees import copy_trees, first_trees

# A call of a kernel takes as long as a tree of a few hundred rows, waking a team as long as one of
# ten thousand, and what Python does in between leaves the caches cold. So one call does many, a few
# hundredths of a second's work: 100,000 x 28 takes 0.93 of the time of a call a round.
_VALUES_PER_CALL = 40_000_000
_NODES_PER_CALL = 1_000_000
_ROUNDS_PER_CALL = 200
# In the place of an output in a key, so that nothing is drawn by the hashes of the rounding: rows
# once a turn; features once a tree, from here downwards.
_ROWS, _FEATURES = np.int64(-1), np.int64(-2)


class RoundState(NamedTuple):
    """What all rounds share.

    Attributes
    ----------
    matrix : TrainingBins
    loss : CompiledLoss
    targets : Targets
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Modified by each round.
    derivatives : Derivatives
        Of all outputs.
    scratch : ndarray of float64
        Of the loss.
    seed : int
        Decides the random rounding of gradients.
    sampling_seed : int
        Decides which rows and features are drawn.
    rows : RowSample
    columns : ColumnSample
    renewal : Renewal
        Of all outputs; empty: leaves are not renewed.
    """

    matrix: TrainingBins
    loss: CompiledLoss
    targets: Targets
    raw_score: np.ndarray
    derivatives: Derivatives
    scratch: np.ndarray
    seed: int
    sampling_seed: int
    rows: RowSample
    columns: ColumnSample
    renewal: Renewal


@kernel
def boost_rounds(team, turns, state, params, workspace, grown, unpruned):
    """Do the turns ``[start, stop)``; every member of the team calls it.

    Parameters
    ----------
    team : Team
    turns : tuple of int
        Start and stop, those of all rounds before included.
    state : RoundState
    params : TreeParams
    workspace : Workspace
    grown : Trees
        Filled from the front, but for the settings.
    unpruned : Trees
        Likewise, with the trees before pruning; without room for them if they are not kept.
    """
    if not assemble(team):
        return
    raw_score, derivatives = state.raw_score, state.derivatives
    gradient, hessian = derivatives.gradient, derivatives.hessian
    tree = 0
    n_tree_outputs = len(workspace.gradients.packed)
    for turn in range(turns[0], turns[1]):
        if turn % params.num_parallel_tree == 0:
            targets, scratch = state.targets, state.scratch
            if state.loss.is_compiled == 1:
                fill_gradients(team, state.loss, targets, raw_score, gradient, hessian, scratch)
            if state.renewal.leaf.shape[1] > 0:
                fill_residuals(team, targets.values, raw_score, state.renewal)
            barrier(team)
            if has_fault(state.loss):  # every member sees the same
                if team.rank == 0:
                    state.loss.faulty_turn[0] = turn
                return
        for output in range(0, len(raw_score), n_tree_outputs):
            stop = output + n_tree_outputs
            own = derivatives_of(derivatives, output, stop)
            keys = TreeKeys(
                hash_key(state.seed, turn, output),
                hash_key(state.sampling_seed, turn, _ROWS),
                np.int64(hash_key(state.sampling_seed, turn, _FEATURES - output)),
            )
            draws = Draws(keys, state.rows, state.columns)
            scores = Scores(raw_score[output:stop], renewal_of(state.renewal, output, stop))
            grow_tree(team, state.matrix, own, draws, params, workspace)
            if team.rank == 0 and len(unpruned.nodes) > 0:
                store_tree(workspace.tree, unpruned, tree)
            rules = state.columns.rules
            finish_tree(team, state.matrix, own, rules, params, workspace, scores)
            if team.rank == 0:
                store_tree(workspace.tree, grown, tree)
            tree += 1


@kernel
def store_tree(growing, grown, tree):
    """Copy a tree behind those before it."""
    start, n_nodes = grown.starts[tree], growing.counts[0].n_nodes
    for node in range(n_nodes):
        grown.nodes[start + node] = growing.nodes[node]
        for output in range(grown.outputs.shape[1]):
            own, kept = growing.outputs[node, output], grown.outputs[start + node, output]
            kept.value, kept.gradient, kept.hessian = own.value, own.gradient, own.hessian
    if len(grown.bits.starts) > 0:
        store_categories(growing, grown.bits, start)
    grown.starts[tree + 1] = start + n_nodes
    grown.n_pruned[tree] = growing.counts[0].n_pruned


@kernel
def leave_out(team, turn, state, hessian):
    """Set the hessians of the rows that were not drawn to 0, as gradient-based sampling does."""
    key = hash_key(state.sampling_seed, turn, _ROWS)
    start, stop = share(team, hessian.shape[1])
    for row in range(start, stop):
        if not is_drawn(state.rows.keys[row], key, state.rows.chances[0]):
            hessian[:, row] = 0.0


def _allocate_derivatives(
    raw_score: np.ndarray, loss: Loss, params: TreeParams, partition: RowPartition
) -> np.ndarray:
    """Make room for gradients and hessians, float32, shape (2, n_outputs, n_samples).

    Where nobody reads them once the one tree of a turn has quantised them, that is where the lists
    of rows are, which are written after that.
    """
    is_read_once = params.num_parallel_tree == 1 and params.subsample == 1.0
    is_read_again = len(loss.renewal) > 0 or params.linear_tree == 1
    if len(raw_score) == 1 and is_read_once and not is_read_again:
        return partition.lists.view(np.float32)[:, np.newaxis]
    return np.empty((2, *raw_score.shape), dtype=np.float32)


def _allocate_trees(n_trees: int, capacity: int, n_outputs: int, n_words: int) -> Trees:
    """Make room for trees of at most `capacity` nodes, each with so many words of levels."""
    n_nodes = n_trees * capacity
    return Trees(
        records(n_nodes, NODE_DTYPE),
        np.zeros(n_trees + 1, dtype=np.int64),
        np.zeros(n_trees, dtype=np.int64),
        records(n_trees, PARAMS_DTYPE),
        records((n_nodes, n_outputs if n_outputs > 1 else 0), OUTPUT_DTYPE),
        allocate_bits(n_nodes, n_words),
    )


def _copy_first(trees: Trees, n_trees: int, params: TreeParams) -> Trees:
    """Copy the first of some trees, which all were grown with these settings."""
    settings = np.full(n_trees, np.array(tuple(params), PARAMS_DTYPE))
    return copy_trees(first_trees(trees, n_trees)._replace(params=settings))


class Rounds:
    """Does rounds of boosting, some at a time, on the same data.

    Parameters
    ----------
    team : ThreadTeam
    matrix : TrainingBins
    y : ndarray of float64, shape (n_targets, n_samples), or (n_samples,) for one target
        If the loss is one of ours, one target may be float32, and numbers of classes uint8.
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive; empty: all 1.
    loss : Loss
    raw_score : ndarray of float64, shape (n_outputs, n_samples)
        Before the first of these rounds. Modified by each round.
    params : TreeParams
    rules : FeatureRules
    seed : int
        Decides the random rounding of gradients.
    sampling_seed : int
        Decides which rows and features are drawn.
    at_once : tuple of int
        The least and the most rounds that may be done in one call.
    raw : RawMatrix or None
        The values of the rows, for linear leaves, one turn a call. None: leaves are constant.
    keep_pruned : bool
        Whether the trees come with the splits that pruning removed.

    Attributes
    ----------
    n_at_once : int
        Rounds that are worth doing in one call, within these limits.
    grown : Trees
        Those of the last call, from the front.
    """

    def __init__(
        self,
        team: ThreadTeam,
        matrix: TrainingBins,
        y: np.ndarray,
        weight: np.ndarray,
        loss: Loss,
        raw_score: np.ndarray,
        params: TreeParams,
        rules: FeatureRules,
        *,
        seed: int,
        sampling_seed: int,
        at_once: tuple[int, int],
        raw: RawMatrix | None = None,
        keep_pruned: bool = False,
    ):
        y = np.ascontiguousarray(np.atleast_2d(y))
        n_outputs, n_tree_outputs = len(raw_score), params.n_tree_outputs(len(raw_score))
        self._workspace = allocate_workspace(matrix, params, n_tree_outputs, team.size)
        partition = self._workspace.partition
        gradient, hessian = _allocate_derivatives(raw_score, loss, params, partition)
        derivatives = weigh(gradient, hessian, weight)
        scratch = allocate_scratch(team.size)
        self._team, self._raw = team, raw
        self._y, self._weight = y, weight
        seeds = (seed, sampling_seed)
        n_samples = y.shape[1]
        rows = allocate_row_sample(n_samples, params, team.size)
        if params.subsample < 1.0:
            rows.keys[:] = row_keys(matrix, y.astype(np.float64), derivatives.weight)
        columns = allocate_column_sample(rules, team.size)
        self._turns_per_round = params.num_parallel_tree
        self._trees_per_turn = n_outputs // n_tree_outputs
        capacity = len(self._workspace.tree.nodes)
        renewal = allocate_renewal(loss.renewal, n_samples, capacity, team.size)
        compiled = compile_loss(loss, team.size)
        self._loss = loss  # as long as it lives, its code does
        self._state = RoundState(
            *(matrix, compiled, targets_of(y), raw_score, derivatives, scratch, *seeds),
            *(rows, columns, renewal),
        )
        worth = _VALUES_PER_CALL // (matrix.rows.size * n_outputs)
        n_words = most_words(
            int(matrix.n_categories.max()), self._workspace.tree.categories.shape[1]
        )
        room = _NODES_PER_CALL // (capacity * n_outputs * max(1, n_words))
        # rounds of several turns one by one, in as many calls as it takes
        least, most = at_once if self._turns_per_round == 1 else (1, self._turns_per_round)
        if raw is not None:
            least, most = 1, 1
        self._turns_at_once = max(1, min(max(worth, least), room, most, _ROUNDS_PER_CALL))
        self.n_at_once = self._turns_at_once if self._turns_per_round == 1 else 1
        n_trees = self._turns_at_once * self._trees_per_turn
        self.grown = _allocate_trees(n_trees, capacity, n_tree_outputs, n_words)
        n_kept = n_trees if keep_pruned else 0
        self._unpruned = _allocate_trees(n_kept, capacity, n_tree_outputs, n_words)

    def run(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield a copy of each call's trees.

        One call, unless a round has so many trees that it takes several.

        Raises
        ------
        FaultyRowError
            If the loss gave derivatives that no tree can be grown on.
        """
        begin, last = start * self._turns_per_round, stop * self._turns_per_round
        self._state.loss.faulty_turn[0] = begin
        try:
            self._derive()
            for first in range(begin, last, self._turns_at_once):
                yield self._take_turns(first, min(first + self._turns_at_once, last), params)
        except FaultyRowError as fault:
            fault.round_ = int(self._state.loss.faulty_turn[0]) // self._turns_per_round
            raise

    def _derive(self) -> None:
        """Ask a loss that is not compiled for the derivatives of the next round."""
        state = self._state
        if state.loss.is_compiled == 1:
            check_hessians(self._loss, self._y, state.raw_score)
            return
        derivatives = (state.derivatives.gradient, state.derivatives.hessian)
        ask_derivatives(self._loss, self._y, state.raw_score, self._weight, derivatives)

    def _take_turns(self, start: int, stop: int, params: TreeParams) -> Trees:
        state, grown, unpruned = self._state, self.grown, self._unpruned
        self._team.run(boost_rounds, (start, stop), state, params, self._workspace, grown, unpruned)
        if (state.loss.faults != NO_FAULT).any():
            explain_fault(self._loss, self._y, state.raw_score)
        n_trees = (stop - start) * self._trees_per_turn
        trees = _copy_first(grown, n_trees, params)
        if len(unpruned.nodes) > 0:
            trees = trees._replace(unpruned=_copy_first(unpruned, n_trees, params))
        return trees if self._raw is None else self._with_lines(start, trees, self._raw, params)

    def _with_lines(self, turn: int, trees: Trees, raw: RawMatrix, params: TreeParams) -> Trees:
        """Make the leaves of one turn's trees linear."""
        team, state, derivatives = self._team, self._state, self._state.derivatives
        if params.subsample < 1.0 and params.gradient_based == 0:
            # a copy: the turns of a round share the derivatives
            derivatives = derivatives._replace(hessian=derivatives.hessian.copy())
            team.run(leave_out, turn, state, derivatives.hessian)
        linear = fit_linear_leaves(team, trees, raw, derivatives, params, state.raw_score)
        return trees._replace(linear=linear)
