"""Kernels that are kept on disk and linked in other processes, also after edits."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.compiler.conftest import run_alone

MODULE = """
import numpy as np
from sklboost.engine.compiling import inlined, kernel, late
from sklboost.engine.compiler.linking import KERNELS

@kernel
def bottom(x):
    return x + 1

@inlined
def formula(x):
    return bottom(x) * 2

@late("int64")
def rarely(x):
    return bottom(x) + 100

@kernel
def middle(x):
    return formula(x) + bottom(x)

@kernel
def top(x):
    return rarely(x) if x > 10 else middle(x)

def compiled():
    names = []
    for name, called in KERNELS.items():
        if name.startswith("chain."):
            names += [name[6:]] * sum(called._cache_misses.values())
            names += [name[6:] + ".entry"] * sum(called.entry._cache_misses.values())
    return " ".join(sorted(names))
"""

USE = """
import faulthandler, os
faulthandler.enable()
from chain import compiled, top
print(*(top({type}(x)) for x in {values}), compiled(), sep=";")
"""


class Chain(NamedTuple):
    """A folder with the module above, and what runs a script there in another process."""

    folder: Path
    run: Callable

    def use(self, values, type_="int"):
        return self.run(USE.format(values=values, type=type_), self.folder)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a folder with the module above, and with what a first process leaves on disk."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "chain.py").write_text(MODULE)
    everything = "bottom middle rarely top top.entry"
    assert Chain(folder, run_alone).use((1, 20)) == f"6;121;{everything}"
    return folder


@pytest.fixture
def chain(filled, tmp_path, run_forked):
    """Return a copy of that folder."""
    shutil.copytree(filled, tmp_path / "chain")
    return Chain(tmp_path / "chain", run_forked)


def edit(chain, before, after):
    path = chain.folder / "chain.py"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    shutil.rmtree(chain.folder / "__pycache__", ignore_errors=True)


def code_files(chain, name):
    files = list((chain.folder / "mine").glob(f"kernels-*/{name}-*.code"))
    assert files
    return files


def test_a_second_process_compiles_nothing(chain):
    for run in (run_alone, chain.run):
        assert chain._replace(run=run).use((1, 20)) == "6;121;"


@pytest.mark.parametrize(
    "damages",
    [
        {"bottom": lambda whole: b"garbage", "top": lambda whole: b""},
        {"middle": lambda whole: None, "rarely": lambda whole: whole[: len(whole) // 2]},
    ],
    ids=lambda damages: " and ".join(damages),
)
def test_what_is_missing_or_damaged_is_compiled_and_nothing_else(chain, damages):
    for name, damage in damages.items():
        for path in code_files(chain, name):
            content = damage(path.read_bytes())
            if content is None:
                path.unlink()
            else:
                path.write_bytes(content)
    compiled = " ".join(damages) + (" top.entry" if "top" in damages else "")
    assert chain.use((1, 20)) == f"6;121;{compiled}"


def test_an_edited_kernel_is_compiled_but_not_its_callers_and_a_late_one_when_it_is_called(chain):
    edit(chain, "+ 100", "+ 200")
    assert chain.use((1,)) == "6;"
    edit(chain, "return x + 1\n", "return x + 3\n")
    assert chain.use((1, 20)) == "12;223;bottom rarely"


def test_an_edited_formula_is_compiled_with_what_it_is_part_of(chain):
    edit(chain, "bottom(x) * 2", "bottom(x) * 3")
    assert chain.use((1, 20)) == "8;121;middle"


def test_callers_are_compiled_for_a_result_of_another_type(chain):
    edit(chain, "return x + 1\n", "return x + 1.5\n")
    edit(chain, '@late("int64")', '@late("float64")')
    compiled = "bottom middle rarely top top.entry"
    assert chain.use((1, 20)) == f"7.5;121.5;{compiled}"


def test_callers_are_compiled_for_a_kernel_of_another_kind(chain):
    edit(chain, "@kernel\ndef bottom", "@inlined\ndef bottom")
    assert chain.use((1, 20)) == "6;121;middle rarely"
    edit(chain, '@late("int64")', "@kernel")
    assert chain.use((1, 20)) == "6;121;top"


def test_a_declaration_that_turned_wrong_is_told_in_the_next_process(chain):
    edit(chain, '@late("int64")', '@late("float64")')
    text = USE.format(values=(1,), type="int") + (
        "for _ in range(2):\n    try:\n        top(20)\n    except TypeError as error:\n"
        "        print(error)\n"
    )
    assert chain.run(text, chain.folder) == "chain.rarely returns int64; it was declared as float64"


FORK = """
from chain import rarely
assert (top(1), top(20)) == (6, 121)
child = os.fork()
if child == 0:
    try:
        assert (top(2), top(21)) == (9, 122)
        assert (top(2.5), rarely(7)) == (10.5, 108)  # the one compiled here, the other loaded
    except BaseException as error:
        print(repr(error))
        os._exit(1)
    os._exit(0)
status = os.waitpid(child, 0)[1]
assert (top(3), top(22)) == (12, 123)
print(status)
"""

if hasattr(os, "fork"):

    def test_kernels_and_cells_go_on_in_a_forked_process(chain):
        assert chain.run(USE.format(values=(), type="int") + FORK, chain.folder) == "0"
