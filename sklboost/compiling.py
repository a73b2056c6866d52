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

import numba


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


def kernel(function: Callable) -> Callable:
    """Compile a function: cached on disk, without the GIL, division by zero as in NumPy.

    Compilation happens at the first call with arguments of new types. A folder chosen by the user
    through ``NUMBA_CACHE_DIR`` is kept. Where nothing can be written, every process compiles anew.
    """
    users_folder = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _CACHE_FOLDER  # numba has no argument for it
    try:
        return numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder that it can write to
        return numba.njit(nogil=True, error_model="numpy")(function)
    finally:
        numba.config.CACHE_DIR = users_folder
