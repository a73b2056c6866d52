"""Losses that are a formula of a row: their code."""

import pytest

from tests.conftest import run_python
from tests.objectives.test_all_losses import CASES

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


def test_blocks_of_different_losses_have_different_names():
    """Their code is kept by these names: the loop is the same function for all of them."""
    blocks = {case.loss().block for case in CASES} - {None}
    assert len(blocks) > 10
    assert len({block.__qualname__ for block in blocks}) == len(blocks)


@pytest.mark.slow
def test_code_of_different_losses_is_kept_apart(monkeypatch, tmp_path):
    # numba numbers functions in each process: the first compiled of each has the same number
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for names in (["absolute"], ["squared"]):
        run_python(COMPILE.replace("NAMES", repr(names)), tmp_path)
    n_codes = run_python(COMPILE.replace("NAMES", repr(["absolute", "squared"])), tmp_path)
    assert n_codes == "2"
