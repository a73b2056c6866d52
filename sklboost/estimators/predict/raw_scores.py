"""Raw scores of rows: what they start from, and the trees of some rounds added."""

from typing import Any, NoReturn

import numpy as np

from sklboost.data.features import Features, RemoteFeatures
from sklboost.data.row_arrays import IN_MEMORY, RowArrays
from sklboost.engine.model import Model
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.thread_counts import n_threads_for
from sklboost.estimators.input.check_features import check_has_values
from sklboost.tree.predict.prediction import add_to_few_rows, add_trees, find_leaves
from sklboost.tree.predict.walking import MIN_ROWS

# Rows times trees that are predicted in the time it takes to start a thread, or less than that.
_LEAVES_PER_THREAD = 250_000


class RawScores:
    """Rows of which the raw scores are known and nothing else, in the place of `X`.

    Parameters
    ----------
    values : ndarray of float64, shape (n_outputs, n_samples)
    """

    def __init__(self, values: np.ndarray):
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Refuse to become an array of features."""
        raise TypeError(
            "score gives predict the raw scores of a Dask collection, not its features: pass X on "
            "as it is in a predict of your own, or call score(X.compute(), ...)"
        )


def starting_scores(
    base_score: np.ndarray, margin: np.ndarray, n_samples: int, arrays: RowArrays = IN_MEMORY
) -> np.ndarray:
    """Raw scores before the first tree, shape (n_outputs, n_samples).

    They are those of `margin`, shape (n_samples, n_outputs), or the base score if that is empty.
    """
    if len(margin) > 0:
        return arrays.copy(margin.T, np.float64)
    return arrays.full(base_score, n_samples)


def add_rounds(
    model: Model,
    X: Features | RemoteFeatures,
    rounds: tuple[int, int],
    raw_score: np.ndarray,
    n_jobs: int | None,
) -> None:
    """Add the trees of rounds ``[start, stop)`` to `raw_score`, shape (n_outputs, n_samples)."""
    trees = (rounds[0] * model.trees_per_round, rounds[1] * model.trees_per_round)
    if type(X) is np.ndarray and len(X) < MIN_ROWS and model.linear is None:
        add_to_few_rows(model, X, trees, raw_score)
        return
    if isinstance(X, RemoteFeatures):
        X.add_trees(model, trees, raw_score)
        return
    if model.linear is not None:
        check_has_values(X)
    work = len(X) * (trees[1] - trees[0])
    with ThreadTeam(n_threads_for(n_jobs, work, _LEAVES_PER_THREAD)) as team:
        add_trees(team, model, X, trees, raw_score)


def leaves(model: Model, X: Features, n_jobs: int | None) -> np.ndarray:
    """The leaf that each row reaches in each tree, int32, shape (n_samples, n_trees)."""
    found = np.empty((len(X), model.n_trees), dtype=np.int32)
    with ThreadTeam(n_threads_for(n_jobs, found.size, _LEAVES_PER_THREAD)) as team:
        find_leaves(team, model, X, found)
    return found
