"""booster="gbtree": trees are added to those there are, and nothing else changes.

In: rounds of boosting, and validation rows. Out: trees, and the metrics after every round.
"""

import time

import numpy as np

from sklboost.boosting.evaluation import Evaluation
from sklboost.boosting.rounds import Rounds
from sklboost.engine.model import Trees
from sklboost.engine.structs import TreeParams
from sklboost.tree.predict.trees import first_trees, join_trees


class TreeBooster:
    """Grows the trees of rounds and scores the validation rows.

    Parameters
    ----------
    rounds : Rounds
    evaluation : Evaluation
    trees_before : Trees
        Those of the model that is continued.
    trees_per_round : int

    Attributes
    ----------
    n_at_once : int
        Rounds that are worth doing at once.
    seconds : dict of str to float
        Time spent on ``"boosting"`` and on ``"evaluation"``.
    """

    def __init__(
        self, rounds: Rounds, evaluation: Evaluation, trees_before: Trees, trees_per_round: int
    ):
        self._rounds = rounds
        self._evaluation = evaluation
        self._parts = [trees_before]
        self._trees_per_round = trees_per_round
        self.n_at_once = rounds.n_at_once
        self.seconds = {"boosting": 0.0, "evaluation": 0.0}

    def advance(self, start: int, stop: int, params: TreeParams) -> np.ndarray:
        """Do rounds ``[start, stop)``; give the metrics, shape (n_rounds, n_sets, n_metrics)."""
        n_rounds, n_left = stop - start, (stop - start) * self._trees_per_round
        values = np.empty((n_rounds, 0, 0))
        begin = time.perf_counter()
        for trees in self._rounds.run(start, stop, params):
            self._parts.append(trees)
            n_new = len(trees.n_pruned)
            n_left -= n_new
            begin = self._book("boosting", begin)
            if trees.linear is not None:
                self._evaluation.add_linear(trees)
                n_new = 0
            values = self._evaluation.score(n_rounds, n_new, ends_round=n_left == 0)
            begin = self._book("evaluation", begin)
        return values

    def _book(self, phase: str, begin: float) -> float:
        """Count the time since `begin` for a phase; give the time now."""
        now = time.perf_counter()
        self.seconds[phase] += now - begin
        return now

    def trees(self, n_rounds: int) -> Trees:
        """Give the trees of the first `n_rounds` rounds, those of a continued model included."""
        return first_trees(join_trees(self._parts), n_rounds * self._trees_per_round)
