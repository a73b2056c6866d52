"""The decorators that make kernels: all that the rest of the package uses of the compiler.

What they make of a function depends on the backend, see :mod:`sklboost.engine.backend`: a kernel of
the compiler, a kernel of the wheel's library, or the function itself.
``docs/explanation/compilation.md`` describes how kernels are compiled.
"""

import ctypes
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from sklboost.engine.backend import BACKEND, LIBRARY, Backend, LibraryKernel, needs_compiler

Function = Callable[..., Any]


def kernel(function: Function) -> Function:
    """Compile a function at its first call with arguments of new types; kept on disk."""
    return _made(function, "kernel")


def inlined(function: Function) -> Function:
    """Compile a function into the kernels that call it.

    For formulas and for what a loop over rows calls, which would not become vector instructions
    with a call in it; and for what is called often from one place.
    """
    return _made(function, "inlined")


def late(returns: str = "none") -> Callable[[Function], Function]:
    """Compile a function when it is first called, not with the kernels that may call it.

    For what only some fits need: ``@late("int64")``, by numba's name of the type of the result.
    """
    return lambda function: _made(function, "late", returns=returns)


def made_kernel(function: Function, name: str | None) -> Function:
    """Compile a function that was made around another one, as a loop around a row's formula.

    `name` distinguishes its code from that of the same loop around another function. None: that one
    is a user's. Nothing is kept, since it may have changed in a later process.
    """
    function.__qualname__ = f"{function.__qualname__} around {name}"
    return _made(function, "kernel", is_kept=name is not None)


def _made(function: Function, kind: str, **details: Any) -> Function:
    """Return the kernel of a kind that the backend makes of a function."""
    if BACKEND is Backend.INTERPRETER:
        return function

    def compiled() -> Any:
        return _compiler().make(function, kind, **details)

    is_of_user = details.get("is_kept") is False  # so it is in no library
    if LIBRARY is None or is_of_user:
        made: Function = compiled()
        return made
    return LibraryKernel(function, LIBRARY, compiled)


# Functions that call code at an address, and their types, which the compiler does not know yet.
_CALLS_BY_ADDRESS: list[tuple[Function, str]] = []


def _compiler() -> ModuleType:
    """Return what makes kernels with numba, which is imported for it."""
    try:
        from sklboost.engine.compiler import kernels, lowering, numba_internals
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise needs_compiler("a compiled function") from error
    if _CALLS_BY_ADDRESS:
        with numba_internals.compiler_lock:  # nobody may go on before all are known
            while _CALLS_BY_ADDRESS:
                lowering.call_by_address(*_CALLS_BY_ADDRESS[-1])
                _CALLS_BY_ADDRESS.pop()
    return kernels


def compile_all() -> None:
    """Compile every late kernel that a compiled one may call."""
    if BACKEND is Backend.COMPILER:
        _compiler().fill_cells()


# --- calls by address


def address_of(kernel: Any, types: str) -> Any:
    """Return the address of a kernel's code for arguments of these types, for :func:`by_address`.

    Types are as numba writes them: ``"int64, float64[:, ::1]"``. The kernel must live as long as
    its code is called. Where nothing is compiled, the function itself is returned.
    """
    if BACKEND is Backend.INTERPRETER:
        return kernel
    return kernel.address(types)


def by_address(types: str) -> Callable[[Function], Function]:
    """Compile calls of a function to calls of the code at its first argument, an address.

    The decorated function is ``call(address, ...)``; `types` are those of the arguments after the
    address, as for :func:`address_of`. Where nothing is compiled, the address is the function that
    is called. The code returns an int64; -2 is returned for it if it raised.
    """

    def decorate(call: Function) -> Function:
        _CALLS_BY_ADDRESS.append((call, types))
        if BACKEND is Backend.COMPILER:
            _compiler()  # takes it from there
        return call

    return decorate


# How compiled code calls an int64 function of one int64: it returns a status, 0 if all is well.
_CODE = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.POINTER(ctypes.c_int64), ctypes.c_void_p, ctypes.c_int64
)


def address_of_python(function: Callable[[int], int]) -> tuple[Any, Any]:
    """Return the address of code that calls a Python function, and what must live as long.

    Kernels call it through :func:`sklboost.engine.compiling.by_address`, with the type "int64". It
    must not raise. Where nothing is compiled, the address is the function itself.
    """
    if BACKEND is Backend.INTERPRETER:
        return function, function

    def code(result: Any, _error: Any, argument: int) -> int:
        result[0] = function(argument)
        return 0

    kept = _CODE(code)
    return ctypes.cast(kept, ctypes.c_void_p).value, kept


# --- functions of users


def is_compiled_by_user(function: Any) -> bool:
    """Whether a function is decorated with numba's ``njit``; True if nothing is compiled."""
    if BACKEND is Backend.INTERPRETER:
        return True
    numba = sys.modules.get("numba")  # where it is not, nobody has compiled a function with it
    return numba is not None and bool(numba.extending.is_jitted(function))


def returns_two_numbers(function: Any) -> bool:
    """Whether a compiled function of a user takes two float64 and returns two numbers."""
    if BACKEND is Backend.INTERPRETER:
        return False
    from numba import types

    arguments = (types.float64, types.float64)
    try:
        function.compile(arguments)
    except Exception:  # numba's errors have no common class
        return False
    returns = function.overloads[arguments].signature.return_type
    return (
        isinstance(returns, types.BaseTuple)
        and len(returns) == 2
        and all(isinstance(kind, types.Float | types.Integer) for kind in returns)
    )
