"""The rounds of boosting: gradients of the loss, one tree per output, new raw scores.

In: a binned matrix, targets, weights, a loss, settings. Out: a :class:`~sklboost.structs.Model`.
"""

from collections.abc import Callable

import numpy as np

from sklboost.hashing import hash_key
from sklboost.losses.base import Loss
from sklboost.parallel import ThreadTeam
from sklboost.structs import Model, TrainingBins, TreeParams
from sklboost.tree.assembly import assemble_model
from sklboost.tree.growing import grow_tree
from sklboost.tree.quantization import weigh
from sklboost.tree.workspace import allocate_workspace


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
    after_round: Callable[[int, np.ndarray], None],
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
    after_round : callable
        Called with the number of the round and the raw scores, (n_outputs, n_samples).
    """
    raw_score = np.repeat(start, len(y)).reshape(len(start), len(y))
    gradient = np.empty(raw_score.shape, dtype=np.float32)
    hessian = np.empty_like(gradient)
    derivatives = [weigh(*pair, weight) for pair in zip(gradient, hessian, strict=True)]
    workspace = allocate_workspace(matrix, params, team.size)
    trees, n_pruned = [], []
    for round_ in range(n_rounds):
        loss.gradients(team, y, raw_score, gradient, hessian)
        for output in range(loss.n_outputs):
            key = hash_key(seed, round_, output)
            team.run(
                grow_tree, matrix, derivatives[output], key, params, workspace, raw_score[output]
            )
            counts = workspace.tree.counts[0]
            trees.append(workspace.tree.nodes[: counts.n_nodes].copy())
            n_pruned.append(int(counts.n_pruned))
        after_round(round_, raw_score)
    return assemble_model(trees, n_pruned, start, params, matrix.rows.shape[1])
