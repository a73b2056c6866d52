"""What is compiled again after an edit: what depends on it, and nothing else."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

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
    return folder


@pytest.fixture(scope="module")
def first_fit(package):
    return fit(package)


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


def edit(folder, file, before, after):
    path = folder / "sklboost" / file
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, after), encoding="utf-8")


def test_a_first_fit_compiles_what_it_needs_and_a_second_one_nothing(package, first_fit):
    compiled, bits = first_fit
    assert "sklboost.tree.core.pruning.prune" in compiled
    assert 30 < len(compiled) < 150
    assert len(set(compiled)) > 30
    assert fit(package) == ([], bits)


def test_a_comment_a_docstring_and_a_line_compile_nothing(package, first_fit):
    _, bits = first_fit
    edit(
        package,
        "tree/core/pruning.py",
        "    nodes = tree.nodes\n",
        "    # why\n\n    nodes = tree.nodes\n",
    )
    edit(package, "tree/core/formulas.py", '"""Move G towards 0', '"""Move the sum G to 0')
    assert fit(package) == ([], bits)


def test_an_edited_kernel_is_compiled_and_not_those_that_call_it(package, first_fit):
    _, bits = first_fit
    edit(
        package,
        "tree/core/pruning.py",
        "        if nodes[node].gain < params.prune_gain:\n",
        "        gain = nodes[node].gain\n        if gain < params.prune_gain:\n",
    )
    assert fit(package) == (["sklboost.tree.core.pruning.prune"], bits)


def test_a_module_that_no_kernel_depends_on_compiles_nothing(package, first_fit):
    _, bits = first_fit
    path = package / "sklboost" / "boosting" / "callbacks.py"
    path.write_text(path.read_text(encoding="utf-8") + "\nCHANGED = 1\n", encoding="utf-8")
    assert fit(package) == ([], bits)


def test_an_edited_formula_is_compiled_in_the_kernels_it_is_part_of(package, first_fit):
    first_compiled, bits = first_fit
    edit(
        package,
        "tree/core/formulas.py",
        "    gain = left + right - parent\n",
        "    both = left + right\n    gain = both - parent\n",
    )
    compiled, bits_now = fit(package)
    assert bits_now == bits
    assert 0 < len(compiled) < len(first_compiled) / 3
    # by what it is part of, not by the file it is in
    assert "sklboost.tree.core.pruning.prune" not in compiled
    assert any(name.startswith("sklboost.tree.core.splitting.") for name in compiled)
    assert fit(package) == ([], bits)


def test_an_edit_of_the_formula_reaches_the_models(package, first_fit):
    _, bits = first_fit
    edit(
        package,
        "tree/core/formulas.py",
        "weight = -soft_threshold(",
        "weight = -0.5 * soft_threshold(",
    )
    compiled, bits_now = fit(package)
    assert compiled
    assert bits_now != bits
