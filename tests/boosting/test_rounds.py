import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklboost.boosting import rounds
from sklboost.boosting.callbacks import TrainingCallback
from sklboost.boosting.training import Schedule, Training
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.losses.classes import LogLoss, Softmax
from sklboost.objectives.losses.squared_error import SquaredError
from tests.boosting.training import NO_WEIGHT, make_task
from tests.tree.growth import params

pytestmark = pytest.mark.interpreted

LOSSES = {"squared_error": SquaredError(), "log_loss": LogLoss(), "softmax": Softmax(3)}


def make_data(loss, n_rows=40):
    random = np.random.default_rng(0)
    X = random.integers(0, 8, (n_rows, 2)).astype(float)
    X[::9, 1] = np.nan
    signal = X[:, 0] - 4 + random.normal(size=n_rows)
    if isinstance(loss, SquaredError):
        return X, signal
    return X, np.digitize(signal, [0.0] if loss.n_outputs == 1 else [-1.5, 1.5]).astype(float)


class Keep(TrainingCallback):
    """Keeps the raw scores after each round."""

    def __init__(self, raw_score):
        self.raw_score = raw_score
        self.stages = []

    def after_iteration(self, training, epoch, evals_log):
        self.stages.append(self.raw_score.copy())
        return False


def train(loss, X, y, weight=NO_WEIGHT, n_rounds=4, seed=0, **changes):
    """Return the model and copies of the raw scores after each round."""
    settings = params(**(dict(max_depth=2, reg_lambda=1.0, learning_rate=0.5) | changes))
    start = loss.start(y.astype(float), weight)
    raw_score = np.repeat(start, len(y)).reshape(-1, len(y))
    keep = Keep(raw_score)
    schedule = Schedule(
        rounds=range(n_rounds),
        begin=0.0,
        max_time=np.inf,
        callbacks=[keep],
        validation=[],
        metrics=[],
        make_estimator=None,
    )
    with ThreadTeam(1) as team:
        own = dict(weight=weight, seed=seed, base_score=start, loss=loss, params=settings)
        task = make_task(team, X, y, raw_score, **own)
        training = Training(team, task, schedule)
        training.run()
    return training.model(n_rounds), keep.stages


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("log_loss", np.uint8), ("softmax", np.uint8), ("squared_error", np.float32)],
)
def test_short_targets(name, dtype):
    loss = LOSSES[name]
    X, y = make_data(loss, 700)  # more than two of the blocks in which they become float64
    short = y.astype(dtype)
    assert_array_equal(train(loss, X, short)[1], train(loss, X, short.astype(float))[1])


@pytest.mark.parametrize("changes", [{}, dict(subsample=0.5), dict(num_parallel_tree=2)])
def test_lists_of_rows_where_the_derivatives_were(changes, monkeypatch):
    loss = LOSSES["log_loss"]
    X, y = make_data(loss)
    _, stages = train(loss, X, y, **changes)
    allocated = []

    def apart(task, partition):
        allocated.append(np.empty((2, *task.raw_score.shape), dtype=np.float32))
        return allocated[-1]

    monkeypatch.setattr(rounds, "_allocate_derivatives", apart)
    assert_array_equal(train(loss, X, y, **changes)[1], stages)
    assert len(allocated) == 1


def test_every_tree_is_rounded_by_a_key_of_its_own():
    loss = LOSSES["squared_error"]
    X, y = make_data(loss, n_rows=5000)  # rounded at random
    sums = []
    for seed in (3, 4):
        # the steps are so short that every round has the same gradients
        model, _ = train(loss, X, y / 3, n_rounds=3, seed=seed, learning_rate=1e-30, max_depth=1)
        sums += list(model.nodes[model.tree_starts[:-1] + 1]["gradient"])
    assert_allclose(sums, sums[0], rtol=1e-3)
    assert len(set(sums)) == len(sums)
