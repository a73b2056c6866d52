"""One function to machine code: numba's compiler, with three changes.

In: a Python function and the types of its arguments. Out: numba's result, and the calls of kernels
that were found on the way.

- Symbols are the same in every process, so that machine code on disk can refer to them.
- What numba links into a function is hidden in it: in code from different processes, two functions
  of one name could be different ones.
- LLVM optimises a function once, in the kernel that it ends up in.
"""

import functools
import hashlib
from typing import Any

import llvmlite.binding as llvm

from sklboost.engine.compiler.linking import Call
from sklboost.engine.compiler.numba_internals import (
    Compiler,
    ExtractByteCode,
    FunctionIdentity,
    JITCodeLibrary,
    default_mangler,
    dumps,
    trigger_event,
)

# The calls that are found while functions are compiled, one set for each, the innermost last.
_FOUND: list[dict[tuple[str, str], Call]] = []


def note_call(call: Call) -> None:
    """Note a call in the function that is being compiled, if one is."""
    if _FOUND:
        _FOUND[-1][call.kernel, call.types] = call


def compile_function(dispatcher: Any, arguments: tuple) -> tuple[Any, tuple[Call, ...]]:
    """Compile the function of a dispatcher of numba's for arguments of these types."""
    _FOUND.append({})
    details = dict(dispatcher=dispatcher, args=arguments, return_type=None)
    try:
        with trigger_event("numba:compile", data=details):
            result = dispatcher._compiler.compile(arguments, None)
    finally:
        found = _FOUND.pop()
    result.library._ensure_finalized()
    return result, tuple(found.values())


@functools.cache
def types_digest(arguments: tuple) -> str:
    """Return a digest of types; the same in every process, unlike the numbers numba gives them."""
    return hashlib.sha256("|".join(kind.name for kind in arguments).encode()).hexdigest()[:16]


@functools.cache
def pickled_types(arguments: tuple) -> bytes:
    """Return types pickled: thousands of bytes each, so once for all calls with the same ones."""
    return dumps(arguments)


def _symbol(name, arguments, *, abi_tags=(), uid=None):
    return default_mangler(f"{name}.{types_digest(tuple(arguments))}", (), uid=uid)


class _Library(JITCodeLibrary):
    """The code of a kernel, optimised together with what is linked into it."""

    def _optimize_functions(self, ll_module):
        # numba's passes over single functions; those over the whole module do all of it again
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self):
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        super()._optimize_final_module()


class _InlinedLibrary(JITCodeLibrary):
    """The code of an inlined kernel, which never runs by itself."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


class EntryCompiler(Compiler):
    """Compiles what Python calls."""

    library_class: type = _Library

    def compile_extra(self, function):
        """Compile a function, as numba does, with a library and symbols of our own."""
        identity = FunctionIdentity.from_function(function)
        identity.unique_id = getattr(function, "kernel_number", 0)
        identity.unique_name = identity.func_qualname
        state = self.state
        state.func_id = identity
        state.targetctx.mangler = _symbol  # of a copy, for this function only
        state.library = self.library_class(state.targetctx.codegen(), identity.func_qualname)
        state.library.enable_object_caching()
        ExtractByteCode().run_pass(state)
        state.lifted = ()
        state.lifted_from = None
        return self._compile_bytecode()


class KernelCompiler(EntryCompiler):
    """Compiles a kernel, without what would let Python call it."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.state.flags.no_compile = True  # numba is not to link it into its callers


class InlinedCompiler(KernelCompiler):
    """Compiles a kernel that becomes part of others."""

    library_class = _InlinedLibrary
