"""That it compiles everything is in test_versions.py."""

import sklboost
from sklboost.engine.compiler import caching
from sklboost.warmup import __main__ as command
from sklboost.warmup import warmup
from tests.conftest import run_python


def test_it_gives_seconds_and_prints_nothing(capsys):
    assert warmup is sklboost.warmup
    assert 0.0 < warmup() < 280.0
    assert capsys.readouterr() == ("", "")


NOTHING_ELSE = """
import sys
class Finder:
    def find_spec(name, path, target=None):
        if name in {"matplotlib", "pandas", "polars", "pyarrow", "shap", "tqdm"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Finder)
import sklboost
print(sklboost.warmup() < 280.0)
"""


def test_it_needs_nothing_but_what_the_package_requires(tmp_path):
    """As in a container into which nothing else was installed, and where a wheel is built."""
    assert run_python(NOTHING_ELSE, tmp_path, 290) == "True"


def test_verbose_prints_every_step(capsys):
    warmup(verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert all(line.endswith(" s") for line in lines)


def test_command_line(capsys):
    assert command.main([]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("ready in ")
    assert "kernels-" in last


def test_command_line_where_nothing_can_be_kept(capsys, monkeypatch):
    monkeypatch.setattr(caching, "filled_folders", lambda: [])
    assert command.main([]) == 1
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in capsys.readouterr().err
