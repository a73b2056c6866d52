"""How often the members of a team wait for one another: on many cores that is what takes long."""

import numpy as np
import pytest

from sklboost.boosting.rounds import Rounds
from sklboost.engine import parallel
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.losses.classes import LogLoss, Softmax
from sklboost.objectives.losses.squared_error import SquaredError
from tests.boosting.training import NO_WEIGHT, make_task
from tests.tree.growth import params

# After pruning; with the leaf values added and the next round's derivatives; with these quantised
# and the root planned.
BETWEEN_TREES = 3
# With the root's histogram, whose sums are then made; with its best split, which is then made.
OF_A_ROOT = 2
BY_GRADIENT = dict(subsample=0.5, sampling_method="gradient_based")


def meetings(loss, n_rounds, **changes):
    """Return how often a team of two meets in a call that does so many rounds."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 3))
    y = np.digitize(X[:, 0] + random.normal(size=600), [-0.5, 0.5]).astype(float)
    y = np.minimum(y, 1.0) if isinstance(loss, LogLoss) else y
    settings, start = params(max_depth=1, **changes), np.zeros(loss.n_outputs)
    raw_score = np.zeros((loss.n_outputs, len(y)))
    own = dict(weight=NO_WEIGHT, seed=0, base_score=start, loss=loss, params=settings)
    with ThreadTeam(2) as team:
        assert team.size == 2
        rounds = Rounds(team, make_task(team, X, y, raw_score, **own), (50, 50))
        assert len(list(rounds.grow(0, n_rounds, settings))) == 1  # call
        return int(team._state[parallel._GENERATION])


@pytest.mark.parametrize(
    ("loss", "changes", "n_trees", "n_more"),
    [
        pytest.param(SquaredError(), {}, 1, 0, id="plain"),
        pytest.param(LogLoss(), {}, 1, 0, id="two classes"),
        pytest.param(Softmax(3), {}, 3, 0, id="three classes"),
        pytest.param(SquaredError(), dict(subsample=0.5), 1, 1, id="sample"),
        pytest.param(SquaredError(), BY_GRADIENT, 1, 4, id="by gradients"),
    ],
)
def test_meetings_of_a_round_of_stumps(loss, changes, n_trees, n_more):
    more = meetings(loss, 12, **changes) - meetings(loss, 2, **changes)
    assert more == 10 * n_trees * (OF_A_ROOT + BETWEEN_TREES + n_more)


def test_meetings_of_a_call():
    # once more before the first round, and the last tree needs no less than the others
    assert meetings(SquaredError(), 1) == OF_A_ROOT + BETWEEN_TREES + 1
