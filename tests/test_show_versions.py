import re
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pytest

import sklboost
from sklboost.engine import backend
from tests.conftest import run_python


def lines(text):
    return dict(re.fullmatch(r"(\S+) +(\S.*)", line).groups() for line in text.splitlines())


def test_versions(capsys):
    sklboost.show_versions()
    seen = lines(capsys.readouterr().out)
    assert list(seen)[:3] == ["sklboost", "code", "python"]
    assert seen["sklboost"] == sklboost.__version__
    assert seen["code"] == backend.description()
    assert seen["numpy"] == np.__version__
    if find_spec("numba"):
        assert seen["numba"] == version("numba")
    assert {"platform", "processors", "scipy", "scikit-learn", "joblib"} <= set(seen)


def test_what_is_not_installed(capsys, monkeypatch):
    """An optional library is left out, a required one is not."""
    module = __import__("sklboost.show_versions", fromlist=["_REQUIRED"])
    monkeypatch.setattr(module, "_REQUIRED", ("numpy", "no-such-library"))
    monkeypatch.setattr(module, "_OPTIONAL", ("no-such-option",))
    sklboost.show_versions()
    seen = lines(capsys.readouterr().out)
    assert seen["no-such-library"] == "not installed"
    assert "no-such-option" not in seen


@pytest.mark.parametrize(
    ("variable", "value", "code"),
    [
        ("SKLBOOST_BACKEND", "interpreter", "interpreted"),
        pytest.param("NUMBA_DISABLE_JIT", "1", "interpreted", marks=pytest.mark.slow),
        pytest.param(
            *("SKLBOOST_BACKEND", "compiler", "compiled on this machine"), marks=pytest.mark.slow
        ),
    ],
)
def test_the_code_that_runs(tmp_path, monkeypatch, variable, value, code):
    if code != "interpreted" or variable.startswith("NUMBA"):  # which a wheel does not heed
        pytest.importorskip("numba")
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    monkeypatch.setenv(variable, value)
    script = (
        "import contextlib, io, sklboost\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "    sklboost.show_versions()\n"
        "print(out.getvalue().splitlines()[1])\n"
    )
    assert run_python(script, tmp_path).split(maxsplit=1) == ["code", code]
