"""How many trees one call of the rounds grows, and the room that they take."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from sklboost.boosting.settings import BoostingTask
from sklboost.engine.model import NODE_DTYPE, OUTPUT_DTYPE, Trees
from sklboost.engine.parallel import ThreadTeam
from sklboost.engine.structs import PARAMS_DTYPE, TreeParams, records
from sklboost.tree.core.workspace import max_nodes
from sklboost.tree.predict.category_bits import allocate_bits, most_words

# A call of a kernel takes as long as a tree of a few hundred rows, waking a team as long as one of
# ten thousand, and what Python does in between leaves the caches cold. So one call does many, a few
# hundredths of a second's work: 100,000 x 28 takes 0.93 of the time of a call a round.
_VALUES_PER_CALL = 40_000_000
_NODES_PER_CALL = 1_000_000
_ROUNDS_PER_CALL = 200


class TreeGrower(Protocol):
    """What grows the trees of a training, some rounds at a time.

    :class:`~sklboost.boosting.rounds.Rounds`, or what has the workers of a cluster do it.

    Attributes
    ----------
    team : ThreadTeam
        Of this process.
    n_at_once : int
        Rounds worth doing in one call, within the limits.
    seconds_per_call : float
        What a call should take: Ctrl-C and `max_time` act between two.
    grown : Trees
        The trees of the last call, from the front; the next call overwrites them.
    n_threads : int
        Threads that grow the trees.
    traffic : dict of str to tuple of int
        Messages and bytes that machines have sent, by what they were for; known when closed.
    """

    team: ThreadTeam
    n_at_once: int
    seconds_per_call: float
    grown: Trees
    n_threads: int
    traffic: dict[str, tuple[int, int]]

    def run(self, start: int, stop: int, params: TreeParams) -> Iterator[Trees]:
        """Do the rounds ``[start, stop)``, at most `n_at_once`; yield copies of their trees."""

    def raw_score(self) -> np.ndarray:
        """Return the raw scores of the rows, shape (n_outputs, n_samples)."""

    def close(self) -> None:
        """Free what is not memory of this process."""


class Calls(NamedTuple):
    """What one call grows."""

    n_parallel: int  # most parallel trees
    n_at_once: int  # most rounds
    n_trees: int  # most trees
    capacity: int  # most nodes of a tree
    n_words: int  # most words of a node's set of categories


def plan_calls(task: BoostingTask, limits: tuple[int, int]) -> Calls:
    """Plan calls that grow enough to be worth a call, if there is room.

    `limits` are the fewest and the most rounds that may be done in one call.
    """
    params, (fewest, most) = task.params, limits
    n_samples = len(task.matrix.rows) if task.part is None else task.part.machines.n_samples
    capacity = max_nodes(n_samples, params) + 2
    n_categories = int(task.matrix.n_categories.max())
    n_words = most_words(n_categories, min(params.max_cat_threshold, n_categories))
    if params.num_parallel_tree > 1:
        # rounds one by one, in as many calls as they take
        fewest, most = 1, params.num_parallel_tree
    if params.linear_tree == 1:
        fewest, most = 1, 1
    worth = _VALUES_PER_CALL // (task.matrix.rows.size * task.n_outputs)
    room = _NODES_PER_CALL // (capacity * max(1, n_words) * task.n_outputs)
    n_parallel = max(1, min(max(worth, fewest), room, most, _ROUNDS_PER_CALL))
    return Calls(
        n_parallel=n_parallel,
        n_at_once=n_parallel if params.num_parallel_tree == 1 else 1,
        n_trees=n_parallel * (task.n_outputs // task.n_tree_outputs),
        capacity=capacity,
        n_words=n_words,
    )


def allocate_grown(calls: Calls, n_outputs: int, n_trees: int) -> Trees:
    """Make room for so many trees of so many outputs each."""
    n_nodes = n_trees * calls.capacity
    return Trees(
        nodes=records(n_nodes, NODE_DTYPE),
        starts=np.zeros(n_trees + 1, dtype=np.int64),
        n_pruned=np.zeros(n_trees, dtype=np.int64),
        params=records(n_trees, PARAMS_DTYPE),
        outputs=records((n_nodes, n_outputs if n_outputs > 1 else 0), OUTPUT_DTYPE),
        bits=allocate_bits(n_nodes, calls.n_words),
    )
