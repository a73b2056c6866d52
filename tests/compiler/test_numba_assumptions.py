"""What the package takes for granted of numba and llvmlite.

A test that fails here says which of it a release of theirs has changed, above all where kernels
would compile as before and be wrong. Where no kernel would compile any more, or none be loaded,
the other tests of this folder fail as well.
"""

import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import types as python_types
from importlib import import_module

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import types

from sklboost.engine.compiler import numba_internals
from sklboost.engine.compiler.numba_internals import ATTRIBUTES, FETCHED, FETCHED_LATER, NEEDED
from tests.conftest import ROOT

PLACES = [*FETCHED.values(), *ATTRIBUTES]
SOURCE = inspect.getsource(numba_internals)


def found(place):
    module, _, names = place.partition(":")
    value = import_module(module)
    for name in names.split("."):
        value = getattr(value, name)
    return value


def fence_where(place, new):
    """Run the source of the fence with `new` for a place; return the module."""
    text = f'"{place}"'
    assert SOURCE.count(text) == 1
    module = python_types.ModuleType("fence")
    exec(compile(SOURCE.replace(text, f'"{new}"'), "fence.py", "exec"), vars(module))
    return module


# --- the fence


def test_every_name_is_there():
    assert numba_internals.MISSING == []


@pytest.mark.parametrize("name", NEEDED)
def test_without_a_name_that_is_needed_the_import_says_so(name):
    with pytest.raises(ImportError, match=f"sklboost needs {FETCHED[name]}_gone, which numba"):
        fence_where(FETCHED[name], f"{FETCHED[name]}_gone")


@pytest.mark.parametrize("name", FETCHED_LATER)
def test_a_name_that_only_exports_need_is_missed_where_it_is_asked_for(name):
    module = fence_where(FETCHED_LATER[name], f"{FETCHED_LATER[name]}_gone")
    assert list(module.MISSING) == []
    with pytest.raises(ImportError, match=f"sklboost needs {FETCHED_LATER[name]}_gone, which"):
        getattr(module, name)


def test_the_fence_notices_a_name_or_a_module_that_is_gone():
    for place in set(PLACES) - set(map(FETCHED.get, NEEDED)):
        for gone in (f"{place}_gone", place.replace(":", "_gone:")):
            module = fence_where(place, gone)
            assert list(module.MISSING) == [gone]
            for name, other in FETCHED.items():
                value = None if other == place else getattr(numba_internals, name)
                assert getattr(module, name) is value


FILES = sorted((ROOT / "sklboost").rglob("*.py"))
PUBLIC = {"llvmlite", "llvmlite.ir", "llvmlite.binding", "numba", "numba.types", "numba.extending"}


def imported(path):
    """Return the modules of numba and llvmlite that a file imports, or that may be modules."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module in {"numba", "llvmlite"}:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
            else:
                names.add(node.module)
    return {name for name in names if name.partition(".")[0] in {"numba", "llvmlite"}}


def test_one_file_knows_what_is_private():
    outside = {path.name: names for path in FILES if (names := imported(path) - PUBLIC)}
    assert outside == {}  # nor does that file import it: it fetches names, which may be gone
    private = re.compile(r"numba\.(core|np|cpython)\b|llvm\.ffi")  # through what is public
    text = [path.name for path in FILES if private.search(path.read_text(encoding="utf-8"))]
    assert text == ["numba_internals.py"]


# --- what is assumed of single names

CONTEXT = numba_internals.cpu_target.target_context


@numba.njit(no_cpython_wrapper=True)
def add(x, y=1):
    return x + y


@pytest.fixture(scope="module")
def compiled():
    add.compile((types.int64, types.int64))
    return add.overloads[types.int64, types.int64]


def test_the_mangler_takes_what_symbols_are_made_of():
    mangle = numba_internals.default_mangler
    assert {"abi_tags", "uid"} <= set(inspect.signature(mangle).parameters)
    assert mangle("a.b.0123", (), uid=0) == mangle("a.b.0123", (), uid=0)
    assert mangle("a.b.0123", (), uid=1) != mangle("a.b.0123", (), uid=2)
    symbol = mangle("a.<locals>.b c#1", (), uid=0)
    assert symbol.isascii()
    assert " " not in symbol


def test_attributes_can_be_set():
    copy = CONTEXT.subtarget(error_model="numpy")
    assert copy is not CONTEXT
    copy.mangler = print
    assert CONTEXT.mangler is not print
    flags = found("numba.core.compiler:Flags")()
    assert flags.no_compile is False
    flags.no_compile = True
    assert flags.no_compile is True
    identity = numba_internals.FunctionIdentity.from_function(add.py_func)
    assert identity.func_qualname == "add"
    identity.unique_name, identity.unique_id = "other", 3
    assert (identity.unique_name, identity.unique_id) == ("other", 3)


def test_names_of_types_say_all():
    array = types.Array(types.float64, 2, "C", readonly=True)
    others = [array.copy(readonly=False), array.copy(layout="F"), array.copy(ndim=1)]
    others += [array.copy(dtype=types.float32), array.copy(dtype=types.int64)]
    assert len({array.name, *(other.name for other in others)}) == 6
    first = numba.from_dtype(np.dtype([("a", np.int8), ("b", np.int64)]))
    second = numba.from_dtype(np.dtype([("a", np.int8), ("b", np.int64)], align=True))
    third = numba.from_dtype(np.dtype([("b", np.int8), ("a", np.int64)]))
    assert len({kind.name for kind in (first, second, third)}) == 3


def test_functions_are_linked_as_one_of_several_definitions(compiled):
    # what the package turns into "internal", so that one process may have two
    text = str(compiled.library._final_module)
    assert "define" in text
    assert llvm.Linkage.linkonce_odr.name == "linkonce_odr"


def test_what_python_calls_does_not_become_part_of_what_unpacks_its_arguments():
    # groups lie in the frame of that, and loads of their fields need not be after what fills it
    @numba.njit
    def own(x):
        return x + 1

    own.compile((types.int64,))
    (text,) = own.inspect_llvm().values()
    assert "noinline" in text
    name = own.overloads[types.int64,].fndesc.llvm_func_name
    wrapper = text.partition("define ptr @")[2] or text.partition("define i8* @")[2]
    assert f"@{name}(" in wrapper.partition("\n}")[0]


def test_results_that_are_not_written_are_0(compiled):
    # what a caller gets from the stand-in of a kernel that cannot be compiled
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "caller")
    builder = ir.IRBuilder(function.append_basic_block())
    convention = CONTEXT.call_conv
    kind = convention.get_function_type(types.int64, ())
    callee = ir.Function(module, kind, "callee")
    convention.call_function(builder, callee, types.int64, (), ())
    builder.ret_void()
    assert "store i64 0" in str(function)
    assert isinstance(kind.return_type, ir.IntType)
    assert kind.return_type.width == 32


def test_options_that_numba_does_not_know_raise():
    with pytest.raises(KeyError, match="no_such_option"):
        numba.jit(nopython=True, no_such_option=True)(lambda x: x).compile((types.int64,))


@pytest.mark.parametrize("name", ["compiler_lock", "llvm_lock"])
def test_locks_keep_other_threads_out_and_are_given_back(name):
    lock, has_it = getattr(numba_internals, name), threading.Event()

    def take():
        with lock:
            has_it.set()

    thread = threading.Thread(target=take)
    with lock:
        with lock:  # by one thread more than once
            thread.start()
        assert not has_it.wait(0.1)
    assert has_it.wait(10.0)
    thread.join()


def test_sizes_are_those_of_the_processor():
    for kind, size in [(types.int64, 8), (types.boolean, 1), (types.float32, 4)]:
        assert CONTEXT.get_abi_sizeof(CONTEXT.get_value_type(kind)) == size
    array = types.Array(types.float64, 1, "C")
    assert CONTEXT.get_abi_sizeof(CONTEXT.get_value_type(array)) == 7 * 8


# --- without one of them

A_KERNEL = """
from sklboost.engine.compiling import address_of, compile_all, inlined, kernel, late

@inlined
def triple(x):
    return 3 * x

@late("float64")
def rarely(x):
    return x / 0.0

@kernel
def called(x):
    return rarely(x) if x < 0 else triple(x) + 1.0

compile_all()
return [called(2), called(-1), address_of(called, "float64") > 0], called
"""
A_FIT = """
from sklboost import XGBClassifierLite
from sklboost.tree.core.pruning import prune

random = np.random.default_rng(0)
X = random.normal(size=(200, 3))
y = (X[:, 0] + X[:, 1] > 0).astype(int)
model = XGBClassifierLite(n_estimators=3, max_depth=2, n_jobs=1).fit(X, y)
return hashlib.sha256(model.predict_proba(X).tobytes()).hexdigest(), prune
"""
SCRIPT = """
import hashlib, json, warnings
import numpy as np

def work():
{}

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    result, kernel = work()
told = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
print(json.dumps([result, told, type(kernel).__module__]))
"""


def done_with_package_in(folder, work):
    """Do some work in a process of its own that has the package in a folder."""
    output = subprocess.check_output(
        [sys.executable, "-c", SCRIPT.format(textwrap.indent(work, "    "))],
        env=dict(os.environ, PYTHONPATH=str(folder)),
        cwd=folder,
        text=True,
    )
    return json.loads(output.splitlines()[-1])


@pytest.mark.timeout(600)  # everything that a fit needs is compiled as numba does
@pytest.mark.parametrize("work", [A_KERNEL, pytest.param(A_FIT, marks=pytest.mark.slow)])
def test_without_a_name_the_package_works_as_well_and_says_so_once(tmp_path, work):
    missing = "numba.core.codegen:JITCodeLibrary._optimize_final_module"
    no_code = shutil.ignore_patterns("kernels-*")
    shutil.copytree(ROOT / "sklboost", tmp_path / "sklboost", ignore=no_code)
    fence = tmp_path / "sklboost" / "engine" / "compiler" / "numba_internals.py"
    fence.write_text(SOURCE.replace(f'"{missing}"', f'"{missing}_gone"'), encoding="utf-8")
    result, told, kind = done_with_package_in(ROOT, work)
    assert (told, kind) == ([], "sklboost.engine.compiler.kernels")
    result_without, told, kind = done_with_package_in(tmp_path, work)
    assert result_without == result
    assert kind.startswith("numba.")
    (text,) = told
    assert f"has no {missing}_gone" in text
    assert "compiles anew" in text
