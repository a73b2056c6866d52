"""What a fit compiles again after an edit of the package: what depends on it, and nothing else.

``test_linking.py`` has the same for a few small kernels, whose compilation takes a moment.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

FIT = """
import hashlib, json, sys
import numpy as np
import sklboost
from sklboost.engine.compiler.linking import KERNELS

assert sklboost.__file__.startswith(sys.argv[1]), sklboost.__file__
random = np.random.default_rng(0)
X = random.normal(size=(300, 4))
y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
model = sklboost.XGBClassifierLite(n_estimators=4, max_depth=3, gamma=0.5, n_jobs=1).fit(X, y)
bits = hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest()
compiled = []
for name, kernel in list(KERNELS.items()):
    compiled += [name] * sum(kernel._cache_misses.values())
    compiled += [f"{name}.entry"] * sum(kernel.entry._cache_misses.values())
print(json.dumps([sorted(compiled), bits]))
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Return a folder with a copy of the package, and with what a first fit has left on disk."""
    folder = tmp_path_factory.mktemp("copy")
    no_code = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "sklboost", folder / "sklboost", ignore=no_code)
    return folder, fit(folder)


def fit(folder):
    """Fit in a new process; give the names of what was compiled, and the bits of predictions."""
    environment = dict(
        os.environ,
        PYTHONPATH=str(folder),
        NUMBA_CACHE_DIR=str(folder / "cache"),
        PYTHONDONTWRITEBYTECODE="1",  # two edits within a second could look like one
    )
    command = [sys.executable, "-c", FIT, str(folder)]
    output = subprocess.check_output(command, env=environment, cwd=folder, text=True)
    return tuple(json.loads(output))


def edited(folder, file, before, after):
    """Edit a file of the package, fit, and return what was compiled and the bits."""
    path = folder / "sklboost" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")
    return fit(folder)


def test_a_first_fit_compiles_what_it_needs_and_a_second_one_nothing(package):
    folder, (compiled, bits) = package
    assert "sklboost.tree.core.pruning.prune" in compiled
    assert 30 < len(compiled) < 150
    assert len(set(compiled)) > 30
    assert fit(folder) == ([], bits)


def test_an_edited_formula_is_compiled_in_the_kernels_it_is_part_of(package):
    folder, (first_compiled, bits) = package
    compiled, bits_now = edited(
        folder,
        "tree/core/formulas.py",
        "    gain = left + right - parent\n",
        "    both = left + right\n    gain = both - parent\n",
    )
    assert bits_now == bits
    assert 0 < len(compiled) < len(first_compiled) / 3
    # by what it is part of, not by the file it is in
    assert "sklboost.tree.core.pruning.prune" not in compiled
    assert any(name.startswith("sklboost.tree.core.splitting.") for name in compiled)


def test_an_edit_of_the_formula_reaches_the_models(package):
    folder, (_, bits) = package
    compiled, bits_now = edited(
        folder,
        "tree/core/formulas.py",
        "weight = -soft_threshold(",
        "weight = -0.5 * soft_threshold(",
    )
    assert compiled
    assert bits_now != bits
