"""That it compiles everything, with nothing but what is required, is in test_versions.py."""

import re
import sys

import pytest

import sklboost
from sklboost.engine.compiler import caching
from sklboost.warmup import __main__ as command
from sklboost.warmup import steps, warmup


@pytest.fixture(autouse=True)
def done(monkeypatch):
    """Replace the steps, which take seconds also where everything is on disk; note which ran."""
    done = []
    few = [(f"step {number}", lambda number=number: done.append(number)) for number in range(2)]
    monkeypatch.setattr(steps, "steps", lambda: few)
    module = sys.modules["sklboost.warmup"]
    monkeypatch.setattr(module, "compile_all", lambda: done.append("late kernels"))
    return done


def test_it_does_every_step_with_its_late_kernels_and_gives_seconds(capsys, done):
    assert warmup is sklboost.warmup
    assert 0.0 < warmup() < 10.0
    assert capsys.readouterr() == ("", "")
    assert done == [0, "late kernels", 1, "late kernels"]
    warmup(verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    for number, line in enumerate(lines):
        assert re.fullmatch(rf"step {number} \.\.\. \d\.\d s", line)


def test_command_line(capsys, monkeypatch):
    assert command.main([]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("ready in ")
    assert "kernels-" in last
    monkeypatch.setattr(caching, "filled_folders", lambda: [])
    assert command.main([]) == 1
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in capsys.readouterr().err
