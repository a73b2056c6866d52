"""Derivatives as the rounds of boosting get them."""

import numpy as np

from sklboost.engine.parallel import ThreadTeam, share
from sklboost.objectives.blocks import BLOCK_ROWS
from sklboost.objectives.loss import (
    compile_loss,
    fill_gradients,
    targets_of,
)


def derivatives_in_training(loss, y, raw_score, n_threads=1):
    """Return gradient and hessian, float32, shape (n_outputs, n_samples)."""
    gradient, hessian = np.full((2, *raw_score.shape), np.nan, dtype=np.float32)
    with ThreadTeam(n_threads) as team:
        compiled = compile_loss(loss, team.size)
        targets = targets_of(y[np.newaxis])

        def fill(team):
            start, stop = share(team, raw_score.shape[1])
            for begin in range(start, stop, BLOCK_ROWS):
                rows = (begin, min(begin + BLOCK_ROWS, stop))
                fill_gradients(team, compiled, targets, raw_score, gradient, hessian, rows)

        team.run(fill)
    return gradient, hessian
