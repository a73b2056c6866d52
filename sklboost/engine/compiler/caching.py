"""Where compiled kernels are kept: one file for each version of each kernel.

A file is named by a digest of all that its machine code depends on, see
:mod:`sklboost.engine.compiler.digests`; the folder by the processor and the versions of Python and
of the compiler. So what is found is right, whoever wrote it and when. numba's own cache checks only
whether the kernel's own file has changed, and not those of the kernels that it calls; it does not
read a folder that it cannot write to, as that of a container often is; and two processes that fill
it at once can mix up their versions.
"""

import contextlib
import functools
import hashlib
import os
import sys
from pathlib import Path
from uuid import uuid4

import llvmlite
import numba

from sklboost.engine.compiler.numba_internals import cpu_target

# Each file begins with a checksum: damaged machine code could end the process or change results.
_CHECKSUM_SIZE = hashlib.sha256().digest_size


def cache_folders() -> list[Path]:
    """Return the folders to look in, in turn; code is kept in the first that can be written.

    That is ``NUMBA_CACHE_DIR`` if it is set; otherwise ``__pycache__`` of the package, and a folder
    in the user's home.
    """
    package = Path(__file__).parents[2]
    if numba.config.CACHE_DIR:
        places = [Path(numba.config.CACHE_DIR)]
    else:
        places = [package / "__pycache__"]
        with contextlib.suppress(RuntimeError):  # a user without home, as some containers have
            places.append(Path.home() / ".cache" / "sklboost")
    return [place / f"kernels-{_TOOLCHAIN}" for place in places if _TOOLCHAIN]


def _toolchain_digest() -> str:
    """Return a digest of all that turns sources into machine code; "" if it is not known."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    if not sources or cpu_target is None:
        return ""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    versions = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    processor = cpu_target.target_context.codegen().magic_tuple()
    settings = [getattr(numba.config, name, None) for name in _SETTINGS]
    digest.update(repr((versions, processor, settings)).encode())
    return digest.hexdigest()[:16]


# Settings of numba that change machine code.
_SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT")
# At import, not at first use: the files may then be those of a newer version.
_TOOLCHAIN = _toolchain_digest()


@functools.cache
def _folders() -> list[Path]:
    return cache_folders()


def filled_folders() -> list[Path]:
    """Return the folders that have compiled code of this version of the package."""
    return [folder for folder in _folders() if any(folder.glob("*.code"))]


def n_kept() -> int:
    """Return the number of files of this version of the package."""
    return sum(1 for folder in _folders() for _ in folder.glob("*.code"))


def read_code(name: str) -> bytes | None:
    """Return the content of a file, None if there is none or if it is damaged."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            content = (folder / f"{name}.code").read_bytes()
            checksum, content = content[:_CHECKSUM_SIZE], content[_CHECKSUM_SIZE:]
            if hashlib.sha256(content).digest() == checksum:
                return content
    return None


def write_code(name: str, content: bytes) -> None:
    """Keep the content of a file, if a folder can be written."""
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            checksum = hashlib.sha256(content).digest()
            _write_at_once(folder / f"{name}.code", checksum + content)
            return


def open_lock(name: str) -> tuple[Path, int] | None:
    """Return a file for a lock beside the one of this name, and its descriptor.

    None if no folder can be written.
    """
    for folder in _folders():
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{name}.lock"
            return path, os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    return None


def _write_at_once(path: Path, content: bytes) -> None:
    """Write a file so that no other process reads half of it."""
    part = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
