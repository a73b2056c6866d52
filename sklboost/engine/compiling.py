"""The decorators that make kernels: all that the rest of the package knows of the compiler.

See ``docs/explanation/compilation.md`` for what becomes of them.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba import types

from sklboost.engine.compiler.forking import keep_compiler_out_of_forks
from sklboost.engine.compiler.numba_internals import MISSING

keep_compiler_out_of_forks()

if MISSING:
    warnings.warn(
        f"numba {numba.__version__} is not known to sklboost: it has no {', '.join(MISSING)}. "
        "Everything works, but every process compiles anew, for a minute or more. Install a "
        "newer sklboost or an older numba.",
        RuntimeWarning,
        stacklevel=2,
    )
elif not numba.config.DISABLE_JIT:
    from sklboost.engine.compiler.kernels import InlinedKernel, Kernel, LateKernel


def _plain(function: Callable) -> Callable:
    """Compile a function as numba does. Nothing is kept: numba would not see changed callees."""
    return numba.njit(nogil=True, error_model="numpy")(function)


def kernel(function: Callable) -> Callable:
    """Compile a function at its first call with arguments of new types; kept on disk."""
    if numba.config.DISABLE_JIT:
        return function
    return _plain(function) if MISSING else Kernel(function)


def inlined(function: Callable) -> Callable:
    """Compile a function into the kernels that call it.

    For formulas and for what a loop over rows calls, which would not become vector instructions
    with a call in it; and for what is called often from one place.
    """
    if numba.config.DISABLE_JIT:
        return function
    return _plain(function) if MISSING else InlinedKernel(function)


def late(returns: str = "none") -> Callable:
    """Compile a function when it is first called, not with the kernels that may call it.

    For what only some fits need. To be called with the type of the result: ``@late("int64")``.

    Parameters
    ----------
    returns : str
        Name of a type of numba's; "none" if nothing is returned.
    """

    def decorate(function: Callable) -> Callable:
        if numba.config.DISABLE_JIT:
            return function
        return _plain(function) if MISSING else LateKernel(function, getattr(types, returns))

    return decorate


def made_kernel(function: Callable, name: str | None) -> Callable:
    """Compile a function that was made around another one, as a loop around a row's formula.

    Parameters
    ----------
    function : callable
    name : str or None
        Tells its code on disk from that of the same loop around others. None: nothing is kept,
        since what it is made around may not be what it was.
    """
    if numba.config.DISABLE_JIT:
        return function
    function.__qualname__ = f"{function.__qualname__} around {name}"
    return _plain(function) if MISSING else Kernel(function, is_kept=name is not None)


def address_of(kernel: Any, types: tuple) -> Any:
    """Return where the code of a kernel for arguments of these types begins.

    It can be called there by kernels that were compiled without knowing it. As long as it is
    called, the kernel must live. Where nothing is compiled, the function itself is returned.
    """
    if numba.config.DISABLE_JIT:
        return kernel
    if not MISSING:
        return kernel.address(types)
    kernel.compile(types)
    compiled = kernel.overloads[types]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def compile_all() -> None:
    """Compile every late kernel that a compiled one may call."""
    if not MISSING and not numba.config.DISABLE_JIT:
        from sklboost.engine.compiler.linking import fill_cells

        fill_cells()


def is_compiled_by_user(function: Any) -> bool:
    """Tell a function decorated with numba's ``njit``; any may be where nothing is compiled."""
    return numba.extending.is_jitted(function) or bool(numba.config.DISABLE_JIT)


def compiled_result(function: Any, types: tuple) -> Any:
    """Return numba's type of what a user's compiled function returns for arguments of these types.

    None if it cannot be compiled for them.
    """
    try:
        function.compile(types)
    except Exception:  # numba's errors have no common class
        return None
    return function.overloads[types].signature.return_type
