"""How kernels are compiled: one decorator for the whole package."""

from collections.abc import Callable
from typing import Any

import numba
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher

from sklboost.caching import KernelCache
from sklboost.forking import keep_compiler_out_of_forks

keep_compiler_out_of_forks()

# Without the GIL; division by zero as in NumPy; without reference counts, since kernels neither
# allocate nor free: their compilation takes a sixth less, and one that allocates does not compile;
# without a version for C code, which nobody calls.
_OPTIONS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}


class Kernel(CPUDispatcher):
    """A function that is compiled apart for kernels that call it and for calls from Python.

    Unpacking Python's arguments, groups of dozens of arrays, is as much code as many a kernel
    itself. Most kernels are called by kernels only, so their code comes without it: the package
    compiles in two thirds of the time.

    Attributes
    ----------
    entry : CPUDispatcher
        What a call from Python runs.
    """

    entry: CPUDispatcher

    def __call__(self, *arguments: Any) -> Any:
        """Call the version for Python."""
        return self.entry(*arguments)


def kernel(function: Callable) -> Callable:
    """Compile a function at its first call with arguments of new types; kept on disk."""
    return _compiled(function, {}, "")


def made_kernel(function: Callable, name: str | None) -> Callable:
    """Compile a function that was made around another one, as a loop around a row's formula.

    Parameters
    ----------
    function : callable
    name : str or None
        Tells its code on disk from that of the same loop around others. None: nothing is kept,
        since what it is made around may not be what it was.
    """
    # Compiled code is found by its symbol, which has the function's name and a number that counts
    # in each process anew. Two of one name, from files written by two processes, could be one.
    function.__qualname__ = f"{function.__qualname__} around {name}"
    return _compiled(function, {}, name)


def address_of(kernel: Callable, types: tuple) -> Any:
    """Give where the code of a kernel for arguments of these types begins.

    It can be called there by kernels that were compiled without knowing it. As long as it is
    called, the kernel must live. Where nothing is compiled, the function itself is given.
    """
    if numba.config.DISABLE_JIT:
        return kernel
    kernel.compile(types)  # type: ignore[attr-defined]
    compiled = kernel.overloads[types]  # type: ignore[attr-defined]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def is_compiled_by_user(function: Any) -> bool:
    """Tell a function decorated with numba's ``njit``; any may be where nothing is compiled."""
    return isinstance(function, Dispatcher) or bool(numba.config.DISABLE_JIT)


def compiled_result(function: Any, types: tuple) -> Any:
    """Give numba's type of what a user's compiled function returns for arguments of these types.

    None if it cannot be compiled for them.
    """
    try:
        function.compile(types)
    except Exception:  # numba's errors have no common class
        return None
    return function.overloads[types].signature.return_type


def inlined(function: Callable) -> Callable:
    """Compile a kernel into the one that calls it.

    For a kernel that is called often, and in one place with more arguments than there are
    registers: LLVM's own choice changes with the size of groups that have nothing to do with it. Or
    within a loop over rows, which would not become vector instructions with a call in it.
    """
    return _compiled(function, {"forceinline": True}, "")


def _compiled(function: Callable, options: dict[str, Any], name: str | None) -> Callable:
    if numba.config.DISABLE_JIT:
        return function
    options = _OPTIONS | options
    inner = Kernel(function, targetoptions=options | {"no_cpython_wrapper": True})
    inner.entry = CPUDispatcher(function, targetoptions=_OPTIONS)
    if name is not None:
        inner._cache = KernelCache(function, f"inner{name}")
        inner.entry._cache = KernelCache(function, f"entry{name}")
    return inner
