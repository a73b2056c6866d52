"""Trees added to the raw scores of rows, whatever holds their values.

In: a model, features, raw scores. Out: the raw scores with the leaf values of some trees. The
values are read block by block.
"""

import numpy as np

from sklboost.data.features import Features, raw_blocks
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam
from sklboost.tree.predict.linear_prediction import add_linear_trees
from sklboost.tree.predict.prediction import add_trees, prepare_prediction


def add_some_trees(
    team: ThreadTeam, model: Model, X: Features, trees: tuple[int, int], raw_score: np.ndarray
) -> None:
    """Add the trees ``[start, stop)`` to `raw_score`, shape (n_outputs, n_samples)."""
    for rows, raw in raw_blocks(team, X):
        prepared = prepare_prediction(model, raw, team.size)
        # C order, as kernels want it: a copy only of blocks of several outputs
        scores = np.ascontiguousarray(raw_score[:, rows])
        if model.linear is None:
            team.run(add_trees, model.constant, raw, trees, prepared, scores)
        else:
            own = (model.linear, raw, trees, prepared, scores)
            team.run(add_linear_trees, model.constant, *own)
        raw_score[:, rows] = scores
