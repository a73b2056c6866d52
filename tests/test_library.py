"""A shared library of machine code: its levels, its index, calls of what is in it.

The library of these tests is written in C. That of a wheel is made by the compiler of this package,
see ``compiler/test_exporting.py``.
"""

import ctypes
import json
import platform
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

from sklboost.engine import backend
from sklboost.engine.backend import Backend
from sklboost.engine.library import loading
from sklboost.engine.library.kernels import LibraryKernel
from sklboost.engine.library.loading import Library, LibraryError
from sklboost.engine.library.packing import kinds_of
from sklboost.engine.library.processor import _LEVELS, asking, levels_of

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
VECTOR = kinds_of((np.zeros(3),))


def entry(number, kinds, returns="none"):
    return {"kinds": kinds, "returns": returns, "function": number}


INDEX = {
    "levels": LEVELS,
    "suffix": ".so",
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
    (folder / "index.json").write_text(json.dumps(INDEX))
    return folder


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


def test_without_a_compiler_the_error_says_what_to_install(kernel):
    def no_compiler():
        raise backend.needs_compiler("this")

    with pytest.raises(ImportError, match=r"pip install sklboost\[jit\]"):
        kernel("count", no_compiler)(np.zeros(3, dtype=np.float32))


def test_a_kernel_that_fails(kernel):
    with pytest.raises(RuntimeError, match="fail"):
        kernel("fail")(1)


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
    for level, features in _LEVELS.items():
        if not {names.get(name, name.lower()) for name in features} <= set(flags):
            break
        expected.append(level)
    assert levels_of(asking(ctypes.CDLL(str(folder / "x86.so")))) == expected


def copied(folder, tmp_path, **changes):
    for path in folder.iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "index.json").write_text(json.dumps(INDEX | changes))
    return tmp_path


def test_a_processor_below_all_levels(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "levels_of", lambda ask: [])
    with pytest.raises(LibraryError, match=r"this processor \(.*\) has less than x86-64-v2"):
        Library(copied(folder, tmp_path, levels=["x86-64-v2"]))


def test_a_level_that_is_not_there(folder):
    with pytest.raises(LibraryError, match=r"this processor has .* of "):
        Library(folder, "x86-64-v9")


@pytest.mark.parametrize("damage", ["index.json", f"{LEVELS[0]}.so"])
@pytest.mark.parametrize("content", [None, b"", b"{}"])
def test_files_that_are_missing_or_damaged(folder, tmp_path, damage, content):
    path = copied(folder, tmp_path) / damage
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LibraryError, match="it cannot be loaded"):
        Library(tmp_path)


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
    assert choose("interpreter") == (Backend.INTERPRETER, None)
    assert choose(disable="1") == (Backend.INTERPRETER, None)
    assert choose(disable="0")[0] is Backend.LIBRARY


def test_what_is_asked_for_and_not_there_is_an_error(choose):
    with pytest.raises(ImportError, match=r"numba, which is not installed: pip install sklboost\["):
        choose("compiler", has_numba=False)
    with pytest.raises(ImportError, match="SKLBOOST_BACKEND=x86-64-v9: this processor has"):
        choose("x86-64-v9")
    with pytest.raises(ImportError, match="SKLBOOST_BACKEND=x86-64-v2: it cannot be loaded"):
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
