"""Calls from Python: arguments are unpacked, groups into memory, and the kernel is called."""

import hashlib
import pickle
from collections.abc import Callable
from typing import Any

from sklboost.engine.compiler.digests import UNKNOWN
from sklboost.engine.compiler.function_compiler import EntryCompiler, compile_function, types_digest
from sklboost.engine.compiler.linking import add_code, address_of_symbol, engine, read
from sklboost.engine.compiler.numba_internals import (
    CPUDispatcher,
    Environment,
    compiler_lock,
    cpu_target,
    normalize_signature,
)
from sklboost.engine.compiler.references import by_reference
from sklboost.engine.compiler.versions import OPTIONS, Version, file_name, keep_version


class Entry(CPUDispatcher):
    """What Python calls: a function of numba's whose only line is the call of the kernel.

    Unpacking groups of dozens of arrays is as much code as many a kernel itself, and most kernels
    are called by kernels only. So it is apart, and made for those that Python calls.

    Parameters
    ----------
    kernel : Kernel
    """

    def __init__(self, kernel: Any):
        self.kernel = kernel
        function = _caller(kernel)
        super().__init__(function, targetoptions=OPTIONS, pipeline_class=EntryCompiler)

    def compile(self, sig: Any) -> Any:
        """Have the version for these types, compiled or from disk."""
        args, _ = normalize_signature(sig)
        kinds = tuple(map(by_reference, args))
        with compiler_lock:
            if kinds not in self.overloads:
                self.add_overload(self._load(kinds) or self._build(kinds))
            return self.overloads[kinds].entry_point

    def add_overload(self, version: Version) -> None:
        """Make a version known to numba, whose C code looks for the types that Python has."""
        kinds = version.signature.args
        codes = [getattr(kind, "group", kind)._code for kind in kinds]
        self._insert(codes, version.entry_point, False)
        self.overloads[kinds] = version

    def _load(self, kinds: tuple) -> Version | None:
        code = read(self._file(kinds))
        if code is None:
            return None
        add_code((f"{self.kernel.name}.entry", types_digest(kinds)), code)
        self._cache_hits[kinds] += 1
        fndesc, signature = pickle.loads(code.description)
        environment = Environment.from_fndesc(fndesc)
        engine().finalize_object()
        entry_point = self.targetctx.get_executable(_LoadedLibrary, fndesc, environment)
        return Version(signature, fndesc, entry_point, None, code.calls)

    def _build(self, kinds: tuple) -> Version:
        self._cache_misses[kinds] += 1
        result, calls = compile_function(self, kinds)
        own = (result.signature, result.fndesc, result.entry_point, result.library, calls)
        version = Version(*own)
        keep_version(self._file(kinds), version)
        return version

    def _file(self, kinds: tuple) -> str:
        part = self.kernel.digest_part()
        if part == UNKNOWN:
            return UNKNOWN
        digest = hashlib.sha256(f"entry of {part}".encode()).hexdigest()[:16]
        return file_name(self.py_func, digest, types_digest(kinds))


class _LoadedLibrary:
    """Machine code that was loaded, for what numba asks when it makes a function for Python."""

    codegen = cpu_target.target_context.codegen()

    @staticmethod
    def get_pointer_to_function(name: str) -> int:
        return address_of_symbol(name)


def _caller(kernel: Any) -> Callable:
    """Make the function ``caller(a, b, ...)`` that calls a kernel."""
    function = kernel.py_func
    own_name = kernel.name  # numbers the function if that is needed
    names = ", ".join(function.__code__.co_varnames[: function.__code__.co_argcount])
    caller = eval(f"lambda {names}: kernel({names})", {"kernel": kernel})
    caller.__name__, caller.__qualname__ = function.__name__, f"{function.__qualname__}.entry"
    caller.__module__ = function.__module__
    caller.kernel_number = int(own_name.partition("#")[2] or 0)
    return caller
