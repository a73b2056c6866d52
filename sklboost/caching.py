"""Where compiled kernels are kept: one file for each version of each kernel.

In: what the compiler made. Out: the same, in a later process.

The one idea: a file is named by a hash of all that its code depends on, the sources of the whole
package, the types, the processor, the versions of Python and numba. So what is found is right,
whoever wrote it and when. numba's own cache asks only whether the kernel's own file has changed,
and not those of the kernels that it calls; it does not read a folder that it cannot write to, as
that of a container often is; and two processes that fill it at once can mix up their versions.
"""

import contextlib
import functools
import hashlib
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps


def cache_folders() -> list[Path]:
    """Give the folders to look in, in turn; what is compiled goes to the first that can be written.

    The folder that the user set as ``NUMBA_CACHE_DIR``; or else that of the package, and one in the
    user's home.
    """
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(source.read_bytes())
    if numba.config.CACHE_DIR:
        places = [Path(numba.config.CACHE_DIR)]
    else:
        places = [package / "__pycache__"]
        with contextlib.suppress(RuntimeError):  # a user without home, as some containers have
            places.append(Path.home() / ".cache" / "sklboost")
    return [place / f"kernels-{digest.hexdigest()[:16]}" for place in places]


_FOLDERS = cache_folders()


def filled_folders() -> list[Path]:
    """Give the folders that have compiled code of this version of the package."""
    return [folder for folder in _FOLDERS if any(folder.glob("*.code"))]


class KernelCache(NullCache):
    """The files of one kernel, as numba's dispatchers ask for them.

    Where nothing can be written, or the kernel was not read from a file, nothing is kept, and every
    process compiles anew.

    Parameters
    ----------
    function : callable
        What is compiled.
    kind : str
        Tells apart what is compiled from the same function in several ways.
    """

    def __init__(self, function: Callable, kind: str):
        name = "".join(filter(str.isidentifier, function.__name__))  # without <> of a lambda
        self._prefix = f"{name}-{kind}"
        line = function.__code__.co_firstlineno
        self._source = (function.__module__, function.__qualname__, line, kind)
        self._file = function.__code__.co_filename

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """Give the version for these types, None if there is none."""
        target_context.refresh()  # numba may not be ready at its first use
        name = self._file_name(sig, target_context.codegen())
        for folder in _FOLDERS:
            try:
                content = (folder / name).read_bytes()
            except OSError:
                continue
            return CompileResult._rebuild(target_context, *pickle.loads(content))
        return None

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        """Keep the version for these types, if a folder can be written."""
        if data.library.has_dynamic_globals or not Path(self._file).is_file():
            return
        name = self._file_name(sig, data.codegen)
        content = dumps(data._reduce())
        for folder in _FOLDERS:
            with contextlib.suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                _write_at_once(folder / name, content)
                return

    def _file_name(self, sig: Any, codegen: Any) -> str:
        # the file as well: it may lie outside the package
        versions = (numba.__version__, sys.implementation.cache_tag, codegen.magic_tuple())
        text = repr((self._source, _file_digest(self._file), str(sig), versions))
        return f"{self._prefix}-{hashlib.sha256(text.encode()).hexdigest()[:16]}.code"


@functools.cache
def _file_digest(file: str) -> str:
    path = Path(file)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _write_at_once(path: Path, content: bytes) -> None:
    """Write a file so that nobody ever reads half of it."""
    part = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
