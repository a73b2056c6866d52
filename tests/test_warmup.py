"""What warmup does where nothing is compiled; that it compiles everything is in tests/compiler."""

import subprocess
import sys

import pytest

from sklboost.engine.backend import LIBRARY
from sklboost.warmup import __main__ as command
from sklboost.warmup.steps import steps
from tests.conftest import ROOT

STEPS = dict(steps())


@pytest.mark.parametrize("title", STEPS)
def test_each_step_finds_its_code(title):
    STEPS[title]()


CODE = {"interpreter": "interpreted"}
if LIBRARY is not None:
    CODE[LIBRARY.level] = f"machine code of the wheel ({LIBRARY.level})"


@pytest.mark.interpreted
@pytest.mark.parametrize(("backend", "code"), CODE.items())
def test_where_there_is_nothing_to_compile(backend, code, monkeypatch):
    monkeypatch.setenv("SKLBOOST_BACKEND", backend)
    told = run("-m", "sklboost.warmup")
    assert told == f"nothing to compile: {code}\n"
    script = "import sklboost; print(sklboost.warmup()); sklboost.warmup(verbose=True)"
    assert run("-c", script) == f"0.0\n{told}"


def test_help_of_the_command_line(capsys):
    with pytest.raises(SystemExit) as exit_:
        command.main(["--help"])
    assert exit_.value.code == 0
    help_ = capsys.readouterr().out
    assert help_.startswith("usage: python -m sklboost.warmup")
    assert "NUMBA_CACHE_DIR" in help_


def run(*arguments):
    """Return all that Python prints in a process of its own."""
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.check_output(command, cwd=ROOT, stderr=subprocess.STDOUT, text=True)
