"""Python functions that kernels call by their address."""

import ctypes
from collections.abc import Callable
from typing import Any

from sklboost.engine.backend import BACKEND, Backend

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
