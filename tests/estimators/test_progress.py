"""What `verbose` shows, in a training without trees and on a clock of its own."""

import io
import logging
import re
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from sklboost import EarlyStopping, TrainingCallback, XGBRegressorLite
from sklboost.estimators import progress
from sklboost.estimators.progress import SearchProgress, progress_callback
from tests.boosting.training import FakeTraining

LOSSES = [1 / (i + 1) for i in range(100)]


@pytest.fixture
def clock(monkeypatch):
    """A clock on which every round takes as long as `clock.round_takes`."""

    class Clock(TrainingCallback):
        now = 0.0
        round_takes = 1.0

        def before_iteration(self, training, epoch, evals_log):
            self.now += self.round_takes

    clock = Clock()
    monkeypatch.setattr(progress, "monotonic", lambda: clock.now)
    return clock


@pytest.fixture
def no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def lines(caplog):
    return [record.getMessage() for record in caplog.records]


# --- a line for every round ----------------------------------------------------------------------


def test_a_line_for_every_round(caplog):
    evals = {"validation_0": {"mae": [3, 2], "rmse": [5, 4]}, "validation_1": {"mae": [1, 0.5]}}
    FakeTraining([progress_callback(2)], 2, evals).train()
    assert lines(caplog) == [
        "round 1 of 2: validation_0-mae 3, validation_0-rmse 5, validation_1-mae 1",
        "round 2 of 2: validation_0-mae 2, validation_0-rmse 4, validation_1-mae 0.5",
    ]
    assert {(record.name, record.levelname) for record in caplog.records} == {("sklboost", "INFO")}
    # without validation data it is the training loss, and the rounds of a continued model go on
    caplog.clear()
    callback = progress_callback(2)
    FakeTraining([callback], 102, n_rounds=100).train()
    assert lines(caplog) == [
        "round 101 of 102: training loss 0.00990099",
        "round 102 of 102: training loss 0.00980392",
    ]
    assert callback.every_round  # of rounds done together only the loss of the last is known


# --- logging -------------------------------------------------------------------------------------


def logging_state():
    loggers = [logging.root, logging.getLogger("sklboost")]
    return [(x.level, list(x.handlers), x.propagate, x.disabled) for x in loggers]


def test_seen_without_any_logging_configured(monkeypatch, capsys):
    monkeypatch.setattr(logging.root, "handlers", [])
    before = logging_state()
    FakeTraining([progress_callback(2)], 1).train()
    assert capsys.readouterr().err == "round 1 of 1: training loss 1\n"
    assert logging_state() == before


@pytest.mark.parametrize("name", [None, "sklboost"])
def test_configured_logging_is_used(monkeypatch, capsys, name):
    monkeypatch.setattr(logging.root, "handlers", [])
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s %(message)s"))
    monkeypatch.setattr(logging.getLogger(name), "handlers", [handler])
    monkeypatch.setattr(logging.getLogger("sklboost"), "level", logging.ERROR)  # whatever it is
    before = logging_state()
    FakeTraining([progress_callback(2)], 1).train()
    assert stream.getvalue() == "INFO sklboost round 1 of 1: training loss 1\n"
    assert capsys.readouterr().err == ""
    assert logging_state() == before


@pytest.mark.parametrize("refuses", ["filter", "handler"])
def test_a_filter_or_a_handler_may_refuse(monkeypatch, capsys, refuses):
    handler = logging.StreamHandler()
    monkeypatch.setattr(logging.root, "handlers", [handler])
    if refuses == "filter":
        monkeypatch.setattr(logging.getLogger("sklboost"), "filters", [lambda record: False])
    else:
        handler.setLevel(logging.WARNING)
    FakeTraining([progress_callback(2)], 1).train()
    assert capsys.readouterr() == ("", "")


# --- plain text ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_tqdm")
def test_about_ten_lines_of_text(caplog, clock):
    evals = {"validation_0": {"mae": LOSSES, "rmse": LOSSES}}
    FakeTraining([clock, progress_callback(1)], 100, evals).train()
    assert lines(caplog)[0] == "round 10 of 100: validation_0-rmse 0.1, 0:01:30 left"
    assert lines(caplog)[-1] == "round 100 of 100: validation_0-rmse 0.01"
    assert [int(line.split()[1]) for line in lines(caplog)] == list(range(10, 101, 10))


@pytest.mark.usefixtures("no_tqdm")
def test_at_most_one_line_a_second(caplog, clock):
    clock.round_takes = 0.024
    training = FakeTraining([clock, progress_callback(1)], 100).train()
    assert [int(line.split()[1]) for line in lines(caplog)] == [42, 84, 100]
    assert training.n_losses == 3  # computed for what is shown only


@pytest.mark.usefixtures("no_tqdm")
def test_rounds_of_a_continued_model_take_no_time(caplog, clock):
    FakeTraining([clock, progress_callback(True)], 1010, n_rounds=1000).train()
    assert len(lines(caplog)) == 10
    assert lines(caplog)[0] == "round 1001 of 1010: training loss 0.000999001, 0:00:09 left"


@pytest.mark.usefixtures("no_tqdm")
def test_showing_takes_little_of_the_time(caplog, clock):
    class SlowLoss(FakeTraining):
        def training_loss(self):
            clock.now += 1.0
            return super().training_loss()

    training = SlowLoss([clock, progress_callback(1)], 1000)
    training.train()
    assert [int(line.split()[1]) for line in lines(caplog)][:2] == [100, 200]
    clock.round_takes = 0.1
    training = SlowLoss([clock, progress_callback(1)], 1000)
    training.train()
    assert training.n_losses == 3  # 100 seconds: no more than two, and the last round


@pytest.mark.usefixtures("no_tqdm")
def test_rounds_done_together(caplog, clock):
    clock.round_takes = 5.0
    FakeTraining([clock, progress_callback(1)], 12, n_at_once=5).train()
    assert [line.split(",")[0] for line in lines(caplog)] == [
        "round 2 of 12: training loss 0.2",  # of round 5, which is done
        "round 6 of 12: training loss 0.1",
        "round 11 of 12: training loss 0.0833333",
        "round 12 of 12: training loss 0.0833333",
    ]


@pytest.mark.usefixtures("no_tqdm")
@pytest.mark.parametrize("n_at_once", [1, 30])
def test_the_round_at_which_training_stopped(caplog, clock, n_at_once):
    clock.round_takes = 0.0
    evals = {"validation_0": {"rmse": [*LOSSES[:50], *LOSSES[:50]]}}
    callbacks = [clock, EarlyStopping(2), progress_callback(1)]
    FakeTraining(callbacks, 100, evals, n_at_once=n_at_once).train()
    assert lines(caplog) == ["stopped early at round 52 of 100: validation_0-rmse 0.5"]


def test_after_a_line_for_every_round_what_ended_them(caplog):
    evals = {"validation_0": {"rmse": [1, 2, 3]}}
    FakeTraining([EarlyStopping(1), progress_callback(2)], 3, evals).train()
    assert lines(caplog)[-2:] == [
        "round 2 of 3: validation_0-rmse 2",
        "stopped early at round 2 of 3",
    ]


# --- trials of a preset ---------------------------------------------------------------------------


class Looking(TrainingCallback):
    """Tells the progress of a search of a training, as trials do."""

    def __init__(self, search):
        self.search = search

    def after_iteration(self, training, epoch, evals_log):
        self.search.look(training)
        return False

    def after_training(self, training):
        self.search.count(training.n_rounds)


def test_lines_while_a_preset_compares(caplog, clock):
    """The best is what was judged, not the luckiest training; the time is the whole fit's."""
    search = SearchProgress("lines", limit=1000.0)
    search.n_trainings = 4
    evals = {"validation_0": {"rmse": LOSSES}}
    FakeTraining([clock, Looking(search)], 100, evals).train()
    assert lines(caplog)[0] == "choosing parameters: training 1 of 4, at most 0:16:39 left"
    assert not any("best" in line for line in lines(caplog))
    search.judged("best rmse 0.5", seconds_after=50.0)
    caplog.clear()
    FakeTraining(
        [clock, Looking(search)], 1000, evals
    ).train()  # 100 rounds, as before, are expected
    assert lines(caplog)[:2] == [
        "choosing parameters: training 2 of 4, best rmse 0.5, 0:05:22 left",  # at 128 s: 272 + 50
        "choosing parameters: training 2 of 4, best rmse 0.5, 0:05:06 left",  # longer than expected
    ]
    clock.now = 2100.0
    FakeTraining([clock, Looking(search)], 1, evals).train()
    assert lines(caplog)[-1].endswith("training 3 of 4, best rmse 0.5, 0:00:00 left")  # the limit


def test_the_time_of_the_fit_counts_once_all_is_compared(caplog, clock):
    search = SearchProgress("lines", limit=np.inf)
    FakeTraining([clock, Looking(search)], 10).train()
    assert lines(caplog)[0] == "choosing parameters: training 1 of 1"
    search.judged("best auc 0.7", seconds_after=90.0)
    FakeTraining([clock, Looking(search)], 10).train()
    assert lines(caplog)[-1] == "choosing parameters: counting rounds, best auc 0.7, 0:01:24 left"


def test_a_live_line_is_cleared(capsys, clock):
    search = SearchProgress("live", limit=np.inf)
    search.judged("best auc 0.7", seconds_after=7.0)
    FakeTraining([clock, Looking(search)], 3, {"validation_0": {"auc": [0.5, 0.7, 0.6]}}).train()
    search.close()
    *shown, blank, end = capsys.readouterr().err.split("\r")
    assert shown[-1] == "choosing parameters: training 1 of 1, best auc 0.7, 0:00:07 left"
    assert (blank, end) == (" " * len(shown[-1]), "")


def test_who_sees_a_live_line(monkeypatch, capsys):
    """By default those who sit at a terminal; not cross-validations, and not after verbose=0."""
    shown = []
    monkeypatch.setattr(progress, "_LINE_INTERVAL", 0.0)
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = XGBRegressorLite(preset="auto", max_depth=2, n_estimators=3, learning_rate=0.3)
    quiet = XGBRegressorLite(preset="auto", max_depth=2, n_estimators=3, verbose=0)
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)  # noqa: B023
        for fit in (
            lambda: model.fit(X, X[:, 0]),
            lambda: model.fit(X, X[:, 0], verbose=False),
            lambda: quiet.fit(X, X[:, 0]),
            lambda: clone(model).fit(X, X[:, 0]),
        ):
            fit()
            shown.append("choosing parameters: training" in capsys.readouterr().err)
    assert shown == [*4 * [False], True, *3 * [False]]


# --- the bar -------------------------------------------------------------------------------------


def test_a_bar(capsys, clock):
    evals = {"validation_0": {"mae": LOSSES, "rmse": LOSSES}}
    threads = threading.enumerate()
    FakeTraining([clock, progress_callback(1)], 100, evals).train()
    assert threading.enumerate() == threads
    shown = capsys.readouterr().err
    assert "20/100" in shown
    assert "100%" in shown
    assert "stopped" not in shown
    assert re.search(r"validation_0-rmse 0\.01\] *\n", shown)


def test_the_bar_of_a_continued_model(capsys, clock):
    FakeTraining([clock, progress_callback(1)], 100, n_rounds=60).train()
    shown = capsys.readouterr().err
    assert " 60/100 " in shown
    assert " 61/100 " in shown
    assert " 100/100 " in shown
    assert re.search(r"training loss 0\.01\] *\n", shown)


def test_the_bar_looks_ten_times_a_second(capsys, clock):
    clock.round_takes = 0.026
    training = FakeTraining([clock, progress_callback(1)], 16).train()
    assert training.n_losses == 4
    shown = capsys.readouterr().err
    assert [n for n in range(1, 17) if f" {n}/16 " in shown] == [4, 8, 12, 16]


@pytest.mark.parametrize("round_takes", [0.0, 1.0])
def test_the_bar_says_that_training_stopped_early(capsys, clock, round_takes):
    clock.round_takes = round_takes  # the bar has shown the last round, or has not
    evals = {"validation_0": {"rmse": [*LOSSES[:40], *LOSSES[:60]]}}
    FakeTraining([clock, EarlyStopping(3), progress_callback(1)], 100, evals).train()
    last = capsys.readouterr().err.rstrip().split("\r")[-1]
    assert last.startswith("stopped early at round 43 of 100: 100%|")
    assert " 43/43 " in last
    assert "validation_0-rmse 0.333333]" in last


@pytest.mark.parametrize(
    ("reason", "words"),
    [("max_time", "stopped by max_time at round "), ("interrupted", "interrupted at round ")],
)
def test_what_else_ends_a_training(capsys, reason, words):
    X = np.random.default_rng(0).normal(size=(500, 3))

    class Interrupt(TrainingCallback):
        def before_iteration(self, training, epoch, evals_log):
            if epoch == 3 and reason == "interrupted":
                raise KeyboardInterrupt
            time.sleep(0.01)

    settings = dict(callbacks=[Interrupt()], max_time=0.02 if reason == "max_time" else None)
    model = XGBRegressorLite(verbose=1, **settings).fit(X, X[:, 0])
    assert model.stop_reason_ == reason
    last = capsys.readouterr().err.rstrip().split("\r")[-1]
    assert last.startswith(f"{words}{model.n_estimators_} of 100: 100%|")


def test_the_bar_of_a_notebook_is_full_when_training_stopped():
    left, drawn, right = (SimpleNamespace(max=100) for _ in range(3))

    class Bar:
        total, n, container = 100, 43, SimpleNamespace(children=(left, drawn, right))

        def set_description_str(self, text, refresh):
            self.text = text

    bar = Bar()
    progress._end_bar(bar, "stopped")
    assert (bar.total, drawn.max, bar.text) == (43, 43, "stopped")  # tqdm: red if n < total


class FailAt(TrainingCallback):
    def __init__(self, n_rounds, error):
        self.n_rounds = n_rounds
        self.error = error

    def before_training(self, training):
        if self.n_rounds < 0:
            raise self.error

    def after_iteration(self, training, epoch, evals_log):
        if epoch + 1 == self.n_rounds:
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("n_rounds", [-1, 1, 4])
def test_the_bar_closes_at_errors(capsys, monkeypatch, error, n_rounds):
    bars = []  # kept, since one that nobody keeps closes by itself

    def open_bar(*arguments, open_bar=progress._open_bar):
        bars.append(open_bar(*arguments))
        return bars[-1]

    monkeypatch.setattr(progress, "_open_bar", open_bar)
    callbacks = [progress_callback(1), FailAt(n_rounds, error)]
    with pytest.raises(error):
        FakeTraining(callbacks, 10).train()
    assert bars[0].disable  # what tqdm does when it closes
    shown = capsys.readouterr().err
    assert shown.endswith("\n")
    assert f" {max(n_rounds, 0)}/10 " in shown


def test_a_configuration_that_disables_other_loggers_does_not_silence_it(caplog):
    logger = logging.getLogger("sklboost")
    logger.disabled = True  # as logging.config.dictConfig leaves it
    try:
        test_a_line_for_every_round(caplog)
    finally:
        logger.disabled = False
