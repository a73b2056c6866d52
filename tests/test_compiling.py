import os
from pathlib import Path

import numba
import numpy as np
import pytest

from sklboost import compiling
from sklboost.compiling import kernel
from sklboost.hashing import mix_bits
from tests.conftest import run_python


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Give a folder with two sources that compiling.py takes for its package."""
    (tmp_path / "room").mkdir()
    (tmp_path / "compiling.py").write_text("one = 1\n")
    (tmp_path / "room" / "other.py").write_text("two = 2\n")
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "compiling.py"))
    return tmp_path


@pytest.mark.interpreted
def test_the_cache_folder_depends_on_every_source(package):
    before = compiling._cache_folder()
    assert compiling._cache_folder() == before
    (package / "room" / "notes.txt").write_text("not a source")
    assert compiling._cache_folder() == before
    (package / "room" / "other.py").write_text("two = 3\n")
    assert compiling._cache_folder() != before


@pytest.mark.interpreted
def test_the_cache_lies_in_the_package_or_at_home(package, monkeypatch):
    assert Path(compiling._cache_folder()).parent == package / "__pycache__"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(Path, "home", lambda: package / "home")
    folder = Path(compiling._cache_folder())
    assert folder.parent == package / "home" / ".cache" / "sklboost"


@kernel
def double(x):
    return 2 * x


@kernel
def quadruple(x):
    return double(double(x))


@pytest.mark.interpreted
def test_numbas_own_setting_is_put_back(monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "of the user")
    kernel(lambda x: x)
    assert numba.config.CACHE_DIR == "of the user"


def test_kernels_are_called_by_kernels_and_from_python():
    assert quadruple(3) == 12
    assert double(3.5) == 7.0
    assert [str(s) for s in double.signatures] == ["(int64,)"]  # what quadruple calls
    assert [str(s) for s in double.entry.signatures] == ["(float64,)"]
    assert quadruple.signatures == []  # no kernel calls it


def test_a_kernel_that_allocates_does_not_compile():
    @kernel
    def allocate(n):
        return np.zeros(n).sum()

    with pytest.raises(numba.TypingError, match="array passed into the function"):
        allocate(3)


def test_division_by_zero_is_that_of_numpy():
    @kernel
    def divide(a, b):
        return a / b

    assert divide(1.0, 0.0) == float("inf")


SCRIPT = """
import os, sys
os.environ["NUMBA_CACHE_DIR"] = sys.path[0] + "/mine"
import numpy as np
from sklboost.hashing import mix_bits
mix_bits(np.uint64(1))
print(len([name for _, _, names in os.walk(sys.path[0] + "/mine") for name in names]))
"""


def test_a_cache_folder_chosen_by_the_user_is_used(tmp_path):
    assert int(run_python(SCRIPT, tmp_path)) >= 2  # an index and the code


def test_kernels_release_the_lock_of_the_interpreter_and_keep_strict_arithmetic():
    assert mix_bits.targetoptions["nogil"]
    assert not mix_bits.targetoptions.get("fastmath")
