"""Kernels made with numba: those of this package, or numba's own if numba is too new for them."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba import types

from sklboost.engine.compiler.forking import guard_forks
from sklboost.engine.compiler.linking import fill_cells
from sklboost.engine.compiler.lowering import call_by_address as call_by_address
from sklboost.engine.compiler.lowering import types_of
from sklboost.engine.compiler.notice import NOTICE as NOTICE
from sklboost.engine.compiler.numba_internals import MISSING, compiler_lock

if MISSING:
    warnings.warn(
        f"numba {numba.__version__} is not known to sklboost: it has no {', '.join(MISSING)}. "
        "Everything works, but every process compiles anew, for a minute or more. Install a "
        "newer sklboost or an older numba.",
        RuntimeWarning,
        stacklevel=2,
    )
else:
    from sklboost.engine.compiler.kernels import InlinedKernel, Kernel, LateKernel

guard_forks()

# Held while something is compiled.
LOCK = compiler_lock or contextlib.nullcontext()

_TWO_NUMBERS = (numba.float64, numba.float64)


def make(function: Callable[..., Any], kind: str, **details: Any) -> Any:
    """Return the kernel of a function.

    Parameters
    ----------
    function : callable
    kind : {"kernel", "inlined", "late"}
    **details
        ``is_kept`` of a kernel, ``returns`` of a late one.
    """
    if MISSING:
        # nothing is kept on disk: numba would not see that a callee has changed
        return numba.njit(nogil=True, error_model="numpy")(function)
    if kind == "late":
        return LateKernel(function, getattr(types, details["returns"]))
    return InlinedKernel(function) if kind == "inlined" else Kernel(function, **details)


def address_of(kernel: Any, types_: str) -> int:
    """Return the address of a kernel's code for types that are given as text."""
    if not MISSING:
        address: int = kernel.address(types_)
        return address
    kinds = types_of(types_)
    kernel.compile(kinds)
    compiled = kernel.overloads[kinds]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def compile_all() -> None:
    """Compile every late kernel that a compiled one may call."""
    if not MISSING:
        fill_cells()


def returns_two_numbers(function: Any) -> bool:
    """Whether a function can be compiled for two float64, and returns two numbers."""
    try:
        function.compile(_TWO_NUMBERS)
    except Exception:  # numba's errors have no common class
        return False
    returns = function.overloads[_TWO_NUMBERS].signature.return_type
    return (
        isinstance(returns, types.BaseTuple)
        and len(returns) == 2
        and all(isinstance(kind, types.Float | types.Integer) for kind in returns)
    )
