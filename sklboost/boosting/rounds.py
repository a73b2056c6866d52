"""The rounds of boosting: gradients of the loss, one tree per output, new raw scores.

In: a binned matrix, targets, weights, a loss, settings. Out: a :class:`~sklboost.structs.Model`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sklboost.compiling import kernel
from sklboost.hashing import hash_key
from sklboost.losses.base import Loss
from sklboost.losses.gradients import allocate_scratch, fill_gradients
from sklboost.parallel import ThreadTeam, assemble, barrier
from sklboost.structs import NODE_DTYPE, Model, TrainingBins, TreeParams, records
from sklboost.tree.assembly import assemble_model
from sklboost.tree.growing import TreeKeys, grow_tree
from sklboost.tree.quantization import Derivatives, weigh
from sklboost.tree.row_sampling import row_keys
from sklboost.tree.workspace import allocate_workspace

# Small data: a call of a kernel takes as long as a tree of a few hundred rows, and waking a team
# as long as one of ten thousand. So one call does many rounds, a few hundredths of a second's work.
_VALUES_PER_CALL = 4_000_000
_NODES_PER_CALL = 1_000_000
# In the place of an output in a key, so that nothing is drawn by the hashes of the rounding: rows
# once a round; features once a tree, from here downwards.
_ROWS, _FEATURES = np.int64(-1), np.int64(-2)


class Training(NamedTuple):
    """What all rounds share.

    Attributes
    ----------
    matrix : TrainingBins
    loss : int
        ``Loss.code``.
    y : ndarray of float64, shape (n_samples,)
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
    """

    matrix: TrainingBins
    loss: int
    y: np.ndarray
    raw_score: np.ndarray
    derivatives: Derivatives
    scratch: np.ndarray
    seed: int
    sampling_seed: int


class GrownTrees(NamedTuple):
    """The trees of one call.

    Attributes
    ----------
    nodes : recarray of NODE_DTYPE, shape (n_trees, capacity)
    n_nodes, n_pruned : ndarray of int64, shape (n_trees,)
    """

    nodes: np.recarray
    n_nodes: np.ndarray
    n_pruned: np.ndarray


@kernel
def boost_rounds(team, rounds, training, params, workspace, grown):
    """Do the rounds ``[start, stop)``; every member of the team calls it.

    Parameters
    ----------
    team : Team
    rounds : tuple of int
        Start and stop.
    training : Training
    params : TreeParams
    workspace : Workspace
    grown : GrownTrees
        Filled from the front.
    """
    if not assemble(team):
        return
    raw_score, derivatives = training.raw_score, training.derivatives
    gradient, hessian = derivatives.gradient, derivatives.hessian
    tree = 0
    for round_ in range(rounds[0], rounds[1]):
        loss, y, scratch = training.loss, training.y, training.scratch
        fill_gradients(team, loss, y, raw_score, gradient, hessian, scratch)
        barrier(team)
        for output in range(raw_score.shape[0]):
            own = Derivatives(
                gradient[output],
                hessian[output],
                derivatives.weight,
                derivatives.unit,
                derivatives.slack,
            )
            keys = TreeKeys(
                hash_key(training.seed, round_, output),
                hash_key(training.sampling_seed, round_, _ROWS),
                np.int64(hash_key(training.sampling_seed, round_, _FEATURES - output)),
            )
            grow_tree(team, training.matrix, own, keys, params, workspace, raw_score[output])
            if team.rank == 0:
                store_tree(workspace.tree, grown, tree)
            tree += 1


@kernel
def store_tree(growing, grown, tree):
    """Copy a finished tree."""
    n_nodes = growing.counts[0].n_nodes
    for node in range(n_nodes):
        grown.nodes[tree, node] = growing.nodes[node]
    grown.n_nodes[tree] = n_nodes
    grown.n_pruned[tree] = growing.counts[0].n_pruned


def boost(
    team: ThreadTeam,
    matrix: TrainingBins,
    y: np.ndarray,
    weight: np.ndarray,
    loss: Loss,
    params: TreeParams,
    *,
    start: np.ndarray,
    n_rounds: int,
    seed: int,
    sampling_seed: int,
    after_round: Callable[[int, np.ndarray], None] | None = None,
) -> Model:
    """Train a model.

    Parameters
    ----------
    team : ThreadTeam
    matrix : TrainingBins
    y : ndarray of float64, shape (n_samples,)
    weight : ndarray of float64, shape (n_samples,) or (0,)
        Positive; empty: all 1.
    loss : Loss
    params : TreeParams
    start : ndarray of float64, shape (n_outputs,)
        Raw scores before the first tree.
    n_rounds : int
    seed : int
        Decides the random rounding of gradients.
    sampling_seed : int
        Decides which rows and features are drawn.
    after_round : callable, optional
        Called with the number of the round and the raw scores, (n_outputs, n_samples).
    """
    n_outputs = len(start)
    raw_score = np.repeat(start, len(y)).reshape(n_outputs, len(y))
    gradient, hessian = np.empty((2, *raw_score.shape), dtype=np.float32)
    derivatives = weigh(gradient, hessian, weight)
    scratch = allocate_scratch(team.size)
    seeds = (seed, sampling_seed)
    training = Training(matrix, loss.code, y, raw_score, derivatives, scratch, *seeds)
    workspace = allocate_workspace(matrix, params, team.size)
    if params.subsample < 1.0:
        workspace.row_sample.keys[:] = row_keys(matrix.columns, y, derivatives.weight)
    capacity = len(workspace.tree.nodes)
    n_at_once = 1
    if after_round is None:
        n_at_once = _VALUES_PER_CALL // (matrix.rows.size * n_outputs)
        n_at_once = max(1, min(n_at_once, n_rounds, _NODES_PER_CALL // (capacity * n_outputs)))
    n_trees = n_at_once * n_outputs
    grown = GrownTrees(
        records((n_trees, capacity), NODE_DTYPE),
        np.zeros(n_trees, dtype=np.int64),
        np.zeros(n_trees, dtype=np.int64),
    )
    trees, n_pruned = [], []
    for first in range(0, n_rounds, n_at_once):
        stop = min(first + n_at_once, n_rounds)
        team.run(boost_rounds, (first, stop), training, params, workspace, grown)
        for tree in range((stop - first) * n_outputs):
            trees.append(grown.nodes[tree, : grown.n_nodes[tree]].copy())
            n_pruned.append(int(grown.n_pruned[tree]))
        if after_round is not None:
            after_round(first, raw_score)
    return assemble_model(trees, n_pruned, start, params, matrix.rows.shape[1])
