"""Kernels: functions that are compiled once for all that call them.

numba links the code of a function into everything that calls it, where LLVM optimises it again.
Here there are three kinds of kernels, which differ in how other kernels call them:

- :class:`Kernel`, by its symbol: its machine code is made, kept on disk and loaded apart,
- :class:`LateKernel`, through a cell: it is compiled when somebody first calls it,
- :class:`InlinedKernel`: its code becomes part of the caller's.

Groups go to kernels by reference, see :mod:`sklboost.engine.compiler.references`.
"""

import functools
import importlib
import itertools
import operator
import pickle
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from sklboost.engine.compiler.digests import UNKNOWN, digest_of
from sklboost.engine.compiler.entries import Entry
from sklboost.engine.compiler.function_compiler import (
    InlinedCompiler,
    KernelCompiler,
    compile_function,
    note_call,
    pickled_types,
    types_digest,
)
from sklboost.engine.compiler.linking import (
    FILL_CELL,
    KERNELS,
    LINKED,
    Call,
    Code,
    add_cell,
    add_code,
    address_of_symbol,
    cell_name,
    raise_failure,
    read,
)
from sklboost.engine.compiler.numba_internals import (
    CPUDispatcher,
    cgutils,
    compiler_lock,
    make_concrete_template,
    normalize_signature,
)
from sklboost.engine.compiler.references import by_reference, holds_reference
from sklboost.engine.compiler.versions import OPTIONS, Version, file_name, keep_version

# Of kernels that are not kept, whose names may not be unique.
_NUMBERS = itertools.count(1)
# What goes by each name in this process. Machine code stays there without its kernel.
_DIGESTS: dict[str, str] = {}


def _named_kernel(module: str, name: str) -> "Kernel":
    """Return the kernel that goes by a name in a module."""
    return operator.attrgetter(name)(importlib.import_module(module))


class Kernel(CPUDispatcher):
    """A function that is compiled once for each combination of types, and called by its symbol.

    Parameters
    ----------
    function : callable
    is_kept : bool, default=True
        Whether its machine code is kept on disk.

    Attributes
    ----------
    overloads : dict of tuple to Version
        By the types of the arguments.
    """

    compiler_class: type = KernelCompiler
    is_inlined = False
    is_late = False

    def __init__(self, function: Callable, is_kept: bool = True):
        options = OPTIONS | {"no_cpython_wrapper": True, "forceinline": self.is_inlined}
        super().__init__(function, targetoptions=options, pipeline_class=self.compiler_class)
        self._is_kept = is_kept
        if is_kept:
            KERNELS[f"{function.__module__}.{function.__qualname__}"] = self

    @functools.cached_property
    def name(self) -> str:
        """Its name in machine code, the same in every process if it is kept.

        Found when it is first asked for, since the names that the function uses may not be there
        when it is decorated, or be those of a module that is being loaded again.
        """
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        own = digest_of(self.py_func) if self._is_kept else UNKNOWN
        if own != UNKNOWN and _DIGESTS.setdefault(name, own) == own:
            return name
        self._is_kept = False
        number = self.py_func.kernel_number = next(_NUMBERS)
        KERNELS[f"{name}#{number}"] = self
        return f"{name}#{number}"

    def __reduce__(self) -> tuple:
        """Pickle a kernel of a module by its name; one that was made with its function."""
        place = (self.py_func.__module__, self.py_func.__qualname__)
        try:
            if _named_kernel(*place) is self:
                return _named_kernel, place
        except (ImportError, AttributeError):
            pass
        return type(self), (self.py_func, self._is_kept)

    # --- called from Python

    @functools.cached_property
    def entry(self) -> Entry:
        """What a call from Python runs."""
        return Entry(self)

    def __call__(self, *arguments: Any) -> Any:
        """Call the version for Python."""
        try:
            return self.entry(*arguments)
        finally:
            raise_failure()

    def address(self, arguments: tuple) -> int:
        """Return where the machine code of the version for these types begins."""
        with compiler_lock:
            version = self.version(self.kinds(arguments))
            return address_of_symbol(version.fndesc.llvm_func_name)

    # --- what its machine code depends on

    @property
    def digest(self) -> str:
        """What its machine code depends on, but for types; UNKNOWN if nothing is kept on disk."""
        return _DIGESTS.get(self.name, UNKNOWN)

    def digest_part(self) -> str:
        """Return what the code of a kernel that calls this one depends on: not on its own code."""
        if self.digest == UNKNOWN:
            return UNKNOWN
        code = self.py_func.__code__  # callers know the places of arguments and their defaults
        parameters = code.co_varnames[: code.co_argcount]
        return f"{self.name}{parameters}{self.py_func.__defaults__!r}"

    # --- called by kernels

    def kinds(self, arguments: tuple) -> tuple:
        """Return the types that a version is compiled for."""
        return tuple(map(by_reference, arguments))

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Return what numba finds the type of a call's result by."""
        pysig, args = self.fold_argument_types(args, kws)
        signature = self.note(self.kinds(args))
        name = self.py_func.__name__
        return make_concrete_template(name, key=name, signatures=[signature]), pysig, args, {}

    def note(self, kinds: tuple) -> Any:
        """Note a call in the kernel that is being compiled; return its signature."""
        version = self.version(kinds)
        symbol = version.fndesc.llvm_func_name
        note_call(self.call(kinds, version.signature.return_type, symbol))
        return version.signature

    def call(self, kinds: tuple, returns: Any, symbol: str) -> Call:
        """Describe a call of this kernel."""
        types_ = types_digest(kinds)
        pickled = pickled_types(kinds)
        return Call(self.name, types_, returns.name, symbol, self.is_late, pickled)

    # --- versions

    def compile(self, sig: Any) -> Any:
        """Have the version for these types, compiled or from disk."""
        args, _ = normalize_signature(sig)
        return self.version(self.kinds(args)).entry_point

    def version(self, kinds: tuple) -> Version:
        """Return the version for these types: of this process, from disk, or compiled now."""
        with compiler_lock:
            if kinds not in self.overloads:
                self.add_overload(self._load(kinds) or self._build(kinds))
            return self.overloads[kinds]

    def add_overload(self, version: Version) -> None:
        """Make a version known to numba, for kernels that call it."""
        libraries = [version.library] if self.is_inlined else []
        self.targetctx.insert_user_function(version.entry_point, version.fndesc, libraries)
        self.overloads[version.signature.args] = version

    def read(self, types_: str) -> Code | None:
        """Read the version for arguments of these types, and link what it calls."""
        return read(file_name(self.py_func, self.digest, types_))

    def _load(self, kinds: tuple) -> Version | None:
        key = (self.name, types_digest(kinds))
        code = self.read(key[1])
        if code is None:
            return None
        if key not in LINKED:
            add_code(key, code)
        self._cache_hits[kinds] += 1
        fndesc, signature = pickle.loads(code.description)
        return Version(signature, fndesc, object(), None, code.calls)

    def _build(self, kinds: tuple) -> Version:
        self._cache_misses[kinds] += 1
        result, calls = compile_function(self, kinds)
        returns = result.signature.return_type
        if holds_reference(returns):
            # a group in the frame of this kernel, or in that of one that calls it in a loop
            raise TypeError(f"{self.name} returns a group that it did not make itself: {returns}")
        version = Version(result.signature, result.fndesc, object(), result.library, calls)
        types_ = types_digest(kinds)
        LINKED[self.name, types_] = (version.fndesc.llvm_func_name, returns.name)
        keep_version(file_name(self.py_func, self.digest, types_), version)
        return version


class InlinedKernel(Kernel):
    """A function whose code becomes part of the kernels that call it."""

    compiler_class = InlinedCompiler
    is_inlined = True

    def digest_part(self) -> str:
        """Return all that its own code depends on: it is part of the caller's."""
        return f"{self.name} {self.digest}" if self.digest != UNKNOWN else UNKNOWN

    def kinds(self, arguments: tuple) -> tuple:
        """Return the types as they are: a small group may stay in registers."""
        return tuple(arguments)

    def note(self, kinds: tuple) -> Any:
        """Note what it calls itself."""
        version = self.version(kinds)
        for call in version.calls:
            note_call(call)
        return version.signature

    def _load(self, kinds: tuple) -> None:
        return None  # nothing of its own is kept

    def _build(self, kinds: tuple) -> Version:
        result, calls = compile_function(self, kinds)
        return Version(result.signature, result.fndesc, object(), result.library, calls)


class LateKernel(Kernel):
    """A kernel that is compiled or loaded when somebody first calls it.

    Parameters
    ----------
    function : callable
    returns : numba type
        Of its result, which callers are compiled with.
    """

    is_late = True

    def __init__(self, function: Callable, returns: Any):
        super().__init__(function)
        self._returns = returns
        # types of the arguments -> by what numba finds the code of a call
        self._keys: dict[tuple, object] = {}

    @property
    def returns(self) -> str:
        """Name of the type of its result."""
        return self._returns.name

    def digest_part(self) -> str:
        """Return what callers take for granted, the declared result included."""
        part = super().digest_part()
        return f"{part} -> {self.returns}" if part != UNKNOWN else UNKNOWN

    def note(self, kinds: tuple) -> Any:
        """Note a call, without compiling what is called."""
        call = self.call(kinds, self._returns, f"{self.name}.{types_digest(kinds)}.{self.returns}")
        note_call(call)
        add_cell(call)
        if kinds not in self._keys:
            key, write_call = object(), _CallWriter(call, self._returns, kinds)
            self.targetctx._defns[key].append(write_call, kinds)
            self._keys[kinds] = key
        return self._returns(*kinds)

    def get_overload(self, sig: Any) -> Any:
        """Return by what numba finds the code of a call."""
        args, _ = normalize_signature(sig)
        return self._keys[tuple(args)]


def _filled_cell(builder: Any, cell: Any) -> Any:
    """Write a loop that has the cell filled until it is; return the address in it."""
    word, bytes_ = ir.IntType(64), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [bytes_, word])
    fill = cgutils.get_or_insert_function(builder.module, kind, FILL_CELL)
    before, look = builder.block, builder.append_basic_block("cell.look")
    empty, filled = (builder.append_basic_block(f"cell.{name}") for name in ("empty", "filled"))
    builder.branch(look)
    builder.position_at_end(look)
    n_tries = builder.phi(word)
    address = builder.load_atomic(cell, "acquire", 8)
    builder.cbranch(cgutils.is_null(builder, address), empty, filled).set_weights([1, 99])
    builder.position_at_end(empty)
    builder.call(fill, [builder.bitcast(cell, bytes_), n_tries])
    n_tries.add_incoming(word(0), before)
    n_tries.add_incoming(builder.add(n_tries, word(1)), empty)
    builder.branch(look)
    builder.position_at_end(filled)
    return address


class _CallWriter:
    """Writes the call of a late kernel into the code of a caller."""

    libs = ()

    def __init__(self, call: Call, returns: Any, kinds: tuple):
        self.cell_name, self.returns, self.signature = cell_name(call.symbol), returns, kinds

    def __call__(self, context, builder, signature, args):
        """Fill the cell if it is empty; then call the address in it."""
        module, convention = builder.module, context.call_conv
        cell = module.globals.get(self.cell_name)
        if cell is None:
            function = convention.get_function_type(self.returns, self.signature)
            cell = ir.GlobalVariable(module, function.as_pointer(), self.cell_name)
        address = _filled_cell(builder, cell)
        status, result = convention.call_function(
            builder, address, self.returns, self.signature, args
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return result
