"""The loop over rounds: how many at once, what stops it, what is kept."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklboost.boosting import rounds
from sklboost.boosting import training as training_module
from sklboost.boosting.callbacks import EarlyStopping, TrainingCallback
from sklboost.boosting.evaluation import ValidationSet
from sklboost.boosting.training import Replay, Schedule, Training
from sklboost.engine.parallel import ThreadTeam
from sklboost.objectives.losses.squared_error import SquaredError
from sklboost.objectives.metric import Metric
from sklboost.objectives.registry import find_metric
from sklboost.tree.predict.trees import trees_of
from tests.boosting.training import NO_WEIGHT, make_task
from tests.tree.growth import params

pytestmark = pytest.mark.interpreted

X = np.arange(8.0)[:, np.newaxis]
Y = np.array([1.0, 1, 1, 1, 5, 5, 5, 5])


def rmse(y, raw_score, weight):
    return float(np.sqrt(np.mean((y - raw_score[0]) ** 2)))


COMPILED = find_metric("rmse", "regression")._replace(function=rmse)
FUNCTION = Metric("function", False, rmse)


class Act(TrainingCallback):
    """Notes all calls; does something at one of them."""

    def __init__(self, method=None, at=None, act=None, every_round=True):
        self.wanted = (method, at)
        self.act = act
        self.every_round = every_round
        self.calls = []

    def _call(self, training, method, epoch=None):
        self.calls.append((method, epoch, training.n_rounds))
        return (method, epoch) == self.wanted and self.act(training)

    def before_training(self, training):
        self._call(training, "before_training")

    def before_iteration(self, training, epoch, evals_log):
        return self._call(training, "before_iteration", epoch)

    def after_iteration(self, training, epoch, evals_log):
        return self._call(training, "after_iteration", epoch)

    def after_training(self, training):
        self._call(training, "after_training")


def make_training(*callbacks, metrics=(), max_time=np.inf, n_rounds=20, **changes):
    """Rows 0 to 7 with targets 1 and 5: the one split halves the error each round."""
    settings = params(**(dict(max_depth=1, learning_rate=0.5) | changes))
    validation = [ValidationSet("own", X, Y, NO_WEIGHT, np.zeros((1, 8)))] if metrics else []
    schedule = Schedule(
        rounds=range(n_rounds),
        begin=time.perf_counter(),
        max_time=max_time,
        callbacks=callbacks,
        validation=validation,
        metrics=metrics,
        make_estimator=lambda training: training.n_rounds,
    )
    team = ThreadTeam(1)
    task = make_task(team, X, Y, np.zeros((1, 8)), loss=SquaredError(), params=settings)
    return Training(team, task, schedule)


def run(*callbacks, **settings):
    training = make_training(*callbacks, **settings)
    training.run()
    return training


def halves(n_rounds):
    """The error by hand: sqrt of the mean of 1 and 25 at first, then half as large each round."""
    return np.sqrt(13.0) * 0.5 ** np.arange(1, n_rounds + 1)


# --- a round or many at once ---------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch):
    """Calls are as long as they may be, on machines of any speed."""
    monkeypatch.setattr(rounds.Rounds, "seconds_per_call", np.inf)


def starts_of_calls(watch):
    return [epoch for method, epoch, _ in watch.calls if method == "before_iteration"]


def arrays_of(trees):
    """Return the arrays of trees without linear leaves, including the bits of categories."""
    assert trees.linear is None
    assert trees.unpruned is None
    return [*trees[:-3], trees.bits.words, trees.bits.starts]


@pytest.mark.parametrize(
    ("metrics", "every_round", "n_at_once"),
    [
        ([], False, 20),
        ([COMPILED], False, 20),
        ([COMPILED, FUNCTION], False, 1),
        ([], True, 1),
        ([COMPILED], True, 1),
    ],
)
def test_rounds_at_once(metrics, every_round, n_at_once):
    watch = Act(every_round=every_round)
    training = run(watch, metrics=metrics)
    # the first round alone tells how long a round takes
    assert starts_of_calls(watch) == [0, *range(1, 20, n_at_once)]
    after = [call[1:] for call in watch.calls if call[0] == "after_iteration"]
    assert after == [(epoch, epoch + 1) for epoch in range(20)]
    assert watch.calls[0] == ("before_training", None, 0)
    assert watch.calls[-1] == ("after_training", None, 20)
    assert (training.stop_reason, training.n_rounds) == ("completed", 20)
    if metrics:
        for values in training.evals_log["own"].values():
            assert_allclose(values, halves(20), rtol=1e-5)


def test_rounds_that_early_stopping_may_drop():
    watch = Act(every_round=False)
    run(watch, EarlyStopping(30), metrics=[COMPILED])
    assert starts_of_calls(watch) == [0, 1, 17]


def test_a_call_is_no_longer_than_ctrl_c_may_wait(monkeypatch):
    monkeypatch.setattr(rounds.Rounds, "seconds_per_call", 1e-9)
    watch = Act(every_round=False)
    run(watch)
    assert starts_of_calls(watch) == list(range(20))


@pytest.mark.parametrize(("long_values", "n_at_once"), [(10**9, 4), (1, 1)])
def test_large_rounds_are_scored_some_together_unless_they_take_long(
    long_values, n_at_once, monkeypatch
):
    monkeypatch.setattr(rounds, "_VALUES_PER_CALL", 1)
    monkeypatch.setattr(training_module, "_LONG_VALUES", long_values)
    watch = Act(every_round=False)
    one = run(watch, metrics=[COMPILED])
    # the first round alone tells how long a round takes
    assert starts_of_calls(watch) == [0, *range(1, 20, n_at_once)]
    assert_allclose(one.evals_log["own"]["rmse"], halves(20), rtol=1e-5)


def test_metrics_are_those_of_raw_scores_that_prediction_gives():
    training = run(metrics=[COMPILED, FUNCTION], n_rounds=6)
    own = training.evals_log["own"]
    assert_allclose(own["rmse"], own["function"], rtol=1e-12)
    assert training.training_loss() == pytest.approx(own["rmse"][-1] ** 2 / 2, rel=1e-9)


# --- ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("every_round", [True, False])
@pytest.mark.parametrize(
    ("method", "at", "n_rounds"), [("after_iteration", 4, 5), ("before_iteration", 17, 17)]
)
def test_a_callback_ends_it(every_round, method, at, n_rounds):
    act = Act(method, at, lambda training: True, every_round)
    training = run(act, EarlyStopping(30), metrics=[COMPILED])  # 16 rounds at once
    assert (training.stop_reason, training.n_rounds) == ("early_stopping", n_rounds)
    assert len(training.learning_rates) == n_rounds
    assert len(training.evals_log["own"]["rmse"]) == n_rounds
    assert training.snapshot() == n_rounds
    model, whole = training.model(n_rounds), run(n_rounds=n_rounds).model(n_rounds)
    pairs = zip(arrays_of(trees_of(model)), arrays_of(trees_of(whole)), strict=True)
    for own, expected in pairs:
        assert own.tobytes() == expected.tobytes()


def test_all_callbacks_are_told_of_a_round_at_which_one_stops():
    first, second = Act("after_iteration", 2, lambda training: True), Act()
    run(first, second)
    assert ("after_iteration", 2, 3) in second.calls
    assert second.calls[-1][0] == "after_training"


def test_stopped_before_its_first_round():
    with pytest.raises(ValueError, match="a callback stopped training before its first round"):
        run(Act("before_iteration", 0, lambda training: True))


def test_an_interrupt_in_a_metric_drops_its_round():
    n_calls = []

    def value(y, raw_score, weight):
        n_calls.append(1)
        if len(n_calls) == 4:
            raise KeyboardInterrupt
        return rmse(y, raw_score, weight)

    training = run(metrics=[Metric("own", False, value), COMPILED])
    assert (training.stop_reason, training.n_rounds) == ("interrupted", 3)
    assert [len(values) for values in training.finished_log()["own"].values()] == [3, 3]


def test_an_interrupt_between_the_values_of_a_round_and_its_end_drops_them():
    training = make_training(metrics=[COMPILED])
    log = training._log

    def log_and_interrupt(values):
        log(values)
        if training.n_rounds == 4:
            raise KeyboardInterrupt

    training._log = log_and_interrupt
    training.run()
    assert training.n_rounds == 4
    assert len(training.finished_log()["own"]["rmse"]) == 4


def test_an_interrupt_at_the_end_of_a_callback_keeps_the_rounds():
    def interrupt(training):
        raise KeyboardInterrupt

    act, other = Act("after_training", None, interrupt), Act()
    training = run(act, other)
    assert (training.stop_reason, training.n_rounds) == ("interrupted", 20)
    assert other.calls[-1] == ("after_training", None, 20)
    with pytest.raises(KeyboardInterrupt):  # no round was finished
        run(Act("before_training", None, interrupt))


def test_an_error_is_raised_and_all_are_told_of_the_end():
    def fail(training):
        raise RuntimeError("no")

    act, other = Act("after_iteration", 3, fail), Act()
    with pytest.raises(RuntimeError, match="no"):
        run(act, other)
    assert act.calls[-1] == other.calls[-1] == ("after_training", None, 4)


# --- learning rates ------------------------------------------------------------------------------


def set_rate(value):
    def act(training):
        training.learning_rate = value

    return act


def test_rates_are_replayed():
    rates = [0.5, 0.25, 0.125, 1.0]
    training = run(Replay(rates), n_rounds=4)
    assert training.learning_rates == rates
    one_by_one, at_once = Replay(rates), Replay([0.25] * 4)
    assert (one_by_one.every_round, at_once.every_round) == (True, False)
    assert run(at_once, n_rounds=4).learning_rates == [0.25] * 4


@pytest.mark.parametrize("value", [0.0, -0.1, np.inf, np.nan])
def test_rates_out_of_range(value):
    with pytest.raises(ValueError, match=rf"^learning_rate={value!r}: it must be a finite"):
        run(Act("before_iteration", 0, set_rate(value)))
