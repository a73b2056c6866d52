"""Which code runs the kernels: that of a wheel, that of numba, or Python itself.

Decided once, when the package is imported. The environment variable ``SKLBOOST_BACKEND`` can name
another: ``compiler``, ``interpreter``, or a processor level of the wheel, such as ``x86-64-v2``.
"""

import enum
import os
import warnings
from importlib.util import find_spec

from sklboost.engine.library.loading import (
    FOLDER,
    REMEDY,
    Library,
    LibraryError,
    needs_compiler,
)

_VARIABLE = "SKLBOOST_BACKEND"


class Backend(enum.Enum):
    """What runs the kernels."""

    LIBRARY = "machine code of the wheel"
    COMPILER = "compiled on this machine"
    INTERPRETER = "interpreted"


def _choose() -> tuple[Backend, Library | None]:
    wanted = os.environ.get(_VARIABLE, "").strip()
    if wanted == "interpreter":
        return Backend.INTERPRETER, None
    has_compiler = find_spec("numba") is not None
    if wanted == "compiler":
        if not has_compiler:
            raise needs_compiler(f"{_VARIABLE}=compiler")
        return _compiler_or_interpreter(), None
    why = "this installation has no machine code"
    if FOLDER.is_dir() or wanted:
        try:
            return Backend.LIBRARY, Library(FOLDER, wanted or None)
        except LibraryError as error:
            if wanted:
                raise ImportError(
                    f"{_VARIABLE}={wanted!r}: {error}; or take compiler or interpreter"
                ) from error
            why = f"the machine code of this installation is not used, as {error}"
            if has_compiler:
                _warn(f"{why}. Kernels are compiled by numba at their first call.")
    if has_compiler:
        return _compiler_or_interpreter(), None
    slowly = "Python runs it all, hundreds of times slower"
    _warn(f"{why}, and numba is not installed. {slowly}: {REMEDY}")
    return Backend.INTERPRETER, None


def _compiler_or_interpreter() -> Backend:
    import numba  # here, since with a library it is not needed

    # by NUMBA_DISABLE_JIT, or by a file of settings
    return Backend.INTERPRETER if numba.config.DISABLE_JIT else Backend.COMPILER


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=2)


BACKEND, LIBRARY = _choose()


def description() -> str:
    """Return a line that says which code runs."""
    if LIBRARY is not None:
        return f"{BACKEND.value} ({LIBRARY.level})"
    return BACKEND.value
