"""Losses that are a formula of a row: their code."""

from tests.conftest import run_python

COMPILE = """
import sys
from sklboost.engine.compiling import address_of
from sklboost.objectives.blocks import LOSS_TYPES
from sklboost.objectives.losses.quantiles import AbsoluteError
from sklboost.objectives.losses.squared_error import SquaredError

losses = {"absolute": AbsoluteError, "squared": SquaredError}
for _ in range(2):
    addresses = [address_of(losses[name].block, LOSS_TYPES) for name in NAMES]
print(len(set(addresses)))
"""


def test_code_of_different_losses_is_kept_apart(monkeypatch, tmp_path):
    # numba numbers functions in each process: the first compiled of each has the same number
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for names in (["absolute"], ["squared"]):
        run_python(COMPILE.replace("NAMES", repr(names)), tmp_path)
    n_codes = run_python(COMPILE.replace("NAMES", repr(["absolute", "squared"])), tmp_path)
    assert n_codes == "2"
