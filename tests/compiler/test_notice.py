"""The line that is shown while kernels are compiled, on a clock and a disk of its own."""

import io
import logging
import re
import sys
from types import SimpleNamespace

import pytest

import sklboost
from sklboost.engine.compiler import kernels, making, notice
from sklboost.engine.compiler.notice import Notice
from sklboost.engine.compiling import kernel
from sklboost.warmup import steps as warmup_steps
from tests.conftest import run_python

LINE = "sklboost: compiling kernels once for this machine, about {} s; then cached"


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def screen(self):
        """What can be read now."""
        shown = ""
        for part in self.getvalue().split("\r"):
            shown = part + shown[len(part) :]
        return shown.rstrip()


@pytest.fixture
def world(monkeypatch):
    """A clock, the number of files and a terminal."""
    terminal = Terminal()
    streams = SimpleNamespace(stderr=terminal)  # pytest sets those of sys again and again
    world = SimpleNamespace(now=100.0, n_files=0, terminal=terminal, streams=streams)
    monkeypatch.setattr(notice, "monotonic", lambda: world.now)
    monkeypatch.setattr(notice, "n_kept", lambda: world.n_files)
    monkeypatch.setattr(notice, "sys", world.streams)
    # libraries that other tests of the process import set levels, or switch loggers off
    root, own, disabled = logging.getLogger(), logging.getLogger("sklboost"), logging.root.manager
    before = root.level, own.level, disabled.disable
    root.setLevel(logging.WARNING)
    own.setLevel(logging.NOTSET)
    logging.disable(logging.NOTSET)
    monkeypatch.setattr(own, "disabled", False)
    yield world
    root.setLevel(before[0])
    own.setLevel(before[1])
    logging.disable(before[2])


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.INFO, "sklboost")
    return lambda: [record.getMessage() for record in caplog.records]


def compile_kernels(world, notice, n_kernels, seconds, is_kept=True):
    """Compile kernels within one another, as those that a kernel calls are."""
    screens = []
    with notice.compiling():
        for _ in range(n_kernels - 1):
            with notice.compiling():
                world.now += seconds
                world.n_files += is_kept
            screens.append(world.terminal.screen())
        world.now += seconds
        world.n_files += is_kept
    return screens


def test_one_line_that_is_gone_when_compilation_ends(world, said):
    screens = compile_kernels(world, Notice(), 84, 0.15)
    assert screens[0] == screens[5] == ""  # less than a second
    assert screens[6] == LINE.format(12)
    assert screens[40] == LINE.format(6)
    assert screens[-1].endswith("for this machine, some seconds; then cached")
    assert world.terminal.screen() == ""
    assert "\n" not in world.terminal.getvalue()
    assert said() == [LINE.format(12).removeprefix("sklboost: ")]  # to logging it goes once


@pytest.mark.parametrize("seconds", [0.05, 0.6])
def test_how_long_it_takes_is_told_from_how_long_it_took(world, seconds):
    screens = compile_kernels(world, Notice(), 84, seconds)
    for n_done in (30, 50, 70):
        told = int(re.search(r"about (\d+) s", screens[n_done - 1])[1])
        assert told == pytest.approx(seconds * (84 - n_done), rel=0.3, abs=1)


def test_kernels_on_disk_are_not_counted_again(world):
    world.n_files = 60
    screens = compile_kernels(world, Notice(), 24, 0.15)
    assert screens[9] == LINE.format(2)
    world.n_files, world.now = 200, 500.0
    screens = compile_kernels(world, Notice(), 24, 0.15)  # those of an option: who knows how many
    assert "some seconds" in screens[9]


def test_a_kernel_or_two_pass_unmentioned(world, said):
    notice = Notice()
    for _ in range(10):
        compile_kernels(world, notice, 2, 0.2)
        world.now += 30  # some other fit
    assert world.terminal.getvalue() == ""
    assert said() == []


def test_kernels_of_one_fit_are_one_compilation(world, said):
    notice = Notice()
    for _ in range(10):  # kernels that are called one after the other
        compile_kernels(world, notice, 2, 0.2)
        assert world.terminal.screen() == ""
        world.now += 0.1
    with notice.compiling():
        assert world.terminal.screen().startswith("sklboost: compiling")  # from its beginning
    assert len(said()) == 1
    world.now += 1000
    compile_kernels(world, notice, 20, 0.2)
    assert len(said()) == 2


def test_a_process_that_waits_tells_the_same_from_what_the_other_one_keeps(world):
    notice = Notice()
    with notice.compiling():
        for _ in range(20):
            world.now, world.n_files = world.now + 0.15, world.n_files + 1
            notice.update()
        assert world.terminal.screen() == LINE.format(10)
    assert world.terminal.screen() == ""


def test_where_nothing_can_be_kept_it_does_not_say_so(world):
    screens = compile_kernels(world, Notice(), 20, 0.2, is_kept=False)
    assert re.fullmatch(
        r"sklboost: compiling kernels, about 1\d s; set NUMBA_CACHE_DIR to keep them",
        screens[-1],
    )


def test_a_narrow_terminal_has_one_line_too(world, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    screens = compile_kernels(world, Notice(), 20, 0.2)
    assert len(screens[-1]) == 39
    assert world.terminal.screen() == ""


def test_in_a_notebook(world):
    class OutStream(io.StringIO):  # not a terminal
        __module__ = "ipykernel.iostream"

    world.streams.stderr = OutStream()
    compile_kernels(world, Notice(), 20, 0.2)
    assert "sklboost: compiling kernels" in world.streams.stderr.getvalue()


def closed():
    stream = Terminal()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [io.StringIO, lambda: None, closed])
def test_not_in_files_and_pipes(world, said, stream):
    world.streams.stderr = stream()
    compile_kernels(world, Notice(), 20, 0.2)
    if stream is io.StringIO:
        assert world.streams.stderr.getvalue() == ""
    assert len(said()) == 1


@pytest.mark.parametrize("name", ["sklboost", None])
def test_the_switch_is_the_level_of_the_logger(world, name):
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        compile_kernels(world, Notice(), 20, 0.2)
    finally:
        logger.setLevel(before)
    assert world.terminal.getvalue() == ""


def test_warmup_speaks_for_itself(world, said, monkeypatch):
    new = Notice()
    steps = [("a step", lambda: compile_kernels(world, new, 20, 0.2))]
    monkeypatch.setattr(warmup_steps, "steps", lambda: steps)
    monkeypatch.setattr(making, "NOTICE", new)
    # kernels that other tests of the process have declared tell the notice of all
    monkeypatch.setattr(sys.modules["sklboost.warmup"], "compile_all", lambda: None)
    sklboost.warmup()
    assert world.terminal.getvalue() == ""
    assert said() == []
    compile_kernels(world, new, 20, 0.2)
    assert len(said()) == 1


def add(a, b):
    return a + b


def test_it_is_shown_where_something_is_compiled_and_not_where_it_is_loaded(
    world, empty_cache, monkeypatch
):
    monkeypatch.setattr(notice, "_SHORT", 0.0)
    monkeypatch.setattr(kernels, "NOTICE", Notice())
    assert kernel(add)(1, 2) == 3
    shown = world.terminal.getvalue()
    assert "sklboost: compiling kernels" in shown
    world.now += 1000
    assert kernel(add)(1, 2) == 3
    assert world.terminal.getvalue() == shown


FIRST_FIT = """
import numpy as np
from sklboost import XGBClassifierLite
from sklboost.engine.compiler.linking import LINKED
X = np.random.default_rng(0).normal(size=(500, 5))
XGBClassifierLite(n_estimators=3).fit(X, X[:, 0] > 0).predict(X)
print(len(LINKED))
"""


@pytest.mark.slow
def test_a_first_fit_has_about_as_many_kernels_as_the_estimate_takes_it_to_have(tmp_path):
    n_kernels = int(run_python(FIRST_FIT, tmp_path))
    assert n_kernels == pytest.approx(notice._KERNELS_OF_A_FIT, rel=0.1)
