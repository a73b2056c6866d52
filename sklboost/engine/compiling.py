"""The decorators that make kernels: all that the rest of the package uses of the compiler.

``docs/explanation/compilation.md`` describes how kernels are compiled.
"""

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba import types

from sklboost.engine.compiler.numba_internals import MISSING

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


Function = Callable[..., Any]


def _compiled(function: Function, make: Callable[[], Function]) -> Function:
    """Return the kernel that `make` makes of a function, or what takes its place."""
    if numba.config.DISABLE_JIT:
        return function
    if not MISSING:
        return make()
    # nothing is kept on disk: numba would not see that a callee has changed
    compiled: Function = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled


def kernel(function: Function) -> Function:
    """Compile a function at its first call with arguments of new types; kept on disk."""
    return _compiled(function, lambda: Kernel(function))


def inlined(function: Function) -> Function:
    """Compile a function into the kernels that call it.

    For formulas and for what a loop over rows calls, which would not become vector instructions
    with a call in it; and for what is called often from one place.
    """
    return _compiled(function, lambda: InlinedKernel(function))


def late(returns: str = "none") -> Callable[[Function], Function]:
    """Compile a function when it is first called, not with the kernels that may call it.

    For what only some fits need: ``@late("int64")``.

    Parameters
    ----------
    returns : str
        Name of numba's type of the result; "none" if nothing is returned.
    """
    return lambda function: _compiled(
        function, lambda: LateKernel(function, getattr(types, returns))
    )


class _FoundLater:
    """Stands for a kernel of a module that is imported when the kernel is first needed."""

    def __init__(self, function: Function, module: str):
        functools.update_wrapper(self, function)
        self._place = (module, function.__name__)

    @functools.cached_property
    def kernel(self) -> Any:
        module, name = self._place
        return getattr(importlib.import_module(module), name)

    def __call__(self, *arguments: Any) -> Any:
        return self.kernel(*arguments)

    @property
    def _numba_type_(self) -> Any:
        """The type that numba gives to this: that of the kernel."""
        return self.kernel._numba_type_

    def digest_part(self) -> str:
        """Return what the machine code of a caller depends on."""
        part: str = self.kernel.digest_part()
        return part


def found_in(module: str) -> Callable[[Function], Function]:
    """Replace a function by the kernel of its name in a module that is imported later.

    So kernels can call those of a room that imports theirs. The function has the signature of the
    kernel and a docstring; its body is not used.

    Parameters
    ----------
    module : str
        Imported when the kernel, or one that calls it, is first compiled.
    """
    return lambda function: _FoundLater(function, module)


def made_kernel(function: Function, name: str | None) -> Function:
    """Compile a function that was made around another one, as a loop around a row's formula.

    Parameters
    ----------
    function : callable
    name : str or None
        Distinguishes its code on disk from that of the same loop around another function. None:
        nothing is kept, since what it is made around may have changed in a later process.
    """
    function.__qualname__ = f"{function.__qualname__} around {name}"
    return _compiled(function, lambda: Kernel(function, is_kept=name is not None))


def address_of(kernel: Any, types: tuple[Any, ...]) -> Any:
    """Return the address of a kernel's code for arguments of these types.

    For :func:`sklboost.engine.instructions.by_address`. The kernel must live as long as its code is
    called. Where nothing is compiled, the function itself is returned.
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
    """Whether a function is decorated with numba's ``njit``; True if nothing is compiled."""
    return numba.extending.is_jitted(function) or bool(numba.config.DISABLE_JIT)


def compiled_result(function: Any, types: tuple[Any, ...]) -> Any:
    """Return numba's type of the result of a user's compiled function for arguments of these types.

    None if it cannot be compiled for them.
    """
    try:
        function.compile(types)
    except Exception:  # numba's errors have no common class
        return None
    return function.overloads[types].signature.return_type
