"""How kernels are compiled, and where the compiled code is kept.

One decorator for the whole package. numba keeps compiled code on disk but looks only at the file
of the kernel itself when it asks whether that is still valid; the kernels that it calls may have
changed. So the code is kept in a folder named by a hash of all sources: a new version of the
package never runs code of an old one.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.registry import CPUDispatcher


def _cache_folder() -> str:
    """Give the folder for compiled kernels: in the package if it can be written, else at home."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(source.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    if os.access(package, os.W_OK):
        return str(package / "__pycache__" / name)
    return str(Path.home() / ".cache" / "sklboost" / name)


_CACHE_FOLDER = numba.config.CACHE_DIR or _cache_folder()

# Without the GIL; division by zero as in NumPy; without reference counts, since kernels neither
# allocate nor free: their compilation takes a sixth less, and one that allocates does not compile.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}


class Kernel(CPUDispatcher):
    """A function that is compiled apart for kernels that call it and for calls from Python.

    Unpacking Python's arguments, groups of dozens of arrays, is as much code as many a kernel
    itself. Most kernels are called by kernels only, so their code comes without it: the package
    compiles in two thirds of the time.

    Attributes
    ----------
    entry : dispatcher
        What a call from Python runs.
    """

    entry: Callable

    def __call__(self, *arguments: Any) -> Any:
        """Call the version for Python."""
        return self.entry(*arguments)


def kernel(function: Callable) -> Callable:
    """Compile a function at its first call with arguments of new types; cached on disk.

    A folder chosen by the user through ``NUMBA_CACHE_DIR`` is kept. Where nothing can be written,
    every process compiles anew.
    """
    entry = numba.njit(**_OPTIONS)(function)
    if numba.config.DISABLE_JIT:
        return entry
    no_entry = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    inner = Kernel(function, targetoptions=_OPTIONS | no_entry)
    inner.entry = entry
    users_folder = numba.config.CACHE_DIR
    try:
        # numba has no argument for the folder; it must differ, for the file names do not
        numba.config.CACHE_DIR = os.path.join(_CACHE_FOLDER, "entries")
        entry.enable_caching()
        numba.config.CACHE_DIR = _CACHE_FOLDER
        inner.enable_caching()
    except RuntimeError:  # numba found no folder that it can write to
        pass
    finally:
        numba.config.CACHE_DIR = users_folder
    return inner
