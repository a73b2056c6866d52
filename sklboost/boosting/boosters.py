"""The boosters: gbtree adds the trees of each round, dart also drops earlier rounds.

Dart leaves trees as they were grown and changes a weight for each round. A dropped round is taken
out of the training rows' scores, so that the new round learns what it knew, and is then put back
with a smaller weight. The weights after any number of rounds follow from a short history, so early
stopping can return the model as it was at its best.

A round is dropped or not as a whole, with the trees of all its outputs. With one output and one
tree a round, as usual, the rules are XGBoost's, which otherwise draws single trees.

Source: Rashmi & Gilad-Bachrach (2015), "DART: Dropouts meet Multiple Additive Regression Trees";
https://xgboost.readthedocs.io/en/stable/tutorials/dart.html.
"""

import functools
from typing import NamedTuple

import numpy as np

from sklboost.boosting.evaluation import Evaluation
from sklboost.boosting.rounds import TreeGrower
from sklboost.boosting.settings import BoostingTask, Dropout
from sklboost.engine.elementary import TWO_32, hash_key, mix_bits
from sklboost.engine.model import Trees
from sklboost.engine.structs import TreeParams
from sklboost.tree.predict.trees import join_trees, no_trees, take_trees

# In the place of an output in a key, as for the draws of rows and features.
_DROPS = np.int64(2**31 - 1)


class Booster:
    """``booster="gbtree"``: trees are added to those before, and to the validation rows' scores."""

    def __init__(self, task: BoostingTask, evaluation: Evaluation):
        self._trees_per_round = task.trees_per_round
        self._evaluation = evaluation  # of the validation rows
        self._parts = [task.trees_before]

    def drop_rounds(self, params: TreeParams) -> None:
        """Take the rounds out of the scores that the next one is to be grown without: none."""

    def add(self, trees: Trees, n_rounds: int, *, ends_round: bool) -> np.ndarray:
        """Add the trees of so many rounds, or a part of one; return the metrics if that ends it."""
        self._parts.append(trees)
        return self._evaluation.score(trees, n_rounds, ends_round=ends_round)

    def trees(self, n_rounds: int) -> Trees:
        """Return the trees of the first `n_rounds` rounds, a continued model's included."""
        return take_trees(join_trees(self._parts), 0, n_rounds * self._trees_per_round)


class Rescaling(NamedTuple):
    """The change of the weights by one round."""

    dropped: np.ndarray  # int, shape (n_dropped,): numbers of rounds
    factor: float  # what their weights were multiplied by
    new_weight: float  # of the round itself


class Dart(Booster):
    """``booster="dart"``: each round leaves some earlier rounds out; one round at a time."""

    def __init__(
        self, task: BoostingTask, evaluation: Evaluation, grower: TreeGrower, dropout: Dropout
    ):
        super().__init__(task, evaluation)
        self._grower = grower  # trees are taken out of its raw scores and put back
        self._dropout = dropout
        self._seed = task.sampling_seed
        self._growing: list[Trees] = []  # of the round that is not finished
        self._grown: list[Trees] = []  # by round, not scaled
        self._history: list[Rescaling] = []
        self._weights = np.empty(0)

    def drop_rounds(self, params: TreeParams) -> None:
        dropped = choose_rounds(self._weights, self._dropout, self._seed)
        learning_rate = params.learning_rate * params.num_parallel_tree
        self._history.append(rescaling(dropped, learning_rate, self._dropout))
        if len(dropped) > 0:
            self._grower.add(functools.partial(self._scaled, dropped, -self._weights[dropped]))

    def add(self, trees: Trees, n_rounds: int, *, ends_round: bool) -> np.ndarray:
        self._growing.append(trees)
        if not ends_round:
            return np.empty((1, 0, 0))
        self._grown.append(join_trees(self._growing))
        self._growing = []
        before, dropped = self._weights, self._history[-1].dropped
        after = self._weights = rescale(before, self._history[-1])
        changed = np.append(dropped, len(before))
        if len(dropped) > 0:
            # of the training rows' scores the dropped rounds are out, and the new one is in
            in_scores = np.append(np.zeros(len(dropped)), 1.0)
            change = after[changed] - in_scores
            self._grower.add(functools.partial(self._scaled, changed, change))
        trees = self._scaled(changed, after[changed] - np.append(before, 0.0)[changed])
        self._evaluation.read_from(trees)
        return self._evaluation.score(trees, 1)

    def trees(self, n_rounds: int) -> Trees:
        weights = functools.reduce(rescale, self._history[:n_rounds], np.empty(0))
        return self._scaled(np.arange(n_rounds), weights)

    @np.errstate(all="ignore")
    def _scaled(self, rounds: np.ndarray, weights: np.ndarray) -> Trees:
        """Return copies of the trees of some rounds, leaf values times the weight of the round."""
        trees = join_trees([no_trees(), *(self._grown[round_] for round_ in rounds)])
        tree_weights = np.repeat(weights, self._trees_per_round)
        for scaled in (trees,) if trees.unpruned is None else (trees, trees.unpruned):
            node_weights = np.repeat(tree_weights, np.diff(scaled.starts))
            scaled.nodes["value"] *= node_weights
            scaled.outputs["value"] *= node_weights[:, np.newaxis]
            scaled.params["learning_rate"] *= tree_weights  # which is in the leaf values
        return trees


@np.errstate(all="ignore")
def choose_rounds(weights: np.ndarray, dropout: Dropout, seed: int) -> np.ndarray:
    """Return the numbers of the rounds that the next one leaves out, increasing.

    The luck of a round is a hash of the seed, of how many rounds there are, and of its number.
    """
    n_rounds = len(weights)
    key = np.uint64(hash_key(seed, n_rounds, _DROPS))
    bits = [mix_bits(np.uint64(number) ^ key) for number in range(n_rounds + 2)]
    skip, choice, *luck = (np.array(bits, dtype=np.float64) + 0.5) / TWO_32
    if n_rounds == 0 or skip < dropout.skip_drop:
        return np.empty(0, dtype=np.int64)
    shares = weights / weights.sum() if dropout.by_weight else np.full(n_rounds, 1.0 / n_rounds)
    dropped = np.flatnonzero(luck < dropout.rate_drop * n_rounds * shares)
    if dropout.one_drop and len(dropped) == 0:
        ends = np.cumsum(shares)
        dropped = np.searchsorted(ends, [choice * ends[-1]], side="right")
    return dropped


def rescaling(dropped: np.ndarray, learning_rate: float, dropout: Dropout) -> Rescaling:
    """Return the weights that keep the dropped rounds and the new one together from overshooting.

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


@np.errstate(all="ignore")
def rescale(weights: np.ndarray, change: Rescaling) -> np.ndarray:
    """Return the weights after a round, its own included, from those before."""
    after = np.append(weights, change.new_weight)
    after[change.dropped] *= change.factor
    return after
