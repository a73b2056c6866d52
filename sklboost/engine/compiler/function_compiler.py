"""One function to machine code: numba's compiler, with three changes.

- Symbols are the same in every process, so that machine code on disk can refer to them.
- What numba links into a function is hidden in it: in code from different processes, two functions
  of one name could be different ones.
- LLVM optimises a function once, in the kernel that it ends up in.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm

from sklboost.engine.compiler.digests import Types, types_digest
from sklboost.engine.compiler.linking import Call
from sklboost.engine.compiler.numba_internals import (
    Compiler,
    ExtractByteCode,
    FunctionIdentity,
    JITCodeLibrary,
    default_mangler,
    trigger_event,
)
from sklboost.engine.compiler.recording import RECORDINGS

# Without the GIL; division by zero as in NumPy; without reference counts, since kernels neither
# allocate nor free, and one that allocates does not compile; without a version for C code.
OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


class Version(NamedTuple):
    """A function for certain types of arguments, with the names that numba's dispatchers use."""

    signature: Any
    fndesc: Any
    # of an entry, what Python calls; of a kernel, the key by which numba finds its code
    entry_point: Any
    library: Any  # None: the code was loaded
    calls: tuple[Call, ...]
    objectmode: bool = False


# The calls that are found while functions are compiled, one set for each, the innermost last.
_FOUND: list[dict[tuple[str, str], Call]] = []


def note_call(call: Call) -> None:
    """Note a call in the function that is being compiled, if one is."""
    if _FOUND:
        _FOUND[-1][call.kernel, call.types] = call


def compile_function(dispatcher: Any, kinds: Types) -> Version:
    """Compile the function of a dispatcher of numba's for arguments of these types."""
    _FOUND.append({})
    details = dict(dispatcher=dispatcher, args=kinds, return_type=None)
    try:
        with trigger_event("numba:compile", data=details):
            result = dispatcher._compiler.compile(kinds, None)
    finally:
        calls = tuple(_FOUND.pop().values())
    result.library._ensure_finalized()
    signature, fndesc = result.signature, result.fndesc
    return Version(signature, fndesc, result.entry_point or fndesc, result.library, calls)


def _symbol(name: str, kinds: Types, *, abi_tags: Any = (), uid: int | None = None) -> str:
    symbol: str = default_mangler(f"{name}.{types_digest(tuple(kinds))}", (), uid=uid)
    return symbol


class _Library(JITCodeLibrary):
    """The code of a kernel, optimised together with what is linked into it."""

    def _optimize_functions(self, ll_module: Any) -> None:
        # numba's passes over single functions; those over the whole module do all of it again
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.linkonce_odr:
                function.linkage = "internal"
        for recording in RECORDINGS:
            recording.note_module(self._final_module)
        super()._optimize_final_module()


class _InlinedLibrary(JITCodeLibrary):
    """The code of an inlined kernel, which never runs by itself."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class EntryCompiler(Compiler):
    """Compiles what Python calls."""

    library_class: type = _Library

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """Compile a function as numba does, with a library and symbols of this package."""
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

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.state.flags.no_compile = True  # numba is not to link it into its callers


class InlinedCompiler(KernelCompiler):
    """Compiles a kernel that becomes part of others."""

    library_class = _InlinedLibrary
