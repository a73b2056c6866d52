"""A shared library of machine code: its levels, its index, calls of what is in it.

The library of these tests is written in C. That of a wheel is made by the compiler of this package,
see ``compiler/test_exporting.py``.
"""

import copy
import ctypes
import json
import pickle
import platform
import re
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from sklboost.engine import backend
from sklboost.engine import backend as loading
from sklboost.engine.backend import (
    X86_64_LEVELS,
    Backend,
    Library,
    LibraryError,
    LibraryKernel,
    asking,
    levels_of,
    needs_compiler,
    sources_digest,
)
from sklboost.engine.packing import pack
from sklboost.version import __version__

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
IS_X86 = platform.machine() in ("x86_64", "AMD64")
pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.skipif(COMPILER is None, reason="needs a C compiler"),
]

TEXT = """
#include <stdint.h>
#include <unistd.h>

typedef struct { int64_t none[2], size, itemsize; double *data; int64_t shape, stride; } Vector;
typedef struct { Vector *vector; double factor; } Product;

static int32_t sum(Product *arguments, double *result) {
    *result = 0.0;
    for (int64_t i = 0; i < arguments->vector->shape; i++)
        *result += arguments->factor * arguments->vector->data[i];
    return 0;
}
static int32_t count(Vector *vector, int64_t *result) { *result = vector->size; return 0; }
static int32_t clear(Vector *vector, void *result) { vector->data[0] = 0.0; return 0; }
static int32_t fail(void *arguments, void *result) { return 1; }
static int32_t wait_for(int64_t *arguments, void *result) { usleep(arguments[0]); return 0; }

void *sklboost_functions[] = {sum, count, clear, fail, wait_for};

#if defined(__x86_64__)
#include <cpuid.h>
void sklboost_processor(int64_t leaf, int64_t subleaf, uint32_t *out) {
    if (leaf == -1) __asm__("xgetbv" : "=a"(out[0]), "=d"(out[3]) : "c"(0));
    else __cpuid_count(leaf, subleaf, out[0], out[1], out[2], out[3]);
}
#else
void sklboost_processor(int64_t leaf, int64_t subleaf, uint32_t *out) {}
#endif
"""
LEVELS = ["x86-64-v2", "x86-64-v3"] if IS_X86 else ["generic"]
VECTOR = pack((np.zeros(3),))[0]


def entry(number, kinds, returns="none"):
    return {"kinds": kinds, "returns": returns, "function": number}


INDEX = {
    "version": __version__,
    "sources": "",
    "n_functions": 5,
    "kernels": {
        f"{__name__}.total": [entry(0, f"Numbers( {VECTOR} ) float64", "float64")],
        f"{__name__}.count": [entry(1, VECTOR, "int64")],
        f"{__name__}.clear": [entry(2, VECTOR)],
        f"{__name__}.fail": [entry(3, "int64")],
        f"{__name__}.wait_for": [entry(4, "int64")],
    },
    "blocks": {f"{__name__}.count": {"float64[::1]": 1}},
}


class Numbers(tuple):
    """A group of one array."""

    _fields = ("values",)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machine_code")
    (folder / "library.c").write_text(TEXT)
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", "x86.so", "library.c"]
    subprocess.run(command, check=True, cwd=folder)
    for level in LEVELS:
        shutil.copy(folder / "x86.so", folder / f"{level}.so")
    write_index(folder)
    return folder


def write_index(folder, **changes):
    size = (folder / "x86.so").stat().st_size
    libraries = {level: {"name": f"{level}.so", "size": size} for level in LEVELS}
    (folder / "index.json").write_text(json.dumps({"libraries": libraries} | INDEX | changes))


@pytest.fixture
def kernel(folder):
    """Return what makes a kernel of a name in the library; the compiler gives its name back."""
    library = Library(folder)

    def make(name, compiler=lambda: lambda *arguments: "compiled"):
        def function(*arguments):
            raise AssertionError("not called")

        function.__qualname__ = function.__name__ = name
        return LibraryKernel(function, library, compiler)

    return make


# --- calls


def test_a_kernel_gets_its_arguments_and_gives_its_result(kernel):
    assert kernel("total")(Numbers([np.array([1.0, 2.0, 4.5])]), 2.0) == 15.0
    assert kernel("count")(np.zeros(17)) == 17
    values = np.ones(3)
    assert kernel("clear")(values) is None
    assert values.tolist() == [0.0, 1.0, 1.0]


def test_other_arguments_are_for_the_compiler(kernel):
    assert kernel("count")(np.zeros(3, dtype=np.float32)) == "compiled"
    assert kernel("count")(np.zeros((3, 3))) == "compiled"
    assert kernel("count")(np.zeros(6)[::2]) == "compiled"
    assert kernel("no such kernel")(np.zeros(3)) == "compiled"
    assert kernel("fail")(2**64) == "compiled"  # beyond 64 bits


def test_without_a_compiler_the_error_says_what_to_install(kernel):
    def no_compiler():
        raise needs_compiler("this")

    expected = (
        f"{__name__}.count for arguments of which the wheel has no machine code ('f4[1C]') needs "
        "numba, which is not installed: pip install sklboost[jit]"
    )
    for value, text in [(np.zeros(3, dtype=np.float32), expected), ("text", "'text'")]:
        with pytest.raises(ImportError, match=re.escape(text)) as caught:
            kernel("count", no_compiler)(value)
        assert caught.value.name == "numba"


def test_kernels_are_pickled_by_name(kernel, monkeypatch):
    count = kernel("count")
    monkeypatch.setattr(sys.modules[__name__], "count", count, raising=False)
    assert pickle.loads(pickle.dumps(count)) is count
    assert copy.deepcopy(count) is count
    with pytest.raises(pickle.PicklingError, match="was made while the program ran"):
        pickle.dumps(kernel("total"))


def test_a_kernel_that_fails(kernel):
    with pytest.raises(RuntimeError, match="fail"):
        kernel("fail")(1)


@pytest.mark.timing
def test_other_threads_run_meanwhile(kernel):
    thread = threading.Thread(target=kernel("wait_for"), args=(500_000,))
    thread.start()
    begin = time.perf_counter()
    n_steps = 0
    while thread.is_alive() and n_steps < 20:
        time.sleep(0.001)
        n_steps += 1
    assert time.perf_counter() - begin < 0.4
    assert thread.is_alive()
    thread.join()


def test_addresses(kernel):
    address = kernel("count").address("float64[::1]")
    assert address > 0
    compiler = lambda: type("", (), {"address": lambda self, types: types})()  # noqa: E731
    assert kernel("count", compiler).address("int64") == "int64"


# --- levels


def test_the_highest_level_that_the_processor_has(folder):
    library = Library(folder)
    if IS_X86:
        here = levels_of(asking(ctypes.CDLL(str(folder / "x86.so"))))
        assert library.level == [level for level in here if level in LEVELS][-1]
        assert Library(folder, "x86-64-v2").level == "x86-64-v2"
    else:
        assert library.level == "generic"


@pytest.mark.skipif(platform.system() != "Linux" or not IS_X86, reason="reads /proc/cpuinfo")
def test_the_processor_is_told_as_linux_does(folder):
    names = {"SSE3": "pni", "CMPXCHG16B": "cx16", "SSE4.1": "sse4_1", "SSE4.2": "sse4_2"}
    names |= {"LAHF": "lahf_lm", "LZCNT": "abm", "OSXSAVE": "xsave"}
    with open("/proc/cpuinfo") as file:
        flags = next(line for line in file if line.startswith("flags")).split()
    expected = []
    for level, features in X86_64_LEVELS.items():
        if not {names.get(name, name.lower()) for name in features} <= set(flags):
            break
        expected.append(level)
    assert levels_of(asking(ctypes.CDLL(str(folder / "x86.so")))) == expected


def copied(folder, tmp_path, **changes):
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    write_index(tmp_path, **changes)
    return tmp_path


def test_a_processor_below_all_levels(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "levels_of", lambda ask: [])
    name = f"{LEVELS[0]}.so"
    libraries = {"x86-64-v2": {"name": name, "size": (folder / name).stat().st_size}}
    changed = copied(folder, tmp_path, libraries=libraries)
    with pytest.raises(LibraryError, match=r"this processor \(.*\) has less than x86-64-v2"):
        Library(changed)


@pytest.mark.skipif(not IS_X86, reason="has one level only")
def test_a_level_that_the_processor_does_not_have(folder, monkeypatch):
    monkeypatch.setattr(loading, "levels_of", lambda ask: ["x86-64-v2"])
    with pytest.raises(LibraryError, match="this processor has x86-64-v2 of x86-64-v2, x86-64-v3"):
        Library(folder, "x86-64-v3")


def test_a_level_that_is_not_there(folder):
    with pytest.raises(LibraryError, match=f"the machine code is for {', '.join(LEVELS)}"):
        Library(folder, "x86-64-v9")


def test_machine_code_of_another_version(folder, tmp_path):
    with pytest.raises(LibraryError, match=f"it is of version 0.0.1, not {__version__}"):
        Library(copied(folder, tmp_path, version="0.0.1"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        *((f"{LEVELS[0]}.so", content) for content in (None, b"", b"{}")),
        *(("index.json", content) for content in (None, b"", b"{}", b"[]", b'{"version": 1', b"7")),
    ],
)
def test_files_that_are_missing_or_damaged(folder, tmp_path, file, content):
    path = copied(folder, tmp_path) / file
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LibraryError, match=r"it cannot be loaded|bytes of .*: install it again"):
        Library(tmp_path)


@pytest.mark.parametrize(
    "changes", [{"libraries": {}}, {"n_functions": "x"}, {"libraries": {LEVELS[0]: {}}}]
)
def test_an_index_with_something_else_in_it(folder, tmp_path, changes):
    with pytest.raises(LibraryError, match="it cannot be loaded"):
        Library(copied(folder, tmp_path, **changes))


def test_a_library_of_something_else_is_not_taken(folder, tmp_path):
    (tmp_path / "other.c").write_text("int other(void) { return 1; }")
    command = [COMPILER, "-shared", "-fPIC", "-o", "other.so", "other.c"]
    subprocess.run(command, check=True, cwd=tmp_path)
    size = (tmp_path / "other.so").stat().st_size
    libraries = {level: {"name": "other.so", "size": size} for level in LEVELS}
    with pytest.raises(LibraryError, match="it cannot be loaded"):
        Library(copied(folder, tmp_path, libraries=libraries))


@pytest.mark.skipif(backend.LIBRARY is None, reason="there is no machine code to be compared")
def test_the_machine_code_is_of_these_sources():
    assert backend.LIBRARY.sources == sources_digest()


# --- the choice of a backend


@pytest.fixture
def choose(folder, monkeypatch):
    """Return what chooses a backend, with and without a library and numba."""

    def choose(wanted="", has_library=True, has_numba=True, disable=""):
        monkeypatch.setenv("SKLBOOST_BACKEND", wanted)
        monkeypatch.setenv("NUMBA_DISABLE_JIT", disable)
        monkeypatch.setattr(backend, "FOLDER", folder if has_library else folder / "none")
        monkeypatch.setattr(backend, "find_spec", lambda name: object() if has_numba else None)
        monkeypatch.setattr(backend, "_compiler_or_interpreter", lambda: Backend.COMPILER)
        return backend._choose()

    return choose


@pytest.mark.parametrize("has_numba", [True, False])
def test_a_wheel_runs_its_library(choose, has_numba):
    chosen, library = choose(has_numba=has_numba)
    assert chosen is Backend.LIBRARY
    assert library.level in LEVELS
    assert choose(LEVELS[0], has_numba=has_numba)[1].level == LEVELS[0]


def test_a_checkout_compiles(choose):
    assert choose(has_library=False) == (Backend.COMPILER, None)


def test_others_by_name(choose):
    assert choose("compiler") == (Backend.COMPILER, None)
    assert choose(" interpreter ") == (Backend.INTERPRETER, None)
    # numba's variable is for what numba would compile
    assert choose(disable="1")[0] is Backend.LIBRARY


def test_what_is_asked_for_and_not_there_is_an_error(choose):
    with pytest.raises(ImportError, match=r"numba, which is not installed: pip install sklboost\["):
        choose("compiler", has_numba=False)
    with pytest.raises(
        ImportError,
        match=f"SKLBOOST_BACKEND='wheel': the machine code is for {', '.join(LEVELS)}; or take "
        "compiler or interpreter",
    ):
        choose("wheel")
    with pytest.raises(ImportError, match="SKLBOOST_BACKEND='x86-64-v2': it cannot be loaded"):
        choose("x86-64-v2", has_library=False)


def test_a_library_that_does_not_fit(choose, monkeypatch):
    def refuse(*arguments):
        raise LibraryError("this processor (6502) has less than x86-64-v2")

    monkeypatch.setattr(backend, "Library", refuse)
    with pytest.warns(RuntimeWarning, match=r"not used, as this processor \(6502\).* by numba"):
        assert choose() == (Backend.COMPILER, None)
    with pytest.warns(RuntimeWarning, match=r"\(6502\) .*Python runs it all.*sklboost\[jit\]"):
        assert choose(has_numba=False) == (Backend.INTERPRETER, None)


def test_neither_a_library_nor_numba(choose):
    with pytest.warns(RuntimeWarning, match=r"no machine code, and numba is not installed"):
        assert choose(has_library=False, has_numba=False) == (Backend.INTERPRETER, None)
