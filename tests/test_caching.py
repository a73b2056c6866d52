from pathlib import Path

import numba
import pytest

from sklboost import caching
from sklboost.caching import cache_folders, filled_folders
from sklboost.compiling import kernel
from tests.conftest import finish, run_python, start_python

CODE_FOLDER = r"kernels-[0-9a-f]{16}"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Give a folder with two sources that caching.py takes for its package."""
    (tmp_path / "room").mkdir()
    (tmp_path / "caching.py").write_text("one = 1\n")
    (tmp_path / "room" / "other.py").write_text("two = 2\n")
    monkeypatch.setattr(caching, "__file__", str(tmp_path / "caching.py"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    return tmp_path


# --- folders


@pytest.mark.interpreted
def test_the_folders_depend_on_every_source(package):
    before = cache_folders()
    assert cache_folders() == before
    (package / "room" / "notes.txt").write_text("not a source")
    assert cache_folders() == before
    (package / "room" / "other.py").write_text("two = 3\n")
    assert not set(cache_folders()) & set(before)


@pytest.mark.interpreted
def test_the_folders_are_that_of_the_package_and_one_at_home(package, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: package / "home")
    first, second = cache_folders()
    assert first.parent == package / "__pycache__"
    assert second.parent == package / "home" / ".cache" / "sklboost"
    assert first.name == second.name


@pytest.mark.interpreted
def test_a_user_may_have_no_home(package, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    (only,) = cache_folders()
    assert only.parent == package / "__pycache__"


@pytest.mark.interpreted
def test_a_folder_chosen_by_the_user_is_the_only_one(package, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(package / "mine"))
    (only,) = cache_folders()
    assert only.parent == package / "mine"


# --- files


def add(a, b):
    return a + b


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Let kernels be kept in two empty folders."""
    folders = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setattr(caching, "_FOLDERS", folders)
    return folders


def n_compiled(*arguments):
    """Call a new kernel; give the result and how many versions were compiled, not loaded."""
    new = kernel(add)
    result = new(*arguments)
    return result, sum(new.entry.stats.cache_misses.values())


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_a_version_is_compiled_once(folders):
    assert filled_folders() == []
    assert n_compiled(1, 2) == (3, 1)
    assert n_compiled(1, 2) == (3, 0)
    assert n_compiled(1, 2.5) == (3.5, 1)
    assert n_compiled(1, 2.5) == (3.5, 0)
    assert n_compiled(1, 2) == (3, 0)
    assert len(names(folders[0])) == 2
    assert all(name.startswith("add-entry-") for name in names(folders[0]))
    assert filled_folders() == [folders[0]]


def test_the_kind_the_file_and_the_processor_tell_versions_apart(folders, monkeypatch):
    n_compiled(1, 2)
    inner = kernel(add)
    inner.compile((numba.int64, numba.int64))
    assert inner.stats.cache_misses
    monkeypatch.setattr(caching, "_file_digest", lambda file: "changed")
    assert n_compiled(1, 2) == (3, 1)
    codegen = type(kernel(add).targetctx.codegen())
    monkeypatch.setattr(codegen, "magic_tuple", lambda self: ("another processor",))
    assert n_compiled(1, 2) == (3, 1)
    assert len(names(folders[0])) == 4


def test_a_folder_is_read_without_writing(folders, monkeypatch):
    n_compiled(1, 2)

    def refuse(path, content):
        raise PermissionError("read-only file system")

    monkeypatch.setattr(caching, "_write_at_once", refuse)
    assert n_compiled(1, 2) == (3, 0)
    assert n_compiled(1, 2.5) == (3.5, 1)  # and what is not there is compiled
    assert n_compiled(1, 2.5) == (3.5, 1)  # each time


def test_the_second_folder_takes_what_the_first_cannot(folders):
    first, second = folders
    first.write_text("not a folder")
    assert n_compiled(1, 2) == (3, 1)
    assert n_compiled(1, 2) == (3, 0)
    assert len(names(second)) == 1
    first.unlink()
    assert n_compiled(1, 2) == (3, 0)
    assert n_compiled(1, 2.5) == (3.5, 1)
    assert len(names(first)) == len(names(second)) == 1


def test_a_write_that_fails_leaves_nothing(folders, monkeypatch):
    def fail(path, target):
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    assert n_compiled(1, 2) == (3, 1)
    assert [names(folder) for folder in folders] == [[], []]


def test_a_kernel_typed_in_is_not_kept(folders):
    scope = {}
    exec(compile("def typed_in(x):\n    return 2 * x", "<stdin>", "exec"), scope)
    assert kernel(scope["typed_in"])(3) == 6
    assert filled_folders() == []


# --- processes

CHOSEN = """
import os, sys
os.environ["NUMBA_CACHE_DIR"] = sys.path[0] + "/mine"
import numpy as np
from sklboost.hashing import mix_bits
print(mix_bits(np.uint64(1)))
"""


def test_the_folder_of_the_environment_variable_is_used(tmp_path):
    run_python(CHOSEN, tmp_path)
    (folder,) = (tmp_path / "mine").iterdir()
    assert [name.split("-")[0] for name in names(folder)] == ["mix_bits"]


AT_ONCE = """
import os, sys, time
os.environ["NUMBA_CACHE_DIR"] = sys.path[0] + "/mine"
from pathlib import Path
import numpy as np
from sklboost.compiling import kernel

@kernel
def twice(x):
    return x + x

@kernel
def four_times(x):
    return twice(twice(x))

Path(f"{sys.path[0]}/ready-{os.getpid()}").touch()
while len(list(Path(sys.path[0]).glob("ready-*"))) < 2:
    time.sleep(0.001)
numbers = [np.int64(3), np.float64(3), np.float32(3), np.uint8(3), np.int32(3), np.uint64(3)]
assert [four_times(x) for x in numbers] == [12] * 6
print(sum(sum(k.stats.cache_misses.values()) for k in (twice, four_times.entry)))
"""


def test_two_processes_may_compile_at_once(tmp_path):
    processes = [start_python(AT_ONCE, tmp_path) for _ in range(2)]
    outputs = [finish(process, timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert run_python(AT_ONCE, tmp_path) == "0"  # all is there, and right
    (folder,) = (tmp_path / "mine").iterdir()
    assert all(name.endswith(".code") for name in names(folder))
