"""Kernels: functions that are compiled once for all that call them.

numba links the code of a function into everything that calls it, where LLVM optimises it again.
Here there are three kinds of kernels, which differ in how other kernels call them:

- :class:`Kernel`, by its symbol: its machine code is made, kept on disk and loaded apart,
- :class:`LateKernel`, through a cell: it is compiled when somebody first calls it,
- :class:`InlinedKernel`: its code becomes part of the caller's.

Python calls an :class:`Entry`. Groups go to kernels by reference, see
:mod:`sklboost.engine.compiler.references`.
"""

import functools
import itertools
import logging
import pickle
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba import types

from sklboost.engine.backend import pickled_by_name
from sklboost.engine.cached import cached_property
from sklboost.engine.compiler.caching import (
    UNKNOWN,
    Types,
    digest_of,
    hash_of,
    mean_the_same_elsewhere,
    types_digest,
)
from sklboost.engine.compiler.linking import (
    KERNELS,
    LINKED,
    Call,
    Code,
    add_cell,
    add_code,
    address_of_symbol,
    call_cell,
    engine,
    keep,
    raise_failure,
    read,
)
from sklboost.engine.compiler.linking import fill_cells as fill_cells
from sklboost.engine.compiler.lowering import types_of
from sklboost.engine.compiler.numba_internals import (
    Compiler,
    CPUDispatcher,
    Environment,
    ExtractByteCode,
    FunctionIdentity,
    JITCodeLibrary,
    compiler_lock,
    cpu_target,
    default_mangler,
    dumps,
    make_concrete_template,
    normalize_signature,
    trigger_event,
)
from sklboost.engine.compiler.references import by_reference, holds_reference

# Exports, which note what is compiled and called: of the build's export_machine_code.py. While one
# runs, nothing is read from disk or kept there.
RECORDINGS: list[Any] = []


def make(function: Callable[..., Any], kind: str, **details: Any) -> Any:
    """Return the kernel of a function.

    `kind` is "kernel", "inlined" or "late"; `details` are ``is_kept`` of a kernel and ``returns``,
    the name of a type, of a late one.
    """
    if kind == "late":
        return LateKernel(function, getattr(types, details["returns"]))
    return InlinedKernel(function) if kind == "inlined" else Kernel(function, **details)


# --- one function to machine code
#
# numba's compiler, with three changes. Symbols are the same in every process, so that machine code
# on disk can refer to them. What numba links into a function is hidden in it: in code from
# different processes, two functions of one name could be different ones. LLVM optimises a function
# once, in the kernel that it ends up in.

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
        # of a copy of the context, for this function only
        state.targetctx.mangler = lambda name, kinds, *, abi_tags=(), uid=None: default_mangler(
            f"{name}.{types_digest(tuple(kinds))}", (), uid=uid
        )
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


# --- kernels

# Of kernels that are not kept, whose names may not be unique.
_NUMBERS = itertools.count(1)
# What goes by each name in this process. Machine code stays there without its kernel.
_DIGESTS: dict[str, str] = {}
# Thousands of bytes each, so once for all calls with the same types.
_pickled_types = functools.cache(dumps)


class Versions(CPUDispatcher):
    """A function and its versions, each of this process, from disk or compiled now.

    Its `name` is the same in every process if machine code is kept. Its `digest` is of what machine
    code depends on, types apart; UNKNOWN if it is not kept on disk. `overloads` has the versions by
    the types of the arguments.
    """

    def kinds(self, arguments: Types) -> Types:
        """Return the types that a version is compiled for."""
        return tuple(map(by_reference, arguments))

    def compile(self, sig: Any) -> Any:
        """Make sure that there is a version for these types; return its entry point."""
        args, _ = normalize_signature(sig)
        return self.version(self.kinds(args)).entry_point

    def version(self, kinds: Types) -> Version:
        """Return the version for these types."""
        with compiler_lock:
            if kinds not in self.overloads:
                self.add_overload(self._load(kinds) or self._make(kinds))
            version: Version = self.overloads[kinds]
            return version

    def read(self, types_: str) -> Code | None:
        """Read the version for types with this digest, and link what it calls."""
        return read(self._file(types_))

    def _file(self, types_: str) -> str:
        name = "".join(filter(str.isidentifier, self.py_func.__name__))  # without <> of a lambda
        is_kept = self.digest != UNKNOWN and not RECORDINGS
        return f"{name}-{self.digest}-{types_}" if is_kept else UNKNOWN

    def _load(self, kinds: Types) -> Version | None:
        key = (self.name, types_digest(kinds))
        code = self.read(key[1])
        if code is None:
            return None
        if key not in LINKED:
            add_code(key, code)
        self._cache_hits[kinds] += 1
        fndesc, signature = pickle.loads(code.description)
        return Version(signature, fndesc, fndesc, None, code.calls)

    def _make(self, kinds: Types) -> Version:
        """Compile a version, and keep it on disk."""
        _say_what_takes_so_long()
        self._cache_misses[kinds] += 1
        version = compile_function(self, kinds)
        returns, types_ = version.signature.return_type, types_digest(kinds)
        if holds_reference(returns):
            # a group in the frame of this kernel, or of one that calls it in a loop
            raise TypeError(f"{self.name} returns a group that it did not make itself: {returns}")
        fndesc = version.fndesc
        LINKED[self.name, types_] = (fndesc.llvm_func_name, returns.name)
        if mean_the_same_elsewhere(kinds) and not version.library.has_dynamic_globals:
            fndesc.typemap = fndesc.calltypes = None  # large, and not asked for again
            machine_code = version.library._get_compiled_object()
            description = dumps((fndesc, version.signature))
            keep(
                self._file(types_),
                Code(machine_code, fndesc.llvm_func_name, returns.name, version.calls, description),
            )
        return version


_N_MADE = itertools.count(1)
_MANY = 8  # kernels, which take about a second


def _say_what_takes_so_long() -> None:
    """Say once, if a process compiles more than a few kernels, why nothing seems to happen."""
    if next(_N_MADE) != _MANY:
        return
    text = "compiling kernels, 15 s or so for a first fit; they are kept for later processes"
    logger, stream = logging.getLogger("sklboost"), sys.stderr
    logger.info(text)
    is_notebook = type(stream).__module__.startswith("ipykernel.")
    if logger.isEnabledFor(logging.WARNING) and stream and (is_notebook or stream.isatty()):
        print(f"sklboost: {text}", file=stream)


class Entry(Versions):
    """What Python calls: a function whose only line is the call of the kernel.

    Unpacking groups of dozens of arrays is as much code as many a kernel itself, and most kernels
    are called by kernels only. So it is apart, and made for those that Python calls.
    """

    def __init__(self, kernel: "Kernel"):
        self.name = f"{kernel.name}.entry"
        part = kernel.digest_part()
        self.digest = hash_of(f"entry of {part}") if part != UNKNOWN else UNKNOWN
        self._inserted: list[list[int]] = []  # types of which numba's C code knows
        super().__init__(caller(kernel), targetoptions=OPTIONS, pipeline_class=EntryCompiler)

    def compile(self, sig: Any) -> Any:
        """Make a version known to numba, whose C code looks for the types that Python has."""
        args, _ = normalize_signature(sig)
        codes = [kind._code for kind in args]
        with compiler_lock:
            entry_point = super().compile(sig)
            if codes not in self._inserted:
                self._inserted.append(codes)
                self._insert(codes, entry_point, False)
        return entry_point

    def add_overload(self, version: Version) -> None:
        """Note a version."""
        self.overloads[version.signature.args] = version

    def _load(self, kinds: Types) -> Version | None:
        version = super()._load(kinds)
        if version is None:
            return None
        environment = Environment.from_fndesc(version.fndesc)
        engine().finalize_object()
        function = self.targetctx.get_executable(_LOADED_LIBRARY, version.fndesc, environment)
        return version._replace(entry_point=function)


# What numba asks of the library of a function that it makes for Python; here the code was loaded.
_LOADED_LIBRARY = SimpleNamespace(
    codegen=cpu_target.target_context.codegen(), get_pointer_to_function=address_of_symbol
)


def caller(kernel: "Kernel") -> Any:
    """Make the function ``caller(a, b, ...)`` that calls a kernel."""
    function = kernel.py_func
    names = ", ".join(function.__code__.co_varnames[: function.__code__.co_argcount])
    caller = eval(f"lambda {names}: kernel({names})", {"kernel": kernel})
    caller.__name__, caller.__qualname__ = function.__name__, f"{function.__qualname__}.entry"
    caller.__module__ = function.__module__
    caller.kernel_number = getattr(function, "kernel_number", 0)
    return caller


class Kernel(Versions):
    """A function that is compiled once for each combination of types, and called by its symbol.

    `is_kept`: whether its machine code is kept on disk.
    """

    compiler_class: type = KernelCompiler
    is_inlined = False
    is_late = False

    def __init__(self, function: Callable[..., Any], is_kept: bool = True):
        options = OPTIONS | {"no_cpython_wrapper": True, "forceinline": self.is_inlined}
        super().__init__(function, targetoptions=options, pipeline_class=self.compiler_class)
        self._is_kept = is_kept
        if is_kept:
            KERNELS[f"{function.__module__}.{function.__qualname__}"] = self

    @cached_property
    def name(self) -> str:
        """Its name in machine code.

        Found when it is first asked for, since the names that the function uses may not be there
        when it is decorated, or belong to a module that is being loaded again.
        """
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        digest = digest_of(self.py_func) if self._is_kept else UNKNOWN
        if digest != UNKNOWN and _DIGESTS.setdefault(name, digest) == digest:
            return name
        self._is_kept = False
        number = self.py_func.kernel_number = next(_NUMBERS)
        KERNELS[f"{name}#{number}"] = self
        return f"{name}#{number}"

    @property
    def digest(self) -> str:
        """What its machine code depends on, types apart; UNKNOWN if nothing is kept on disk."""
        return _DIGESTS.get(self.name, UNKNOWN)

    def digest_part(self) -> str:
        """Return what the code of a kernel that calls this one depends on: not on its own code."""
        if self.digest == UNKNOWN:
            return UNKNOWN
        code = self.py_func.__code__  # callers know the places of arguments and their defaults
        parameters = code.co_varnames[: code.co_argcount]
        return f"{self.name}{parameters}{self.py_func.__defaults__!r}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a kernel of a module by its name; one that was made with its function."""
        return pickled_by_name(self) or (type(self), (self.py_func, self._is_kept))

    # --- called from Python

    @cached_property
    def entry(self) -> Entry:
        """What a call from Python runs."""
        return Entry(self)

    def __call__(self, *arguments: Any) -> Any:
        """Call the version for Python."""
        if "entry" not in vars(self):
            with compiler_lock:  # a fork waits for it, but not for the lock of a cached property
                _ = self.entry
        for recording in RECORDINGS:
            recording.note_call(self, arguments)
        try:
            return self.entry(*arguments)
        finally:
            raise_failure()

    def address(self, types: str) -> int:
        """Return where the machine code of the version for types, given as text, begins."""
        with compiler_lock:
            symbol = self.version(self.kinds(types_of(types))).fndesc.llvm_func_name
            for recording in RECORDINGS:
                recording.addresses[self.name, types] = symbol
            return address_of_symbol(symbol)

    # --- called by kernels

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return what numba finds the type of a call's result by."""
        pysig, args = self.fold_argument_types(args, kws)
        signature = self.note(self.kinds(args))
        name = self.py_func.__name__
        return make_concrete_template(name, key=name, signatures=[signature]), pysig, args, {}

    def note(self, kinds: Types) -> Any:
        """Note a call in the kernel that is being compiled; return its signature."""
        version = self.version(kinds)
        self.note_call(version.signature, version.fndesc.llvm_func_name)
        return version.signature

    def note_call(self, signature: Any, symbol: str) -> Call:
        """Note a call of the code that goes by a symbol."""
        kinds, returns = signature.args, signature.return_type.name
        call = Call(self.name, types_digest(kinds), returns, symbol, _pickled_types(kinds))
        note_call(call)
        return call

    def add_overload(self, version: Version) -> None:
        """Make a version known to numba, for kernels that call it."""
        libraries = [version.library] if self.is_inlined else []
        self.targetctx.insert_user_function(version.entry_point, version.fndesc, libraries)
        self.overloads[version.signature.args] = version


class InlinedKernel(Kernel):
    """A function whose code becomes part of the kernels that call it."""

    compiler_class = InlinedCompiler
    is_inlined = True

    def digest_part(self) -> str:
        """Return all that its own code depends on: it is part of the caller's."""
        return f"{self.name} {self.digest}" if self.digest != UNKNOWN else UNKNOWN

    def kinds(self, arguments: Types) -> Types:
        """Return the types as they are: a small group may stay in registers."""
        return tuple(arguments)

    def note(self, kinds: Types) -> Any:
        """Note what it calls itself."""
        version = self.version(kinds)
        for call in version.calls:
            note_call(call)
        return version.signature

    def _load(self, kinds: Types) -> None:
        return None  # nothing of its own is kept

    def _make(self, kinds: Types) -> Version:
        return compile_function(self, kinds)


class LateKernel(Kernel):
    """A kernel that is compiled or loaded when somebody first calls it.

    Callers are compiled with `returns`, the type of its result.
    """

    is_late = True

    def __init__(self, function: Callable[..., Any], returns: Any):
        super().__init__(function)
        self._returns = returns
        # types of the arguments -> key by which numba finds the code of a call
        self._keys: dict[Types, object] = {}

    def digest_part(self) -> str:
        """Return what callers take for granted, the declared result included."""
        part = super().digest_part()
        return f"{part} -> {self._returns.name}" if part != UNKNOWN else UNKNOWN

    def note(self, kinds: Types) -> Any:
        """Note a call, without compiling what is called."""
        signature = self._returns(*kinds)
        symbol = f"cell.{self.name}.{types_digest(kinds)}.{self._returns.name}"
        add_cell(self.note_call(signature, symbol))
        if kinds not in self._keys:
            # stays for ever, and must not keep the kernel
            def write_call(context: Any, builder: Any, _: Any, args: Any) -> Any:
                return call_cell(context, builder, symbol, signature, args)

            self._keys[kinds] = key = object()
            self.targetctx._defns[key].append(write_call, kinds)
        return signature

    def get_overload(self, sig: Any) -> Any:
        """Return the key by which numba finds the code of a call."""
        args, _ = normalize_signature(sig)
        return self._keys[tuple(args)]
