"""Every private name of numba and llvmlite that the package uses.

Kernels are compiled by numba, with changes (see ``docs/explanation/compilation.md``) that need
names which no release of numba promises. All are fetched here. :data:`MISSING` lists those that are
not there. If it lists any, :mod:`sklboost.engine.compiling` makes plain functions of numba's:
slower to compile, with the same results. ``tests/compiler/test_numba_assumptions.py`` tests what
would go wrong silently if numba changed it.
"""

from importlib import import_module
from typing import Any

import numba

# Name here: where numba or llvmlite has it.
FETCHED = {
    "AttributeTemplate": "numba.core.typing.templates:AttributeTemplate",
    "BaseNamedTuple": "numba.core.types:BaseNamedTuple",
    "CPUDispatcher": "numba.core.registry:CPUDispatcher",
    "Compiler": "numba.core.compiler:Compiler",
    "Conversion": "numba.core.typeconv:Conversion",
    "Environment": "numba.core.lowering:Environment",
    "ExtractByteCode": "numba.core.untyped_passes:ExtractByteCode",
    "FunctionIdentity": "numba.core.bytecode:FunctionIdentity",
    "JITCodeLibrary": "numba.core.codegen:JITCodeLibrary",
    "cgutils": "numba.core:cgutils",
    "compiler_lock": "numba.core.compiler_lock:global_compiler_lock",
    "cpu_target": "numba.core.registry:cpu_target",
    "default_mangler": "numba.core.funcdesc:default_mangler",
    "dumps": "numba.core.serialize:dumps",
    "infer_getattr": "numba.core.typing.templates:infer_getattr",
    "llvm_lock": "llvmlite.binding.ffi:lib._lock",
    "lower_getattr_generic": "numba.core.imputils:lower_getattr_generic",
    "make_concrete_template": "numba.core.typing:make_concrete_template",
    "normalize_signature": "numba.core.sigutils:normalize_signature",
    "trigger_event": "numba.core.event:trigger_event",
}
# Fetched when asked for, since only what is built needs them: the package does without.
FETCHED_LATER = {"AOTCPUCodegen": "numba.core.codegen:AOTCPUCodegen"}
# What is read, called or overridden of these.
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

# Without these there is no way around the others.
NEEDED = ("cgutils",)
MISSING: list[str] = []


def _fetch(place: str, is_needed: bool = False) -> Any:
    module, _, names = place.partition(":")
    try:
        found = import_module(module)
        for name in names.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        if is_needed:
            raise ImportError(
                f"sklboost needs {place}, which numba {numba.__version__} does not have; install "
                "a newer sklboost or an older numba"
            ) from error
        MISSING.append(place)
        return None
    return found


for _place in ATTRIBUTES:
    _fetch(_place)
globals().update({name: _fetch(place, name in NEEDED) for name, place in FETCHED.items()})


def __getattr__(name: str) -> Any:
    # never reached for a name fetched above; here also so that type checkers know of these
    if name in FETCHED_LATER:
        return _fetch(FETCHED_LATER[name], is_needed=True)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
