"""What the package takes for granted of numba and llvmlite.

A test that fails here says which of it a release of theirs has changed, above all where kernels
would compile as before and be wrong. Where no kernel would compile any more, or none be loaded,
the other tests of this folder fail as well.
"""

import ast
import inspect
import re
import subprocess
import sys
import threading
from importlib import import_module

import llvmlite.binding as llvm
import numba
import numpy as np
import pytest
from llvmlite import ir
from numba import types

from sklboost.engine.compiler import numba_internals
from tests.conftest import ROOT

# What is read, called or overridden of numba's and llvmlite's classes.
ATTRIBUTES = (
    "llvmlite.binding:ExecutionEngine.add_object_file",
    "numba.core.base:BaseContext.declare_function",
    "numba.core.base:BaseContext.get_abi_sizeof",
    "numba.core.base:BaseContext.insert_user_function",
    "numba.core.base:BaseContext.mangler",
    "numba.core.bytecode:FunctionIdentity.from_function",
    "numba.core.codegen:CPUCodegen.magic_tuple",
    "numba.core.codegen:JITCodeLibrary._ensure_finalized",
    "numba.core.codegen:JITCodeLibrary._finalize_dynamic_globals",
    "numba.core.codegen:JITCodeLibrary._finalize_final_module",
    "numba.core.codegen:JITCodeLibrary._get_compiled_object",
    "numba.core.codegen:JITCodeLibrary._optimize_final_module",
    "numba.core.codegen:JITCodeLibrary._optimize_functions",
    "numba.core.codegen:JITCodeLibrary.enable_object_caching",
    "numba.core.codegen:JITCodeLibrary.has_dynamic_globals",
    "numba.core.codegen:JitEngine.finalize_object",
    "numba.core.codegen:JitEngine.get_function_address",
    "numba.core.compiler:Compiler._compile_bytecode",
    "numba.core.compiler:Compiler.compile_extra",
    "numba.core.compiler:Flags.no_compile",
    "numba.core.cpu:CPUContext.get_executable",
    "numba.core.lowering:Environment.from_fndesc",
    "numba.core.registry:CPUDispatcher._insert",
    "numba.core.registry:CPUDispatcher.add_overload",
    "numba.core.registry:CPUDispatcher.compile",
    "numba.core.registry:CPUDispatcher.fold_argument_types",
    "numba.core.registry:CPUDispatcher.get_call_template",
    "numba.core.registry:CPUDispatcher.get_overload",
)


def found(place):
    module, _, names = place.partition(":")
    value = import_module(module)
    for name in names.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize("place", ATTRIBUTES)
def test_every_attribute_is_there(place):
    found(place)


def with_numba(change):
    """Import the package with a numba that is changed before."""
    script = f"import numba, numba.core.registry\n{change}\nimport sklboost"
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_numba_without_a_name_is_an_error_that_says_what_to_install():
    run = with_numba("del numba.core.codegen.JITCodeLibrary")
    assert run.returncode == 1
    assert "ImportError: kernels cannot be compiled" in run.stderr
    assert f"numba {numba.__version__} is installed: run pip install 'sklboost[jit]'" in run.stderr


def test_a_numba_that_is_not_tested_is_warned_of():
    run = with_numba("numba.version_info = numba.version_info._replace(short=(0, 99))")
    assert run.returncode == 0
    assert run.stderr.count("RuntimeWarning: kernels may be compiled wrongly") == 1
    assert "sklboost is tested with numba 0." in run.stderr


def test_the_requirement_is_what_is_tested():
    (first, stop) = [".".join(map(str, version)) for version in numba_internals.TESTED]
    assert f'"numba<{stop},>={first}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


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
    outside = {path.name for path in FILES if imported(path) - PUBLIC}
    assert outside == {"numba_internals.py"}
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
