"""What becomes of the trees of each round: gbtree adds them, dart also drops earlier rounds.

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
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from sklboost.boosting.evaluation import Evaluation, ValidationSet
from sklboost.boosting.rounds import TreeGrower
from sklboost.boosting.settings import BoostingTask, Dropout
from sklboost.engine.elementary import hash_key, mix_bits
from sklboost.engine.model import Trees
from sklboost.engine.structs import TreeParams
from sklboost.tree.predict.trees import first_trees, join_trees, no_trees

# In the place of an output in a key, as for the draws of rows and features.
_DROPS = np.int64(2**31 - 1)
_TWO_32 = 2.0**32


class Booster(ABC):
    """Does rounds, keeps their trees and scores the validation rows.

    Parameters
    ----------
    task : BoostingTask
    rounds : TreeGrower
    evaluation : Evaluation
        Of the validation rows.
    """

    def __init__(self, task: BoostingTask, rounds: TreeGrower, evaluation: Evaluation):
        self._trees_per_round = task.trees_per_round
        self._rounds = rounds
        self._evaluation = evaluation

    @abstractmethod
    def advance(self, start: int, stop: int, params: TreeParams) -> np.ndarray:
        """Do the rounds ``[start, stop)``, at most ``rounds.n_at_once``, and return the metrics.

        These have shape (n_rounds, n_sets, n_metrics).
        """

    @abstractmethod
    def trees(self, n_rounds: int) -> Trees:
        """Trees of the first `n_rounds` rounds, those of a continued model included."""


class TreeBooster(Booster):
    """``booster="gbtree"``: trees are added to those before."""

    def __init__(self, task: BoostingTask, rounds: TreeGrower, evaluation: Evaluation):
        super().__init__(task, rounds, evaluation)
        self._parts = [task.trees_before]

    def advance(self, start: int, stop: int, params: TreeParams) -> np.ndarray:  # noqa: D102
        n_rounds, n_left = stop - start, (stop - start) * self._trees_per_round
        for trees in self._rounds.run(start, stop, params):
            self._parts.append(trees)
            n_left -= len(trees.n_pruned)
            values = self._evaluation.score(trees, n_rounds, ends_round=n_left == 0)
        return values

    def trees(self, n_rounds: int) -> Trees:  # noqa: D102
        return first_trees(join_trees(self._parts), n_rounds * self._trees_per_round)


class Rescaling(NamedTuple):
    """What a round did to the weights."""

    dropped: np.ndarray  # int, shape (n_dropped,): numbers of rounds
    factor: float  # what their weights were multiplied by
    new_weight: float  # of the round itself


class Dart(Booster):
    """``booster="dart"``: each round leaves some earlier rounds out; one round at a time.

    Takes `dropout` in addition.
    """

    def __init__(
        self, task: BoostingTask, rounds: TreeGrower, evaluation: Evaluation, dropout: Dropout
    ):
        super().__init__(task, rounds, evaluation)
        # trees are taken out of their scores and put back; no metrics, so no targets
        rows = ValidationSet("", task.X, np.empty(0), np.empty(0), task.raw_score)
        self._training_rows = Evaluation(rounds.team, task, [rows], [], rounds.grown)
        self._dropout = dropout
        self._seed = task.sampling_seed
        self._grown: list[Trees] = []  # by round, not scaled
        self._history: list[Rescaling] = []
        self._weights = np.empty(0)

    def advance(self, start: int, stop: int, params: TreeParams) -> np.ndarray:  # noqa: D102
        before = self._weights
        dropped = choose_rounds(before, self._dropout, self._seed)
        self._add(self._training_rows, dropped, -before[dropped])
        self._grown.append(join_trees(list(self._rounds.run(start, stop, params))))
        learning_rate = params.learning_rate * params.num_parallel_tree
        self._history.append(rescaling(dropped, learning_rate, self._dropout))
        after = self._weights = rescale(before, self._history[-1])
        changed = np.append(dropped, start)
        if len(dropped) > 0:
            # of the training rows' scores the dropped rounds are out, and the new one is in
            in_scores = np.append(np.zeros(len(dropped)), 1.0)
            self._add(self._training_rows, changed, after[changed] - in_scores)
        change = after[changed] - np.append(before, 0.0)[changed]
        return self._add(self._evaluation, changed, change)

    def trees(self, n_rounds: int) -> Trees:  # noqa: D102
        weights = functools.reduce(rescale, self._history[:n_rounds], np.empty(0))
        return self._scaled(np.arange(n_rounds), weights)

    def _scaled(self, rounds: np.ndarray, weights: np.ndarray) -> Trees:
        """Trees of some rounds, the leaf values of each round times its weight."""
        trees = join_trees([no_trees(), *(self._grown[round_] for round_ in rounds)])
        tree_weights = np.repeat(weights, self._trees_per_round)
        _multiply_values(trees, tree_weights)
        if trees.unpruned is not None:
            _multiply_values(trees.unpruned, tree_weights)
        return trees

    def _add(self, evaluation: Evaluation, rounds: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Add the trees of some rounds times their weights to the rows; return the metrics."""
        if len(rounds) == 0:
            return np.empty((1, 0, 0))
        trees = self._scaled(rounds, weights)._replace(unpruned=None)
        evaluation.read_from(trees)
        return evaluation.score(trees, 1)


def make_booster(task: BoostingTask, rounds: TreeGrower, evaluation: Evaluation) -> Booster:
    """Return the booster that a task asks for."""
    if task.dropout is None:
        return TreeBooster(task, rounds, evaluation)
    return Dart(task, rounds, evaluation, task.dropout)


@np.errstate(all="ignore")
def choose_rounds(weights: np.ndarray, dropout: Dropout, seed: int) -> np.ndarray:
    """Choose which of the rounds so far the next one leaves out.

    Parameters
    ----------
    weights : ndarray of float64, shape (n_rounds,)
    dropout : Dropout
    seed : int
        The luck of a round is a hash of it, of how many rounds there are, and of its number.

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


@np.errstate(all="ignore")
def _multiply_values(trees: Trees, weights: np.ndarray) -> None:
    """Multiply the values of each tree by its weight, in place."""
    node_weights = np.repeat(weights, np.diff(trees.starts))
    trees.nodes["value"] *= node_weights
    trees.outputs["value"] *= node_weights[:, np.newaxis]
    trees.params["learning_rate"] *= weights  # which is in the leaf values
