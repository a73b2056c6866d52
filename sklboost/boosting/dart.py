"""booster="dart": each round leaves some earlier ones out, and then makes room among them.

In: rounds of boosting, and rows. Out: trees whose leaf values are scaled.

The one idea: trees stay as they were grown; what changes is a weight for each round. A round that
is dropped is taken out of the training rows' scores, so that the new one learns what it knew, and
is put back with a smaller weight. The weights after any number of rounds follow from a short
history, so that early stopping can give the model as it was at its best.

A round is dropped or not as a whole, with the trees of all its outputs. With one output and one
tree a round, as usual, the rules are XGBoost's, which otherwise draws single trees.

Source: Rashmi & Gilad-Bachrach (2015), "DART: Dropouts meet Multiple Additive Regression Trees";
https://xgboost.readthedocs.io/en/stable/tutorials/dart.html.
"""

import functools
import time
from typing import NamedTuple

import numpy as np

from sklboost.boosting.evaluation import Evaluation
from sklboost.boosting.rounds import Rounds
from sklboost.boosting.tree_booster import TreeBooster
from sklboost.engine.hashing import hash_key, mix_bits
from sklboost.engine.model import Trees
from sklboost.engine.structs import TreeParams
from sklboost.tree.predict.trees import join_trees, no_trees

# In the place of an output in a key, as for the draws of rows and features.
_DROPS = np.int64(2**31 - 1)
_TWO_32 = 2.0**32


class Dropout(NamedTuple):
    """Which rounds are dropped, and how much room the new one gets.

    Attributes
    ----------
    rate_drop : float
        Part of the rounds.
    skip_drop : float
        Probability with which none is dropped.
    one_drop : bool
        Whether at least one is dropped, unless that is skipped.
    by_weight : bool
        Whether rounds of large weight are likelier to be dropped.
    as_forest : bool
        Whether the new round counts as much as the dropped ones together, not as one of them.
    """

    rate_drop: float
    skip_drop: float
    one_drop: bool
    by_weight: bool
    as_forest: bool


class Rescaling(NamedTuple):
    """What a round did to the weights.

    Attributes
    ----------
    dropped : ndarray of int, shape (n_dropped,)
        Numbers of rounds.
    factor : float
        Their weights were multiplied by it.
    new_weight : float
        Of the round itself.
    """

    dropped: np.ndarray
    factor: float
    new_weight: float


def choose_rounds(weights: np.ndarray, dropout: Dropout, seed: int) -> np.ndarray:
    """Choose which of the rounds so far the next one leaves out.

    Parameters
    ----------
    weights : ndarray of float64, shape (n_rounds,)
    dropout : Dropout
    seed : int
        The luck of a round is a hash of it, of how many there are, and of its number.

    Returns
    -------
    ndarray of int, shape (n_dropped,)
        Increasing.
    """
    n_rounds = len(weights)
    key = np.uint64(hash_key(seed, n_rounds, _DROPS))
    bits = [mix_bits(np.uint64(number) ^ key) for number in range(n_rounds + 2)]
    skip, choice, *luck = (np.array(bits, dtype=np.float64) + 0.5) / _TWO_32
    if n_rounds == 0 or skip < dropout.skip_drop:
        return np.empty(0, dtype=np.int64)
    shares = weights / weights.sum() if dropout.by_weight else np.full(n_rounds, 1.0 / n_rounds)
    dropped = np.flatnonzero(luck < dropout.rate_drop * n_rounds * shares)
    if dropout.one_drop and len(dropped) == 0:
        ends = np.cumsum(shares)
        dropped = np.searchsorted(ends, [choice * ends[-1]], side="right")
    return dropped


def rescaling(dropped: np.ndarray, learning_rate: float, dropout: Dropout) -> Rescaling:
    """Give the weights that keep the sum of the dropped rounds and the new one from overshooting.

    The new round was grown to say what the k dropped ones said, so with them it says it twice. As
    one of k + 1 trees ("tree") it gets ``1 / (k + eta)`` and they ``k / (k + eta)`` of what they
    had, eta being the learning rate, which its leaf values contain; as much as all of them
    ("forest"), both ``1 / (1 + eta)``.
    """
    n_dropped = len(dropped)
    if n_dropped == 0:
        return Rescaling(dropped, 1.0, 1.0)
    if dropout.as_forest:
        factor = 1.0 / (1.0 + learning_rate)
        return Rescaling(dropped, factor, factor)
    room = n_dropped + learning_rate
    return Rescaling(dropped, n_dropped / room, 1.0 / room)


def rescale(weights: np.ndarray, change: Rescaling) -> np.ndarray:
    """Give the weights after a round, its own included, from those before."""
    after = np.append(weights, change.new_weight)
    after[change.dropped] *= change.factor
    return after


def _multiply_values(trees: Trees, weights: np.ndarray) -> None:
    """Multiply the values of each tree by its weight, in place."""
    of_nodes = np.repeat(weights, np.diff(trees.starts))
    trees.nodes["value"] *= of_nodes
    trees.outputs["value"] *= of_nodes[:, np.newaxis]
    trees.params["learning_rate"] *= weights  # which is in the leaf values


class Dart(TreeBooster):
    """Drops trees while it adds others; one round at a time.

    Parameters
    ----------
    rounds : Rounds
    scorers : tuple of Evaluation
        Of the validation rows, and of the training rows, whose scores are those of `rounds`.
    trees_per_round : int
    dropout : Dropout
    seed : int
        Decides which rounds are dropped.
    """

    def __init__(
        self,
        rounds: Rounds,
        scorers: tuple[Evaluation, Evaluation],
        trees_per_round: int,
        dropout: Dropout,
        seed: int,
    ):
        super().__init__(rounds, scorers[0], no_trees(), trees_per_round)
        self._training_rows = scorers[1]
        self._dropout = dropout
        self._seed = seed
        self._grown: list[Trees] = []  # by round, not scaled
        self._history: list[Rescaling] = []
        self._weights = np.empty(0)

    def advance(self, start: int, stop: int, params: TreeParams) -> np.ndarray:  # noqa: D102
        begin, before = time.perf_counter(), self._weights
        dropped = choose_rounds(before, self._dropout, self._seed)
        self._add(self._training_rows, dropped, -before[dropped])
        self._grown.append(join_trees(list(self._rounds.run(start, stop, params))))
        learning_rate = params.learning_rate * params.num_parallel_tree
        self._history.append(rescaling(dropped, learning_rate, self._dropout))
        after = self._weights = rescale(before, self._history[-1])
        changed = np.append(dropped, start)
        # of the training rows' scores the dropped rounds are out, and the new one is in
        out = np.append(np.zeros(len(dropped)), 1.0)
        if len(dropped) > 0:
            self._add(self._training_rows, changed, after[changed] - out)
        begin = self._book("boosting", begin)
        values = self._add(
            self._evaluation, changed, after[changed] - np.append(before, 0.0)[changed]
        )
        self._book("evaluation", begin)
        return values

    def trees(self, n_rounds: int) -> Trees:  # noqa: D102
        weights = functools.reduce(rescale, self._history[:n_rounds], np.empty(0))
        return self._scaled(np.arange(n_rounds), weights)

    def _scaled(self, rounds: np.ndarray, weights: np.ndarray) -> Trees:
        """Give the trees of some rounds, the leaf values of each round times its weight."""
        trees = join_trees([no_trees(), *(self._grown[round_] for round_ in rounds)])
        of_trees = np.repeat(weights, self._trees_per_round)
        for own in (trees, trees.unpruned):
            if own is not None:
                _multiply_values(own, of_trees)
        return trees

    def _add(self, scorer: Evaluation, rounds: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Add so many times the trees of some rounds to the rows; give the metrics."""
        if len(rounds) == 0:
            return np.empty((1, 0, 0))
        trees = self._scaled(rounds, weights)._replace(unpruned=None)
        scorer.look_at(trees)
        return scorer.score(1, len(trees.n_pruned))
