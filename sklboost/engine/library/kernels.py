"""Kernels whose machine code is in the library of a wheel."""

import ctypes
import functools
import importlib
import operator
import pickle
from collections.abc import Callable
from typing import Any

from sklboost.engine.cached import cached_property
from sklboost.engine.library.loading import Library, needs_compiler
from sklboost.engine.library.packing import pack

# The types of results, and room for them.
RESULTS: dict[str, Callable[[], Any]] = {
    "none": ctypes.c_int64,
    "int64": ctypes.c_int64,
    "uint64": ctypes.c_uint64,
    "float64": ctypes.c_double,
}


def named_kernel(module: str, name: str) -> Any:
    """Return the kernel that goes by a name in a module; pickles of kernels call this."""
    return operator.attrgetter(name)(importlib.import_module(module))


def pickled_by_name(kernel: Any) -> tuple[Any, ...] | None:
    """Return what pickles a kernel of a module; None for one that was made while a program ran."""
    place = (kernel.py_func.__module__, kernel.py_func.__qualname__)
    try:
        return (named_kernel, place) if named_kernel(*place) is kernel else None
    except (ImportError, AttributeError):
        return None


class StandIn:
    """Stands for a kernel in what numba compiles: has the type and the digest of that one."""

    @property
    def kernel(self) -> Any:
        """The kernel."""
        raise NotImplementedError

    @property
    def _numba_type_(self) -> Any:
        """The type that numba gives to this: that of the kernel."""
        return self.kernel._numba_type_

    def digest_part(self) -> str:
        """Return what the machine code of a caller depends on."""
        part: str = self.kernel.digest_part()
        return part


class LibraryKernel(StandIn):
    """A function whose machine code was made when the wheel was built.

    Parameters
    ----------
    function : callable
    library : Library
    compiler : callable
        Makes the same kernel with numba, for arguments that the library has no code for, and for
        compiled functions of users that call it. Raises ImportError if there is no numba.
    """

    def __init__(self, function: Callable[..., Any], library: Library, compiler: Callable[[], Any]):
        functools.update_wrapper(self, function)
        self.py_func = function
        self._library = library
        self._compiler = compiler

    @property
    def name(self) -> str:
        """Its name in the library."""
        return f"{self.__module__}.{self.py_func.__qualname__}"

    @cached_property
    def _versions(self) -> dict[str, tuple[Any, str]]:
        return self._library.versions(self.name)

    def __call__(self, *arguments: Any) -> Any:
        """Call the machine code for these arguments."""
        try:
            kinds, words, alive = pack(arguments)
            function, returns = self._versions[kinds]
        except (KeyError, TypeError, OverflowError) as missing:
            return self._compiled_for(missing)(*arguments)
        result = RESULTS[returns]()
        status = function(words.buffer_info()[0], ctypes.addressof(result))
        del alive  # not before the call has ended
        if status != 0:
            raise RuntimeError(f"{self.name} failed")
        return None if returns == "none" else result.value

    def address(self, types: str) -> int:
        """Return where the code for types, given as text, begins."""
        address = self._library.address(self.name, types)
        return self.kernel.address(types) if address is None else address

    def __reduce__(self) -> tuple[Any, ...]:
        by_name = pickled_by_name(self)
        if by_name is None:
            raise pickle.PicklingError(f"{self.name} was made while the program ran")
        return by_name

    def _compiled_for(self, missing: Exception) -> Any:
        try:
            return self.kernel
        except ImportError as error:
            what = f"{self.name} for arguments of which the wheel has no machine code ({missing})"
            raise needs_compiler(what) from error

    @cached_property
    def kernel(self) -> Any:
        """The same kernel, compiled by numba in this process."""
        return self._compiler()
