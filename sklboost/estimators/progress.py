"""The lines of `verbose`, while a model trains or files are read.

It is shown whether or not logging is configured, and no setting of logging is changed for it.
"""

import logging
import math
import sys
from datetime import timedelta
from time import monotonic
from typing import Any

from sklboost.boosting.callbacks import EvalsLog, TrainingCallback, TrainingState
from sklboost.engine.parallel import is_main_thread

_LOGGER = logging.getLogger("sklboost")

# Seconds between two looks of the bar, and between two lines of text.
_BAR_INTERVAL = 0.1
_LINE_INTERVAL = 1.0
# Seconds after which reading is worth showing.
_READING_IS_LONG = 2.0
# A line may need a pass over all rows: lines take at most one part in so many of the time.
_REST_AFTER_SHOWING = 50
# The reasons for which a training ends before its last round.
_STOPPED = {
    "early_stopping": "stopped early",
    "max_time": "stopped by max_time",
    "interrupted": "interrupted",
}


def progress_callback(verbose: int) -> TrainingCallback:
    """Return the callback that shows the progress as the parameter `verbose` says."""
    return Progress() if verbose == 1 else RoundLines(1 if verbose == 2 else verbose)


class Progress(TrainingCallback):
    """Shows how far training is, what the last metric says, and how long it will take."""

    every_round = False

    def __init__(self) -> None:
        self._bar: Any = None
        self._shown = 0
        self._latest: tuple[int, EvalsLog] = (0, {})
        self._due = 0.0

    def before_training(self, training: TrainingState) -> None:
        """Open the bar, if there is one."""
        self._shown = training.first_round
        self._latest = (self._shown, {})
        self._bar = _open_bar(training.n_estimators, training.first_round, "round")
        self._due = monotonic() + self._interval

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Show this round if it is time to.

        A training loss may include rounds which were done together with this one, a few
        hundredths of a second later.
        """
        self._latest = (epoch + 1, evals_log)
        if self._is_due(training):
            before = monotonic()
            self._show(training, _last_metric(evals_log) or _training_loss(training))
            now = monotonic()
            self._due = now + max(self._interval, _REST_AFTER_SHOWING * (now - before))
        return False

    def after_training(self, training: TrainingState) -> None:
        """Show the round at which training stopped, and why; close the bar."""
        n_rounds, evals_log = self._latest
        text, ending = _last_metric(evals_log), _ending(training, n_rounds)
        if self._bar is None and ending:
            log_line(f"{ending}: {text}" if text else ending)
        elif n_rounds > self._shown:
            self._show(training, text)
        if self._bar is not None:
            if ending:
                _end_bar(self._bar, ending)
            self._bar.close()
            self._bar = None

    @property
    def _interval(self) -> float:
        return _LINE_INTERVAL if self._bar is None else _BAR_INTERVAL

    def _is_due(self, training: TrainingState) -> bool:
        n_rounds, first, stop = training.n_rounds, training.first_round, training.n_estimators
        if n_rounds == stop:
            return True
        if monotonic() < self._due:
            return False
        n_tenths, n_shown = (10 * (n - first) // (stop - first) for n in (n_rounds, self._shown))
        return self._bar is not None or n_tenths > n_shown

    def _show(self, training: TrainingState, text: str) -> None:
        n_rounds, _ = self._latest
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)
            self._bar.update(n_rounds - self._shown)
        else:
            n_left = training.n_estimators - n_rounds
            left = training.elapsed / (n_rounds - training.first_round) * n_left
            parts = [text, f"{_duration(left)} left" if n_left else ""]
            log_line(f"{_round(training, n_rounds)}: {', '.join(filter(None, parts))}")
        self._shown = n_rounds


class ReadingProgress:
    """Shows how many of `n_rows` rows have been read, if it takes long; a context manager."""

    def __init__(self, n_rows: int, verbose: int):
        self._n_rows, self._n_read, self._n_shown = n_rows, 0, 0
        self._is_shown = verbose > 0
        self._bar: Any = None
        self._due = monotonic() + _READING_IS_LONG

    def __enter__(self) -> "ReadingProgress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, n_rows: int) -> None:
        """Count rows; show how many if it is time to."""
        self._n_read += n_rows
        if not self._is_shown or monotonic() < self._due:
            return
        if self._n_shown == 0:
            self._bar = _open_bar(self._n_rows, 0, "row")
        if self._bar is None:
            log_line(f"{self._n_read:,} of {self._n_rows:,} rows read")
        else:
            self._bar.update(self._n_read - self._n_shown)
        self._n_shown = self._n_read
        self._due = monotonic() + (_LINE_INTERVAL if self._bar is None else _BAR_INTERVAL)


class SearchProgress:
    """Follows the trials of a preset and shows how far they are, the best so far, and what is left.

    `way` "lines": through logging, after 1, 2, 4, ... seconds. "live": in one line of stderr that
    is written anew and cleared at the end. "": not at all. The fit ends within `limit` seconds.
    """

    def __init__(self, way: str, limit: float):
        self.n_trainings = 1  # that compare settings
        self._way, self._n_done, self._width = way, 0, 0
        self._begin = self._compared = monotonic()  # of the trials; when the last one ended
        self._end = self._begin + limit
        self._due = self._begin + _LINE_INTERVAL
        self._n_rounds = 0  # of the last training
        self._best: str | None = None
        self._seconds_after = 0.0

    def judged(self, best: str, seconds_after: float) -> None:
        """Note the best outcome so far, and how long all takes that follows the comparison."""
        self._best, self._seconds_after = best, seconds_after

    def look(self, training: TrainingState) -> None:
        """Show the line if it is time to."""
        now = monotonic()
        if self._way and now >= self._due:
            text = ", ".join(filter(None, [self._place(), self._best, self._left(training, now)]))
            if self._way == "live":
                self._write(text)
                self._due = now + _BAR_INTERVAL
            else:
                log_line(text)
                self._due = now + (now - self._begin)

    def count(self, n_rounds: int) -> None:
        """Count a training that has ended, of so many rounds."""
        self._n_done += 1
        self._n_rounds = n_rounds
        if self._n_done <= self.n_trainings:
            self._compared = monotonic()

    def close(self) -> None:
        """Clear the line."""
        if self._width > 0:
            self._write("")
            self._width = 0

    def _place(self) -> str:
        if self._n_done >= self.n_trainings:
            return "choosing parameters: counting rounds"
        return f"choosing parameters: training {self._n_done + 1} of {self.n_trainings}"

    def _left(self, training: TrainingState, now: float) -> str:
        """Describe the time that is left of the whole fit: unknown before the first outcome."""
        limit = max(0.0, self._end - now)
        if self._best is None:
            return f"at most {_duration(limit)} left" if math.isfinite(limit) else ""
        if self._n_done >= self.n_trainings:
            left = max(0.0, self._seconds_after - (now - self._compared))
        else:
            # early stopping ends a training as late as the one before, as far as can be known
            expected = min(training.n_estimators, max(self._n_rounds, training.n_rounds))
            n_done = self._n_done + training.n_rounds / expected
            left = (now - self._begin) * (self.n_trainings / n_done - 1.0) + self._seconds_after
        return f"{_duration(min(left, limit))} left"

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text:<{self._width}}" + ("" if text else "\r"))
        sys.stderr.flush()
        self._width = len(text)


def is_watched() -> bool:
    """Whether somebody looks at what this thread shows: in a terminal or a notebook, no worker."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return is_main_thread() and (is_terminal or "ipykernel" in sys.modules)


class RoundLines(TrainingCallback):
    """Writes a line with all metrics after every `interval` rounds, and after the last."""

    def __init__(self, interval: int):
        self._interval = interval
        self._unwritten: tuple[int, EvalsLog] | None = None

    def after_iteration(self, training: TrainingState, epoch: int, evals_log: EvalsLog) -> bool:
        """Write the line of this round if it is its turn."""
        self._unwritten = (epoch, evals_log)
        if (epoch + 1) % self._interval == 0:
            self._write(training)
        return False

    def after_training(self, training: TrainingState) -> None:
        """Write the line of the last round, unless that has been done, and why it was the last."""
        if self._unwritten is not None:
            self._write(training)
        ending = _ending(training, training.n_rounds)
        if ending:
            log_line(ending)

    def _write(self, training: TrainingState) -> None:
        assert self._unwritten is not None
        epoch, evals_log = self._unwritten
        metrics = [
            _metric(data, metric, values[-1])
            for data, of_metric in evals_log.items()
            for metric, values in of_metric.items()
        ]
        text = ", ".join(metrics) or _training_loss(training)
        log_line(f"{_round(training, epoch + 1)}: {text}")
        self._unwritten = None


def _open_bar(total: int, initial: int, unit: str) -> Any:
    """Return a bar of tqdm, or None where it is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None

    class Bar(tqdm):
        monitor_interval = 0  # no thread that looks after bars without news: it would stay

    return Bar(
        total=total,
        initial=initial,
        unit=unit,
        unit_scale=unit == "row",
        mininterval=0,  # when to show is decided here
        miniters=1,
    )


def _end_bar(bar: Any, ending: str) -> None:
    """Make the rounds that were done all that a bar of tqdm is for, and say why."""
    bar.total = bar.n
    if hasattr(bar, "container"):  # in a notebook a widget of its own draws the bar
        bar.container.children[1].max = bar.n
    bar.set_description_str(ending, refresh=False)


def _round(training: TrainingState, n_rounds: int) -> str:
    return f"round {n_rounds} of {training.n_estimators}"


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _ending(training: TrainingState, n_rounds: int) -> str:
    """Describe what ended training before its last round; "" if nothing did."""
    stopped = _STOPPED.get(training.stop_reason)
    return f"{stopped} at {_round(training, n_rounds)}" if stopped else ""


def _last_metric(evals_log: EvalsLog) -> str:
    """Describe the last value of the last metric of the last validation data, if any."""
    for data in list(evals_log)[-1:]:
        for metric in list(evals_log[data])[-1:]:
            return _metric(data, metric, evals_log[data][metric][-1])
    return ""


def _training_loss(training: TrainingState) -> str:
    try:
        return f"training loss {training.training_loss():.6g}"
    except NotImplementedError:  # a function of the user, which gives derivatives only
        return "done"


def _metric(data: str, metric: str, value: float) -> str:
    return f"{data}-{metric} {value:.6g}"


def log_line(text: str) -> None:
    """Write a line to the handlers of logging, or to stderr where there are none.

    The logger's level is not asked: `verbose` was. Nor is whether it is disabled, as
    ``logging.config`` does by default to all loggers that its caller did not think of.
    """
    record = _LOGGER.makeRecord(_LOGGER.name, logging.INFO, __file__, 0, text, (), None)
    if not _LOGGER.hasHandlers():
        logging.StreamHandler().handle(record)
    elif _LOGGER.filter(record):
        _LOGGER.callHandlers(record)
