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
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from sklboost.engine.cached import cached_property
from sklboost.engine.compiler.digests import (
    UNKNOWN,
    Types,
    digest_of,
    hash_of,
    mean_the_same_elsewhere,
    types_digest,
)
from sklboost.engine.compiler.function_compiler import (
    OPTIONS,
    EntryCompiler,
    InlinedCompiler,
    KernelCompiler,
    Version,
    compile_function,
    note_call,
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
from sklboost.engine.compiler.locking import one_at_a_time
from sklboost.engine.compiler.lowering import types_of
from sklboost.engine.compiler.notice import NOTICE
from sklboost.engine.compiler.numba_internals import (
    CPUDispatcher,
    Environment,
    compiler_lock,
    cpu_target,
    dumps,
    make_concrete_template,
    normalize_signature,
)
from sklboost.engine.compiler.recording import RECORDINGS
from sklboost.engine.compiler.references import by_reference, holds_reference
from sklboost.engine.library.kernels import pickled_by_name

# Of kernels that are not kept, whose names may not be unique.
_NUMBERS = itertools.count(1)
# What goes by each name in this process. Machine code stays there without its kernel.
_DIGESTS: dict[str, str] = {}
# Thousands of bytes each, so once for all calls with the same types.
_pickled_types = functools.cache(dumps)


class Versions(CPUDispatcher):
    """A function and its versions, each of this process, from disk or compiled now.

    Attributes
    ----------
    name : str
        The same in every process if machine code is kept.
    digest : str
        What the machine code depends on, types apart; UNKNOWN if it is not kept on disk.
    overloads : dict of tuple to Version
        By the types of the arguments.
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
        """Compile a version, or load what another process has compiled meanwhile."""
        with NOTICE.compiling(), one_at_a_time(self._file(types_digest(kinds))):
            return self._load(kinds) or self._build(kinds)

    def _build(self, kinds: Types) -> Version:
        self._cache_misses[kinds] += 1
        version = compile_function(self, kinds)
        returns = version.signature.return_type
        if holds_reference(returns):
            # a group in the frame of this kernel, or in that of one that calls it in a loop
            raise TypeError(f"{self.name} returns a group that it did not make itself: {returns}")
        types_ = types_digest(kinds)
        LINKED[self.name, types_] = (version.fndesc.llvm_func_name, returns.name)
        if mean_the_same_elsewhere(kinds) and not version.library.has_dynamic_globals:
            self._keep(types_, version)
        return version

    def _keep(self, types_: str, version: Version) -> None:
        fndesc, returns = version.fndesc, version.signature.return_type.name
        fndesc.typemap = fndesc.calltypes = None  # large, and not asked for again
        machine_code = version.library._get_compiled_object()
        description = dumps((fndesc, version.signature))
        code = Code(machine_code, fndesc.llvm_func_name, returns, version.calls, description)
        keep(self._file(types_), code)


class Entry(Versions):
    """What Python calls: a function whose only line is the call of the kernel.

    Unpacking groups of dozens of arrays is as much code as many a kernel itself, and most kernels
    are called by kernels only. So it is apart, and made for those that Python calls.

    Parameters
    ----------
    kernel : Kernel
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

    Parameters
    ----------
    function : callable
    is_kept : bool, default=True
        Whether its machine code is kept on disk.
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
        when it is decorated, or be those of a module that is being loaded again.
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

    Parameters
    ----------
    function : callable
    returns : numba type
        Of its result, which callers are compiled with.
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
