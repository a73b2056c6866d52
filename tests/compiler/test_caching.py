import hashlib
from pathlib import Path

import numba
import pytest

from sklboost.engine.compiler import caching
from sklboost.engine.compiler.caching import cache_folders, filled_folders, read_code, write_code
from sklboost.engine.compiling import kernel


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a folder with a package whose compiler caching.py takes for its own."""
    (tmp_path / "engine" / "compiler").mkdir(parents=True)
    (tmp_path / "engine" / "compiler" / "caching.py").write_text("one = 1\n")
    (tmp_path / "engine" / "compiler" / "other.py").write_text("two = 2\n")
    (tmp_path / "tree.py").write_text("three = 3\n")
    monkeypatch.setattr(caching, "__file__", str(tmp_path / "engine" / "compiler" / "caching.py"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(caching, "_TOOLCHAIN", caching._toolchain_digest())
    return tmp_path


def folders_now():
    """Return the folders that a process has which begins now."""
    caching._TOOLCHAIN = caching._toolchain_digest()
    return cache_folders()


# --- folders


@pytest.mark.interpreted
def test_the_folders_depend_on_the_sources_of_the_compiler_only(package):
    before = folders_now()
    assert folders_now() == before
    (package / "engine" / "compiler" / "notes.txt").write_text("not a source")
    (package / "tree.py").write_text("three = 4\n")
    assert folders_now() == before
    (package / "engine" / "compiler" / "other.py").write_text("two = 3\n")
    assert not set(folders_now()) & set(before)


@pytest.mark.interpreted
def test_the_folders_depend_on_the_processor_and_on_versions(package, monkeypatch):
    seen = {folders_now()[0].name}
    codegen = type(caching.cpu_target.target_context.codegen())
    with monkeypatch.context() as patch:
        patch.setattr(codegen, "magic_tuple", lambda self: ("another processor",))
        seen.add(folders_now()[0].name)
    for module, name in [(numba, "__version__"), (caching.llvmlite, "__version__")]:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, "0.0.1")
            seen.add(folders_now()[0].name)
    assert len(seen) == 4


@pytest.mark.interpreted
def test_the_folders_are_that_of_the_package_and_one_at_home_or_the_one_that_a_user_chose(
    package, monkeypatch
):
    monkeypatch.setattr(Path, "home", lambda: package / "home")
    first, second = cache_folders()
    assert first.parent == package / "__pycache__"
    assert second.parent == package / "home" / ".cache" / "sklboost"
    assert first.name == second.name
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(package / "mine"))
    (only,) = cache_folders()
    assert only == package / "mine" / first.name


@pytest.mark.interpreted
def test_a_user_may_have_no_home(package, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    (only,) = cache_folders()
    assert only.parent == package / "__pycache__"


# --- files


def add(a, b):
    return a + b


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Let kernels be kept in two empty folders."""
    folders = [tmp_path / "first", tmp_path / "second"]
    monkeypatch.setattr(caching, "_folders", lambda: folders)
    return folders


def n_compiled(*arguments):
    """Call a new kernel; give the result and how many of its versions for Python were compiled."""
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
    assert len(names(folders[0])) == 4  # the kernel and what Python calls, for both types
    assert all(name.startswith("add-") for name in names(folders[0]))
    assert filled_folders() == [folders[0]]


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
    assert len(names(second)) == 2
    first.unlink()
    assert n_compiled(1, 2) == (3, 0)
    assert n_compiled(1, 2.5) == (3.5, 1)
    assert len(names(first)) == len(names(second)) == 2


def test_a_write_that_fails_leaves_nothing(folders, monkeypatch):
    def fail(path, target):
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    assert n_compiled(1, 2) == (3, 1)
    assert [names(folder) for folder in folders] == [[], []]


def test_a_file_begins_with_a_checksum(folders):
    write_code("some", b"content")
    (path,) = folders[0].iterdir()
    assert path.read_bytes() == hashlib.sha256(b"content").digest() + b"content"
    assert read_code("some") == b"content"
    assert read_code("other") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"garbage",
        lambda content: content[:32],
        lambda content: content[:-1],
        lambda content: content[: len(content) // 2],
        lambda content: content + b"\0",
        lambda content: b"\0" + content[1:],
        lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    ],
    ids=["empty", "garbage", "header only", "cut", "half", "longer", "checksum", "one bit"],
)
def test_a_damaged_file_is_not_read_and_is_written_anew(folders, damage):
    n_compiled(1, 2)
    paths = sorted(folders[0].iterdir())
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(damage(content))
        assert read_code(path.stem) is None
    assert n_compiled(1, 2) == (3, 1)
    assert n_compiled(1, 2) == (3, 0)
    assert sorted(folders[0].iterdir()) == paths
    assert all(read_code(path.stem) is not None for path in paths)


def test_where_one_folder_has_a_damaged_file_the_other_is_read(folders):
    first, second = folders
    write_code("some", b"content")
    second.mkdir()
    (second / "some.code").write_bytes((first / "some.code").read_bytes())
    (first / "some.code").write_bytes(b"garbage")
    assert read_code("some") == b"content"
