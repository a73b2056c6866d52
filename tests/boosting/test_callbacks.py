"""The callbacks of this room, in a training without trees."""

import math
import re

import numpy as np
import pytest

from sklboost import EarlyStopping, LearningRateScheduler, TrainingCallback
from tests.boosting.training import FakeTraining

NAN = math.nan


def train(stop, values, metric="rmse", **arguments):
    evals = {"validation_0": {metric: values}}
    return FakeTraining(
        [stop], arguments.pop("n_estimators", len(values)), evals, **arguments
    ).train()


def test_a_callback_may_override_nothing():
    assert FakeTraining([TrainingCallback()]).train().n_rounds == 10


# --- early stopping ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "n_rounds", "best"),
    [
        ([5, 4, 3, 2, 1, 0], 6, 5),  # better to the end
        ([5, 4, 4, 4, 1, 0], 4, 1),  # equal is not better
        ([5, 4, 6, 3, 7, 7, 0], 6, 3),  # one bad round is forgiven
        ([5, NAN, 4, NAN, NAN, 0], 5, 2),  # NaN is never better
        ([NAN, NAN, 5, 6, 4, 7, 8, 0], 2, None),  # all NaN: nothing is best
        ([NAN, 5, 6, 4, 7, 8, 0], 6, 3),
        ([math.inf, 5, 6, 7], 4, 1),
    ],
)
def test_stops_after_two_rounds_without_a_better_one(values, n_rounds, best):
    training = train(EarlyStopping(2), values)
    assert training.n_rounds == n_rounds
    assert training.best_iteration == best
    assert training.best_score == (None if best is None else values[best])


def test_more_may_be_better():
    values = [0.5, 0.6, 0.7, 0.6, 0.65, 0.9]
    assert train(EarlyStopping(2), values, metric="auc").best_iteration == 2
    assert train(EarlyStopping(2), values, metric="rmse").best_iteration == 0
    assert train(EarlyStopping(2, maximize=True), values, metric="rmse").best_iteration == 2
    assert train(EarlyStopping(2, maximize=False), values, metric="auc").best_iteration == 0


def test_a_small_step_does_not_count():
    values = [4.0, 3.5, 3.25, 3.0, 2.5, 2.0]
    training = train(EarlyStopping(2, min_delta=0.5), values)
    # 3.5 is better than 4 by 0.5, not by more; 3.25, 2.5 are better than the best before by more
    assert (training.best_iteration, training.n_rounds) == (4, 6)
    training = train(EarlyStopping(2, min_delta=1.0), values)
    assert (training.best_iteration, training.n_rounds) == (0, 3)
    training = train(EarlyStopping(2, min_delta=0.5, maximize=True), [-v for v in values])
    assert (training.best_iteration, training.n_rounds) == (4, 6)


def test_the_last_metric_of_the_last_data_unless_named():
    falling, rising = [3, 2, 1, 0], [0, 1, 2, 3]
    evals = {
        "validation_0": {"mae": falling, "rmse": rising},
        "validation_1": {"mae": rising, "rmse": falling},
    }

    def rounds(**names):
        return FakeTraining([EarlyStopping(1, **names)], 4, evals).train().n_rounds

    assert rounds() == 4
    assert rounds(metric_name="mae") == 2
    assert rounds(data_name="validation_0") == 2
    assert rounds(metric_name="mae", data_name="validation_0") == 4


def test_rounds_of_a_continued_model_count():
    training = train(EarlyStopping(2), [5, 4, 6, 7], n_estimators=104, n_rounds=100)
    assert training.best_iteration == 101
    assert training.n_rounds == 104


def test_two_trainings_at_the_same_time():
    stop, first, second = EarlyStopping(2), FakeTraining([]), FakeTraining([])
    for epoch, best in enumerate([(0, 0), (1, 1), (2, 1), (2, 3)]):
        for training, values in ((first, [3, 2, 1, 2]), (second, [9, 8, 9, 7])):
            log = {"validation_0": {"rmse": values[: epoch + 1]}}
            assert not stop.after_iteration(training, epoch, log)
        assert (first.best_iteration, second.best_iteration) == best


@pytest.mark.parametrize(
    ("arguments", "evals", "message"),
    [
        ({}, {}, "EarlyStopping has no validation data to watch: give fit X_val and y_val, or"),
        (
            {"data_name": "valid"},
            {"validation_0": {"rmse": [1]}},
            "data_name='valid': it must be one of 'validation_0'",
        ),
        (
            {"metric_name": "auc"},
            {"validation_0": {"mae": [1], "rmse": [1]}},
            "metric_name='auc': it must be one of 'mae', 'rmse'",
        ),
    ],
)
def test_what_cannot_be_watched(arguments, evals, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        FakeTraining([EarlyStopping(2, **arguments)], 1, evals).train()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rounds": 0}, "rounds=0: it must be an integer >= 1"),
        ({"rounds": True}, "rounds=True: it must be an integer >= 1"),
        ({"rounds": 2.5}, "rounds=2.5: it must be an integer >= 1"),
        ({"rounds": 5, "min_delta": -1}, "min_delta=-1: it must be a finite number >= 0"),
        ({"rounds": 5, "min_delta": NAN}, "min_delta=nan: it must be a finite number >= 0"),
        ({"rounds": 5, "min_delta": "0"}, "min_delta='0': it must be a finite number >= 0"),
    ],
)
def test_bad_settings_of_early_stopping(arguments, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        EarlyStopping(**arguments)


# --- learning rates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rates",
    [
        [0.5, 0.25, 0.125],
        (0.5, 0.25, 0.125, 7.0),
        np.array([0.5, 0.25, 0.125], dtype=np.float32),
        lambda epoch: 0.5 ** (epoch + 1),
    ],
)
def test_each_round_has_its_learning_rate(rates):
    training = FakeTraining([LearningRateScheduler(rates)], 3).train()
    assert training.learning_rates == [0.5, 0.25, 0.125]
    continued = FakeTraining([LearningRateScheduler(rates)], 3, n_rounds=2).train()
    assert continued.learning_rates == [0.125]


@pytest.mark.parametrize("rates", [0.1, None, [[0.1, 0.2]]])
def test_learning_rates_must_be_a_function_or_a_list(rates):
    with pytest.raises(
        ValueError, match=r"^learning_rates=.*function of the round's number, or a l"
    ):
        LearningRateScheduler(rates)


def test_too_few_learning_rates():
    training = FakeTraining([LearningRateScheduler([0.5, 0.4])], 3)
    message = "learning_rates has 2 values for 3 rounds: give one for each round, or a function"
    with pytest.raises(ValueError, match=message):
        training.train()
    assert training.n_rounds == 0


@pytest.mark.parametrize("rate", [0, -0.1, NAN, math.inf, None, "0.1"])
def test_bad_learning_rates(rate):
    message = re.escape(f"learning rate {rate!r} for round 1: it must be a finite number > 0")
    with pytest.raises(ValueError, match=message):
        LearningRateScheduler([0.3, rate])
    training = FakeTraining([LearningRateScheduler(lambda epoch: rate if epoch else 0.3)])
    with pytest.raises(ValueError, match=message):
        training.train()
    assert training.n_rounds == 1


def test_a_callback_shows_what_it_was_given():
    text = "rounds=3, metric_name='auc', data_name=None, min_delta=0.0, maximize=None"
    for save_best in (True, False, None):  # XGBoost's, which changes nothing
        assert repr(EarlyStopping(3, "auc", save_best=save_best)) == f"EarlyStopping({text})"
