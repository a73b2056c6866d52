import numba
import pytest

import sklboost
from sklboost.warmup import __main__ as command
from sklboost.warmup import warmup
from tests.conftest import run_python

WARM = """
import os, sys
os.environ["NUMBA_CACHE_DIR"] = sys.path[0] + "/cache"
import numpy as np, pandas as pd
from scipy.sparse import csr_array
from tests.compiled import fit_all, make_features, signatures
import sklboost

sklboost.warmup()
before = signatures()
X = make_features()
X32 = X.astype(np.float32)
for max_bin in (20, 256, 1000):
    for form in (X, X32, np.asfortranarray(X32), X[::2], pd.DataFrame(X32)):
        fit_all(form, X[:len(form)], max_bin=max_bin)
    fit_all(sklboost.bin_features(X, max_bin), X, max_bin=max_bin)
    fit_all(sklboost.bin_features(X32, max_bin, sample_weight=np.ones(len(X))), X, max_bin=max_bin)
    for form in (csr_array(np.nan_to_num(X)), csr_array(np.nan_to_num(X32))):
        fit_all(form, X, max_bin=max_bin)
categories, linear = dict(categorical_features=[0]), dict(linear_tree=True, subsample=0.5)
for n_levels in (9, 1000):
    levels = np.arange(len(X))[:, np.newaxis] % n_levels
    beside_numbers = np.hstack([levels, X])
    frame = pd.DataFrame(beside_numbers).astype({0: "category"})
    for form in (levels, np.hstack([levels, X32]), beside_numbers, frame):
        fit_all(form, X, **categories)
        model = sklboost.XGBRegressorLite(n_estimators=1, **categories, **linear)
        model.fit(form, X[:, 0], X_val=form, y_val=X[:, 0]).predict(form)
many = np.tile(X32[:, :1], (15, 1))
sklboost.XGBRegressorLite(n_estimators=1).fit(many, many[:, 0] > 0, np.ones(len(many)))
after = signatures()
print({name: set(after[name]) - set(before[name]) for name in after if after[name] != before[name]})
"""


@pytest.mark.timeout(600)  # all is compiled, and then some sixty fits
def test_afterwards_nothing_is_left_to_compile(tmp_path):
    assert run_python(WARM, tmp_path, timeout=580) == "{}"


def test_it_gives_seconds_and_prints_nothing(capsys):
    assert warmup is sklboost.warmup
    assert 0.0 < warmup() < 280.0
    assert capsys.readouterr() == ("", "")


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
    monkeypatch.setattr(command, "filled_folders", lambda: [])
    assert command.main([]) == 1
    assert "set NUMBA_CACHE_DIR to a folder that can be written" in capsys.readouterr().err


def test_help_of_the_command_line(capsys):
    with pytest.raises(SystemExit) as exit_:
        command.main(["--help"])
    assert exit_.value.code == 0
    assert "NUMBA_CACHE_DIR" in capsys.readouterr().out


@pytest.mark.interpreted
def test_without_compiler_there_is_nothing_to_do(monkeypatch, capsys):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert warmup(verbose=True) < 1.0
    assert capsys.readouterr().out == ""


MODULE = """
import os, subprocess, sys
command = [sys.executable, "-W", "error", "-m", "sklboost.warmup", "--help"]
print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])
"""


def test_it_runs_as_a_module(tmp_path):
    assert run_python(MODULE, tmp_path).startswith("usage: python -m sklboost.warmup")
