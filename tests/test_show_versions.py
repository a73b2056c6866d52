import re
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np

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


def test_the_code_that_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("SKLBOOST_BACKEND", "interpreter")
    script = (
        "import contextlib, io, sklboost\n"
        "with contextlib.redirect_stdout(io.StringIO()) as out:\n"
        "    sklboost.show_versions()\n"
        "print(out.getvalue().splitlines()[1])\n"
    )
    assert run_python(script, tmp_path).split(maxsplit=1) == ["code", "interpreted"]
